"""Secure aggregation by masking: many clients, one server that learns only the sum."""

from securecomp.secagg.client import Client
from securecomp.secagg.parameters import PROTOCOL, Parameters, Security
from securecomp.secagg.receiver import Aggregate, Receiver
from securecomp.secagg.server import Server

__all__ = ["PROTOCOL", "Aggregate", "Client", "Parameters", "Receiver", "Security", "Server"]
