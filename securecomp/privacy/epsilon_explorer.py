"""Explorer of epsilon: noised counts, and the success of an attacker who sees them.

The count is 40 with a person and 39 without. Each answer has Laplace noise of its own; whoever gets
several takes their mean, and says "with" if it is above 39.5. Everything is exact: the sum of n
Laplace variables is a mixture of gamma variables with a sign, so that its density, its tail and its
mean absolute value are finite sums (Kotz, Kozubowski, Podgórski, The Laplace Distribution and
Generalizations, 2001, 2.3).
"""

import base64
import hashlib
import math
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from importlib.resources import files

from scipy.special import gammaincc

from securecomp.errors import ParameterError
from securecomp.privacy.guarantee import best_accuracy
from securecomp.privacy.privacy_amounts import Amount, epsilon_of
from securecomp.show.pages import render

EPSILONS = (0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 4, 5, 7, 10)
ANSWERS = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100)
"""Where the page's sliders stop."""
COUNT = 40


@dataclass(frozen=True, slots=True)
class SliderPosition:
    """A position of both sliders.

    Attributes:
        epsilon: Of each answer.
        answers: How many there are.
    """

    epsilon: float
    answers: int

    def __post_init__(self) -> None:
        epsilon_of(self.epsilon)
        if self.answers < 1:
            raise ParameterError(f"there is at least one answer, not {self.answers}")

    @property
    def total(self) -> float:
        """The epsilon of all answers together, plainly added."""
        return self.epsilon * self.answers

    @property
    def accuracy(self) -> float:
        """Rate at which an attacker is right whose prior is even."""
        middle = self.total / 2
        ways = enumerate(weights(self.answers))
        return 1 - math.fsum(way * float(gammaincc(k + 1, middle)) for k, way in ways)

    @property
    def cap(self) -> float:
        """Highest rate at which any attacker can be right at this total epsilon."""
        return best_accuracy(self.total)

    @property
    def error(self) -> float:
        """The mean absolute error of the answers' mean."""
        ways = enumerate(weights(self.answers))
        return 2 * math.fsum(way * (k + 1) for k, way in ways) / self.total

    def density(self, distance: float) -> float:
        """Return how likely the answers' mean is to be this far off."""
        reach = abs(distance) * self.total
        ways = enumerate(weights(self.answers))
        return self.total * math.fsum(
            way * math.exp(k * math.log(reach) - reach - math.lgamma(k + 1) if reach else -1e9 * k)
            for k, way in ways
        )


def weights(answers: int) -> list[float]:
    """Return how likely the sum of Laplace variables is a gamma variable of shape k + 1."""
    found = [0.5**answers]
    for j in range(1, answers):
        found.append(found[-1] * (answers - 1 + j) / (2 * j))
    return found[::-1]


def percent(share: float) -> str:
    """Return a share as the page writes it."""
    text = _fixed(100 * share, 1)
    return "> 99.9 %" if text == "100.0" else f"{text} %"


def size(error: float) -> str:
    """Return an error as the page writes it."""
    return _fixed(error, 0 if error >= 10 else 2 if error >= 0.1 else 3)


def _fixed(value: float, digits: int) -> str:
    """Return a number with so many decimals; halves go up, as in the page's JavaScript."""
    return str(Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def row(setting: SliderPosition) -> list[str]:
    """Return epsilon, answers, accuracy, cap and typical error, as text."""
    texts = (percent(setting.accuracy), percent(setting.cap), size(setting.error))
    return [f"{setting.epsilon:g}", str(setting.answers), *texts]


def table() -> list[list[str]]:
    """Return a row each for some positions."""
    return [row(SliderPosition(epsilon, n)) for epsilon in (0.1, 0.5, 1, 3, 10) for n in (1, 10)]


def page(epsilon: Amount = 1, answers: int = 1) -> str:
    """Return a page with two sliders, which needs nothing else.

    Args:
        epsilon: Where the first slider stands at the beginning; the nearest of `EPSILONS`.
        answers: The same for the second, of `ANSWERS`.

    Raises:
        ParameterError: Epsilon is not above 0.
        BackendUnavailableError: jinja2 is not installed.
    """
    wanted = float(epsilon_of(epsilon))
    script = files("securecomp.show").joinpath("templates/dial.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return render(
        "dial.html",
        script=script,
        digest=digest,
        count=COUNT,
        epsilons=list(EPSILONS),
        answers=list(ANSWERS),
        epsilon_at=min(range(len(EPSILONS)), key=lambda i: abs(math.log(EPSILONS[i] / wanted))),
        answers_at=min(range(len(ANSWERS)), key=lambda i: abs(ANSWERS[i] - answers)),
        rows=table(),
    )
