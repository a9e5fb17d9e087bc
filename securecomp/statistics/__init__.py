"""Statistics over sites that do not show their rows, on any sum protocol."""

from securecomp.statistics.definitions import (
    Count,
    CrossTable,
    Histogram,
    Mean,
    Statistic,
    Sum,
    Variance,
)
from securecomp.statistics.regressions import Regression
from securecomp.statistics.results import Result, Run
from securecomp.statistics.schema import Column
from securecomp.statistics.study import Study

__all__ = [
    "Column",
    "Count",
    "CrossTable",
    "Histogram",
    "Mean",
    "Regression",
    "Result",
    "Run",
    "Statistic",
    "Study",
    "Sum",
    "Variance",
]
