"""The numbers of a fitted estimator, whatever library it is of."""

from typing import NamedTuple

from securecomp.models.links import Floats, Label, Link


class FittedNumbers(NamedTuple):
    """A fitted estimator's numbers, with its affine steps folded into the weights.

    Attributes:
        weights: Shape (K, d).
        intercepts: Shape (K,).
        classes: The labels, in the order of the probabilities.
        features: Names of the features, as they are after the client's steps.
        reach: Bound of each feature's values that the training data suggest; NaN if unknown.
        link: Link from logits to probabilities.
    """

    weights: Floats
    intercepts: Floats
    classes: tuple[Label, ...]
    features: tuple[str, ...]
    reach: Floats
    link: Link
