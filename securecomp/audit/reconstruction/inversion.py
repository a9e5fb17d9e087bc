"""Model inversion: a typical row of a class, from the model's answers alone.

The attacker moves a row to where the model is surest of a class. For each number of the row it asks
whether a little more or less helps. It needs nothing from inside the model. The result is typical
of the class, and is not a record. If a class is a person (a face, a patient's series) that is a
leak. If it is a digit or a diagnosis, it is what the model was made to know.

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
_SMALLEST = 1e-6  # least score, since 0 has no logarithm


@dataclass(frozen=True, slots=True)
class Representative:
    """A typical row of a class under the model.

    Attributes:
        row: The row, shape (d,).
        score: The model's probability of the class there.
        questions: Number of rows about which the model was asked.
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
    """Search for the row that the model most surely assigns to a class.

    Args:
        model: A fitted classifier with probabilities. `RestrictedModel` makes it tell less.
        label: One of its classes.
        start: Start of the search, to which the row is drawn back: a typical row, or the middle;
            shape (d,).
        low: Smallest value of the rows.
        high: Largest value of the rows.
        reach: Distance between questions, as a share of `high - low`. A larger one is coarser, and
            sees through some rounding.
        pull: Strength with which the row is drawn to the start: weight of the squared distance, in
            shares of `high - low`, against minus the score's logarithm.
        steps: Largest number of steps of the search. Each asks about 2 d rows.
        like: A data frame with the columns that the model takes. By default it takes arrays.

    Raises:
        ParameterError: A model without probabilities, an unknown label, NaN, or invalid bounds.
    """
    begin = finite(start, "the start", 1)
    (place,) = places(model, np.array([label]), "the label")
    if not low < high or begin.min() < low or begin.max() > high:
        raise ParameterError(
            f"low must be below high, and the start between them, {low} and {high}"
        )
    if not 0 < reach <= 0.5 or pull < 0 or steps < 1:
        raise ParameterError(
            "reach must be above 0 and at most 0.5, pull at least 0, and steps at least 1"
        )
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
    """The results of inverting a model, for each class.

    Attributes:
        found: The representative of each class.
        labels: The classes.
        resemblance: For each class, the correlation of its representative with the mean of its
            rows, both less the start.
        hits: Share of classes whose representative resembles no other class's mean more.
    """

    found: tuple[Representative, ...]
    labels: tuple[Any, ...]
    resemblance: tuple[float, ...]
    hits: Rate
    knows: ClassVar[str] = (
        "the classes, the range of the features and a typical row; it may ask the model anything"
    )

    @property
    def questions(self) -> int:
        """Number of rows about which the model was asked, over all classes."""
        return sum(each.questions for each in self.found)

    @property
    def title(self) -> str:
        """The title, with the number of classes."""
        return f"Model inversion: typical rows of {len(self.labels)} classes"

    def grids(self) -> list[TextTable]:
        """Return the tables."""
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
        """Return the result as one row for `compared`."""
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
        """Return remarks on how to read the result."""
        return [
            "a result is typical of a class, and is not a record of the data; it is a leak if a "
            "class "
            "is one person"
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
    """Invert a model for each of its classes, and compare with the rows of the class.

    Args:
        model: As for `invert_class`.
        rows: The owner's rows, for comparison. The attacker does not see them. Numbers, shape
            (n, d), or a data frame of pandas or polars.
        labels: Their labels. Each class of the model must occur.
        start: As for `invert_class`. By default the mean of all rows, which the attacker then
            knows.
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
        raise ParameterError(
            f"no row is of class {every[missing[0]]!r}; give rows of every class to compare with"
        )
    begin = data.mean(axis=0) if start is None else finite(start, "the start", 1)
    if len(begin) != data.shape[1]:
        raise ParameterError(
            f"the start has {len(begin)} numbers, and the rows have {data.shape[1]}"
        )
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
    """Return the correlation with each of others, shape (K,); 0 where it is not defined."""
    one = row - row.mean()
    rest = others - others.mean(axis=1, keepdims=True)
    sizes = np.linalg.norm(one) * np.linalg.norm(rest, axis=1)
    return np.asarray(np.where(sizes > 0, rest @ one / np.where(sizes > 0, sizes, 1), 0.0))
