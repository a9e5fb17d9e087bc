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
    name: str, *, servers: int | Literal["all"] = 3, security: Security = "semi-honest"
) -> SumProtocol:
    """Return a protocol by name.

    Args:
        name: "sharing", "masking" or "paillier".
        servers: For sharing: how many compute, or "all".
        security: For masking: "semi-honest" or "active".

    Raises:
        ParameterError: There is no such protocol; the message lists them.
    """
    if name == "sharing":
        return Sharing(servers)
    if name == "masking":
        return Masking(security)
    if name == "paillier":
        return Paillier()
    raise ParameterError(f"there is no protocol {name!r}; choose from: {', '.join(PROTOCOLS)}")
