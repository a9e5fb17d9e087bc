"""Attacks on your own models and files, so that you measure a leak before somebody else finds it.

The public names are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from securecomp.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from securecomp.audit.attack_result import AttackResult, Rate, compared
    from securecomp.audit.membership.attacks import LikelihoodRatio, LossThreshold, ShadowModels
    from securecomp.audit.membership.claims import Claim, Verdict
    from securecomp.audit.membership.membership_audit import (
        membership_from_scores,
        membership_inference,
    )
    from securecomp.audit.membership.membership_report import MembershipReport
    from securecomp.audit.membership.restricted_model import RestrictedModel
    from securecomp.audit.membership.roc_curve import Roc
    from securecomp.audit.membership.strength import Strength
    from securecomp.audit.membership.trials import Trials, retrained
    from securecomp.audit.model_file import Classifier, classifier, read_rows
    from securecomp.audit.reconstruction.attributes import AttributeLeak, attribute_inference
    from securecomp.audit.reconstruction.canaries import (
        CanaryLeak,
        CanarySpace,
        canary_exposure,
        extract_canaries,
    )
    from securecomp.audit.reconstruction.gradient_matching import MatchingLeak, gradient_matching
    from securecomp.audit.reconstruction.gradients import (
        GradientLeak,
        gradient_inversion,
        recover_row,
    )
    from securecomp.audit.reconstruction.inversion import InversionLeak, model_inversion
    from securecomp.audit.reconstruction.observed_messages import server_view
    from securecomp.audit.reconstruction.two_layer_net import Network
    from securecomp.audit.reidentification.exposure import Exposure
    from securecomp.audit.reidentification.uniqueness import uniqueness

_HOMES = {
    "AttackResult": "securecomp.audit.attack_result",
    "AttributeLeak": "securecomp.audit.reconstruction.attributes",
    "CanaryLeak": "securecomp.audit.reconstruction.canaries",
    "CanarySpace": "securecomp.audit.reconstruction.canaries",
    "Claim": "securecomp.audit.membership.claims",
    "Classifier": "securecomp.audit.model_file",
    "Exposure": "securecomp.audit.reidentification.exposure",
    "GradientLeak": "securecomp.audit.reconstruction.gradients",
    "InversionLeak": "securecomp.audit.reconstruction.inversion",
    "LikelihoodRatio": "securecomp.audit.membership.attacks",
    "LossThreshold": "securecomp.audit.membership.attacks",
    "MatchingLeak": "securecomp.audit.reconstruction.gradient_matching",
    "MembershipReport": "securecomp.audit.membership.membership_report",
    "Network": "securecomp.audit.reconstruction.two_layer_net",
    "Rate": "securecomp.audit.attack_result",
    "RestrictedModel": "securecomp.audit.membership.restricted_model",
    "Roc": "securecomp.audit.membership.roc_curve",
    "ShadowModels": "securecomp.audit.membership.attacks",
    "Strength": "securecomp.audit.membership.strength",
    "Trials": "securecomp.audit.membership.trials",
    "Verdict": "securecomp.audit.membership.claims",
    "attribute_inference": "securecomp.audit.reconstruction.attributes",
    "canary_exposure": "securecomp.audit.reconstruction.canaries",
    "classifier": "securecomp.audit.model_file",
    "compared": "securecomp.audit.attack_result",
    "extract_canaries": "securecomp.audit.reconstruction.canaries",
    "gradient_inversion": "securecomp.audit.reconstruction.gradients",
    "gradient_matching": "securecomp.audit.reconstruction.gradient_matching",
    "membership_from_scores": "securecomp.audit.membership.membership_audit",
    "membership_inference": "securecomp.audit.membership.membership_audit",
    "model_inversion": "securecomp.audit.reconstruction.inversion",
    "read_rows": "securecomp.audit.model_file",
    "recover_row": "securecomp.audit.reconstruction.gradients",
    "retrained": "securecomp.audit.membership.trials",
    "server_view": "securecomp.audit.reconstruction.observed_messages",
    "uniqueness": "securecomp.audit.reidentification.uniqueness",
}

__all__ = [
    "AttackResult",
    "AttributeLeak",
    "CanaryLeak",
    "CanarySpace",
    "Claim",
    "Classifier",
    "Exposure",
    "GradientLeak",
    "InversionLeak",
    "LikelihoodRatio",
    "LossThreshold",
    "MatchingLeak",
    "MembershipReport",
    "Network",
    "Rate",
    "RestrictedModel",
    "Roc",
    "ShadowModels",
    "Strength",
    "Trials",
    "Verdict",
    "attribute_inference",
    "canary_exposure",
    "classifier",
    "compared",
    "extract_canaries",
    "gradient_inversion",
    "gradient_matching",
    "membership_from_scores",
    "membership_inference",
    "model_inversion",
    "read_rows",
    "recover_row",
    "retrained",
    "server_view",
    "uniqueness",
]


# scikit-learn is an extra, and scipy takes a while to load.
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
