"""Work of one site in a round, on its own rows and the weights that all know.

A site's *change* is what it proposes to add to the weights. Sources: McMahan et al., AISTATS 2017,
algorithm 1 (averaging; one step on all rows is federated SGD); for gradients that are clipped row
by row, Abadi et al., Deep learning with differential privacy, CCS 2016, algorithm 1.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from securecomp.core import prg
from securecomp.federated.config import TrainingTerms
from securecomp.federated.losses import Floats, Loss

_CHUNK = 1 << 21  # numbers of gradients that are in memory together


@dataclass(frozen=True, slots=True, eq=False)
class ScaledRows:
    """One site's rows, scaled; with a constant column of ones last where there is an intercept.

    Attributes:
        features: Shape (n, d).
        targets: Shape (n, K).
        units: Of each row, the number of the patient whose it is, from 0; None where every row
            is a unit of its own.
    """

    features: Floats
    targets: Floats
    units: npt.NDArray[np.intp] | None = None

    @property
    def count(self) -> int:
        """The number of rows."""
        return len(self.features)

    @property
    def unit_count(self) -> int:
        """The number of units."""
        if self.units is None:
            return self.count
        return int(self.units.max()) + 1 if self.units.size else 0


def penalised(weights: Floats, l2: float, intercept: bool) -> Floats:
    """Return the penalty's gradient; the intercept, which is last, has none."""
    pulled = l2 * weights
    if intercept:
        pulled[:, -1] = 0
    return pulled


def change(
    terms: TrainingTerms,
    loss: Loss,
    rows: ScaledRows,
    weights: Floats,
    intercept: bool,
    order: bytes,
) -> Floats:
    """Return a site's change of the weights, shape (K, d); not finite where training diverges.

    Args:
        terms: What was agreed.
        loss: The model's.
        rows: The site's.
        weights: At the round's beginning, shape (K, d).
        intercept: Whether the last column is one of ones.
        order: Key that the order of the rows is drawn from.
    """
    found = weights.copy()
    epochs = terms.local_epochs if terms.strategy == "averaging" else 1
    with np.errstate(all="ignore"):
        for epoch in range(epochs):
            for batch in _batches(terms, rows.count, order, epoch):
                x, y = rows.features[batch], rows.targets[batch]
                gradient = loss.residuals(x @ found.T, y).T @ x / len(x)
                found -= terms.learning_rate * (gradient + penalised(found, terms.l2, intercept))
        return np.asarray(found - weights)


def _batches(
    terms: TrainingTerms, count: int, order: bytes, epoch: int
) -> Iterator[slice | npt.NDArray[np.intp]]:
    size = terms.batch_size
    if size is None:
        yield slice(None)
        return
    key = prg.derive(order, "federated batches", epoch)
    mixed = np.argsort(prg.expand_words(key, count), kind="stable")
    stop = count if terms.strategy == "averaging" else size
    for start in range(0, stop, size):
        yield mixed[start : start + size]


def total_loss(loss: Loss, rows: ScaledRows, weights: Floats) -> float:
    """Return the sum of a site's losses."""
    with np.errstate(all="ignore"):
        return float(loss.losses(rows.features @ weights.T, rows.targets).sum())


def unit_gradients(loss: Loss, rows: ScaledRows, weights: Floats) -> Iterator[Floats]:
    """Yield the gradients of a site's units, some at a time, shape (units, K d).

    A row's is the outer product of residual and features; a patient's is the sum over the rows.
    It is not finite where numbers are beyond all floats.
    """
    k, d = weights.shape
    with np.errstate(all="ignore"):
        residuals = loss.residuals(rows.features @ weights.T, rows.targets)
    many = max(1, _CHUNK // (k * d))
    if rows.units is not None:
        summed = np.zeros((rows.unit_count, k * d))
        for start in range(0, rows.count, many):
            part = slice(start, start + many)
            outer = _outer(residuals[part], rows.features[part])
            with np.errstate(all="ignore"):
                np.add.at(summed, rows.units[part], outer)
        yield summed
        return
    for start in range(0, rows.count, many):
        part = slice(start, start + many)
        yield _outer(residuals[part], rows.features[part])


def _outer(residuals: Floats, features: Floats) -> Floats:
    with np.errstate(all="ignore"):
        outer = residuals[:, :, None] * features[:, None, :]
    return np.asarray(outer.reshape(len(residuals), -1))
