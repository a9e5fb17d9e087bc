"""Computing on shares: parties multiply, compare, sort and divide numbers that nobody sees."""

from securecomp.mpc.computation import Computation
from securecomp.mpc.division import divide, reciprocal
from securecomp.mpc.functions import clamp, sigmoid, sqrt
from securecomp.mpc.selection import (
    argmax,
    concatenate,
    maximum,
    median,
    minimum,
    quantile,
    sort,
    where,
)
from securecomp.mpc.shared_array import SharedArray

__all__ = [
    "Computation",
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
    "sigmoid",
    "sort",
    "sqrt",
    "where",
]
