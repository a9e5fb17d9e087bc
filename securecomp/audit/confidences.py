"""Answers of a classifier about rows with known labels: probabilities, losses, logits.

The classifier is any object with `predict_proba` and `classes_`, as in scikit-learn.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from securecomp.audit.bounds import Floats
from securecomp.errors import ParameterError

Labels = npt.NDArray[Any]
Rows = tuple[Any, Any]
"""Features, shape (n, d), as an array or a data frame; and labels, shape (n,)."""

_FLOOR = 2.0**-30
"""Keeps the logits of certain answers finite, at about 21."""
_ROUNDED = 1e-6
"""Complete probabilities of a row add up to 1 within this, even in single precision."""


class Confidences(NamedTuple):
    """A model's answers about rows whose labels are known.

    Attributes:
        probabilities: Probabilities of all classes, shape (n, K).
        truth: Column of each row's label, shape (n,).
    """

    probabilities: Floats
    truth: npt.NDArray[np.intp]

    @property
    def right(self) -> Floats:
        """The probability of each row's label."""
        right: Floats = self.probabilities[np.arange(len(self.truth)), self.truth]
        return right

    @property
    def wrong(self) -> Floats:
        """The probability of all other labels. It is added up, so that it keeps its digits near 0.

        Where the model does not tell all probabilities (only rounded ones, or only the largest),
        it is 1 less the probability of the label.
        """
        others = self.probabilities.copy()
        others[np.arange(len(self.truth)), self.truth] = 0
        total: Floats = others.sum(axis=1)
        return np.where(np.abs(total + self.right - 1) < _ROUNDED, total, 1 - self.right)

    @property
    def losses(self) -> Floats:
        """Cross-entropy of each row, in nats; infinite where the label has probability 0."""
        right, wrong = self.right, self.wrong
        with np.errstate(divide="ignore"):
            # 1 - p keeps the digits that p near 1 has lost.
            sure = np.log1p(-np.minimum(wrong, 0.5))
            losses: Floats = -np.where(wrong < 0.5, np.minimum(sure, 0), np.log(right))
        return losses

    @property
    def logits(self) -> Floats:
        """log(p / (1 - p)) of each row's label. A constant keeps it within about 21 of 0.

        Source: Carlini et al. 2022, section V.B: over trainings these are nearly normal.
        """
        logits: Floats = np.log((self.right + _FLOOR) / (self.wrong + _FLOOR))
        return logits

    @property
    def accuracy(self) -> float:
        """The share of rows for which the true label is the likeliest."""
        return float((self.probabilities.argmax(axis=1) == self.truth).mean())


def classes_of(model: Any) -> list[Any]:
    """Return a classifier's labels.

    Raises:
        ParameterError: No probabilities, not fitted, or fewer than two classes.
    """
    name = type(model).__name__
    if not hasattr(model, "predict_proba"):
        raise ParameterError(
            f"{name} gives no probabilities, which these attacks need; fit a classifier with "
            "predict_proba, or wrap this one in scikit-learn's CalibratedClassifierCV"
        )
    classes = getattr(model, "classes_", None)
    if classes is None:
        raise ParameterError(f"this {name} has no classes_: it is not fitted, or not a classifier")
    if np.ndim(classes) != 1:
        raise ParameterError(f"this {name} has several outputs; audit a model with one output")
    found: list[Any] = np.asarray(classes).tolist()
    if len(found) < 2 or len(set(found)) != len(found):
        raise ParameterError(f"this {name} must know at least two different classes")
    return found


def answers(model: Any, rows: Rows, name: str) -> Confidences:
    """Ask a model about rows.

    Args:
        model: A fitted classifier.
        rows: Features and labels.
        name: Name of the rows in error messages.

    Raises:
        ParameterError: Not a classifier with probabilities, no rows, not one label for each row, a
            label that the model does not know, or answers that are not probabilities.
    """
    x, y = checked_rows(rows, name)
    truth = places(model, y, name)
    return Confidences(probabilities(model, x, name), truth)


def probabilities(model: Any, x: Any, name: str) -> Floats:
    """Ask a model about rows, shape (n, d).

    Returns:
        Probabilities of all classes, shape (n, K). Rounded ones need not add up to 1.

    Raises:
        ParameterError: Not a classifier with probabilities, rows that the model does not take, or
            answers that are not probabilities.
    """
    classes = classes_of(model)
    try:
        said = np.asarray(model.predict_proba(x), np.float64)
    except (ValueError, TypeError) as error:
        # The model's own message may quote a value of a row.
        raise ParameterError(
            f"{name}: the model does not take these rows ({type(error).__name__}); give the "
            "columns, and the kinds of values, to which it was fitted"
        ) from None
    if said.shape != (len(x), len(classes)):
        raise ParameterError(
            f"the model gives probabilities of shape {said.shape} for {len(x):,} rows and "
            f"{len(classes)} classes"
        )
    good = ((said >= 0) & (said <= 1)).all(axis=1)
    if not good.all():
        raise ParameterError(
            f"{name}: the model's answers about row {int((~good).argmax()) + 1} are not "
            "probabilities from 0 to 1"
        )
    return said


def checked_rows(rows: Rows, name: str) -> tuple[Any, Labels]:
    """Return features and labels.

    Raises:
        ParameterError: No rows, sparse rows, or not one label for each row.
    """
    if not isinstance(rows, Sequence) or len(rows) != 2:
        raise ParameterError(f"{name}: give the features and the labels, as (X, y)")
    x, y = rows[0], np.asarray(rows[1])
    if hasattr(x, "toarray"):
        raise ParameterError(f"{name}: the features are a sparse matrix; give x.toarray()")
    count = x.shape[0] if hasattr(x, "shape") else len(x)
    if y.ndim != 1 or len(y) != count:
        raise ParameterError(
            f"{name}: {count:,} rows need a label each, and the labels have shape {y.shape}"
        )
    if not count:
        raise ParameterError(f"{name}: has no rows; an audit needs members and holdout")
    return x, y


def places(model: Any, y: Labels, name: str) -> npt.NDArray[np.intp]:
    """Return the column of each label.

    Raises:
        ParameterError: As `classes_of`, or a label that the model does not know.
    """
    classes = classes_of(model)
    known = {label: place for place, label in enumerate(classes)}
    found = np.array([known.get(label, -1) for label in y.tolist()], np.intp)
    if (found < 0).any():
        many = int((found < 0).sum())
        raise ParameterError(
            f"{name}: the model does not know the label of row {int((found < 0).argmax()) + 1} "
            f"(and so of {many:,} of {len(y):,} rows) among its {len(classes)} classes; check that "
            "it is the right column, and that numbers are not text"
        )
    return found
