"""What the ways to add have in common.

A `SumProtocol` takes one vector of signed integers a contributor and returns exactly their sum.
Statistics know this interface and no protocol. `protocol` finds one by name.
"""

from typing import Literal, Protocol

from securecomp.carrier import Carrier, Inputs, Vector
from securecomp.errors import ParameterError
from securecomp.paillier.protocol import Paillier
from securecomp.secagg import Security
from securecomp.secagg.protocol import Masking
from securecomp.session import Layout
from securecomp.sharing.protocol import Sharing

PROTOCOLS = ("sharing", "masking", "paillier")

__all__ = ["PROTOCOLS", "Masking", "Paillier", "Sharing", "SumProtocol", "protocol"]


class SumProtocol(Protocol):
    """A way to add vectors that nobody may see."""

    name: str

    @property
    def limit(self) -> int:
        """The largest absolute total that comes out exactly."""

    def run(
        self,
        carrier: Carrier,
        layout: Layout,
        contributors: Inputs,
        receivers: tuple[str, ...] | None = None,
    ) -> Vector:
        """Run all roles and return the total, shape (layout.length,)."""

    def learned(self) -> dict[str, str]:
        """Say what each kind of party learns, and under which assumption."""


def protocol(
    name: str,
    *,
    servers: int | Literal["all"] | None = None,
    security: Security | None = None,
) -> SumProtocol:
    """Return a protocol by name.

    Args:
        name: "sharing", "masking" or "paillier".
        servers: For sharing: how many compute (by default 3), or "all".
        security: For masking: "semi-honest" (by default) or "active".

    Raises:
        ParameterError: There is no such protocol, or it does not take what was given.
    """
    if servers is not None and name != "sharing":
        raise ParameterError(f"servers is for sharing; {name} has its own")
    if security is not None and name != "masking":
        raise ParameterError(f"security is for masking, not for {name}")
    if name == "sharing":
        return Sharing(3 if servers is None else servers)
    if name == "masking":
        return Masking(security or "semi-honest")
    if name == "paillier":
        return Paillier()
    raise ParameterError(f"there is no protocol {name!r}; choose from: {', '.join(PROTOCOLS)}")
