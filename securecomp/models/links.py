"""Labels of classes, and probabilities from logits."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from securecomp.errors import ParameterError

Link = Literal["sigmoid", "softmax", "ovr"]
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


def probabilities(logits: Floats, link: Link) -> Floats:
    """Return probabilities, shape (n, classes), of logits, shape (n, K)."""
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
    """Return the index of each row's class. Of two classes it is the second above `middle`."""
    if link == "sigmoid":
        return (logits[:, 0] > middle).astype(np.intp)
    winner: npt.NDArray[np.intp] = np.argmax(logits, axis=1)
    return winner
