"""Noise: draws a second, errors against the promise, and the price of noise drawn in parts."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from securecomp.overhead.job import Case, Job, WrongResultError
from securecomp.privacy import samplers
from securecomp.privacy.distributed import NoisePlan, plan
from securecomp.privacy.noise_distributions import UnitChange
from securecomp.privacy.policy import KINDS, Kind
from securecomp.protocol.secure_sum import secure_sum

_DRAWS = 1_000_000
_RUNS = 10_000
_SCALE = 10.0
_EPSILON, _DELTA = 1.0, 1e-6
_SMALLEST_SAMPLE = 30

_GENERATOR = np.random.default_rng(0)
_SAMPLERS: dict[str, tuple[Callable[[int], Any], Callable[[int], Any], float]] = {
    "laplace": (
        lambda n: np.rint(_GENERATOR.laplace(0, _SCALE, n)),
        lambda n: samplers.discrete_laplace(_SCALE, n),
        2 * _SCALE**2,
    ),
    "gaussian": (
        lambda n: np.rint(_GENERATOR.normal(0, _SCALE, n)),
        lambda n: samplers.discrete_gaussian(_SCALE**2, n),
        _SCALE**2,
    ),
    "skellam": (
        lambda n: _GENERATOR.poisson(_SCALE**2 / 2, n) - _GENERATOR.poisson(_SCALE**2 / 2, n),
        lambda n: samplers.skellam(_SCALE**2, n),
        _SCALE**2,
    ),
}


def draws(name: str, size: int) -> Job:
    """Return the job of drawing so many numbers."""
    floats, exact, variance = _SAMPLERS[name]

    def check(_: Any, drawn: Any) -> float:
        error = abs(float(np.var(drawn)) / variance - 1)
        if error > 6 * math.sqrt(6 / size) + 0.01:  # an excess of 3 at most
            raise WrongResultError(f"a variance of {np.var(drawn):.4g} instead of {variance:g}")
        return error

    return Job(
        sizes={"elements": size},
        plain=lambda: floats(size),
        secure=lambda _: exact(size),
        check=check,
        note=(
            "Plaintext: numpy's generator, floats rounded, or Poisson numbers; neither "
            "cryptographic nor exact. The error is the sample variance's, relative."
        ),
    )


def _planned(kind: Kind, sites: int, coordinates: int) -> NoisePlan:
    return plan(kind, [UnitChange(coordinates, 1, 1.0, one=True)], _EPSILON, _DELTA, sites)


def kept(kind: Kind, runs: int) -> Job:
    """Return the job of answering a question so many times by sums of six sites' noised counts."""
    made = _planned(kind, 6, runs)
    counts = np.arange(6) * 10

    def noised(_: Any) -> Any:
        parts = {f"site {i}": made.add(0, [int(n)] * runs) for i, n in enumerate(counts)}
        return secure_sum(parts, bound=100 + made.reach(0)).values

    def check(expected: Any, found: Any) -> float:
        off = found - expected
        inside = float((np.abs(off) <= made.half_width(0)).mean())
        if inside < 0.95 - 4 * math.sqrt(0.95 * 0.05 / runs):
            raise WrongResultError(f"only {inside:.1%} are within the error that 95 % should be")
        error = abs(float(off.std()) / made.deviation(0) - 1)
        if error > 0.05 + 6 * math.sqrt(5 / (4 * runs)):  # an excess of 3 at most
            raise WrongResultError(f"the deviation differs from the promised one by {error:.1%}")
        return error

    return Job(
        sizes={"parties": 6, "runs": runs, "elements": runs},
        plain=lambda: np.full(runs, counts.sum()),
        secure=noised,
        check=check,
        note=(
            f"Epsilon {_EPSILON:g}, delta {_DELTA:g}; 5 of 6 sites' noise is enough. The error is "
            "the standard deviation over the runs against the promised one, relative."
        ),
    )


def apart(sites: int, coordinates: int) -> Job:
    """Return the job of summing vectors with noise in parts, beside noise drawn at once."""
    made = _planned("skellam", sites, coordinates)
    central = _planned("skellam", 2, coordinates)
    vector = np.arange(coordinates, dtype=np.int64)
    # One number alone may be zero by chance; the check then looks at more, drawn the same way.
    judged = np.arange(max(coordinates, _SMALLEST_SAMPLE), dtype=np.int64)

    def distributed(summand: Any) -> Any:
        total = np.zeros(len(summand), np.int64)
        for _site in range(sites):
            total += summand + samplers.skellam(made.parts[0], len(summand))
        return total

    def centrally() -> Any:
        total = np.zeros(coordinates, np.int64)
        for _site in range(sites):
            total += vector
        return total + samplers.skellam(central.parts[0], coordinates)

    def check(_: Any, found: Any) -> float:
        off = found - sites * vector
        if coordinates < len(judged):
            off = np.concatenate([off, distributed(judged) - sites * judged])
        deviation = made.deviation(0)
        if np.abs(off).max() > 8 * deviation:
            raise WrongResultError(
                f"a total is off by {np.abs(off).max() / deviation:.2g} deviations"
            )
        typical = float(np.sqrt(np.mean(off.astype(np.float64) ** 2))) / deviation
        if not 0.4 < typical < 2:
            raise WrongResultError(f"noise has {typical:.2g} of the deviation that was promised")
        return made.deviation(0) / central.deviation(0, contributors=1) - 1

    return Job(
        sizes={"parties": sites, "elements": coordinates},
        plain=centrally,
        secure=lambda _: distributed(vector),
        check=check,
        note=(
            "All sites in one process, one after the other, without the secure sum; a site's own "
            "time is one part of it. Plaintext: central noise of the same promise. The error is "
            "how much larger the standard deviation is: one site more than needed adds noise."
        ),
    )


def for_developers() -> Iterator[Case]:
    """Yield draws of each distribution, errors against the promise, and noise drawn in parts."""
    for name in _SAMPLERS:
        yield Case(
            f"privacy/draws/{name}",
            f"Exact draws: discrete {name}" if name != "skellam" else "Exact draws: Skellam",
            partial(draws, name),
            size=_DRAWS,
            quick=20_000,
            tiny=1_000,
        )
    for kind in KINDS:
        yield Case(
            f"privacy/promise/{kind}",
            f"Error against the promise, {kind}, {_RUNS:,} answers",
            partial(kept, kind),
            size=_RUNS,
            quick=1_000,
            tiny=100,
        )
    for sites in (4, 54, 1000):
        for coordinates in (1, 1_000, 100_000):
            yield Case(
                f"privacy/apart/{sites}/{coordinates}",
                f"Noise in parts, {sites} sites, {coordinates:,} element{'s' * (coordinates > 1)}",
                partial(apart, sites),
                size=coordinates,
                quick=min(coordinates, 300),
                tiny=1,
                rounds=2 if sites * coordinates > 10**6 else 0,
            )
