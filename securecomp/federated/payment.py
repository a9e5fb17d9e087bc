"""Spending of a private training: all rounds are paid before the first, and no round twice.

With noise the whole training is one reservation in the ledger, settled at its end; a training that
is never gone on with has spent all of it.

A sum is opened once where a second opening would tell more: with noise, because it would be drawn
anew; without, where sites may drop out, because the difference of two totals could be one site's
change. Before it a mark is written beside the ledger (or, with none, beside the checkpoint), under
the training's own number and the round's: whoever goes on from a checkpoint, or from an old one, or
a copy, finds the mark and does not open that round again. The first mark is of the training's
beginning: where it is not found, neither are the others, and nothing goes on, as from a copy
elsewhere or with another ledger.
"""

from dataclasses import dataclass
from pathlib import Path

from securecomp.errors import LocalProtocolError, ParameterError
from securecomp.federated.checkpoints import Checkpoint, CheckpointFile, Reserved
from securecomp.federated.config import TrainingTerms
from securecomp.privacy.ledger import Ledger, Reservation
from securecomp.privacy.policy import Privacy
from securecomp.privacy.privacy_amounts import PrivacyCost, written
from securecomp.protocol.journal import FileJournal, Journal, MemoryJournal


@dataclass(frozen=True, slots=True)
class Payment:
    """Pays for a training's rounds.

    Attributes:
        privacy: The terms; None without noise, which costs nothing.
        ledger: What is paid from; None if nobody counts.
        journal: Has the marks; None where a sum may be opened again, since it would be the same.
        rounds: How many are paid for.
    """

    privacy: Privacy | None
    ledger: Ledger | None
    journal: Journal | None
    rounds: int

    @classmethod
    def of(cls, privacy: Privacy | None, record: CheckpointFile, terms: TrainingTerms) -> "Payment":
        """Find the ledger, and the place of the marks.

        Raises:
            ParameterError: The ledger is not one, or the place cannot be written.
        """
        if privacy is None and not terms.dropouts:
            return cls(None, None, None, terms.rounds)
        ledger = None if privacy is None else privacy.ledger
        if ledger is not None and not isinstance(ledger, Ledger):
            raise ParameterError(
                "a training is paid from a Ledger; open the file with Ledger(path)"
            )
        folder = record.folder
        if ledger is not None and folder is not None:
            folder = Path(f"{ledger.path}.rounds")
        try:
            journal = MemoryJournal() if folder is None else FileJournal(folder)
        except OSError as error:
            raise ParameterError(
                f"{folder}: marks of rounds cannot be written there: {error.strerror}"
            ) from None
        return cls(privacy, ledger, journal, terms.rounds)

    def check(self, state: Checkpoint, *, resumed: bool) -> None:
        """Refuse what the ledger would refuse; nothing is written.

        Raises:
            BudgetError: A new training does not fit into what is left.
            LocalProtocolError: Of a training that goes on, rounds are left that are not paid for,
                or whose marks are elsewhere.
        """
        if not resumed:
            if self.privacy is not None and self.ledger is not None:
                self.ledger.check(self.privacy.cost, self.privacy.neighbours)
            return
        if self.journal is None or len(state.rounds) >= self.rounds:
            return
        if self.ledger is not None and not self._reserved(state):
            raise LocalProtocolError(
                "the checkpoint's rounds are not paid for by this ledger: its reservation was "
                "settled, or is another ledger's; begin a training anew"
            )
        if not self._begun(state):
            raise LocalProtocolError(
                "the marks of the checkpoint's rounds, which stand for what was opened, are not "
                "beside the file: it is a copy, was moved without its folder FILE.rounds, or is "
                "paid for by a ledger; go on where it began"
            )

    def pay(self, state: Checkpoint) -> Reserved | None:
        """Reserve for all rounds of a new training, and mark its beginning.

        Raises:
            BudgetError: It does not fit into what is left.
        """
        if self.journal is not None:
            self.journal.spend(_mark(state, "begun"))
        if self.privacy is None or self.ledger is None:
            return None
        what = f"training of {self.rounds} rounds"
        found = self.ledger.reserve(what, self.privacy.cost, self.privacy.neighbours)
        cost = found.cost
        return Reserved(found.number, written(cost.epsilon), written(cost.delta))

    def first(self, state: Checkpoint, what: str) -> bool:
        """Mark that a sum begins; return whether it may be opened."""
        if self.journal is None:
            return True
        try:
            self.journal.spend(_mark(state, f"{what}, attempt {state.attempt}"))
        except LocalProtocolError:
            return False
        return True

    def settle(self, state: Checkpoint) -> None:
        """Settle what was reserved, at the end."""
        if self.ledger is not None and state.reserved is not None and self._reserved(state):
            self.ledger.settle(_reservation(state.reserved))

    def _reserved(self, state: Checkpoint) -> bool:
        """Return whether the ledger has an open reservation for the training."""
        # Another ledger's may have the same number, and cost as much.
        if self.ledger is None or state.reserved is None or not self._begun(state):
            return False
        reservation = _reservation(state.reserved)
        return self.ledger.state().open.get(reservation.number) == reservation.cost

    def _begun(self, state: Checkpoint) -> bool:
        """Return whether the training's marks are here."""
        return self.journal is not None and self.journal.has(_mark(state, "begun"))


def _mark(state: Checkpoint, what: str) -> str:
    return f"training {state.run.hex()}: {what}"


def _reservation(reserved: Reserved) -> Reservation:
    return Reservation(reserved.number, PrivacyCost.of(reserved.epsilon, reserved.delta))
