"""Base of the sum protocols, and their registry.

A `SumProtocol` takes one vector of signed integers a contributor and returns exactly their sum.
Statistics know this interface and no protocol. `protocol` finds one by name.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from importlib import import_module
from typing import Any, ClassVar

import numpy.typing as npt

from securecomp.errors import ParameterError, ThresholdError
from securecomp.protocol.carrier import Carrier, Inputs, Vector, check_apart
from securecomp.protocol.session import Layout, Session

_HOMES = {
    "sharing": ("securecomp.sharing.additive_sum", "Sharing"),
    "masking": ("securecomp.secagg.masked_sum", "Masking"),
    "paillier": ("securecomp.paillier.encrypted_sum", "Paillier"),
}
"""Each protocol's module and class, loaded at its first use.

A class names in `OPTIONS` the keyword arguments with which `protocol` may make it.
"""

PROTOCOLS = tuple(_HOMES)


class SumProtocol(ABC):
    """A way to add vectors that nobody may see, and what it can do.

    Attributes:
        name: What people call it.
        OPTIONS: Names of the keyword arguments with which `protocol` may make it.
        fewest: How many contributors it needs to hide one among the others.
        computes_on_shares: Whether its servers may compute on shares too, say a median.
        stands_dropouts: Whether a sum goes on without contributors that fall silent.
    """

    name: str
    OPTIONS: ClassVar[tuple[str, ...]] = ()
    fewest: int = 2
    computes_on_shares: bool = False
    stands_dropouts: bool = False

    @property
    @abstractmethod
    def limit(self) -> int:
        """The largest absolute total that comes out exactly."""

    @abstractmethod
    def run(
        self,
        carrier: Carrier,
        layout: Layout,
        contributors: Inputs,
        receivers: tuple[str, ...] | None = None,
    ) -> Vector:
        """Add the contributors' vectors and return the total, shape (layout.length,)."""

    @abstractmethod
    def learned(self) -> dict[str, str]:
        """Say what each kind of party learns, and under which assumption."""

    def requiring(self, minimum: int, contributors: int, colluding: int = 0) -> "SumProtocol":
        """Return the same protocol, by which no sum of fewer survivors is opened.

        A protocol that needs every contributor is this already.

        Args:
            minimum: Fewest survivors.
            contributors: How many contributors there will be.
            colluding: How many of them may put together what they know.
        """
        del minimum, contributors, colluding
        return self

    def run_without(
        self,
        carrier: Carrier,
        layout: Layout,
        contributors: Inputs,
        receivers: tuple[str, ...] | None,
        gone: Mapping[str, Collection[str]],
    ) -> tuple[Vector, tuple[str, ...]]:
        """Run with contributors that vanish; return the total, and whose vectors are in it.

        Args:
            carrier: Brings messages.
            layout: What is summed.
            contributors: Each one's name, and how it reads its vector.
            receivers: Who gets the total; by default every contributor.
            gone: Step of the protocol to the contributors that answer no more from it on.

        Raises:
            ThresholdError: Somebody vanished, and the protocol needs everybody.
        """
        vanished = {name for names in gone.values() for name in names} & set(contributors)
        if vanished:
            raise ThresholdError(
                len(contributors),
                len(contributors) - len(vanished),
                f"{min(vanished)} vanished in the middle of a sum, and {self.name} needs all",
            )
        return self.run(carrier, layout, contributors, receivers), tuple(contributors)


class PlayedSum(SumProtocol):
    """A sum protocol whose parties may run in several processes: each plays the roles it has."""

    @abstractmethod
    def server_names(self) -> tuple[str, ...]:
        """Return the names of the servers; none if the contributors compute."""

    @abstractmethod
    def session(
        self,
        carrier: Carrier,
        layout: Layout,
        contributors: tuple[str, ...],
        receivers: tuple[str, ...] | None = None,
    ) -> Session:
        """Agree on a session; every contributor receives the result unless told otherwise."""

    def _agreed(
        self,
        carrier: Carrier,
        layout: Layout,
        contributors: tuple[str, ...],
        receivers: tuple[str, ...] | None,
        name: str,
        **facts: Any,
    ) -> Session:
        """Return a session of this protocol's servers; its keys are the carrier's.

        Args:
            carrier: Knows the public keys, and draws the id.
            layout: What is summed.
            contributors: Who puts a vector in.
            receivers: Who gets the total; by default every contributor.
            name: Of the protocol and its variant.
            facts: More of what `Session.create` takes.
        """
        servers = self.server_names()
        check_apart(contributors, servers)
        servers = servers or contributors
        if receivers is None:
            receivers = carrier.receivers or contributors
        return Session.create(
            name,
            contributors=contributors,
            servers=servers,
            receivers=receivers,
            keys={party: carrier.public(party) for party in (*contributors, *servers, *receivers)},
            layout=layout,
            limit=self.limit,
            entropy=carrier.session_ids,
            **facts,
        )

    @abstractmethod
    def play(
        self,
        carrier: Carrier,
        session: Session,
        inputs: Mapping[str, npt.ArrayLike],
    ) -> Vector | None:
        """Play the roles of the parties that are here.

        Args:
            carrier: Brings messages.
            session: Of `session`, or as another party announced it.
            inputs: The vectors of the contributors here.

        Returns:
            The total, shape (layout.length,), if a receiver is here.

        Raises:
            RangeError: A value is beyond the layout's bound; nothing was sent.
        """

    def run(
        self,
        carrier: Carrier,
        layout: Layout,
        contributors: Inputs,
        receivers: tuple[str, ...] | None = None,
    ) -> Vector:
        """Agree on a session, play the roles here, and return the total, shape (layout.length,).

        Raises:
            ThresholdError: Too few contributors.
            RangeError: A value is beyond the layout's bound, or the bound too large.
        """
        session = self.session(carrier, layout, tuple(contributors), receivers)
        # All inputs are read, and refused if wrong, before the first message leaves.
        inputs = {name: read() for name, read in contributors.items() if carrier.here(name)}
        return carrier.opened(session, lambda: self.play(carrier, session, inputs))


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
