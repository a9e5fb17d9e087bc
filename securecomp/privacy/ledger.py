"""A data set's privacy budget, in a file: what does not fit is refused before anything runs.

An answer is reserved before it is computed, and settled after it: a process that dies in between
has spent all that it reserved. Costs add up, exactly. Processes take turns (SQLite, `BEGIN
IMMEDIATE`); an entry is on the disk before a method returns, or nothing is changed. The history is
checked from its beginning each time, so that nothing is spent from a ledger that was edited.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from securecomp.errors import (
    BudgetError,
    KeyMismatchError,
    LocalProtocolError,
    ParameterError,
)
from securecomp.privacy.ledger_history import Kind, LedgerBalance, check_head, opening, replay
from securecomp.privacy.privacy_amounts import (
    NOTHING,
    Amount,
    PrivacyCost,
    check_promised_delta,
    written,
)
from securecomp.privacy.sensitivity import Neighbours
from securecomp.protocol.storage import create_private

_TABLE = """CREATE TABLE history (
    number INTEGER PRIMARY KEY, kind TEXT NOT NULL, reservation INTEGER NOT NULL,
    epsilon TEXT NOT NULL, delta TEXT NOT NULL, what TEXT NOT NULL, time TEXT NOT NULL,
    link TEXT NOT NULL)"""
_WAIT = 30.0
"""Seconds that a process waits for its turn."""
_FAULTS = {
    "SQLITE_FULL": "the disk is full; make room",
    "SQLITE_READONLY": "the file or its folder is read-only; make both writable",
    "SQLITE_PERM": "the file may not be read; change its permissions",
    "SQLITE_BUSY": "another process holds it; try again when that has ended",
    "SQLITE_CANTOPEN": "it is not there or may not be opened; `securecomp budget create` makes one",
    "SQLITE_NOTADB": "it is no ledger; name another file",
    "SQLITE_CORRUPT": "it is damaged; put an untouched copy back",
    "SQLITE_IOERR": "the disk does not take it; check it and its free space",
    "SQLITE_ERROR": "it is no ledger; name another file",
}


@dataclass(frozen=True, slots=True)
class Reservation:
    """Budget that is set aside for one run.

    Attributes:
        number: The entry that reserved it.
        cost: How much.
    """

    number: int
    cost: PrivacyCost


class Ledger:
    """One data set's budget.

    Args:
        path: The file.
        dataset: The data set that it must belong to; None takes any.

    Methods raise LocalProtocolError where the file is missing, damaged, edited, read-only, held by
    another process or on a full disk, and KeyMismatchError where it is of another data set.
    """

    def __init__(self, path: str | os.PathLike[str], dataset: str | None = None) -> None:
        self._path = Path(path).absolute()
        self._shown = os.fspath(path)
        self._dataset = dataset

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        dataset: str,
        epsilon: Amount,
        delta: Amount = 0,
        neighbours: Neighbours | None = None,
    ) -> "Ledger":
        """Make a ledger; an existing file is never written over.

        Args:
            path: The file.
            dataset: The data set's name. Two ledgers of one data set are two budgets: keep one.
            epsilon: What all answers together may cost.
            delta: The same, of delta.
            neighbours: What is protected; by default one record, there or not.

        Raises:
            ParameterError: The file exists, the name is empty, or an amount cannot be.
            LocalProtocolError: It cannot be written.
        """
        budget = PrivacyCost.of(epsilon, delta)
        check_promised_delta(budget.delta)
        if budget.epsilon == 0:
            raise ParameterError("a budget of epsilon 0 answers nothing; give one above 0")
        if not dataset.strip():
            raise ParameterError("a ledger belongs to a data set; name it")
        ledger = cls(path, dataset)
        try:
            create_private(ledger._path)
        except FileExistsError:
            raise ParameterError(
                f"{ledger._shown}: is there already, and a budget is set once; name another file"
            ) from None
        except OSError as error:
            raise ParameterError(f"{ledger._shown}: cannot be written: {error.strerror}") from None
        try:
            with ledger._connection(write=True) as connection:
                connection.execute(_TABLE)
                what = opening(dataset, neighbours or Neighbours())
                ledger._append(connection, LedgerBalance(), "create", None, budget, what)
        except BaseException:
            ledger._path.unlink(missing_ok=True)
            raise
        return ledger

    def state(self) -> LedgerBalance:
        """Return what the history adds up to, after checking it."""
        with self._connection(write=False) as connection:
            return self._read(connection)

    def verify(self, head: str | None = None) -> LedgerBalance:
        """Return the state, if the history is as it was written.

        Args:
            head: A link that was noted before, as by `budget show`; it must be in the history.

        Raises:
            KeyMismatchError: The history does not go on from that link.
        """
        state = self.state()
        if head is not None:
            check_head(state, head, self._shown)
        return state

    def check(self, cost: PrivacyCost, neighbours: Neighbours) -> None:
        """Refuse what `reserve` would refuse; nothing is written."""
        self._check(self.state(), cost, neighbours)

    def reserve(self, what: str, cost: PrivacyCost, neighbours: Neighbours) -> Reservation:
        """Set aside what a run will cost, before it runs.

        Args:
            what: The question, in words that may be read by whoever reads the ledger.
            cost: The most that it will cost.
            neighbours: For which neighbours that holds.

        Raises:
            BudgetError: It does not fit into what is left. Nothing is written.
            ParameterError: It costs nothing, or promises something else than the budget protects.
        """
        _refuse_negative(cost)
        with self._connection(write=True) as connection:
            state = self._read(connection)
            number = self._reserved(state, cost)
            if number is None:
                self._check(state, cost, neighbours)
                words = self._words(what)
                number = self._append(connection, state, "reserve", None, cost, words)
        return Reservation(number, cost)

    def _reserved(self, state: LedgerBalance, cost: PrivacyCost) -> int | None:
        """Return the reservation that pays already; a plain ledger pays for each run anew."""
        del state, cost
        return None

    def _words(self, what: str) -> str:
        """Return how a reservation describes what it pays for."""
        return what

    def settle(self, reservation: Reservation, cost: PrivacyCost | None = None) -> None:
        """Record what a run cost, after it ran; the rest of its reservation is free again.

        Args:
            reservation: What was set aside.
            cost: What it cost, at most that; by default all of it.

        Raises:
            ParameterError: It is more than was reserved, or was settled before.
        """
        self._end(reservation, "settle", reservation.cost if cost is None else cost)

    def cancel(self, reservation: Reservation) -> None:
        """Give a reservation back, if nothing that depends on the data was seen by anybody.

        Raises:
            ParameterError: It was settled before.
        """
        self._end(reservation, "cancel", NOTHING)

    @contextmanager
    def spending(
        self, what: str, cost: PrivacyCost, neighbours: Neighbours
    ) -> Iterator[Reservation]:
        """Reserve before a block and settle after it; an error within it spends all of it."""
        reservation = self.reserve(what, cost, neighbours)
        yield reservation
        self.settle(reservation)

    def _check(self, state: LedgerBalance, cost: PrivacyCost, neighbours: Neighbours) -> None:
        mine = state.neighbours
        if (neighbours.relation, neighbours.unit) != (mine.relation, mine.unit) or (
            neighbours.records < mine.records
        ):
            raise ParameterError(
                f"{self._shown}: this budget protects {mine}, and the question promises for "
                f"{neighbours}; ask it with the budget's relation, unit and records"
            )
        if cost == NOTHING:
            raise ParameterError("a question that costs nothing needs no budget")
        left = state.left
        if not cost.fits(left):
            raise BudgetError(
                f"{self._shown}: the question costs {cost}, and of {state.budget} there is left "
                f"{left}; nothing was computed or spent; ask for less"
            )

    def _end(self, reservation: Reservation, kind: Kind, cost: PrivacyCost) -> None:
        _refuse_negative(cost)
        with self._connection(write=True) as connection:
            state = self._read(connection)
            if state.open.get(reservation.number) != reservation.cost:
                raise ParameterError(
                    f"{self._shown}: reservation {reservation.number} was settled before, or is "
                    "of another ledger"
                )
            if not cost.fits(reservation.cost):
                raise ParameterError(
                    f"{self._shown}: {cost} is more than the {reservation.cost} that was reserved; "
                    "all of the reservation counts as spent"
                )
            self._append(connection, state, kind, reservation.number, cost, "")

    def _read(self, connection: sqlite3.Connection) -> LedgerBalance:
        rows = connection.execute(
            "SELECT number, kind, reservation, epsilon, delta, what, time, link FROM history "
            "ORDER BY number"
        )
        state = replay(rows, self._shown)
        if self._dataset is not None and state.dataset != self._dataset:
            raise KeyMismatchError(
                f"{self._shown}: is the ledger of {state.dataset!r}, not of {self._dataset!r}; "
                "nothing was spent; name this data set's own"
            )
        return state

    def _append(
        self,
        connection: sqlite3.Connection,
        state: LedgerBalance,
        kind: Kind,
        reservation: int | None,
        cost: PrivacyCost,
        what: str,
    ) -> int:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        entry = state.next(kind, reservation, cost, what, now)
        connection.execute("INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?)", entry.row())
        return entry.number

    @contextmanager
    def _connection(self, *, write: bool) -> Iterator[sqlite3.Connection]:
        """Open the file for one transaction, which is taken back if anything fails."""
        # Readers open it for writing too, where they may, to end what a killed process began.
        uri = f"{self._path.as_uri()}?mode=rw"
        try:
            with closing(
                sqlite3.connect(uri, uri=True, timeout=_WAIT, isolation_level=None)
            ) as connection:
                connection.execute("PRAGMA synchronous = EXTRA")
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                # Closing without a commit rolls back.
                yield connection
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", "SQLITE_ERROR")
            known = next((text for key, text in _FAULTS.items() if name.startswith(key)), None)
            raise LocalProtocolError(
                f"{self._shown}: the ledger cannot be {'written' if write else 'read'}, so nothing "
                f"is answered: {known or error}"
            ) from None


def report(state: LedgerBalance) -> dict[str, str | int]:
    """Return a budget's figures, for people and machines."""
    neighbours = state.neighbours
    return {
        "dataset": state.dataset,
        "relation": neighbours.relation,
        "unit": neighbours.unit,
        "records": neighbours.records,
        "epsilon": written(state.budget.epsilon),
        "epsilon_spent": written(state.spent.epsilon),
        "epsilon_left": written(state.left.epsilon),
        "delta": written(state.budget.delta),
        "delta_spent": written(state.spent.delta),
        "delta_left": written(state.left.delta),
        "open": len(state.open),
        "entries": len(state.entries),
        "head": state.head,
    }


def _refuse_negative(cost: PrivacyCost) -> None:
    if cost.epsilon < 0 or cost.delta < 0:
        raise ParameterError(f"a cost is not negative: {cost}")
