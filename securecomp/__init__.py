"""Hospitals compute totals, statistics and models together; none shows a row.

The public names are loaded when they are first used, so that `import securecomp` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

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


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'securecomp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
