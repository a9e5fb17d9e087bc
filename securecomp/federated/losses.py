"""The losses of linear models, row by row: what training needs of a model.

A model is a matrix of weights, shape (K, d). A row x, shape (d,), has the scores z = W x; a
constant feature of ones is the intercept. The gradient of a row's loss is the outer product of its
residual, shape (K,), and x, so that its norm is the product of their norms.

Source: Bishop, Pattern Recognition and Machine Learning (2006), 4.3.2 to 4.3.4 and 3.1.
"""

from typing import Literal

import numpy as np
import numpy.typing as npt

from securecomp.errors import ParameterError

Floats = npt.NDArray[np.float64]
Name = Literal["sigmoid", "softmax", "squared"]
NAMES: tuple[Name, ...] = ("sigmoid", "softmax", "squared")


class Loss:
    """One of three: "sigmoid" (targets 0 or 1), "softmax" (one-hot targets), "squared".

    Attributes:
        name: Which.
    """

    def __init__(self, name: Name) -> None:
        if name not in NAMES:
            raise ParameterError(f"a loss is one of {', '.join(NAMES)}, not {name!r}")
        self.name = name

    def means(self, scores: Floats) -> Floats:
        """Return what the model expects: probabilities, or the scores, shape (n, K)."""
        if self.name == "squared":
            return scores
        if self.name == "sigmoid":
            # Of a negative score exp does not overflow.
            small = np.exp(-np.abs(scores))
            return np.asarray(np.where(scores >= 0, 1.0, small) / (1 + small), np.float64)
        raised = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(raised / raised.sum(axis=1, keepdims=True), np.float64)

    def residuals(self, scores: Floats, targets: Floats) -> Floats:
        """Return the gradients by the scores, shape (n, K)."""
        return self.means(scores) - targets

    def losses(self, scores: Floats, targets: Floats) -> Floats:
        """Return each row's loss, shape (n,): minus the log likelihood, or half the square."""
        if self.name == "squared":
            return np.asarray(0.5 * ((scores - targets) ** 2).sum(axis=1), np.float64)
        if self.name == "sigmoid":
            each = np.logaddexp(0, scores) - targets * scores
            return np.asarray(each.sum(axis=1), np.float64)
        largest = scores.max(axis=1)
        total = np.log(np.exp(scores - largest[:, None]).sum(axis=1)) + largest
        return np.asarray(total - (targets * scores).sum(axis=1), np.float64)


def one_hot(places: npt.NDArray[np.intp], classes: int) -> Floats:
    """Return targets for classes by their numbers: shape (n, 1) of two classes, else (n, K)."""
    if classes == 2:
        return places.astype(np.float64)[:, None]
    found = np.zeros((len(places), classes))
    found[np.arange(len(places)), places] = 1
    return found
