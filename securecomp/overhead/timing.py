"""Timing of two or more functions in turns."""

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from securecomp.overhead.job import Job

S = TypeVar("S")
Clock = Callable[[], float]

_FIRST = 3
"""Calls at the very beginning. The fastest decides how often to repeat."""
_LONG = 20
"""Multiple of `warm`. In work as long as that, the former content of the caches does not matter."""
_TICK = 1e-9
"""Seconds. The clock shows nothing shorter."""


@dataclass(frozen=True, slots=True)
class Effort:
    """The length of a measurement.

    Attributes:
        seconds: Seconds after which no new round begins.
        least: Fewest rounds.
        most: Most rounds.
        sample: Shortest seconds of a sample. Shorter work is repeated within it.
        warm: Seconds of the same work, not counted, before every sample.
    """

    seconds: float
    least: int
    most: int
    sample: float
    warm: float


FULL = Effort(seconds=4.0, least=15, most=101, sample=0.05, warm=0.02)
QUICK = Effort(seconds=0.3, least=7, most=15, sample=0.005, warm=0.002)


@dataclass(slots=True)
class Timing:
    """Seconds of calls of the secure side, and of its parts."""

    setup: float = 0.0
    online: float = 0.0
    parts: dict[str, float] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """Set-up and online time together."""
        return self.setup + self.online

    def add(self, other: "Timing") -> None:
        """Add another call's."""
        self.setup += other.setup
        self.online += other.online
        for name, seconds in other.parts.items():
            self.parts[name] = self.parts.get(name, 0.0) + seconds

    def each(self, calls: int) -> "Timing":
        """Return the mean over so many calls."""
        parts = {name: seconds / calls for name, seconds in self.parts.items()}
        return Timing(self.setup / calls, self.online / calls, parts)


@dataclass(slots=True)
class Samples:
    """Seconds of a call, one entry for each round in every list."""

    plain: list[float] = field(default_factory=list)
    secure_side: list[Timing] = field(default_factory=list)
    floors: dict[str, list[float]] = field(default_factory=dict)
    checked: dict[str, Any] = field(default_factory=dict)

    @property
    def setup(self) -> list[float]:
        """Seconds of the set-up, one entry for each round."""
        return [taken.setup for taken in self.secure_side]

    @property
    def online(self) -> list[float]:
        """Seconds of the secure work, one entry for each round."""
        return [taken.online for taken in self.secure_side]

    @property
    def secure(self) -> list[float]:
        """Set-up and online time together."""
        return [taken.total for taken in self.secure_side]

    @property
    def parts(self) -> dict[str, list[float]]:
        """Seconds of one party of each role, one entry for each round."""
        names = self.secure_side[0].parts if self.secure_side else ()
        return {name: [taken.parts[name] for taken in self.secure_side] for name in names}


def interleave(job: Job, effort: Effort, clock: Clock = time.perf_counter) -> Samples:
    """Run plaintext, secure and floors in turns: plain, secure, floor, plain, secure, floor ...

    Some uncounted work of the same kind goes before every sample. Without it each sample would find
    the caches full of the other side's data. That hurts the short plaintext most, and would make
    the secure side look better than `timeit` shows.
    """
    plain, secure = _plain(job.plain, effort, clock), _secure(job, effort, clock)
    floors = {name: _plain(function, effort, clock) for name, function in job.floors.items()}
    samples = Samples(floors={name: [] for name in floors})
    end = clock() + effort.seconds
    while len(samples.plain) < effort.most:
        if len(samples.plain) >= effort.least and clock() > end:
            break
        samples.plain.append(plain())
        samples.secure_side.append(secure())
        for name, floor in floors.items():
            samples.floors[name].append(floor())
    return samples


def measure_long(job: Job, rounds: int, clock: Clock = time.perf_counter) -> Samples:
    """Run long work a few times, checking every result, with the plaintext and floors beside."""
    samples = Samples(floors={name: [] for name in job.floors})
    for _ in range(rounds):
        plain, took = _timed(job.plain, clock)
        samples.plain.append(took)
        state, result, taken = _call(job, clock)
        # The set-up of long work, such as reading its data, does not count.
        taken.setup = 0.0 if job.before is None else job.before(result)
        samples.secure_side.append(taken)
        cost = asdict(job.cost(state, result)) if job.cost else {}
        samples.checked = {"error": job.check(plain, result), "peak_memory": 0, **cost}
        for name, floor in job.floors.items():
            samples.floors[name].append(_timed(floor, clock)[1])
    return samples


def _timed(function: Callable[[], S], clock: Clock) -> tuple[S, float]:
    start = clock()
    result = function()
    return result, clock() - start


def _call(job: Job, clock: Clock) -> tuple[Any, Any, Timing]:
    """Run the secure side once; return its state, its result and its times."""
    start = clock()
    state = job.prepare()
    ready = clock()
    result = job.secure(state)
    took, setup = clock() - ready, ready - start
    taken = Timing(
        setup if job.setup else 0.0,
        took if job.seconds is None else job.seconds(result),
        dict(job.parts(state, result)) if job.parts else {},
    )
    if job.before:
        taken.setup += job.before(result)
    return state, result, taken


def _repeated(
    sample: Callable[[int], S], total: Callable[[S], float], effort: Effort
) -> Callable[[], S]:
    """Return a function that takes one sample: warm first, and long enough for the clock."""
    shortest = math.inf
    for _ in range(_FIRST):
        shortest = max(_TICK, min(shortest, total(sample(1))))
        if shortest > effort.sample:  # once is enough: one call will be a sample
            break
    warm = math.ceil(effort.warm / shortest) if shortest < _LONG * effort.warm else 0
    loops = math.ceil(effort.sample / shortest)

    def measured() -> S:
        if warm:
            sample(warm)
        return sample(loops)

    return measured


def _plain(function: Callable[[], Any], effort: Effort, clock: Clock) -> Callable[[], float]:
    def sample(loops: int) -> float:
        start = clock()
        for _ in range(loops):
            function()
        return (clock() - start) / loops

    return _repeated(sample, float, effort)


def _secure(job: Job, effort: Effort, clock: Clock) -> Callable[[], Timing]:
    def sample(loops: int) -> Timing:
        all_calls = Timing()
        for _ in range(loops):
            # Free state and result here; the next call would do it on the clock.
            all_calls.add(_call(job, clock)[2])
        return all_calls.each(loops)

    return _repeated(sample, lambda taken: taken.total, effort)
