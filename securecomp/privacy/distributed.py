"""Noise that nobody adds alone: each party's part is within its own summand of a secure sum.

No total with less noise exists anywhere: a server sees shares or masks, a receiver the noised sum.
A party knows its own part of the noise, and parties that collude know theirs; so the noise of the
others, the honest ones that stay to the end, must be enough alone. A `NoisePlan` is made for the
fewest there can be, and refuses a sum of fewer contributors, before anything is opened; masking's
clients refuse too, if their session's `minimum` is the plan's `needed`.

What parties learn: the noised sums. Against: `colluding` contributors together with the receivers,
all of whom follow the protocol, and with as many servers as the sum protocol stands. Servers beyond
that (all of additive sharing; Paillier's aggregator with the key holder, without `blind`) see each
site's own figures with that site's own noise only. A party that adds no noise counts as colluding.

Three kinds of noise. Skellam is closed under sums: n parts are exactly one of n times the variance.
Sums of discrete Gaussians are not discrete Gaussian; what that costs is in `noise`, and a part has
a sigma of at least 2. Of discrete Laplace noise every party adds the whole: any one honest party is
enough, delta is 0, and the price is an error that grows with the root of the parties.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from securecomp.core import checks
from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.errors import ParameterError, ThresholdError
from securecomp.privacy import noise_distributions, samplers
from securecomp.privacy.noise_distributions import UnitChange
from securecomp.privacy.policy import KINDS, Kind
from securecomp.privacy.privacy_amounts import check_promised_delta

_NORMAL, _LAPLACE = 1.96, 2.12  # standard deviations that hold 95 %: of one Laplace number 2.118
_LAPLACE_REACH = 100  # scales; passed with probability exp(-100)
_GRID = 1 << 20
_MOST_PARTIES = 1 << 20


@dataclass(frozen=True, slots=True)
class NoisePlan:
    """Plan of distributed noise: each party's part for each block of integers, and the promise.

    Attributes:
        kind: The noise.
        epsilon: Of all blocks together.
        delta: Likewise; 0 for Laplace noise.
        changes: What one unit changes, a block.
        parts: Of one party, a block: its noise's variance, of Laplace noise the scale.
        parties: How many contribute.
        honest: Fewest contributors whose noise no adversary knows.
        needed: Fewest contributors to a sum that may be opened.
    """

    kind: Kind
    epsilon: float
    delta: float
    changes: tuple[UnitChange, ...]
    parts: tuple[Fraction, ...]
    parties: int
    honest: int
    needed: int

    def draw(self, block: int, entropy: Entropy = entropy_.system) -> list[int]:
        """Draw one party's noise for each integer of a block."""
        sampler = {
            "skellam": samplers.skellam,
            "discrete-gaussian": samplers.discrete_gaussian,
            "laplace": samplers.discrete_laplace,
        }[self.kind]
        drawn: list[int] = sampler(self.parts[block], self.changes[block].size, entropy).tolist()
        return drawn

    def add(
        self, block: int, integers: Sequence[int], entropy: Entropy = entropy_.system
    ) -> list[int]:
        """Add one party's noise to its integers of a block: every one of them gets some.

        Raises:
            ParameterError: More or fewer integers than the plan has noise for.
        """
        size = self.changes[block].size
        if len(integers) != size:
            raise ParameterError(
                f"the noise was planned for {size} integers and there are {len(integers)}; make a "
                "plan for all that is opened"
            )
        pairs = zip(map(int, integers), self.draw(block, entropy), strict=True)
        return [integer + drawn for integer, drawn in pairs]

    def reach(self, block: int) -> int:
        """Return headroom: one party's noise passes it with probability below 2^-128."""
        part = self.parts[block]
        if self.kind == "laplace":
            return math.ceil(_LAPLACE_REACH * part)
        return noise_distributions.reach(float(part))

    def deviation(self, block: int, contributors: int | None = None) -> float:
        """Return the standard deviation of the noise of so many contributors; by default all."""
        count = self.parties if contributors is None else contributors
        part = float(self.parts[block])
        if self.kind == "laplace":
            # The variance 2 r / (1 - r)^2 with r = exp(-1 / part), without cancellation.
            return math.sqrt(count / 2) / math.sinh(min(1 / (2 * part), 700))
        return math.sqrt(count * part)

    def half_width(self, block: int, contributors: int | None = None) -> int:
        """Return what the total noise stays within with 95 % probability at least."""
        many = _LAPLACE if self.kind == "laplace" else _NORMAL
        return math.ceil(many * self.deviation(block, contributors))

    @property
    def accountant(self) -> str:
        """Steps by which the promise was derived."""
        if self.kind == "laplace":
            return "pure"
        total = math.sqrt(self.honest * self.parts[0])
        if len(self.changes) == 1 and noise_distributions.is_exact(self.changes[0], total):
            return "exact"
        noised = [(c, float(part)) for c, part in zip(self.changes, self.parts, strict=True)]
        if self.kind == "skellam":
            noised = [(change, part * self.honest) for change, part in noised]
            bounds = noise_distributions.skellam_bounds(noised, self.epsilon)
        else:
            bounds = noise_distributions.gaussian_bounds(noised, self.honest, self.epsilon)
        return min(bounds, key=bounds.__getitem__)

    def check(self, contributors: int) -> None:
        """Refuse a sum of too few, which would have too little noise.

        Raises:
            ThresholdError: Fewer than `needed`.
        """
        if contributors < self.needed:
            raise ThresholdError(
                self.needed,
                contributors,
                "too few contributors are left for the noise that was promised; nothing was "
                "opened; ask again with those who are there",
            )


def plan(
    kind: Kind,
    changes: Sequence[UnitChange],
    epsilon: float,
    delta: float,
    parties: int,
    *,
    colluding: int = 1,
    dropouts: int = 0,
) -> NoisePlan:
    """Calibrate the noise of all parties.

    Args:
        kind: "skellam", "discrete-gaussian" or "laplace".
        changes: What one unit changes, for each block of integers that is opened.
        epsilon: Of all blocks together.
        delta: Largest delta. Laplace noise needs none.
        parties: How many contribute.
        colluding: How many of them may put together what they know, with the servers.
        dropouts: How many may drop out before the sum.

    Raises:
        ParameterError: Not such a kind; epsilon or delta that promises nothing, or cannot be kept.
        ThresholdError: Nobody would be left whose noise is unknown.
    """
    if kind not in KINDS:
        raise ParameterError(f"noise is one of {', '.join(KINDS)}, not {kind!r}")
    check_promise(kind, epsilon, delta)
    changes = tuple(changes)
    if not changes:
        raise ParameterError("noise is planned for at least one block of integers")
    numbers = {"parties": parties, "colluding": colluding, "dropouts": dropouts}
    for name, value in numbers.items():
        checks.integer(value, name, 0, _MOST_PARTIES)
    honest = parties - colluding - dropouts
    if honest < 1:
        raise ThresholdError(
            1 + colluding + dropouts,
            parties,
            "nobody would be left whose noise no adversary knows; ask more sites, or allow fewer "
            "to collude or drop out",
        )
    needed = parties - dropouts
    if kind == "laplace":
        scales = [Fraction(len(changes) * c.l1) / Fraction(epsilon) for c in changes]
        return NoisePlan(kind, epsilon, 0.0, changes, tuple(scales), parties, honest, needed)
    if kind == "skellam":
        total = noise_distributions.skellam_variances(changes, epsilon, delta)
        local = [variance / honest for variance in total]
    else:
        local = list(noise_distributions.gaussian_variances(changes, epsilon, delta, honest))
    # Rounded up on a grid, so that the numbers stay short: more noise is never less private.
    parts = tuple(
        Fraction(math.ceil(v * _GRID), _GRID) if v > 2.0**-10 else Fraction(v) for v in local
    )
    return NoisePlan(kind, epsilon, delta, changes, parts, parties, honest, needed)


def check_promise(kind: Kind, epsilon: float, delta: float) -> None:
    """Refuse an epsilon or a delta that promises nothing.

    Raises:
        ParameterError: It says which.
    """
    if checks.real(epsilon, "epsilon", "a positive finite number") <= 0:
        raise ParameterError(f"epsilon is a positive finite number, not {epsilon!r}")
    if not 0 <= checks.real(delta, "delta", "from 0 to below 1") < 1:
        raise ParameterError(f"delta is from 0 to below 1, not {delta!r}")
    check_promised_delta(Fraction(delta))
    if delta == 0 and kind != "laplace":
        raise ParameterError(
            f'{kind} noise cannot keep delta 0; give a delta, say 1e-6, or choose noise="laplace"'
        )
