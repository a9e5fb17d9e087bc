"""What is measured: a case, the job that it builds, and the target that it must meet."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from securecomp.errors import ParameterError, WrongResultError
from securecomp.protocol.local_carrier import Transcript

__all__ = ["DECODE", "Case", "Job", "Target", "Traffic", "WrongResultError", "chosen", "role"]

DECODE = "decode"
"""The part of the online time in which the receiver reads the result."""


@dataclass(frozen=True, slots=True)
class Target:
    """A number that must be met, a ratio or an absolute one.

    Attributes:
        text: The promise in words.
        limit: Largest number that keeps it.
        floor: Which of the job's floors the ratio refers to; empty for the plaintext.
        unit: "x" for a ratio. Or of an absolute number, for each element: "us", "bytes there" (sent
            by the party that sends most), "bytes back" (by the others); "error" for all.
    """

    text: str
    limit: float
    floor: str = ""
    unit: str = "x"


@dataclass(frozen=True, slots=True)
class Traffic:
    """What crossed the network, counted by the library.

    Attributes:
        bytes_per_party: Bytes by the party that sends most.
        bytes_total: Bytes by all.
        rounds: Rounds.
        messages: Messages.
        bytes_by_role: For each role, the bytes by the party of it that sends most.
        bytes_on_line: What the busiest party's line carries in one direction, of each round the
            busiest, added up; None if nobody counted it.
    """

    bytes_per_party: int
    bytes_total: int
    rounds: int
    messages: int
    bytes_by_role: Mapping[str, int] = field(default_factory=dict)
    bytes_on_line: int | None = None

    @classmethod
    def of(cls, transcript: Transcript, sites: Collection[str] = ()) -> "Traffic":
        """Return what the library counted.

        Args:
            transcript: Of a computation.
            sites: Names that are no role with a number; they are sites.
        """
        roles: dict[str, int] = {}
        for name, sent in transcript.sent.items():
            kind = "site" if name in sites else role(name)
            roles[kind] = max(sent, roles.get(kind, 0))
        return cls(
            max(transcript.sent.values(), default=0),
            transcript.bytes_sent,
            transcript.rounds,
            transcript.messages,
            roles,
            sum(transcript.loads),
        )


def role(name: str) -> str:
    """Return what a party is: "hospital" of "hospital 3"."""
    return re.sub(r" \d+$", "", name)


@dataclass(frozen=True, slots=True)
class Job:
    """The same work in plaintext and under encryption, on data that are ready.

    Attributes:
        sizes: What describes the work.
        plain: The plaintext side.
        secure: The secure side; it takes what `setup` returned, None if there is none.
        check: Takes both results, returns the numeric error, raises `WrongResultError`.
        setup: What is done once before the secure work, such as drawing long-term keys.
        floors: Work that no implementation of the secure side can avoid, by name.
        cost: What the secure side sent, from what `setup` and `secure` returned.
        seconds: Reads the online time from a result that clocks itself, because the call also
            does work that does not belong to the job.
        before: Reads from the result the time of work within the call that counts as set-up, such
            as a dealer's; `seconds` must leave it out.
        parts: Reads, from what `setup` and `secure` returned, what one party of each role spends
            of the online time, by role; "decode" is what a receiver takes to read the result.
        note: What a reader must know to judge the ratio.
    """

    sizes: Mapping[str, int]
    plain: Callable[[], Any]
    secure: Callable[[Any], Any]
    check: Callable[[Any, Any], float]
    setup: Callable[[], Any] | None = None
    floors: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    cost: Callable[[Any, Any], Traffic] | None = None
    seconds: Callable[[Any], float] | None = None
    before: Callable[[Any], float] | None = None
    parts: Callable[[Any, Any], Mapping[str, float]] | None = None
    note: str = ""

    def prepare(self) -> Any:
        """Do the set-up, if there is any."""
        return None if self.setup is None else self.setup()


@dataclass(frozen=True, slots=True)
class Case:
    """A job that can be built in several sizes.

    Attributes:
        name: Unique; parts are separated by "/".
        title: One line.
        build: Makes the job of a size, with its data.
        size: The size that is reported.
        quick: The size of a quick run.
        tiny: A size that only loads the code.
        target: What the job must meet at `size`.
        more: What else.
        series: For growth: which of the job's sizes varies.
        rounds: For work of many seconds: how often to run it, without warming; 0 for the rule.
        scheme: What computes it; growth is fitted for each scheme apart.
        family: Which claim stands beside its ratio, see `claims`; empty for none.
        batch: Cases of one batch, one after the other, share a process; empty for one of its own.
        blas_threads: How many threads BLAS may use; 0 for its own choice.
        needs: Modules without which the case is skipped.
        install: The command that brings them.
    """

    name: str
    title: str
    build: Callable[[int], Job]
    size: int
    quick: int
    tiny: int
    target: Target | None = None
    series: str = ""
    rounds: int = 0
    more: tuple[Target, ...] = ()
    scheme: str = ""
    family: str = ""
    batch: str = ""
    blas_threads: int = 0
    needs: tuple[str, ...] = ()
    install: str = ""


def chosen(cases: tuple[Case, ...], names: tuple[str, ...] | list[str]) -> list[Case]:
    """Return the cases of these names; "sum" stands for all of "sum/...", no name for all.

    Raises:
        ParameterError: No case has that name.
    """
    for name in names:
        if not any(_matches(case, name) for case in cases):
            raise ParameterError(f"there is no case {name!r}; --list shows them")
    return [case for case in cases if not names or any(_matches(case, n) for n in names)]


def _matches(case: Case, name: str) -> bool:
    return case.name == name or case.name.startswith(f"{name}/")
