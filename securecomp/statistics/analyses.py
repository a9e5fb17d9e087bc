"""What a study can be asked beyond counts, sums and means: all its methods together."""

from securecomp.statistics.classical import Classical
from securecomp.statistics.lifetimes import Lifetimes
from securecomp.statistics.models import Models
from securecomp.statistics.onshares import OnShares


class Analyses(Classical, Lifetimes, Models, OnShares):
    """The analyses of a study; `Study` inherits them."""
