"""A case, the job that it builds, and the targets that the job must meet."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from securecomp.errors import ParameterError, WrongResultError
from securecomp.protocol.carrier import Transcript

__all__ = ["DECODE", "Case", "Communication", "Job", "Target", "WrongResultError", "chosen", "role"]

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
class Communication:
    """Bytes, rounds and messages on the network, counted by the library.

    Attributes:
        bytes_per_party: Bytes by the party that sends most.
        bytes_total: Bytes by all.
        rounds: Rounds.
        messages: Messages.
        bytes_by_role: For each role, the bytes by the party of it that sends most.
        bytes_on_line: Bytes of the busiest line in one direction, summed over the rounds; in each
            round the busiest party counts. None if nobody counted them.
    """

    bytes_per_party: int
    bytes_total: int
    rounds: int
    messages: int
    bytes_by_role: Mapping[str, int] = field(default_factory=dict)
    bytes_on_line: int | None = None

    @classmethod
    def of(cls, transcript: Transcript, sites: Collection[str] = ()) -> "Communication":
        """Return the counts of a transcript.

        Args:
            transcript: Of a computation.
            sites: Names of sites. Any other name is a role, with or without a number.
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
    """Return a party's role: "hospital" of "hospital 3"."""
    return re.sub(r" \d+$", "", name)


@dataclass(frozen=True, slots=True)
class Job:
    """The same work in plaintext and under encryption, on data that are ready.

    Attributes:
        sizes: Numbers that describe the work, by name.
        plain: The plaintext side.
        secure: The secure side. It takes the state that `setup` returned, or None.
        check: Takes both results and returns the numeric error. Raises `WrongResultError`.
        setup: Work that comes once before the secure work, such as drawing long-term keys.
        floors: Work that no implementation of the secure side can avoid, by name.
        cost: Counts the messages, from the state and the result.
        seconds: Reads the online time from a result that clocks itself, where the call also does
            work that does not belong to the job.
        before: Reads from the result the time within the call that counts as set-up, such as a
            dealer's. `seconds` must leave it out.
        parts: Reads, from the state and the result, the online seconds of one party of each role.
            "decode" is the time in which a receiver reads the result.
        note: Facts that a reader needs to judge the ratio.
    """

    sizes: Mapping[str, int]
    plain: Callable[[], Any]
    secure: Callable[[Any], Any]
    check: Callable[[Any, Any], float]
    setup: Callable[[], Any] | None = None
    floors: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    cost: Callable[[Any, Any], Communication] | None = None
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
        targets: Numbers that the job must meet at `size`.
        series: In a growth series: the name of the size that varies.
        rounds: For work of many seconds: how often to run it, without warming. 0 lets the harness
            decide.
        scheme: The scheme that computes it. Growth is fitted for each scheme apart.
        family: The published claim that stands beside its ratio, see `published_claims`; or "".
        batch: Cases of one batch share a process, one after the other. "" gives a process of its
            own.
        blas_threads: Threads that BLAS may use; 0 for its own choice.
        needs: Modules without which the case is skipped.
        install: The command that brings them.
    """

    name: str
    title: str
    build: Callable[[int], Job]
    size: int
    quick: int
    tiny: int
    targets: tuple[Target, ...] = ()
    series: str = ""
    rounds: int = 0
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
