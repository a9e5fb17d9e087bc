"""Counts, sums, means, variances, skewness, histograms and cross tables, exact or with noise."""

from securecomp.statistics.summaries.column_sum import Sum
from securecomp.statistics.summaries.count import Count
from securecomp.statistics.summaries.cross_table import CrossTable
from securecomp.statistics.summaries.histogram import Histogram
from securecomp.statistics.summaries.mean import Mean
from securecomp.statistics.summaries.skewness import Skewness
from securecomp.statistics.summaries.statistic import Statistic
from securecomp.statistics.summaries.variance import Variance

STATISTICS = (Count, Sum, Mean, Variance, Skewness, Histogram, CrossTable)
"""All of them, in the order in which people are told of them."""

__all__ = [
    "STATISTICS",
    "Count",
    "CrossTable",
    "Histogram",
    "Mean",
    "Skewness",
    "Statistic",
    "Sum",
    "Variance",
]
