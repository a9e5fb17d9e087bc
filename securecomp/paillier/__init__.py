"""Paillier: an encrypted aggregator, compatible with python-paillier (phe)."""

from securecomp.paillier.keys import PrivateKey, PublicKey
from securecomp.paillier.packing import Packing
from securecomp.paillier.sum_roles import Aggregator, Contributor, KeyHolder, Receiver
from securecomp.paillier.vectors import EncryptedVector, decrypt, dot, encrypt

__all__ = [
    "Aggregator",
    "Contributor",
    "EncryptedVector",
    "KeyHolder",
    "Packing",
    "PrivateKey",
    "PublicKey",
    "Receiver",
    "decrypt",
    "dot",
    "encrypt",
]
