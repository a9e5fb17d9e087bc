"""Secret sharing over the field of 2^61 - 1 elements: sums by it, and computing on shares."""

from securecomp.sharing.additive import Share, reconstruct, split
from securecomp.sharing.choosing import (
    argmax,
    concatenate,
    maximum,
    median,
    minimum,
    quantile,
    sort,
    where,
)
from securecomp.sharing.computation import Computation
from securecomp.sharing.functions import clamp, divide, reciprocal, sigmoid, sqrt
from securecomp.sharing.shared import SharedArray
from securecomp.sharing.summing import Contributor, Receiver, Server

__all__ = [
    "Computation",
    "Contributor",
    "Receiver",
    "Server",
    "Share",
    "SharedArray",
    "argmax",
    "clamp",
    "concatenate",
    "divide",
    "maximum",
    "median",
    "minimum",
    "quantile",
    "reciprocal",
    "reconstruct",
    "sigmoid",
    "sort",
    "split",
    "sqrt",
    "where",
]
