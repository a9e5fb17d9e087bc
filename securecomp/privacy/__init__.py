"""Sensitivity, noise, accounting and budgets: bounds on how much a result tells about one person.

The public names are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from securecomp.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from securecomp.privacy.accounting import (
        DiscreteGaussian,
        GaussianNoise,
        LaplaceNoise,
        Promised,
        Sampled,
        TotalCost,
        total,
    )
    from securecomp.privacy.calibration import (
        gaussian_delta,
        gaussian_epsilon,
        gaussian_scale,
        laplace_scale,
    )
    from securecomp.privacy.distributed import NoisePlan, plan
    from securecomp.privacy.guarantee import (
        Guarantee,
        PrivacyWarning,
        best_accuracy,
        best_detection,
        explain,
    )
    from securecomp.privacy.ledger import Ledger, Reservation
    from securecomp.privacy.ledger_history import LedgerBalance
    from securecomp.privacy.local_dp import AnswerEstimate, Response, Unary
    from securecomp.privacy.noise_distributions import UnitChange
    from securecomp.privacy.policy import Privacy
    from securecomp.privacy.privacy_amounts import PrivacyCost
    from securecomp.privacy.rotation import Encoding
    from securecomp.privacy.samplers import discrete_gaussian, discrete_laplace, skellam
    from securecomp.privacy.sensitivity import Bounds, Neighbours, Sensitivity

_HOMES = {
    "AnswerEstimate": "securecomp.privacy.local_dp",
    "Bounds": "securecomp.privacy.sensitivity",
    "DiscreteGaussian": "securecomp.privacy.accounting",
    "Encoding": "securecomp.privacy.rotation",
    "GaussianNoise": "securecomp.privacy.accounting",
    "Guarantee": "securecomp.privacy.guarantee",
    "LaplaceNoise": "securecomp.privacy.accounting",
    "Ledger": "securecomp.privacy.ledger",
    "LedgerBalance": "securecomp.privacy.ledger_history",
    "Neighbours": "securecomp.privacy.sensitivity",
    "NoisePlan": "securecomp.privacy.distributed",
    "Privacy": "securecomp.privacy.policy",
    "PrivacyCost": "securecomp.privacy.privacy_amounts",
    "PrivacyWarning": "securecomp.privacy.guarantee",
    "Promised": "securecomp.privacy.accounting",
    "Reservation": "securecomp.privacy.ledger",
    "Response": "securecomp.privacy.local_dp",
    "Sampled": "securecomp.privacy.accounting",
    "Sensitivity": "securecomp.privacy.sensitivity",
    "TotalCost": "securecomp.privacy.accounting",
    "Unary": "securecomp.privacy.local_dp",
    "UnitChange": "securecomp.privacy.noise_distributions",
    "best_accuracy": "securecomp.privacy.guarantee",
    "best_detection": "securecomp.privacy.guarantee",
    "discrete_gaussian": "securecomp.privacy.samplers",
    "discrete_laplace": "securecomp.privacy.samplers",
    "explain": "securecomp.privacy.guarantee",
    "gaussian_delta": "securecomp.privacy.calibration",
    "gaussian_epsilon": "securecomp.privacy.calibration",
    "gaussian_scale": "securecomp.privacy.calibration",
    "laplace_scale": "securecomp.privacy.calibration",
    "plan": "securecomp.privacy.distributed",
    "skellam": "securecomp.privacy.samplers",
    "total": "securecomp.privacy.accounting",
}

__all__ = [
    "AnswerEstimate",
    "Bounds",
    "DiscreteGaussian",
    "Encoding",
    "GaussianNoise",
    "Guarantee",
    "LaplaceNoise",
    "Ledger",
    "LedgerBalance",
    "Neighbours",
    "NoisePlan",
    "Privacy",
    "PrivacyCost",
    "PrivacyWarning",
    "Promised",
    "Reservation",
    "Response",
    "Sampled",
    "Sensitivity",
    "TotalCost",
    "Unary",
    "UnitChange",
    "best_accuracy",
    "best_detection",
    "discrete_gaussian",
    "discrete_laplace",
    "explain",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_scale",
    "laplace_scale",
    "plan",
    "skellam",
    "total",
]


__getattr__, __dir__ = lazy_names(__name__, _HOMES)
