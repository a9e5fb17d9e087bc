"""A ledger for a program that is started again from its beginning, and then pays for nothing twice.

Each reservation has the mark of what it pays for: the same after a restart, and that of nothing
else. It is in the ledger's own history, in the same transaction as the reservation. So a kill at
any moment leaves either a reservation that the restarted program finds, or none and nothing sent.
"""

import os
from collections.abc import Callable

from securecomp.privacy.ledger import Ledger, Reservation
from securecomp.privacy.ledger_history import LedgerBalance
from securecomp.privacy.privacy_amounts import PrivacyCost
from securecomp.privacy.sensitivity import Neighbours


class ReplayedLedger(Ledger):
    """A data set's budget, as a program spends it that may be started again.

    `reserve` finds what was set aside for the same mark and cost before a restart. What was set
    aside for another cost pays nothing.

    Args:
        path: The file.
        mark: Returns the mark of what is paid next.
        dataset: The data set that it must belong to; None takes any.
    """

    def __init__(
        self, path: str | os.PathLike[str], mark: Callable[[], str], dataset: str | None = None
    ) -> None:
        super().__init__(path, dataset)
        self._mark = mark

    def check(self, cost: PrivacyCost, neighbours: Neighbours) -> None:
        """Refuse what `reserve` would refuse; nothing is written."""
        state = self.state()
        if self._reserved(state, cost) is None:
            self._check(state, cost, neighbours)

    def settle(self, reservation: Reservation, cost: PrivacyCost | None = None) -> None:
        """Record what a run cost; once, if it was recorded before a restart."""
        if reservation.number in self.state().open:
            super().settle(reservation, cost)

    def _words(self, what: str) -> str:
        return f"{what} [{self._mark()}]"

    def _reserved(self, state: LedgerBalance, cost: PrivacyCost) -> int | None:
        """Return the reservation of this mark and cost; None if it is not there, or was ended."""
        end = self._words("")
        ended = {
            entry.reservation
            for entry in state.entries
            if entry.kind in ("settle", "cancel") and entry.cost != cost
        }
        for entry in state.entries:
            mine = entry.kind == "reserve" and entry.what.endswith(end) and entry.cost == cost
            if mine and entry.number not in ended:
                return entry.number
        return None
