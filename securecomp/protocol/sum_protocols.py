"""What the ways to add have in common.

A `SumProtocol` takes one vector of signed integers a contributor and returns exactly their sum.
Statistics know this interface and no protocol. `protocol` finds one by name.
"""

from importlib import import_module
from typing import Any, Protocol

from securecomp.errors import ParameterError
from securecomp.protocol.carrier import Carrier, Inputs, Vector
from securecomp.protocol.session import Layout

_HOMES = {
    "sharing": ("securecomp.sharing.additive_sum", "Sharing"),
    "masking": ("securecomp.secagg.masked_sum", "Masking"),
    "paillier": ("securecomp.paillier.encrypted_sum", "Paillier"),
}
"""Each protocol's module and class, loaded at its first use.

A class names in `OPTIONS` the keyword arguments with which `protocol` may make it.
"""

PROTOCOLS = tuple(_HOMES)


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


def protocol(name: str, **options: Any) -> SumProtocol:
    """Return a protocol by name.

    Args:
        name: "sharing", "masking" or "paillier".
        options: What the protocol's class takes; None stands for its default. Sharing takes
            `servers` (how many compute, or "all"), masking `security` ("semi-honest" or "active").

    Raises:
        ParameterError: There is no such protocol, or it does not take what was given.
    """
    if name not in _HOMES:
        raise ParameterError(f"there is no protocol {name!r}; choose from: {', '.join(PROTOCOLS)}")
    given = {option: value for option, value in options.items() if value is not None}
    for option in given:
        if option not in _load(name).OPTIONS:
            takers = (
                " or ".join(n for n in PROTOCOLS if option in _load(n).OPTIONS) or "no protocol"
            )
            raise ParameterError(f"{option} is for {takers}, not for {name}; leave it out")
    made: SumProtocol = _load(name)(**given)
    return made


def _load(name: str) -> Any:
    module, title = _HOMES[name]
    return getattr(import_module(module), title)
