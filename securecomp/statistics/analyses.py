"""What a study can be asked beyond counts, sums and means: the methods, and no more than that.

Each begins an inquiry and hands it to the module that knows the analysis.
"""

from securecomp.statistics.classical import Classical
from securecomp.statistics.inquiry import Inquiry


class Analyses(Classical):
    """The analyses of a study; `Study` inherits them."""

    def inquiry(self) -> Inquiry:
        """Begin a question."""
        raise NotImplementedError
