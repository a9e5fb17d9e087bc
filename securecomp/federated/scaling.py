"""Columns in coordinates in which steps of one size suit all of them; equal at every site.

By public bounds: from the lowest to the highest value becomes -1 to 1. By moments: means and
standard deviations over all sites, from one secure sum whose totals are opened; a column that is
far smaller than its bound is trained much faster so.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np

from securecomp.errors import ParameterError
from securecomp.federated.checkpoints import Checkpoint, floats, numbers
from securecomp.federated.local_update import ScaledRows
from securecomp.federated.losses import Floats
from securecomp.federated.round_sum import RoundSum
from securecomp.federated.training_data import TrainingData
from securecomp.statistics.adder import IntegerBlock, RealBlock

Kind = Literal["bounds", "moments", "none"]
KINDS: tuple[Kind, ...] = ("bounds", "moments", "none")
_BITS = 40
_CONSTANT = 1e-9  # of a squared bound: below, a variance is rounding


@dataclass(frozen=True, slots=True, eq=False)
class Scaling:
    """scaled = (x - shift) / spread, column by column.

    Attributes:
        shift: Shape (d,).
        spread: Above 0.
        reach: Largest absolute value of each column, in its own unit, as far as is known.
    """

    shift: Floats
    spread: Floats
    reach: Floats

    @classmethod
    def of(cls, state: Checkpoint, data: TrainingData) -> "Scaling":
        """Return the scaling that a training goes by."""
        reach = np.maximum(np.abs(data.low), np.abs(data.high))
        return cls(numbers(state.shift), numbers(state.spread), reach)

    def rows(self, features: Floats, intercept: bool) -> Floats:
        """Return scaled features, with a column of ones last where there is an intercept."""
        scaled = (features - self.shift) / self.spread
        return np.column_stack([scaled, np.ones(len(scaled))]) if intercept else scaled

    def unscaled(self, weights: Floats, intercept: bool) -> tuple[Floats, Floats]:
        """Return weights and intercepts in the columns' own units."""
        slopes = (weights[:, :-1] if intercept else weights) / self.spread
        constant = weights[:, -1] if intercept else np.zeros(len(weights))
        return slopes, constant - slopes @ self.shift


def agree(
    state: Checkpoint, kind: Kind, data: TrainingData, opener: RoundSum | None, max_rows: int
) -> Checkpoint:
    """Agree on a scaling, and check that there is something to learn.

    A model without an intercept has columns that are not shifted.

    Args:
        state: The beginning of a training.
        kind: By what.
        data: What the sites bring.
        opener: Opens one sum: how many rows there are, of a classifier in each class, and for
            "moments" of the columns. None with privacy, where this sum would have no noise.
        max_rows: No site has more rows.

    Raises:
        ParameterError: Rows of one class at all sites, or "moments" with privacy.
    """
    reach = np.maximum(np.abs(data.low), np.abs(data.high))
    if kind not in KINDS:
        raise ParameterError(f"scaling is one of {', '.join(KINDS)}, not {kind!r}")
    if kind == "moments" and opener is None:
        raise ParameterError(
            'scaling="moments" opens means and variances without noise; with privacy take "bounds"'
        )
    one = np.ones(len(reach))
    shift, spread = 0 * one, one
    if kind != "none":
        shift = (data.low + data.high) / 2 if data.intercept else shift
        spread = (data.high - data.low) / 2 if data.intercept else reach
        spread = np.where(spread > 0, spread, 1.0)
    if opener is not None:
        found = _opened(kind, data, opener, max_rows, shift, spread)
        if found is not None:
            mean, deviation = found
            if not data.intercept:
                deviation, mean = np.hypot(mean, deviation), 0 * one
            shift, spread = shift + spread * mean, spread * deviation
    return msgspec.structs.replace(
        state,
        shift=floats(shift),
        spread=floats(spread),
        opened=() if opener is None else tuple(opener.opened),
    )


def scaled(data: TrainingData, scaling: Scaling) -> dict[str, ScaledRows]:
    """Return each site's rows as they are trained on."""
    return {
        name: ScaledRows(scaling.rows(site.features, data.intercept), site.targets, site.units)
        for name, site in data.sites.items()
    }


def _opened(
    kind: Kind, data: TrainingData, opener: RoundSum, max_rows: int, middle: Floats, half: Floats
) -> tuple[Floats, Floats] | None:
    """Open the first sum; return means and standard deviations of columns within -1..1."""
    blocks: list[IntegerBlock | RealBlock] = [IntegerBlock(_labels(data), max_rows, _counts(data))]
    if kind == "moments":
        sums: dict[str, Floats] = {}
        squares: dict[str, Floats] = {}
        for name, site in data.sites.items():
            inside = (site.features - middle) / half
            sums[name], squares[name] = inside.sum(axis=0), (inside**2).sum(axis=0)
        slack = max_rows * (1 + 1e-9)
        blocks.append(RealBlock([f"sum of {name}" for name in data.names], slack, _BITS, sums))
        labels = [f"sum of squares of {name}" for name in data.names]
        blocks.append(RealBlock(labels, slack, _BITS, squares))
    totals, _ = opener.add(data.everybody, blocks, {})
    rows = totals[0][0]
    if data.classes is not None and rows in totals[0][1:]:
        raise ParameterError(
            "all rows of all sites are of one class, so that there is nothing to tell apart; ask "
            "more sites, or look for another response"
        )
    if kind != "moments":
        return None
    mean = totals[1] / rows
    variance = totals[2] / rows - mean**2
    return mean, np.where(variance > _CONSTANT, np.sqrt(np.maximum(variance, 0)), 1.0)


def _labels(data: TrainingData) -> list[str]:
    return ["rows", *(f"rows of class {label}" for label in data.classes or ())]


def _counts(data: TrainingData) -> Mapping[str, list[int]]:
    many = 0 if data.classes is None else len(data.classes)
    return {
        name: [len(site.features), *np.bincount(site.labels, minlength=many).tolist()[:many]]
        for name, site in data.sites.items()
    }
