"""CKKS: predictions of a logistic regression on rows that the server cannot read."""

from securecomp.ckks.agreement import Offer, Registration
from securecomp.ckks.client import InferenceClient, Predictions
from securecomp.ckks.estimator import EncryptedLogisticRegression
from securecomp.ckks.ledger import FileLedger, MemoryLedger
from securecomp.ckks.model import LogisticModel
from securecomp.ckks.owner import ModelOwner
from securecomp.ckks.plan import Plan
from securecomp.ckks.planner import plan
from securecomp.ckks.server import InferenceServer

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
