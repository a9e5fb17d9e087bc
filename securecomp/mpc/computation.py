"""Who computes, and by which engine: the beginning of every program on shares."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from securecomp.core import field
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
    """Parties that compute together on what they share, with a dealer that sees no data.

    Who learns what: nobody anything but shapes, scales and bounds, and what is revealed to it,
    against parties that follow the protocol, all of them but one together, if the dealer colludes
    with none. With integrity also against parties that do not: a result is right, or there is none
    (`authenticated`). Without a dealer: three parties that follow the protocol, no two colluding.
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
        """Agree on the parties, and let the dealer, or a neighbour, give each its seed.

        Args:
            parties: Two or more names.
            carrier: Brings their messages, and has the keys of those that run here
                (`local.LocalCarrier` for all in this process).
            clients: Who shares inputs and hears results without computing: say the hospitals, where
                three of them, or others, compute.
            journal: Gives each party its journal, so that a session is never taken up again.
            dealer: False for three parties without one (`replicated`).
            integrity: "mac" for authenticated shares: a party that deviates is found out.

        Raises:
            ParameterError: Names that are not several, or not different; what needs a dealer
                without one.
            ThresholdError: Fewer than two.
        """
        if integrity not in (None, "mac"):
            raise ParameterError(f'integrity is "mac" or None, not {integrity!r}')
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
        """Share what one party, or client, has.

        Args:
            owner: Whose it is: a party, or a client.
            values: Numbers, any shape.
            bound: Largest absolute value, public.
            decimals: Decimals of the values, exact; by default 0.
            bits: Instead: round to multiples of 2^-bits; needed where results are truncated.

        Raises:
            ParameterError: Neither a party nor a client, or not numbers.
            RangeError: A value beyond the bound or off the grid, or a bound beyond the field.
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
