"""Logistic models as plain numbers, and the columns of tables that they are applied to."""

from securecomp.models.feature_columns import feature_columns
from securecomp.models.fitted_estimator import client_steps
from securecomp.models.links import (
    LOGISTIC,
    REGRESSIONS,
    Label,
    Link,
    check_classes,
    labels,
    link_probabilities,
    means,
    probabilities,
    sigmoid,
    sums,
    winners,
)
from securecomp.models.logistic_model import DEFAULT_BOUND, Bounds, LogisticModel, bounds_of
from securecomp.models.pipeline_steps import UnfittedError

__all__ = [
    "DEFAULT_BOUND",
    "LOGISTIC",
    "REGRESSIONS",
    "Bounds",
    "Label",
    "Link",
    "LogisticModel",
    "UnfittedError",
    "bounds_of",
    "check_classes",
    "client_steps",
    "feature_columns",
    "labels",
    "link_probabilities",
    "means",
    "probabilities",
    "sigmoid",
    "sums",
    "winners",
]
