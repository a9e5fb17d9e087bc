"""Models that are trained over sites: no row is pooled, and no site's update is shown."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from securecomp.federated.estimators import (
        FederatedLinearRegression,
        FederatedLogisticRegression,
    )

_HOMES = {
    "FederatedLinearRegression": "securecomp.federated.estimators",
    "FederatedLogisticRegression": "securecomp.federated.estimators",
}

__all__ = ["FederatedLinearRegression", "FederatedLogisticRegression"]


def __getattr__(name: str) -> Any:
    # scikit-learn is an extra, and takes a while to load.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'securecomp.federated' has no attribute {name!r}")
