"""A small network whose gradients can be attacked: two dense layers, sigmoid and softmax.

For rows X (n, d) and one-hot targets Y (n, K): H = s(X W1' + b1), P = softmax(H W2' + b2), and the
loss is the sum of the rows' negative log likelihoods. A site would send its gradient by the
parameters. Matching also needs the derivative of that gradient by the rows, a second derivative.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from securecomp.audit.seeded_random import SeededRandom
from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.errors import ParameterError
from securecomp.federated.losses import Loss

Floats = npt.NDArray[np.float64]
_SIGMOID, _SOFTMAX = Loss("sigmoid"), Loss("softmax")


class Differentiable(Protocol):
    """A model whose gradients can be matched."""

    @property
    def features(self) -> int:
        """Number of values in a row."""

    @property
    def classes(self) -> int:
        """Number of columns of the targets."""

    @property
    def parameters(self) -> int:
        """Number of values in a gradient."""

    def gradient(self, rows: Floats, targets: Floats) -> Floats:
        """Return the loss's gradient by all parameters, flat, summed over the rows."""

    def pull(self, rows: Floats, targets: Floats, direction: Floats) -> Floats:
        """Return the gradient, by the rows, of the inner product of `gradient` and `direction`."""


@dataclass(frozen=True, slots=True)
class Network:
    """A network of dense, sigmoid, dense and softmax layers.

    Attributes:
        inner: Weights of the first layer, shape (h, d).
        inner_bias: Intercepts of the first layer, shape (h,).
        outer: Weights of the second layer, shape (K, h).
        outer_bias: Intercepts of the second layer, shape (K,).
    """

    inner: Floats
    inner_bias: Floats
    outer: Floats
    outer_bias: Floats

    def __post_init__(self) -> None:
        shapes = [np.shape(a) for a in (self.inner, self.inner_bias, self.outer, self.outer_bias)]
        hidden, classes = len(self.inner), len(self.outer)
        if shapes != [(hidden, self.features), (hidden,), (classes, hidden), (classes,)]:
            raise ParameterError(f"parameters of shapes {shapes} do not form two dense layers")

    @classmethod
    def draw(
        cls,
        features: int,
        hidden: int,
        classes: int,
        entropy: Entropy = entropy_.system,
        spread: float = 0.5,
    ) -> "Network":
        """Draw all parameters uniformly from -spread to spread (Zhu et al. take 0.5).

        Raises:
            ParameterError: No features, no hidden units, or a single class.
        """
        if min(features, hidden) < 1 or classes < 2:
            raise ParameterError(
                "a network has at least one feature, one hidden unit and two classes, not "
                f"{features}, {hidden} and {classes}"
            )
        shapes = ((hidden, features), (hidden,), (classes, hidden), (classes,))
        lots = SeededRandom.fresh("network", entropy)
        return cls(*(spread * (2 * lots.uniforms(shape) - 1) for shape in shapes))

    @property
    def features(self) -> int:
        """Number of values in a row."""
        return int(self.inner.shape[1])

    @property
    def classes(self) -> int:
        """Number of columns of the targets."""
        return len(self.outer)

    @property
    def parameters(self) -> int:
        """Number of values in a gradient."""
        return int(sum(part.size for part in self._parts()))

    def _parts(self) -> tuple[Floats, Floats, Floats, Floats]:
        return self.inner, self.inner_bias, self.outer, self.outer_bias

    def split(self, flat: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Split a flat gradient into parts with the parameters' shapes, in their order."""
        ends = np.cumsum([part.size for part in self._parts()])[:-1]
        pieces = np.split(flat, ends)
        inner, inner_bias, outer, outer_bias = (
            piece.reshape(part.shape) for piece, part in zip(pieces, self._parts(), strict=True)
        )
        return inner, inner_bias, outer, outer_bias

    def forward(self, rows: Floats) -> tuple[Floats, Floats]:
        """Return the hidden layer, shape (n, h), and the probabilities, shape (n, K)."""
        hidden = _SIGMOID.means(rows @ self.inner.T + self.inner_bias)
        return hidden, _SOFTMAX.means(hidden @ self.outer.T + self.outer_bias)

    def loss(self, rows: Floats, targets: Floats) -> float:
        """Return the sum of the rows' losses."""
        hidden, _ = self.forward(rows)
        scores = hidden @ self.outer.T + self.outer_bias
        return float(_SOFTMAX.losses(scores, targets).sum())

    def gradient(self, rows: Floats, targets: Floats) -> Floats:
        """Return the loss's gradient by all parameters, flat, summed over the rows."""
        hidden, chances = self.forward(rows)
        residuals = chances - targets
        deltas = residuals @ self.outer * hidden * (1 - hidden)
        parts = (deltas.T @ rows, deltas.sum(axis=0), residuals.T @ hidden, residuals.sum(axis=0))
        return np.concatenate([part.reshape(-1) for part in parts])

    def pull(self, rows: Floats, targets: Floats, direction: Floats) -> Floats:
        """Return the gradient, by the rows, of the inner product of `gradient` and `direction`.

        With V1, v1, V2, v2 the parts of the direction, R the residuals and D the deltas above, the
        product is sum(D * (X V1' + v1)) + sum(R * (H V2' + v2)). This is its derivative, backwards.
        """
        inner, inner_bias, outer, outer_bias = self.split(direction)
        hidden, chances = self.forward(rows)
        residuals, slope = chances - targets, hidden * (1 - hidden)
        back = residuals @ self.outer
        moved = rows @ inner.T + inner_bias
        by_residuals = hidden @ outer.T + outer_bias + moved * slope @ self.outer.T
        centred = by_residuals - (chances * by_residuals).sum(axis=1, keepdims=True)
        by_hidden = residuals @ outer + back * moved * (1 - 2 * hidden)
        by_hidden += chances * centred @ self.outer
        return np.asarray(by_hidden * slope @ self.inner + back * slope @ inner, np.float64)
