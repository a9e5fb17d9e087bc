"""Model inversion: what a class looks like, out of the model's answers alone.

The attacker moves a row to where the model is surest of a class. It asks for each number of the
row whether a little more or less helps; nothing of the model's inside is needed. What comes out is
typical of the class, not a record: where a class is a person (a face, a patient's series) that is
a leak, where it is a digit or a diagnosis it is what the model was made to know.

Source: Fredrikson, Jha, Ristenpart, CCS 2015, section 5 (there by gradients, and faces).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from securecomp.audit.attack_result import AttackResult, Rate, grid
from securecomp.audit.confidences import classes_of, places, probabilities
from securecomp.audit.labelled_rows import finite, one_each, shaped
from securecomp.errors import ParameterError
from securecomp.show.exhibit import TextTable

Floats = npt.NDArray[np.float64]
_SMALLEST = 1e-6  # a score of 0 has no logarithm


@dataclass(frozen=True, slots=True)
class Representative:
    """What the model takes for a class.

    Attributes:
        row: Shape (d,).
        score: The model's answer for the class there.
        questions: Rows that the model was asked about.
    """

    row: Floats
    score: float
    questions: int


def invert_class(
    model: Any,
    label: Any,
    start: npt.ArrayLike,
    *,
    low: float = 0.0,
    high: float = 1.0,
    reach: float = 0.05,
    pull: float = 1.0,
    steps: int = 30,
    like: Any = None,
) -> Representative:
    """Search for the row of which a model is surest that it is of a class.

    Args:
        model: A fitted classifier with probabilities; `Answers` makes it tell less.
        label: One of its classes.
        start: Where to begin, and what a number is drawn back to: what is known of rows in
            general, or the middle; shape (d,).
        low: Smallest value of the rows.
        high: Largest.
        reach: How far apart the model is asked, as a share of `high - low`: more is coarser, and
            sees through some rounding.
        pull: How strongly the row is drawn to the start: what the square of the distance counts,
            in shares of `high - low`, against minus the score's logarithm.
        steps: Most steps of the search; each asks some 2 d rows.
        like: A data frame with the columns that the model takes; by default it takes arrays.

    Raises:
        ParameterError: A model without probabilities, a label that it has not, NaN, bad bounds.
    """
    begin = finite(start, "the start", 1)
    (place,) = places(model, np.array([label]), "the label")
    if not low < high or begin.min() < low or begin.max() > high:
        raise ParameterError(f"the start must be within {low} and {high}, which must be apart")
    if not 0 < reach <= 0.5 or pull < 0 or steps < 1:
        raise ParameterError("reach is above 0 and at most 0.5, pull at least 0, steps at least 1")
    width = high - low
    asked = 0

    def goal(row: Floats) -> tuple[float, Floats]:
        nonlocal asked
        ends = np.clip(row + reach * width * np.eye(len(row)), low, high)
        beginnings = np.clip(row - reach * width * np.eye(len(row)), low, high)
        rows = np.vstack([row, ends, beginnings])
        asked += len(rows)
        said = probabilities(model, shaped(rows, like), "the rows asked")
        scores = np.maximum(said[:, place], _SMALLEST)
        here, (up, down) = -np.log(scores[0]), np.split(-np.log(scores[1:]), 2)
        spans = np.diagonal(ends) - np.diagonal(beginnings)
        off = (row - begin) / width
        slope = (up - down) / spans + 2 * pull * off / width
        return float(here + pull * (off @ off)), slope

    found = minimize(
        goal,
        begin,
        jac=True,
        method="L-BFGS-B",
        bounds=[(low, high)] * len(begin),
        options={"maxiter": steps},
    )
    row = np.asarray(found.x, np.float64)
    return Representative(
        row, float(probabilities(model, shaped(row[None], like), "the row found")[0, place]), asked
    )


@dataclass(frozen=True, slots=True, repr=False)
class InversionLeak(AttackResult):
    """What came out for each class.

    Attributes:
        found: For each class, its representative.
        labels: The classes.
        resemblance: For each, the correlation of what came out with the mean of the class's rows,
            both less the start.
        hits: Classes whose representative resembles no other class's mean more.
    """

    found: tuple[Representative, ...]
    labels: tuple[Any, ...]
    resemblance: tuple[float, ...]
    hits: Rate
    knows: ClassVar[str] = (
        "the classes, the features' range and a typical row; it may ask the model anything"
    )

    @property
    def questions(self) -> int:
        """Rows that the model was asked about, over all classes."""
        return sum(each.questions for each in self.found)

    @property
    def title(self) -> str:
        """The attack in words."""
        return f"Model inversion: what {len(self.labels)} classes look like"

    def grids(self) -> list[TextTable]:
        """Return the tables that people read."""
        whole = [
            ("classes recognised", str(self.hits)),
            ("by guessing", f"{1 / len(self.labels):.1%}"),
            ("questions to the model", f"{self.questions:,}"),
        ]
        each = [
            (str(label), f"{one.score:.3f}", f"{like:+.2f}")
            for label, one, like in zip(self.labels, self.found, self.resemblance, strict=True)
        ]
        return [
            grid("", ("", "found"), whole),
            grid("", ("class", "score", "resemblance"), each),
        ]

    def comparison(self) -> dict[str, str]:
        """Return what `compared` shows of one result."""
        return {
            "classes recognised": str(self.hits),
            "mean resemblance": f"{np.mean(self.resemblance):+.2f}",
            "questions": f"{self.questions:,}",
        }

    def facts(self) -> dict[str, Any]:
        """Return the result as plain objects."""
        return {
            "hits": self.hits.facts(),
            "baseline": 1 / len(self.labels),
            "questions": self.questions,
            "classes": [
                {"label": str(label), "score": one.score, "resemblance": like}
                for label, one, like in zip(self.labels, self.found, self.resemblance, strict=True)
            ],
        }

    def remarks(self) -> list[str]:
        """Return what a reader must know."""
        return [
            "what comes out is typical of a class and no record of the data; it is a leak where a "
            "class is one person"
        ]


def model_inversion(
    model: Any,
    rows: Any,
    labels: npt.ArrayLike,
    *,
    start: npt.ArrayLike | None = None,
    low: float = 0.0,
    high: float = 1.0,
    reach: float = 0.05,
    pull: float = 1.0,
    steps: int = 30,
) -> InversionLeak:
    """Invert a model for all of its classes, and compare with what the classes look like.

    Args:
        model: As for `invert_class`.
        rows: The owner's rows, for comparison; the attacker does not see them. Numbers, shape
            (n, d), or a frame of pandas or polars.
        labels: Their labels; each class of the model must be among them.
        start: As for `invert_class`; by default the mean of all rows, which is then known.
        low: As for `invert_class`.
        high: As for `invert_class`.
        reach: As for `invert_class`.
        pull: As for `invert_class`.
        steps: As for `invert_class`.

    Raises:
        ParameterError: As `invert_class`, or a class without rows.
    """
    data = finite(rows, "rows", 2)
    at = places(model, one_each(labels, len(data), "rows"), "rows")
    every = classes_of(model)
    missing = sorted(set(range(len(every))) - set(at.tolist()))
    if missing:
        raise ParameterError(f"no row is of class {every[missing[0]]!r}; nothing to compare with")
    begin = data.mean(axis=0) if start is None else finite(start, "the start", 1)
    if len(begin) != data.shape[1]:
        raise ParameterError(f"the start has {len(begin)} numbers, rows have {data.shape[1]}")
    means = np.array([data[at == place].mean(axis=0) for place in range(len(every))]) - begin
    found = tuple(
        invert_class(
            model, label, begin, low=low, high=high, reach=reach, pull=pull, steps=steps, like=rows
        )
        for label in every
    )
    alike = np.array([_correlations(one.row - begin, means) for one in found])
    # A row that never moved resembles nothing.
    hits = sum(row[i] == row.max() and row[i] > 0 for i, row in enumerate(alike))
    return InversionLeak(
        found=found,
        labels=tuple(every),
        resemblance=tuple(np.diagonal(alike).tolist()),
        hits=Rate(int(hits), len(every)),
    )


def _correlations(row: Floats, others: Floats) -> Floats:
    """Return the correlation with each of others, shape (K,); 0 where there is none."""
    one = row - row.mean()
    rest = others - others.mean(axis=1, keepdims=True)
    sizes = np.linalg.norm(one) * np.linalg.norm(rest, axis=1)
    return np.asarray(np.where(sizes > 0, rest @ one / np.where(sizes > 0, sizes, 1), 0.0))
