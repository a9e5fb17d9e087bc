"""Statistics over sites that do not show their rows, on any sum protocol."""

from securecomp.statistics.codebook import Codebook, CodebookWarning
from securecomp.statistics.coxresult import Cox
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
from securecomp.statistics.logrank import LogRank
from securecomp.statistics.ranks import Ranks
from securecomp.statistics.regressions import Regression
from securecomp.statistics.results import Result, Run
from securecomp.statistics.schema import Column
from securecomp.statistics.scoring import Scores
from securecomp.statistics.study import Study
from securecomp.statistics.survival import KaplanMeier
from securecomp.statistics.winner import Winner

__all__ = [
    "Codebook",
    "CodebookWarning",
    "Column",
    "Count",
    "Cox",
    "CrossTable",
    "Entry",
    "Finding",
    "Histogram",
    "KaplanMeier",
    "LogRank",
    "Mean",
    "Ranks",
    "Regression",
    "Result",
    "Run",
    "Scores",
    "Statistic",
    "Study",
    "Sum",
    "Variance",
    "Winner",
]
