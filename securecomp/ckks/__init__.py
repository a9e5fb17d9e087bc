"""Encrypted inference by CKKS: a server predicts on rows that it cannot read."""

from securecomp.ckks.enrolment import Offer, Registration
from securecomp.ckks.estimator import (
    EncryptedClassifier,
    EncryptedLogisticRegression,
    EncryptedRegressor,
)
from securecomp.ckks.inference_client import InferenceClient, Predictions
from securecomp.ckks.inference_server import InferenceServer
from securecomp.ckks.owner import ModelOwner
from securecomp.ckks.plan import InferencePlan
from securecomp.ckks.planner import PrecisionWarning, plan
from securecomp.ckks.request_log import FileRequestLog, MemoryRequestLog
from securecomp.ckks.seal.tenseal_vectors import VectorServer
from securecomp.models import LogisticModel

__all__ = [
    "EncryptedClassifier",
    "EncryptedLogisticRegression",
    "EncryptedRegressor",
    "FileRequestLog",
    "InferenceClient",
    "InferencePlan",
    "InferenceServer",
    "LogisticModel",
    "MemoryRequestLog",
    "ModelOwner",
    "Offer",
    "PrecisionWarning",
    "Predictions",
    "Registration",
    "VectorServer",
    "plan",
]
