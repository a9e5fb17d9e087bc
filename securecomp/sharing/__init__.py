"""Additive secret sharing over the field of 2^61 - 1 elements, and private sums by it."""

from securecomp.sharing.additive import Share, reconstruct, split
from securecomp.sharing.private_sum import Contributor, Receiver, Server

__all__ = ["Contributor", "Receiver", "Server", "Share", "reconstruct", "split"]
