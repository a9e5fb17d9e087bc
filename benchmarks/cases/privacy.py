"""Noise: draws a second, errors against what was promised, and the price of drawing it apart."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from securecomp.overhead.job import Case, Job, Target, WrongResultError
from securecomp.privacy import samplers
from securecomp.privacy.distributed import KINDS, Kind, NoisePlan, plan
from securecomp.privacy.noise_distributions import UnitChange
from securecomp.protocol.secure_sum import secure_sum

DRAWS = 1_000_000
RUNS = 10_000
SCALE = 10.0
EPSILON, DELTA = 1.0, 1e-6
SITES = (4, 54, 1000)
COORDINATES = (1, 1_000, 100_000)
FEW = 300

_GENERATOR = np.random.default_rng(0)
_SAMPLERS: dict[str, tuple[Callable[[int], Any], Callable[[int], Any], float]] = {
    "laplace": (
        lambda n: np.rint(_GENERATOR.laplace(0, SCALE, n)),
        lambda n: samplers.discrete_laplace(SCALE, n),
        2 * SCALE**2,
    ),
    "gaussian": (
        lambda n: np.rint(_GENERATOR.normal(0, SCALE, n)),
        lambda n: samplers.discrete_gaussian(SCALE**2, n),
        SCALE**2,
    ),
    "skellam": (
        lambda n: _GENERATOR.poisson(SCALE**2 / 2, n) - _GENERATOR.poisson(SCALE**2 / 2, n),
        lambda n: samplers.skellam(SCALE**2, n),
        SCALE**2,
    ),
}


def draws(name: str, size: int) -> Job:
    plainly, exactly, variance = _SAMPLERS[name]

    def check(_: Any, drawn: Any) -> float:
        error = abs(float(np.var(drawn)) / variance - 1)
        if error > 6 * math.sqrt(6 / size) + 0.01:  # an excess of 3 at most
            raise WrongResultError(f"a variance of {np.var(drawn):.4g} instead of {variance:g}")
        return error

    return Job(
        sizes={"elements": size},
        plain=lambda: plainly(size),
        secure=lambda _: exactly(size),
        check=check,
        note=(
            "Plaintext: numpy's generator, floats rounded, or Poisson numbers; neither "
            "cryptographic nor exact. The error is the sample variance's, relative."
        ),
    )


def planned(kind: Kind, sites: int, coordinates: int) -> NoisePlan:
    return plan(kind, [UnitChange(coordinates, 1, 1.0, one=True)], EPSILON, DELTA, sites)


def kept(kind: Kind, runs: int) -> Job:
    """Answer the same question so many times, by sums of six sites' noised counts."""
    made = planned(kind, 6, runs)
    counts = np.arange(6) * 10

    def noised(_: Any) -> Any:
        parts = {f"site {i}": made.add(0, [int(n)] * runs) for i, n in enumerate(counts)}
        return secure_sum(parts, bound=100 + made.reach(0)).values

    def check(expected: Any, found: Any) -> float:
        off = found - expected
        inside = float((np.abs(off) <= made.half_width(0)).mean())
        if inside < 0.95 - 4 * math.sqrt(0.95 * 0.05 / runs):
            raise WrongResultError(f"only {inside:.1%} are within the error that 95 % should be")
        return abs(float(off.std()) / made.deviation(0) - 1)

    return Job(
        sizes={"parties": 6, "runs": runs, "elements": runs},
        plain=lambda: np.full(runs, counts.sum()),
        secure=noised,
        check=check,
        note=(
            f"Epsilon {EPSILON:g}, delta {DELTA:g}; 5 of 6 sites' noise is enough. The error is "
            "the standard deviation over the runs against the promised one, relative."
        ),
    )


def apart(sites: int, coordinates: int) -> Job:
    """Add all sites' vectors with noise in parts, against all of it drawn at once."""
    made, central = planned("skellam", sites, coordinates), planned("skellam", 2, coordinates)
    vector = np.arange(coordinates, dtype=np.int64)

    def distributed(_: Any) -> Any:
        total = np.zeros(coordinates, np.int64)
        for _site in range(sites):
            total += vector + samplers.skellam(made.parts[0], coordinates)
        return total

    def centrally() -> Any:
        total = np.zeros(coordinates, np.int64)
        for _site in range(sites):
            total += vector
        return total + samplers.skellam(central.parts[0], coordinates)

    def check(_: Any, found: Any) -> float:
        off = found - sites * vector
        if np.abs(off).max() > 8 * made.deviation(0):
            raise WrongResultError(f"{np.abs(off).max()} off, where noise has {made.deviation(0)}")
        return made.deviation(0) / central.deviation(0, contributors=1) - 1

    return Job(
        sizes={"parties": sites, "elements": coordinates},
        plain=centrally,
        secure=distributed,
        check=check,
        note=(
            "All sites in one process, one after the other, without the secure sum; a site's own "
            "time is one part of it. Plaintext: central noise of the same promise. The error is "
            "how much larger the standard deviation is: one site more than needed adds noise."
        ),
    )


CASES = (
    *(
        Case(
            f"privacy/draws/{name}",
            f"Exact draws: discrete {name}" if name != "skellam" else "Exact draws: Skellam",
            lambda size, name=name: draws(name, size),
            size=DRAWS,
            quick=20_000,
            tiny=1_000,
            target=Target("at least 100,000 draws a second", 10, unit="us"),
        )
        for name in _SAMPLERS
    ),
    *(
        Case(
            f"privacy/promise/{kind}",
            f"Error against the promise, {kind}, {RUNS:,} answers",
            lambda runs, kind=kind: kept(kind, runs),
            size=RUNS,
            quick=1_000,
            tiny=100,
            target=Target("a standard deviation within 5 %", 0.05, unit="error"),
        )
        for kind in KINDS
    ),
    *(
        Case(
            f"privacy/apart/{sites}/{coordinates}",
            f"Noise in parts, {sites} sites, {coordinates:,} element{'s' * (coordinates > 1)}",
            lambda size, sites=sites: apart(sites, size),
            size=coordinates,
            quick=min(coordinates, FEW),
            tiny=1,
            rounds=2 if sites * coordinates > 10**6 else 0,
        )
        for sites in SITES
        for coordinates in COORDINATES
    ),
)
