"""What a study can be asked beyond counts, sums and means: all its methods together."""

from securecomp.statistics.comparisons.classical import Classical
from securecomp.statistics.ranks.onshares import OnShares
from securecomp.statistics.regression.regression_methods import Models
from securecomp.statistics.survival.lifetimes import Lifetimes


class Analyses(Classical, Lifetimes, Models, OnShares):
    """The analyses of a study; `Study` inherits them."""
