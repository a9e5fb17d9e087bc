"""Local differential privacy: every person's answer is noised before it leaves the person.

No sum is trusted with more than noised answers, so it may be secure or in the clear. The price is
an error that grows with the root of the number of people, where central noise has none that does.

`Response` is randomised response among k answers: the true one with probability e^epsilon /
(e^epsilon + k - 1), else one of the others. `Unary` sends one bit an answer, as RAPPOR does, each
kept with probability e^(epsilon/2) / (1 + e^(epsilon/2)): the two bits in which two people's
answers differ make epsilon. Both promise delta 0 under replace-one, for one answer a person; a
person who answers twice spends twice. Bits have exactly the probabilities that the double epsilon
says.

Sources: Warner, Randomized response, JASA 60 (1965) 63-69; Erlingsson, Pihur, Korolova, RAPPOR, CCS
2014 (the basic form, one-time); Wang, Blocki, Li, Jha, Locally differentially private protocols for
frequency estimation, USENIX Security 2017 (estimates and their variances).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy import stats

from securecomp.core import checks
from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.errors import ParameterError, RangeError
from securecomp.privacy import samplers

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class AnswerEstimate:
    """Estimated number of people with an answer, from noised answers.

    Attributes:
        count: Unbiased, and so perhaps below 0.
        low: Of an interval that holds the true number with the asked confidence, nearly.
        high: Upper end of the same interval.
        deviation: The estimate's standard deviation.
    """

    count: float
    low: float
    high: float
    deviation: float


@dataclass(frozen=True, slots=True)
class Frequencies:
    """Common part of the two mechanisms.

    Attributes:
        epsilon: Of one answer.
        answers: How many there are to choose from.
    """

    epsilon: float | Fraction
    answers: int

    def __post_init__(self) -> None:
        if checks.real(self.epsilon, "epsilon", "a positive finite number") <= 0:
            raise ParameterError(f"epsilon is a positive finite number, not {self.epsilon!r}")
        if isinstance(self.answers, bool) or not isinstance(self.answers, int) or self.answers < 2:
            raise ParameterError(f"there are at least two answers, not {self.answers!r}")

    @property
    def kept(self) -> float:
        """Probability that a person's own answer is counted."""
        raise NotImplementedError

    @property
    def false(self) -> float:
        """Probability that another given answer is counted."""
        raise NotImplementedError

    def reports(self, codes: npt.ArrayLike, entropy: Entropy = entropy_.system) -> Codes:
        """Noise people's answers.

        Args:
            codes: Each person's answer, from 0 to answers - 1, shape (people,).
            entropy: Source of all randomness.

        Returns:
            What each sends: 0 or 1 for each answer, shape (people, answers).

        Raises:
            ParameterError, RangeError: Not such codes.
        """
        raise NotImplementedError

    def counts(self, codes: npt.ArrayLike, entropy: Entropy = entropy_.system) -> list[int]:
        """Return how many noised answers there are of each: a site's part of a sum."""
        return [int(n) for n in self.reports(codes, entropy).sum(axis=0)]

    def estimates(
        self, totals: Sequence[int], people: int, confidence: float = 0.95
    ) -> list[AnswerEstimate]:
        """Estimate the true numbers from the totals of noised answers.

        Args:
            totals: For each answer, over all people.
            people: How many answered; public.
            confidence: Of the intervals.

        Raises:
            ParameterError: Another number of totals; a confidence outside of (0, 1).
            RangeError: A total that so many people cannot give.
        """
        if len(totals) != self.answers:
            raise ParameterError(f"{len(totals)} totals for {self.answers} answers")
        if not 0 < confidence < 1:
            raise ParameterError(f"confidence is between 0 and 1, not {confidence!r}")
        if people < 1 or any(not 0 <= n <= people for n in totals):
            raise RangeError(f"totals are from 0 to the number of people, {people}")
        z = float(stats.norm.isf((1 - confidence) / 2))
        p, q = self.kept, self.false
        found = []
        for total in map(int, totals):
            count = (total - people * q) / (p - q)
            # The true number decides between two variances; the estimate stands for it.
            true = min(max(count, 0.0), float(people))
            variance = (true * p * (1 - p) + (people - true) * q * (1 - q)) / (p - q) ** 2
            deviation = math.sqrt(variance)
            found.append(
                AnswerEstimate(count, count - z * deviation, count + z * deviation, deviation)
            )
        return found

    def _check(self, codes: npt.ArrayLike) -> Codes:
        array = np.asarray(codes)
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise ParameterError("codes are whole numbers, one a person")
        wrong = (array < 0) | (array >= self.answers)
        if wrong.any():
            raise RangeError(
                f"codes: person {int(np.argmax(wrong)) + 1} has none of the {self.answers} answers"
            )
        return array.astype(np.int64)


@dataclass(frozen=True, slots=True)
class Response(Frequencies):
    """Randomised response: one answer a person; best where there are few to choose from."""

    @property
    def kept(self) -> float:
        return 1 / (1 + (self.answers - 1) * math.exp(-self.epsilon))

    @property
    def false(self) -> float:
        return math.exp(-self.epsilon) * self.kept

    def answer(self, codes: npt.ArrayLike, entropy: Entropy = entropy_.system) -> Codes:
        """Return each person's noised answer, shape (people,)."""
        true = self._check(codes)
        out = np.empty_like(true)
        open_ = np.arange(len(true))
        while open_.size:
            drawn = samplers.uniform(self.answers, len(open_), entropy)
            # Another answer stands with probability e^-epsilon, else all is drawn again.
            stands = samplers.bernoulli_exp(self.epsilon, len(open_), entropy)
            done = (drawn == true[open_]) | stands
            out[open_[done]] = drawn[done]
            open_ = open_[~done]
        return out

    def reports(self, codes: npt.ArrayLike, entropy: Entropy = entropy_.system) -> Codes:
        return np.eye(self.answers, dtype=np.int64)[self.answer(codes, entropy)]


@dataclass(frozen=True, slots=True)
class Unary(Frequencies):
    """One bit an answer, each flipped by itself: for many answers."""

    @property
    def kept(self) -> float:
        return 1 / (1 + math.exp(-self.epsilon / 2))

    @property
    def false(self) -> float:
        return 1 - self.kept

    def reports(self, codes: npt.ArrayLike, entropy: Entropy = entropy_.system) -> Codes:
        true = self._check(codes)
        bits = np.eye(self.answers, dtype=np.int64)[true].reshape(-1)
        half = Response(Fraction(self.epsilon) / 2, 2)
        return half.answer(bits, entropy).reshape(len(true), self.answers)
