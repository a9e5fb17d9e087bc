"""A budget's history: entries of which each is bound to all before it, and what they add up to.

A link is the SHA-256 of the link before and of the entry, so that an entry that is changed, taken
out, put in or moved shows. There is no key: who cuts the end off, makes all links again, or
puts an old copy of the file back, is noticed only with a link that was noted elsewhere.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, cast, get_args

from securecomp.errors import KeyMismatchError, LocalProtocolError, ParameterError
from securecomp.privacy.privacy_amounts import NOTHING, PrivacyCost, written
from securecomp.privacy.sensitivity import Neighbours

Kind = Literal["create", "reserve", "settle", "cancel"]
_START = "securecomp privacy budget, version 1"


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One line of the history.

    Attributes:
        number: Its place, counted from 1.
        kind: What happened.
        reservation: The entry that this one ends, or its own number.
        cost: The budget of a `create`, what a `reserve` sets aside, what a `settle` spent of it.
        what: In words; of a `create` the data set and its neighbours, as JSON.
        time: When, in UTC.
        link: The hash over this entry and all before.
    """

    number: int
    kind: Kind
    reservation: int
    cost: PrivacyCost
    what: str
    time: str
    link: str

    def row(self) -> tuple[int, str, int, str, str, str, str, str]:
        """Return what is stored."""
        return (
            self.number,
            self.kind,
            self.reservation,
            written(self.cost.epsilon),
            written(self.cost.delta),
            self.what,
            self.time,
            self.link,
        )


@dataclass(slots=True)
class LedgerBalance:
    """Totals of a history.

    Attributes:
        dataset: Whose budget it is.
        neighbours: What it protects.
        budget: What there was at the beginning.
        spent: What is gone: settled, or set aside by runs that did not settle.
        open: Reservations that are not settled, by their number.
        entries: The history.
    """

    dataset: str = ""
    neighbours: Neighbours = field(default_factory=Neighbours)
    budget: PrivacyCost = NOTHING
    spent: PrivacyCost = NOTHING
    open: dict[int, PrivacyCost] = field(default_factory=dict)
    entries: list[HistoryEntry] = field(default_factory=list)

    @property
    def left(self) -> PrivacyCost:
        """Budget that can still be spent."""
        return self.budget - self.spent

    @property
    def head(self) -> str:
        """The last link; note it elsewhere to notice an older file."""
        return self.entries[-1].link if self.entries else _START

    def next(
        self, kind: Kind, reservation: int | None, cost: PrivacyCost, what: str, time: str
    ) -> HistoryEntry:
        """Return the entry that would come next, and add it."""
        number = len(self.entries) + 1
        bare = (number, kind, number if reservation is None else reservation, cost, what, time)
        entry = HistoryEntry(*bare, link=_link(self.head, HistoryEntry(*bare, link="")))
        self._add(entry)
        return entry

    def _add(self, entry: HistoryEntry) -> None:
        """Follow an entry.

        Raises:
            ParameterError: It cannot come here.
        """
        if (entry.kind == "create") != (not self.entries):
            raise ParameterError("a history begins with its budget, which is set once")
        if entry.kind == "create":
            facts = json.loads(entry.what)
            self.dataset = facts.pop("dataset")
            self.neighbours = Neighbours(**facts)
            self.budget = entry.cost
        elif entry.kind == "reserve":
            if entry.reservation != entry.number or not entry.cost.fits(self.left):
                raise ParameterError("it reserves more than is left")
            self.open[entry.number] = entry.cost
            self.spent += entry.cost
        else:
            reserved = self.open.get(entry.reservation)
            if reserved is None or not entry.cost.fits(reserved):
                raise ParameterError("it settles what was not reserved")
            if entry.kind == "cancel" and entry.cost != NOTHING:
                raise ParameterError("what is cancelled costs nothing")
            del self.open[entry.reservation]
            self.spent += entry.cost - reserved
        self.entries.append(entry)


def opening(dataset: str, neighbours: Neighbours) -> str:
    """Return the words of a `create`."""
    facts = {
        "dataset": dataset,
        "relation": neighbours.relation,
        "unit": neighbours.unit,
        "records": neighbours.records,
    }
    return json.dumps(facts)


def replay(rows: Iterable[tuple[object, ...]], path: str) -> LedgerBalance:
    """Return what a stored history adds up to, after it was checked from its beginning.

    Args:
        rows: As stored, in order.
        path: The file, for messages.

    Raises:
        LocalProtocolError: An entry is not as it was written.
    """
    state = LedgerBalance()
    for place, row in enumerate(rows, start=1):
        try:
            number, kind, reservation, epsilon, delta, what, time, link = row
            if not isinstance(number, int) or not isinstance(reservation, int):
                raise ParameterError("numbers are integers")
            if number != place:
                raise ParameterError(f"entry {place} is missing")
            if kind not in get_args(Kind):
                raise ParameterError("there is no such kind")
            cost = PrivacyCost.of(_text(epsilon), _text(delta))
            entry = HistoryEntry(
                number, cast("Kind", kind), reservation, cost, _text(what), _text(time), _text(link)
            )
            if _link(state.head, entry) != entry.link or entry.row() != tuple(row):
                raise ParameterError("its link does not fit")
            state._add(entry)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise LocalProtocolError(
                f"{path}: entry {place} was changed after it was written ({error}); nothing is "
                "spent from this ledger; put an untouched copy back, or count the budget as gone"
            ) from None
    if not state.entries:
        raise LocalProtocolError(f"{path}: holds no budget; its creation was interrupted")
    return state


def check_head(state: LedgerBalance, head: str, path: str) -> None:
    """Refuse a history that does not go on from a link that was noted before.

    Raises:
        KeyMismatchError: No entry has this link.
    """
    if not any(entry.link == head for entry in state.entries):
        raise KeyMismatchError(
            f"{path}: no entry has the link {head[:16]}...; this is an older copy, another ledger, "
            "or its end was written again"
        )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ParameterError("text is text")
    return value


def _link(before: str, entry: HistoryEntry) -> str:
    body = json.dumps([before, *entry.row()[:-1]], ensure_ascii=True)
    return hashlib.sha256(body.encode("ascii")).hexdigest()
