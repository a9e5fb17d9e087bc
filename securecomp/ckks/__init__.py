"""CKKS: predictions of a logistic regression on rows that the server cannot read."""

from securecomp.ckks.enrolment import Offer, Registration
from securecomp.ckks.estimator import EncryptedLogisticRegression
from securecomp.ckks.inference_client import InferenceClient, Predictions
from securecomp.ckks.inference_server import InferenceServer
from securecomp.ckks.owner import ModelOwner
from securecomp.ckks.plan import Plan
from securecomp.ckks.planner import plan
from securecomp.ckks.request_log import FileLedger, MemoryLedger
from securecomp.models import LogisticModel

__all__ = [
    "EncryptedLogisticRegression",
    "FileLedger",
    "InferenceClient",
    "InferenceServer",
    "LogisticModel",
    "MemoryLedger",
    "ModelOwner",
    "Offer",
    "Plan",
    "Predictions",
    "Registration",
    "plan",
]
