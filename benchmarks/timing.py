"""Time two or more functions in turns, and say how far the times spread."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

import numpy as np

from benchmarks.job import Job

S = TypeVar("S")

_FIRST = 3
"""Calls at the very beginning; the fastest says how often to repeat."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to measure.

    Attributes:
        seconds: Take rounds until so much time is over,
        least: but at least so many
        most: and at most so many.
        sample: Seconds that one sample takes at least; shorter work is repeated within it.
        warm: Seconds of the same work, not counted, that go before every sample.
    """

    seconds: float
    least: int
    most: int
    sample: float
    warm: float


FULL = Effort(seconds=4.0, least=15, most=101, sample=0.05, warm=0.02)
QUICK = Effort(seconds=0.3, least=3, most=15, sample=0.005, warm=0.002)


@dataclass(slots=True)
class Samples:
    """Seconds a call, one entry a round in every list."""

    plain: list[float] = field(default_factory=list)
    setup: list[float] = field(default_factory=list)
    online: list[float] = field(default_factory=list)
    floors: dict[str, list[float]] = field(default_factory=dict)
    checked: dict[str, Any] = field(default_factory=dict)

    @property
    def secure(self) -> list[float]:
        """Set-up and online time together."""
        return [a + b for a, b in zip(self.setup, self.online, strict=True)]


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return the median and the quartiles."""
    low, median, high = np.percentile(values, [25, 50, 75]).tolist()
    return {"median": median, "q1": low, "q3": high}


def ratio(of: Sequence[float], to: Sequence[float]) -> dict[str, float]:
    """Return the spread of the ratios of times that were measured next to each other."""
    return spread([a / b for a, b in zip(of, to, strict=True)])


def interleave(job: Job, effort: Effort) -> Samples:
    """Run plaintext, secure and floors in turns: plain, secure, floor, plain, secure, floor ...

    Some of the same work that does not count goes before every sample. Without it each would find
    the caches full of the other side's data, which hurts the short plaintext most and would make
    the secure side look better than `timeit` says.
    """
    plain, secure = _plain(job.plain, effort), _secure(job, effort)
    floors = {name: _plain(function, effort) for name, function in job.floors.items()}
    samples = Samples(floors={name: [] for name in floors})
    end = time.perf_counter() + effort.seconds
    while len(samples.plain) < effort.most:
        if len(samples.plain) >= effort.least and time.perf_counter() > end:
            break
        samples.plain.append(plain())
        setup, online = secure()
        samples.setup.append(setup)
        samples.online.append(online)
        for name, floor in floors.items():
            samples.floors[name].append(floor())
    return samples


def plainly(job: Job, rounds: int) -> Samples:
    """Run long work a few times, checking every result, with the plaintext and floors beside."""
    samples = Samples(floors={name: [] for name in job.floors})
    for _ in range(rounds):
        start = time.perf_counter()
        plain = job.plain()
        samples.plain.append(time.perf_counter() - start)
        state = job.prepare()
        start = time.perf_counter()
        result = job.secure(state)
        took = time.perf_counter() - start
        samples.setup.append(0.0 if job.before is None else job.before(result))
        samples.online.append(took if job.seconds is None else job.seconds(result))
        cost = asdict(job.cost(state, result)) if job.cost else {}
        samples.checked = {"error": job.check(plain, result), "peak_memory": 0, **cost}
        for name, floor in job.floors.items():
            start = time.perf_counter()
            floor()
            samples.floors[name].append(time.perf_counter() - start)
    return samples


def _repeated(
    sample: Callable[[int], S], total: Callable[[S], float], effort: Effort
) -> Callable[[], S]:
    """Return a function that takes one sample: warm first, and long enough for the clock."""
    shortest = min(total(sample(1)) for _ in range(_FIRST))
    warm, loops = (math.ceil(seconds / shortest) for seconds in (effort.warm, effort.sample))

    def measured() -> S:
        sample(warm)
        return sample(loops)

    return measured


def _plain(function: Callable[[], Any], effort: Effort) -> Callable[[], float]:
    def sample(loops: int) -> float:
        start = time.perf_counter()
        for _ in range(loops):
            function()
        return (time.perf_counter() - start) / loops

    return _repeated(sample, float, effort)


def _secure(job: Job, effort: Effort) -> Callable[[], tuple[float, float]]:
    def sample(loops: int) -> tuple[float, float]:
        setup = online = 0.0
        for _ in range(loops):
            start = time.perf_counter()
            state = job.prepare()
            ready = time.perf_counter()
            result = job.secure(state)
            done = time.perf_counter()
            setup += ready - start if job.setup else 0.0
            setup += job.before(result) if job.before else 0.0
            online += done - ready if job.seconds is None else job.seconds(result)
            # Freed here and not by the next assignment, which the clock would see.
            del state, result
        return setup / loops, online / loops

    return _repeated(sample, sum, effort)
