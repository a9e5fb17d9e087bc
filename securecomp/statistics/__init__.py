"""Statistics over sites that do not show their rows, on any sum protocol."""

from securecomp.statistics.codebook.agreed_codebook import Codebook, CodebookWarning
from securecomp.statistics.codebook.entries import Entry
from securecomp.statistics.codebook.findings import Finding
from securecomp.statistics.ranks.quantiles import Ranks
from securecomp.statistics.ranks.scoring import Scores
from securecomp.statistics.ranks.winner import Winner
from securecomp.statistics.regression.regression_results import Regression
from securecomp.statistics.results import Result, Run
from securecomp.statistics.schema import Column
from securecomp.statistics.study import Study
from securecomp.statistics.summaries import (
    Count,
    CrossTable,
    Histogram,
    Mean,
    Skewness,
    Statistic,
    Sum,
    Variance,
)
from securecomp.statistics.survival.cox_result import Cox
from securecomp.statistics.survival.kaplan_meier import KaplanMeier
from securecomp.statistics.survival.log_rank import LogRank

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
    "Skewness",
    "Statistic",
    "Study",
    "Sum",
    "Variance",
    "Winner",
]
