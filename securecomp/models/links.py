"""Labels of classes, and probabilities from logits."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from securecomp.errors import ParameterError

Link = Literal["sigmoid", "softmax", "ovr", "margin", "identity", "log"]
"""What follows the weighted sum: probabilities (sigmoid, softmax, ovr), the sign of a margin or the
largest of several, or the mean of a regression."""
LOGISTIC: tuple[Link, ...] = ("sigmoid", "softmax", "ovr")
REGRESSIONS: tuple[Link, ...] = ("identity", "log")
Label = bool | int | float | str
Floats = npt.NDArray[np.float64]


def check_classes(classes: tuple[Label, ...]) -> None:
    """Refuse equal labels; 1 and True are equal.

    Raises:
        ParameterError: Two labels are equal.
    """
    if len({(type(c) is str, c) for c in classes}) != len(classes):
        raise ParameterError("a class is named twice")


def labels(classes: tuple[Label, ...]) -> npt.NDArray[Any]:
    """Return labels as an array. Text and numbers together keep their types."""
    texts = {type(c) is str for c in classes}
    return np.array(classes, object if len(texts) > 1 else None)


def sums(link: Link, classes: tuple[Label, ...]) -> int:
    """Return the number of weighted sums of a row, K; 0 if classes and link do not match."""
    if link in REGRESSIONS:
        return 1 if not classes else 0
    if len(classes) < 2 or (link in LOGISTIC and (link == "sigmoid") != (len(classes) == 2)):
        return 0
    return 1 if len(classes) == 2 else len(classes)


def means(values: Floats, link: Link) -> Floats:
    """Return the means of a regression, shape (n,), from weighted sums, shape (n, 1).

    Raises:
        ParameterError: The model is not a regression.
    """
    if link not in REGRESSIONS:
        raise ParameterError(f"a model with the link {link!r} predicts classes, not a number")
    return np.exp(values[:, 0]) if link == "log" else values[:, 0]


def probabilities(logits: Floats, link: Link) -> Floats:
    """Return probabilities, shape (n, classes), of logits, shape (n, K).

    Raises:
        ParameterError: The model has no probabilities.
    """
    if link not in LOGISTIC:
        raise ParameterError(f"a model with the link {link!r} has no probabilities")
    if link == "softmax":
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        softmax: Floats = powers / powers.sum(axis=1, keepdims=True)
        return softmax
    if link == "sigmoid":  # 1 - p has no digits where p is nearly 1
        return np.hstack([sigmoid(-logits), sigmoid(logits)])
    return link_probabilities(sigmoid(logits), link)


def link_probabilities(ones: Floats, link: Link) -> Floats:
    """Return probabilities, shape (n, classes), of each logit's sigmoid, shape (n, K)."""
    if link == "sigmoid":
        return np.hstack([1 - ones, ones])
    total = ones.sum(axis=1, keepdims=True)
    # scikit-learn: where all sigmoids are 0, all classes are equally likely
    return np.where(total > 0, ones / np.where(total > 0, total, 1), 1 / ones.shape[1])


def sigmoid(logits: Floats) -> Floats:
    """Return 1 / (1 + exp(-x)), without overflow."""
    small = np.exp(-np.abs(logits))
    result: Floats = np.where(logits >= 0, 1, small) / (1 + small)
    return result


def winners(logits: Floats, link: Link, middle: float = 0.0) -> npt.NDArray[np.intp]:
    """Return the index of each row's class. Of two classes it is the second above `middle`.

    Raises:
        ParameterError: The model is a regression.
    """
    if link in REGRESSIONS:
        raise ParameterError(f"a model with the link {link!r} predicts a number, not a class")
    if logits.shape[1] == 1:
        return (logits[:, 0] > middle).astype(np.intp)
    winner: npt.NDArray[np.intp] = np.argmax(logits, axis=1)
    return winner
