"""Canaries: secrets put into training data on purpose, to see whether the model remembers them.

A canary is a random text of a known format, for example a number of six digits. After training it
is ranked by likelihood under the model, among all texts of the format that were not inserted.
(Other remembered secrets would not make the model remember this one less.) The exposure is the
binary logarithm of the factor by which the rank is better than by chance: log2 of the number of
texts if it comes first, 0 if it comes last, and log2 e = 1.44 on average if the model has never
seen it. An exposure of e or more happens by chance with probability 2^-e.

If the format has too many texts to rank, some are sampled, and the tail of their scores is
extrapolated by a skew-normal distribution.

Source: Carlini, Liu, Erlingsson, Kos, Song, The Secret Sharer, USENIX Security 2019, sections 4, 5.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from scipy.integrate import quad
from scipy.stats import gamma, kstest, skewnorm

from securecomp.audit.attack_result import AttackResult, Rate, grid
from securecomp.audit.seeded_random import SeededRandom
from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.errors import ParameterError
from securecomp.show.exhibit import TextTable

Floats = npt.NDArray[np.float64]
Score = Callable[[Sequence[str]], npt.ArrayLike]
"""Function from texts to log-perplexities: minus the logarithms of their probabilities."""

MOST_RANKED = 1_000_000
BY_CHANCE = math.log2(math.e)
"""The mean exposure of a canary that was never inserted."""
_BATCH = 4096
_LEAST_SAMPLED = 100
_RARE = 0.001


@dataclass(frozen=True, slots=True)
class CanarySpace:
    """The texts that a canary is drawn from: a format with places for symbols.

    Attributes:
        format: A text with one `{}`, for example "my number is {}".
        symbols: Symbols of a place, each once.
        length: Number of places.
    """

    format: str
    symbols: str = "0123456789"
    length: int = 6

    def __post_init__(self) -> None:
        if not (isinstance(self.format, str) and isinstance(self.symbols, str)):
            raise ParameterError("the format and the symbols must be text")
        if isinstance(self.length, bool) or not isinstance(self.length, int):
            raise ParameterError(f"the length of a secret must be an integer, not {self.length!r}")
        if self.format.count("{}") != 1 or self.format.count("{") != 1:
            raise ParameterError(f"a format has one {{}} for the secret, not {self.format!r}")
        if len(self.symbols) < 2 or len(set(self.symbols)) < len(self.symbols):
            raise ParameterError("there must be at least two symbols, each once")
        if self.length < 1:
            raise ParameterError(f"a secret has at least one place, not {self.length}")

    @property
    def size(self) -> int:
        """Number of texts, |R|."""
        return int(len(self.symbols) ** self.length)

    def text(self, secret: str) -> str:
        """Return the text of a secret.

        Raises:
            ParameterError: Another length, or other symbols.
        """
        if len(secret) != self.length or set(secret) - set(self.symbols):
            raise ParameterError(
                f"a secret has {self.length} of the symbols {self.symbols!r}; correct the one that "
                f"differs"
            )
        return self.format.format(secret)

    def draw(self, count: int, entropy: Entropy = entropy_.system) -> list[str]:
        """Draw different secrets, all equally likely.

        Raises:
            ParameterError: The space has fewer.
        """
        if not 1 <= count <= self.size:
            raise ParameterError(f"cannot draw {count} secrets from a space of {self.size}")
        lots = SeededRandom.fresh("canaries", entropy)
        if 2 * count > self.size:  # most draws would repeat a secret
            secrets = list(self.all())
            return [secrets[i] for i in lots.order(self.size)[:count]]
        found: dict[str, None] = {}
        while len(found) < count:
            places = lots.below(len(self.symbols), (count - len(found), self.length))
            found |= dict.fromkeys("".join(self.symbols[i] for i in row) for row in places)
        return list(found)

    def all(self) -> Iterator[str]:
        """Yield every secret, in order.

        Raises:
            ParameterError: More than a million.
        """
        if self.size > MOST_RANKED:
            raise ParameterError(
                f"a space of {self.size:,} texts is too large to rank (at most {MOST_RANKED:,}); "
                'use method="sample", or shorten the secret'
            )
        return map("".join, itertools.product(self.symbols, repeat=self.length))


@dataclass(frozen=True, slots=True, repr=False)
class CanaryLeak(AttackResult):
    """The exposure of canaries.

    Attributes:
        space: The space from which they were drawn.
        method: "rank": among all texts; "sample": extrapolated.
        times: How often each was inserted, if that was given.
        exposures: Exposure of each canary, in bits.
        ranked: Number of texts that were scored beside the canaries.
        misfit: For "sample": Kolmogorov and Smirnov's distance of the scores from the
            distribution that extrapolates them. 0.05 or more is a bad fit.
    """

    space: CanarySpace
    method: Literal["rank", "sample"]
    times: tuple[int, ...]
    exposures: tuple[float, ...]
    ranked: int
    misfit: float | None
    knows: ClassVar[str] = "the canaries' format; it may ask the model how likely any text is"

    @property
    def inserted(self) -> list[float]:
        """Exposures of the canaries that were inserted."""
        counts = self.times or (1,) * len(self.exposures)
        return [e for e, n in zip(self.exposures, counts, strict=True) if n]

    @property
    def most(self) -> float:
        """Largest exposure that a rank can show: log2 of the number of ranked texts."""
        return math.log2(self.space.size - max(0, len(self.inserted) - 1))

    @property
    def extracted(self) -> Rate | None:
        """Share of inserted canaries that are likelier than every text that was not inserted.

        An attacker who goes through all texts finds these before any other. None if no canary was
        inserted, or if not all texts were ranked.
        """
        if self.method != "rank" or not self.inserted:
            return None
        return Rate(sum(e >= self.most - 1e-9 for e in self.inserted), len(self.inserted))

    @property
    def reversed(self) -> bool:
        """Whether the inserted canaries rank lower than chance has them once in 1,000 times.

        By chance an exposure is an exponential variable, so their sum has a gamma distribution.
        """
        found = self.inserted
        return bool(found) and gamma.cdf(sum(found) * math.log(2), len(found)) < _RARE

    @property
    def title(self) -> str:
        """The title, with the number of secrets."""
        return f"Canaries: {len(self.exposures)} secrets of {self.space.size:,} possible ones"

    def grids(self) -> list[TextTable]:
        """Return the tables."""
        whole = [
            ("mean of a secret never seen", f"{BY_CHANCE:.2f}"),
            ("largest that a rank can show", f"{self.most:.2f}"),
        ]
        if self.inserted:
            mean = f"{np.mean(self.inserted):.2f}"
            whole.insert(0, ("mean exposure of the inserted, bits", mean))
        if self.extracted is not None:
            whole.append(("inserted secrets extracted", str(self.extracted)))
        tables = [grid("", ("", "found"), whole)]
        if self.times:
            each = [
                (str(n), f"{np.mean(of):.2f}", f"{min(of):.2f}", f"{max(of):.2f}")
                for n, of in sorted(self.by_times().items())
            ]
            tables.append(grid("", ("inserted", "mean exposure", "least", "most"), each))
        return tables

    def by_times(self) -> dict[int, list[float]]:
        """Return the exposures by the number of times that a canary was inserted."""
        found: dict[int, list[float]] = {}
        for n, exposure in zip(self.times, self.exposures, strict=True):
            found.setdefault(n, []).append(exposure)
        return found

    def facts(self) -> dict[str, Any]:
        """Return the result as plain objects, without any secret."""
        return {
            "method": self.method,
            "size": self.space.size,
            "exposures": list(self.exposures),
            "times": list(self.times),
            "baseline": BY_CHANCE,
            "most": self.most,
            "extracted": None if self.extracted is None else self.extracted.facts(),
            "ranked": self.ranked,
            "misfit": self.misfit,
        }

    def remarks(self) -> list[str]:
        """Return remarks on how to read the result."""
        found = []
        if self.reversed:
            found.append(
                "the inserted secrets rank lower than chance would have them: score must return "
                "minus the logarithm of a text's probability, so that lower is likelier; if it "
                "does, these are not the canaries that were inserted"
            )
        if self.method == "sample":
            found.append("extrapolated: ranks beyond the sampled texts come from a fitted curve")
        if self.misfit is not None and self.misfit >= 0.05:
            found.append(
                f"the curve fits badly (distance {self.misfit:.2f}): the exposures are rough; "
                "rank a smaller space"
            )
        return found


def canary_exposure(
    score: Score,
    space: CanarySpace,
    canaries: Sequence[str],
    *,
    times: Sequence[int] = (),
    method: Literal["rank", "sample"] = "rank",
    samples: int = 2000,
    entropy: Entropy = entropy_.system,
) -> CanaryLeak:
    """Measure the exposure of canaries in a model.

    Args:
        score: Log-perplexities of texts under the trained model. Lower is likelier.
        space: The space from which the canaries were drawn uniformly (`CanarySpace.draw`).
        canaries: The secrets without the format, each once.
        times: How often each was inserted; 0 for a canary that was only drawn, for comparison.
        method: "rank" scores every text of the space, at most a million. "sample" scores some.
        samples: Number of samples for "sample", at least 100.
        entropy: Source of the samples.

    Raises:
        ParameterError: No canaries, a canary twice, no text beside them, secrets of another form, a
            space too large to rank, or scores that are not finite or all equal.
    """
    if isinstance(canaries, str):
        raise ParameterError("canaries must be a list of secrets, not one text")
    canaries, times = list(canaries), list(times)
    whole = (isinstance(n, int | np.integer) and not isinstance(n, bool) for n in times)
    if not all(whole) or min(times, default=0) < 0:
        raise ParameterError("times must be whole numbers of at least 0")
    if not canaries or (times and len(times) != len(canaries)):
        raise ParameterError(
            f"{len(canaries)} canaries and {len(times)} counts; give one count for each canary"
        )
    if len(set(canaries)) < len(canaries):
        raise ParameterError("a canary occurs twice; give in times how often it was inserted")
    own = _scores(score, [space.text(secret) for secret in canaries])
    inserted = {c for c, n in zip(canaries, times or (1,) * len(canaries), strict=True) if n}
    if len(inserted) == space.size:
        raise ParameterError("all texts of the space were inserted; no other text is left to rank")
    if method == "rank":
        rest = _scores(score, [space.text(s) for s in space.all() if s not in inserted])
        # Equal scores get the worst rank: a model that knows nothing must not seem to remember.
        before = np.searchsorted(np.sort(rest), own, side="right")
        itself = np.array([canary in inserted for canary in canaries])  # the others are in `rest`
        exposures = np.log2(len(rest) + itself) - np.log2(before + itself)
        misfit = None
    elif method == "sample":
        if samples < _LEAST_SAMPLED:
            raise ParameterError(f"samples must be at least {_LEAST_SAMPLED}, not {samples}")
        count = min(samples, space.size)
        drawn = [s for s in space.draw(count, entropy) if s not in inserted]
        rest = _scores(score, [space.text(s) for s in drawn])
        if rest.min() == rest.max():
            raise ParameterError(
                "all sampled texts are equally likely under the model; rank all texts instead"
            )
        curve = skewnorm(*skewnorm.fit(rest))
        exposures = np.array([-_log_below(curve, one) / math.log(2) for one in own])
        misfit = float(kstest(rest, curve.cdf).statistic)
    else:
        raise ParameterError(f'method must be "rank" or "sample", not {method!r}')
    counts = tuple(int(n) for n in times)
    return CanaryLeak(space, method, counts, tuple(exposures.tolist()), len(rest), misfit)


def extract_canaries(score: Score, space: CanarySpace, count: int = 1) -> list[str]:
    """Return the secrets that are likeliest under the model, the likeliest first.

    Raises:
        ParameterError: A space too large to rank, or scores that are not finite.
    """
    secrets = list(space.all())
    order = np.argsort(_scores(score, [space.text(secret) for secret in secrets]), kind="stable")
    return [secrets[i] for i in order[:count]]


def _scores(score: Score, texts: Sequence[str]) -> Floats:
    parts = []
    for start in range(0, len(texts), _BATCH):
        batch = texts[start : start + _BATCH]
        scored = score(batch)
        try:
            part = np.asarray(scored, np.float64)
        except (TypeError, ValueError):
            raise ParameterError("the scores must be numbers, one for each text") from None
        if part.shape != (len(batch),):
            raise ParameterError(
                f"{len(batch)} texts need a score each, and the scores have shape {part.shape}"
            )
        if not np.isfinite(part).all():
            raise ParameterError("a score is NaN or infinite; smooth the model's probabilities")
        parts.append(part)
    return np.concatenate(parts)


def _log_below(curve: Any, value: float) -> float:
    """Return the logarithm of the probability of at most `value`, even far in the tail.

    The density is log-concave, so it falls at least exponentially.
    """
    whole = float(curve.cdf(value))
    if whole > 1e-6:
        return math.log(min(whole, 1.0))
    height = float(curve.logpdf(value))
    # Down to where the density has fallen by e^-40.
    width = float(curve.std()) or 1.0
    fall, step = 0.0, 1e-6 * width
    while fall < 40 and step < 1e6 * width:
        fall, step = height - float(curve.logpdf(value - step)), 2 * step
    area, _ = quad(lambda x: math.exp(float(curve.logpdf(x)) - height), value - step, value)
    return height + math.log(area)
