"""Checks that a plan fits a model, and that logits fit a plan."""

import numpy as np
import numpy.typing as npt

from securecomp.ckks.plan import InferencePlan
from securecomp.errors import DecodeError, ParameterError
from securecomp.models import LogisticModel


def check_model(model: LogisticModel, plan: InferencePlan) -> None:
    """Refuse a plan for other features or classes than the model's.

    Raises:
        ParameterError: Features, classes or link differ.
    """
    if (model.features, model.classes, model.link) != (plan.features, plan.classes, plan.link):
        raise ParameterError(
            "the plan is for other features or classes than the model's; plan again for this model"
        )


def check_logits(logits: npt.NDArray[np.float64], plan: InferencePlan, first: int) -> None:
    """Refuse decrypted logits, shape (n, K), that no row within the bounds can have.

    Raises:
        DecodeError: A logit is beyond the plan's bound. The message names its row, `first` and on.
    """
    wrong = np.flatnonzero(~(np.abs(logits).max(axis=1) <= plan.logit_bound + 1))
    if len(wrong):
        raise DecodeError(
            f"a logit of row {first + wrong[0]} is beyond the plan's bound; the server did not "
            "keep to the plan"
        )
