"""A record read off a gradient: no guessing, no search, divisions.

Of a linear or logistic model, and of the first dense layer of any network, one row x has the
gradient r x by the weights and r by the intercept, r being the row's residual (of a layer: what
comes back to it). Divided, they are x.

- With intercept, one row: x exactly, and the label (softmax, sigmoid), from any class.
- Without intercept, one row: x up to its length; its sign from the label, or from three classes on.
- Several rows: rows of weights are mixtures of the x by their residuals, and together show the
  space that the rows span. With two classes nothing shows that there are several, and what comes
  out is the mean of the rows by their residuals. Who knows all rows but one takes their gradients
  off, and has the case of one row. Many small cases beside these are solvable (a class that one
  row alone has); for what search finds see `matching`.
- A residual of zero: a gradient of zero, which says nothing of x.

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
_ZERO = 2.0**-960  # what is below has lost digits to the end of the doubles
_TOLERANCE = 1e-6  # of float32 gradients the parts that belong together differ by 1e-7

_ZERO_GRADIENT = (
    "the gradient is zero: the row's residual is, as the model fits it, or the row is and there is "
    "no intercept; nothing of it can be recovered"
)
_NO_SINGLE = (
    "no single row has this gradient ({:.1%} of it is left over): it is of several rows, or "
    "noised; take off the known rows' gradients, or search with `matching`"
)


@dataclass(frozen=True, slots=True)
class ReconstructedRow:
    """What a gradient says of its row.

    Attributes:
        row: Shape (d,): the row itself, or its direction, of length 1.
        exact: Whether `row` is the row, if the gradient is one row's: with two classes nothing
            shows whether it is. Otherwise it is the row up to its length.
        signed: Whether the direction's sign is known.
        label: The class's number, if the loss tells it; of a row that is fitted to the last digit
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
    """Recover the row that one gradient was made of.

    Args:
        weights: Gradient by the weights, shape (K, d), or (d,) of two classes.
        intercept: Gradient by the intercepts, shape (K,); None if the model has none.
        loss: "sigmoid", "softmax" or "squared"; for a hidden layer "squared", which tells no label.
            By default sigmoid of one row of weights, softmax of several.
        label: The row's class, if it is known; it settles the sign where there is no intercept.
        tolerance: How far the gradient may be from one row's, relative to its size.

    Raises:
        ParameterError: Wrong shapes, NaN, a gradient of zero, or one of several rows.
    """
    by_weights = finite(weights, "the gradient by the weights", 2, widen=True)
    classes = len(by_weights)
    loss = _chosen(loss, classes)
    whole = isinstance(label, int | np.integer) and not isinstance(label, bool)
    if label is not None and not (whole and 0 <= label < max(classes, 2)):
        raise ParameterError(f"the label is a class's number below {max(classes, 2)}, not {label}")
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
    """Return the loss, by the number of rows of weights if it is not said."""
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
    """Return the row up to its length: the one direction that all classes' rows have."""
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
    """Return the sign by which all residuals but the label's are positive; 0 if both do.

    The label's is minus the sum of the others', and of a fitted row rounds to 0 before they do.
    """
    above, below = int((residual > 0).sum()), int((residual < 0).sum())
    if above == below:
        return 0.0
    return 1.0 if below <= 1 and above else -1.0


def _check_single(gradient: Floats, explained: Floats, tolerance: float) -> None:
    largest = float(np.abs(gradient).max()) or 1.0  # 0 of a row of zeros
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
    """Rows recovered from their gradients, one each.

    Attributes:
        loss: The model's.
        features: Numbers a row.
        exact: Rows that came out to within 1e-9 of their largest value, of all.
        labels: Labels that came out, of all.
        silent: Rows whose gradient is zero.
        error: The largest error of a recovered row, relative to its largest value.
        baseline: The same of guessing the mean row, the median of the rows.
    """

    loss: Name
    features: int
    exact: Rate
    labels: Rate
    silent: int
    error: float
    baseline: float
    knows: ClassVar[str] = "one row's gradient, and the kind of model; neither its weights nor data"

    @property
    def title(self) -> str:
        """The attack in words."""
        return f"Gradient inversion: {self.features} features out of one gradient, {self.loss}"

    def grids(self) -> list[TextTable]:
        """Return the table that people read."""
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
        """Return what a reader must know."""
        found = [f"{self.silent} rows are fitted so well that their gradient is zero"]
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
        weights: The model's, shape (K, d), or (d,).
        intercept: Shape (K,).
        rows: Shape (n, d), at least two of them.
        targets: Class numbers, shape (n,); for "squared" numbers.
        loss: As for `recover_row`.

    Raises:
        ParameterError: Wrong shapes, NaN, classes beyond the weights.
    """
    matrix = finite(weights, "weights", 2, widen=True)
    offsets = finite(intercept, "the intercept", 1, widen=True)
    loss = _chosen(loss, len(matrix))
    data = finite(rows, "rows", 2)
    wanted = one_each(targets, len(data), "targets")
    if len(data) < 2 or matrix.shape[1] != data.shape[1] or len(offsets) != len(matrix):
        raise ParameterError(
            f"weights {matrix.shape} and {len(offsets)} intercepts do not go with rows "
            f"{data.shape}; at least two rows are needed"
        )
    if loss == "squared":
        aims = finite(wanted, "targets", 1)[:, None]
    else:
        most = 2 if loss == "sigmoid" else len(matrix)
        if wanted.dtype.kind not in "iub" or not ((wanted >= 0) & (wanted < most)).all():
            raise ParameterError(f"targets are classes' numbers from 0 to {most - 1}")
        aims = one_hot(wanted.astype(np.intp), most)
        aims = np.hstack([1 - aims, aims]) if loss == "softmax" and most == 2 else aims
    if loss == "squared" and len(matrix) != 1:
        raise ParameterError(f"squared: one row of weights for one target, not {len(matrix)}")
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
