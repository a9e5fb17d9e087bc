"""Hospitals compute totals, statistics and models together; none shows a row.

The public names are loaded when they are first used, so that `import securecomp` costs nothing.
"""

from typing import TYPE_CHECKING

from securecomp.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from securecomp.privacy.policy import Privacy
    from securecomp.protocol.secure_sum import SecureSum, secure_sum
    from securecomp.statistics import Column, Result, Study

__version__ = "0.1.0"

_HOMES = {
    "Column": "securecomp.statistics",
    "Privacy": "securecomp.privacy.policy",
    "Result": "securecomp.statistics",
    "SecureSum": "securecomp.protocol.secure_sum",
    "Study": "securecomp.statistics",
    "secure_sum": "securecomp.protocol.secure_sum",
}

__all__ = ["Column", "Privacy", "Result", "SecureSum", "Study", "secure_sum"]


__getattr__, __dir__ = lazy_names(__name__, _HOMES)
