"""Statistics over sites that do not show their rows, on any sum protocol."""

from securecomp.statistics.codebook import Codebook, CodebookWarning
from securecomp.statistics.definitions import (
    Count,
    CrossTable,
    Histogram,
    Mean,
    Statistic,
    Sum,
    Variance,
)
from securecomp.statistics.entries import Entry
from securecomp.statistics.findings import Finding
from securecomp.statistics.results import Result, Run
from securecomp.statistics.schema import Column
from securecomp.statistics.study import Study

__all__ = [
    "Codebook",
    "CodebookWarning",
    "Column",
    "Count",
    "CrossTable",
    "Entry",
    "Finding",
    "Histogram",
    "Mean",
    "Result",
    "Run",
    "Statistic",
    "Study",
    "Sum",
    "Variance",
]
