"""Models that are trained over sites, and models that tell little about any row.

The public names are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from securecomp.federated.dp_models import DPLinearRegression, DPLogisticRegression
    from securecomp.federated.estimators import (
        FederatedLinearRegression,
        FederatedLogisticRegression,
    )

_HOMES = {
    "DPLinearRegression": "securecomp.federated.dp_models",
    "DPLogisticRegression": "securecomp.federated.dp_models",
    "FederatedLinearRegression": "securecomp.federated.estimators",
    "FederatedLogisticRegression": "securecomp.federated.estimators",
}

__all__ = [
    "DPLinearRegression",
    "DPLogisticRegression",
    "FederatedLinearRegression",
    "FederatedLogisticRegression",
]


def __getattr__(name: str) -> Any:
    # scikit-learn is an extra, and takes a while to load.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'securecomp.federated' has no attribute {name!r}")
