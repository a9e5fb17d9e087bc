"""Models trained over sites, and models trained with a bound on what they tell about any row.

The public names are loaded when they are first used. PyTorch models are trained by
`securecomp.federated.opacus`, which needs the extra `torch`.
"""

from typing import TYPE_CHECKING

from securecomp.core.lazy_names import lazy_names

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


__getattr__, __dir__ = lazy_names(__name__, _HOMES)
