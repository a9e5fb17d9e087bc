"""Gradient inversion: read a row off its gradient by division, without guessing or search.

In a linear or logistic model, and in the first dense layer of any network, one row x has the
gradient r x by the weights and r by the intercept. Here r is the row's residual, or in a layer the
error that comes back to it. The quotient of the two is x.

- One row, with intercept: x exactly, from any class, and the label (softmax, sigmoid).
- One row, without intercept: x up to its length. Its sign follows from the label, or from three or
  more classes.
- Several rows: the gradients by the weights are mixtures of the rows, weighted by their residuals.
  Together they show the space that the rows span. With two classes nothing shows that there are
  several rows, and the result is their mean, weighted by the residuals. An attacker who knows all
  rows but one takes their gradients off, and has the case of one row. Many small cases can be
  solved as well (a class with a single row). For results by search see `gradient_matching`.
- A residual of zero: the gradient is zero and says nothing of x.

Sources: Phong, Aono, Hayashi, Wang, Moriai, IEEE TIFS 13 (2018), section 3; Geiping, Bauermeister,
Dröge, Moeller, NeurIPS 2020, proposition 3.1; Zhao, Mopuri, Bilen, arXiv 2001.02610 (labels).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from securecomp.audit.attack_result import AttackResult, Rate, grid
from securecomp.audit.labelled_rows import finite, one_each
from securecomp.errors import ParameterError
from securecomp.federated.losses import Loss, Name, one_hot
from securecomp.show.exhibit import TextTable

Floats = npt.NDArray[np.float64]
_ZERO = 2.0**-960  # smaller numbers have lost digits at the lower end of the doubles
_TOLERANCE = 1e-6  # matching parts of float32 gradients differ by 1e-7

_ZERO_GRADIENT = (
    "the gradient is zero, so nothing can be recovered: the model fits the row perfectly, or the "
    "row "
    "is zero and there is no intercept"
)
_NO_SINGLE = (
    "no single row has this gradient ({:.1%} of it is left over): it has several rows, or noise; "
    "take off the gradients of known rows, or search with gradient_matching"
)


@dataclass(frozen=True, slots=True)
class ReconstructedRow:
    """A row reconstructed from a gradient.

    Attributes:
        row: Shape (d,): the row itself, or its direction, of length 1.
        exact: Whether `row` is the row itself, and not only its direction. This holds if the
            gradient is that of one row; with two classes nothing shows whether it is.
        signed: Whether the direction's sign is known.
        label: The class number, if the loss tells it. For a row that is fitted to the last digit
            it may not.
        residual: Shape (K,), if there is an intercept.
    """

    row: Floats
    exact: bool
    signed: bool
    label: int | None
    residual: Floats | None


def recover_row(
    weights: npt.ArrayLike,
    intercept: npt.ArrayLike | None = None,
    *,
    loss: Name | None = None,
    label: int | None = None,
    tolerance: float = _TOLERANCE,
) -> ReconstructedRow:
    """Recover the row from which one gradient was computed.

    Args:
        weights: Gradient by the weights, shape (K, d), or (d,) for two classes.
        intercept: Gradient by the intercepts, shape (K,); None if the model has no intercept.
        loss: "sigmoid", "softmax" or "squared". For a hidden layer "squared", which tells no label.
            By default sigmoid for one row of weights, and softmax for several.
        label: The row's class, if it is known. It settles the sign if there is no intercept.
        tolerance: Largest distance of the gradient from that of one row, relative to its size.

    Raises:
        ParameterError: Wrong shapes, NaN, a gradient of zero, or a gradient of several rows.
    """
    by_weights = finite(weights, "the gradient by the weights", 2, widen=True)
    classes = len(by_weights)
    loss = _chosen(loss, classes)
    whole = isinstance(label, int | np.integer) and not isinstance(label, bool)
    if label is not None and not (whole and 0 <= label < max(classes, 2)):
        raise ParameterError(
            f"the label must be a class number below {max(classes, 2)}, not {label}"
        )
    silent = np.abs(by_weights).max() < _ZERO
    if silent and intercept is None:
        raise ParameterError(_ZERO_GRADIENT)
    if intercept is None:
        return _direction(by_weights, loss, label, tolerance)
    residual = finite(intercept, "the gradient by the intercepts", 1, widen=True)
    if len(residual) != classes:
        raise ParameterError(f"{len(residual)} intercepts for {classes} rows of weights")
    largest = np.abs(residual).max()
    if largest < _ZERO:
        raise ParameterError(_ZERO_GRADIENT if silent else _NO_SINGLE.format(1.0))
    scaled = residual / largest  # squares of small residuals would vanish
    row = scaled @ (by_weights / largest) / (scaled @ scaled)
    _check_single(by_weights / largest, np.outer(scaled, row), tolerance)
    return ReconstructedRow(
        row, exact=True, signed=True, label=_label(residual, loss), residual=residual
    )


def _chosen(loss: Name | None, rows: int) -> Name:
    """Return the loss; by default the number of rows of weights decides it."""
    if loss is None:
        return "sigmoid" if rows == 1 else "softmax"
    if loss == "sigmoid" and rows != 1:
        raise ParameterError(f"a sigmoid has one row of weights, not {rows}")
    if loss == "softmax" and rows < 2:
        raise ParameterError("a softmax has a row of weights for each of at least 2 classes")
    return Loss(loss).name


def _direction(
    weights: Floats, loss: Name, label: int | None, tolerance: float
) -> ReconstructedRow:
    """Return the row up to its length: the common direction of all classes."""
    scaled = weights / np.abs(weights).max()
    row = np.linalg.svd(scaled, full_matrices=False)[2][0]
    residual = scaled @ row
    _check_single(scaled, np.outer(residual, row), tolerance)
    sign = 0.0
    if loss == "softmax" and len(weights) > 2:
        sign = _softmax_sign(residual)
    elif label is not None and loss == "sigmoid":
        sign = float(np.sign(residual[0])) * (-1 if label == 1 else 1)
    elif label is not None and loss == "softmax":
        sign = -float(np.sign(residual[label]))
    if sign < 0:
        residual, row = -residual, -row
    found = _label(residual, loss) if sign else label
    return ReconstructedRow(row, exact=False, signed=bool(sign), label=found, residual=None)


def _softmax_sign(residual: Floats) -> float:
    """Return the sign with which all residuals but the label's are positive; 0 if both signs do.

    The label's residual is minus the sum of the others. For a fitted row it rounds to 0 first.
    """
    above, below = int((residual > 0).sum()), int((residual < 0).sum())
    if above == below:
        return 0.0
    return 1.0 if below <= 1 and above else -1.0


def _check_single(gradient: Floats, explained: Floats, tolerance: float) -> None:
    largest = float(np.abs(gradient).max()) or 1.0  # 0 for a row of zeros
    size = float(np.linalg.norm(gradient / largest)) or 1.0
    rest = float(np.linalg.norm((gradient - explained) / largest)) / size
    if not rest <= tolerance:
        raise ParameterError(_NO_SINGLE.format(rest))


def _label(residual: Floats, loss: Name) -> int | None:
    if loss == "sigmoid":
        return int(residual[0] < 0)
    if loss == "squared":
        return None
    least = np.flatnonzero(residual == residual.min())
    return int(least[0]) if len(least) == 1 else None  # several have rounded to 0


@dataclass(frozen=True, slots=True, repr=False)
class GradientLeak(AttackResult):
    """Rows recovered from their gradients, one from each.

    Attributes:
        loss: Loss of the model.
        features: Number of values in a row.
        exact: Share of rows recovered to within 1e-9 of their largest value.
        labels: Share of labels recovered.
        silent: Number of rows whose gradient is zero.
        error: Largest error of a recovered row, relative to its largest value.
        baseline: The median of this error if the mean row is guessed.
    """

    loss: Name
    features: int
    exact: Rate
    labels: Rate
    silent: int
    error: float
    baseline: float
    knows: ClassVar[str] = (
        "one row's gradient and the kind of model, but neither its weights nor data"
    )

    @property
    def title(self) -> str:
        """The title, with the number of features."""
        return f"Gradient inversion: {self.features} features out of one gradient, {self.loss}"

    def grids(self) -> list[TextTable]:
        """Return the table."""
        rows = [
            ("rows recovered exactly", str(self.exact)),
            ("labels recovered", str(self.labels) if self.loss != "squared" else "not told"),
            ("largest error of a recovered row", f"{self.error:.1e}"),
            ("error of guessing the mean row", f"{self.baseline:.1e}"),
        ]
        return [grid("", ("", "found"), rows)]

    def facts(self) -> dict[str, Any]:
        """Return the result as plain objects."""
        return {
            "loss": self.loss,
            "features": self.features,
            "exact": self.exact.facts(),
            "labels": None if self.loss == "squared" else self.labels.facts(),
            "silent": self.silent,
            "error": self.error,
            "baseline": self.baseline,
        }

    def remarks(self) -> list[str]:
        """Return remarks on how to read the result."""
        found = [f"the model fits {self.silent} rows so well that their gradient is zero"]
        return found if self.silent else []


def gradient_inversion(
    weights: npt.ArrayLike,
    intercept: npt.ArrayLike,
    rows: npt.ArrayLike,
    targets: npt.ArrayLike,
    *,
    loss: Name | None = None,
) -> GradientLeak:
    """Compute each row's gradient, recover the row from it alone, and compare.

    Args:
        weights: Weights of the model, shape (K, d), or (d,).
        intercept: Intercepts of the model, shape (K,).
        rows: At least two rows, shape (n, d).
        targets: Class numbers, shape (n,); real numbers for "squared".
        loss: As for `recover_row`.

    Raises:
        ParameterError: Wrong shapes, NaN, or classes without weights.
    """
    matrix = finite(weights, "weights", 2, widen=True)
    offsets = finite(intercept, "the intercept", 1, widen=True)
    loss = _chosen(loss, len(matrix))
    data = finite(rows, "rows", 2)
    wanted = one_each(targets, len(data), "targets")
    if len(data) < 2 or matrix.shape[1] != data.shape[1] or len(offsets) != len(matrix):
        raise ParameterError(
            f"weights of shape {matrix.shape} and {len(offsets)} intercepts do not fit rows of "
            f"shape {data.shape}; at least two rows are needed"
        )
    if loss == "squared":
        aims = finite(wanted, "targets", 1)[:, None]
    else:
        most = 2 if loss == "sigmoid" else len(matrix)
        if wanted.dtype.kind not in "iub" or not ((wanted >= 0) & (wanted < most)).all():
            raise ParameterError(f"targets must be class numbers from 0 to {most - 1}")
        aims = one_hot(wanted.astype(np.intp), most)
        aims = np.hstack([1 - aims, aims]) if loss == "softmax" and most == 2 else aims
    if loss == "squared" and len(matrix) != 1:
        raise ParameterError(
            f"a squared loss has one row of weights for its one target, not {len(matrix)}"
        )
    residuals = Loss(loss).residuals(data @ matrix.T + offsets, aims)
    middle = data.mean(axis=0)
    errors, exact, labels, silent = [], 0, 0, 0
    for row, residual, target in zip(data, residuals, wanted, strict=True):
        if np.abs(residual).max() < _ZERO:
            silent += 1
            continue
        found = recover_row(np.outer(residual, row), residual, loss=loss)
        errors.append(_relative(found.row, row))
        exact += errors[-1] <= 1e-9
        labels += found.label is not None and found.label == target
    return GradientLeak(
        loss=loss,
        features=data.shape[1],
        exact=Rate(exact, len(data)),
        labels=Rate(labels, len(data)),
        silent=silent,
        error=max(errors, default=float("nan")),
        baseline=float(np.median([_relative(middle, row) for row in data])),
    )


def _relative(found: Floats, row: Floats) -> float:
    largest = float(np.abs(row).max())
    return float(np.abs(found - row).max()) / (largest or 1.0)
