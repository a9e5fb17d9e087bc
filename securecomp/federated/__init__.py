"""Models trained over sites, and models trained with a bound on what they tell about any row.

The public names are loaded when they are first used. PyTorch models are trained by
`securecomp.federated.opacus`, which needs the extra `torch`.
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
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'securecomp.federated' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
