"""A computation on shares: its parties, its engine, and their inputs."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from securecomp.core import checks, field
from securecomp.core.fixedpoint import FixedPoint, Number
from securecomp.errors import ParameterError
from securecomp.mpc.dealer_parties import Lockstep
from securecomp.mpc.engine import AdditiveEngine, Engine
from securecomp.mpc.mac_driver import MacDriver
from securecomp.mpc.mac_engine import MacEngine
from securecomp.mpc.public_values import check_bound
from securecomp.mpc.replicated_engine import ReplicatedEngine
from securecomp.mpc.shared_array import SharedArray
from securecomp.mpc.three_party import ThreeParties
from securecomp.protocol.carrier import Carrier
from securecomp.protocol.journal import Journal


class Computation:
    """Parties that compute together on numbers that they share.

    Each party learns shapes, scales and bounds, and the values that are revealed to it. It learns
    nothing else, under one of three assumptions:

    - With a dealer (the default): parties follow the protocol, all but one may collude, and the
      dealer, who sees no data, colludes with nobody (`dealer_parties`).
    - With integrity="mac": parties may also deviate. A result is right, or the computation aborts
      and reveals nothing (`mac_engine`).
    - With dealer=False: three parties follow the protocol, and no two collude
      (`replicated_engine`).
    """

    def __init__(
        self,
        parties: Sequence[str],
        carrier: Carrier,
        *,
        clients: Sequence[str] = (),
        journal: Callable[[str], Journal] | None = None,
        dealer: bool = True,
        integrity: Literal["mac"] | None = None,
    ) -> None:
        """Agree on the parties. The dealer, or a neighbour, gives each party its seed.

        Args:
            parties: Two or more names.
            carrier: Brings their messages, and has the keys of those that run here: a
                `local_carrier.LocalCarrier` if all run in this process.
            clients: Names that share inputs and hear results without computing, for example
                hospitals for which three institutes compute.
            journal: Gives each name its journal, so that nobody takes a session up twice.
            dealer: False for three parties without a dealer.
            integrity: "mac" for shares with MACs, which find out a party that deviates.

        Raises:
            ParameterError: A name twice; or integrity without a dealer.
            ThresholdError: Fewer than two parties.
        """
        if integrity not in (None, "mac"):
            raise ParameterError(f'integrity is "mac" or None, not {integrity!r}')
        checks.truth(dealer, "dealer")
        if integrity and not dealer:
            raise ParameterError("integrity needs a dealer; leave dealer=False out")
        if integrity:
            self.engine: Engine = MacEngine(MacDriver(parties, carrier, journal, clients))
        elif dealer:
            self.engine = AdditiveEngine(Lockstep(parties, carrier, journal, clients=clients))
        else:
            self.engine = ReplicatedEngine(ThreeParties(parties, carrier, journal, clients))

    def share(
        self,
        owner: str,
        values: Any,
        *,
        bound: Number,
        decimals: int | None = None,
        bits: int | None = None,
    ) -> SharedArray:
        """Share the numbers of one party or client.

        Args:
            owner: The party or client that has them.
            values: Numbers, any shape.
            bound: Largest absolute value, public.
            decimals: Decimals of the values, exact; by default 0.
            bits: Instead of decimals: round to multiples of 2^-bits. `truncate` and the functions
                need it.

        Raises:
            ParameterError: The owner is neither a party nor a client, or the values are not numbers
                of one grid.
            RangeError: A value is beyond the bound or off the grid, or the bound beyond the field.
        """
        known = (*self.engine.names, *self.engine.clients)
        if owner not in known:
            raise ParameterError(f"{owner!r} is no party or client; those are {', '.join(known)}")
        if decimals is not None and bits is not None:
            raise ParameterError("give decimals or bits, not both")
        grid = (
            FixedPoint.decimal(bound, decimals or 0)
            if bits is None
            else FixedPoint.binary(bound, bits)
        )
        check_bound(grid.limit, "the input")
        residues = field.encode(grid.encode(values, owner), grid.limit, owner)
        value = self.engine.input(owner, np.ascontiguousarray(residues).reshape(-1))
        return SharedArray(self.engine, value, residues.shape, grid.scale, grid.limit)

    def __repr__(self) -> str:
        return f"Computation({', '.join(self.engine.names)})"
