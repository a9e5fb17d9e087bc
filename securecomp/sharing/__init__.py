"""Additive secret sharing over the field of 2^61 - 1 elements, and sums by it."""

from securecomp.sharing.additive import Share, reconstruct, split
from securecomp.sharing.summing import Contributor, Receiver, Server

__all__ = ["Contributor", "Receiver", "Server", "Share", "reconstruct", "split"]
