"""What the ways to add have in common.

A `SumProtocol` takes one vector of signed integers a contributor and returns exactly their sum.
Statistics know this interface and no protocol. `protocol` finds one by name.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from securecomp import secagg, sharing, wire
from securecomp.core import field
from securecomp.core.entropy import Entropy
from securecomp.errors import ParameterError
from securecomp.identity import Identity
from securecomp.secagg import Security
from securecomp.session import Layout, Session

T = TypeVar("T")
Vector = npt.NDArray[np.int64]


class Carrier(Protocol):
    """Who brings messages from role to role: one process (`local`) or a network."""

    entropy: Entropy

    def identity(self, name: str) -> Identity:
        """Return the long-term key of a party that runs here."""

    def send(self, sender: str, recipient: str, data: wire.Buffer) -> wire.Buffer:
        """Bring a message over and return it as it arrives."""

    def next_round(self) -> None:
        """Everything sent from now on waits for what was sent before."""

    def each(self, work: Callable[[str], T], names: Iterable[str], elements: int) -> dict[str, T]:
        """Do the work of several parties of one round, each on vectors of so many elements."""


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
        contributors: Mapping[str, Callable[[], npt.ArrayLike]],
        receivers: tuple[str, ...] | None = None,
    ) -> Vector:
        """Run all roles and return the total, shape (layout.length,)."""

    def learned(self) -> dict[str, str]:
        """Say what each kind of party learns, and under which assumption."""


class Sharing:
    """Additive secret sharing among computing servers."""

    name = "sharing"

    @property
    def limit(self) -> int:
        """The largest absolute total that comes out exactly."""
        return field.LIMIT

    def __init__(self, servers: int | Literal["all"] = 3) -> None:
        """Choose who computes.

        Args:
            servers: Number of computing servers, at least 2, or "all" to make every contributor a
                server, so that nobody has to be trusted.

        Raises:
            ParameterError: Fewer than 2 servers, or not a number.
        """
        if servers != "all" and (isinstance(servers, bool) or not isinstance(servers, int)):
            raise ParameterError(f'servers is a number of at least 2 or "all", not {servers!r}')
        if servers != "all" and not 2 <= servers <= 1000:
            raise ParameterError(f"servers must be from 2 to 1000, not {servers}")
        self.servers = servers

    def session(
        self,
        carrier: Carrier,
        layout: Layout,
        contributors: tuple[str, ...],
        receivers: tuple[str, ...] | None = None,
    ) -> Session:
        """Agree on a session; every contributor receives the result unless told otherwise."""
        if self.servers == "all":
            servers = contributors
        else:
            servers = tuple(f"server {i + 1}" for i in range(self.servers))
            _apart(contributors, servers)
        receivers = receivers or contributors
        parties = (*contributors, *servers, *receivers)
        return Session.create(
            "sharing/sum/1",
            contributors=contributors,
            servers=servers,
            receivers=receivers,
            keys={name: carrier.identity(name).public for name in parties},
            layout=layout,
            limit=self.limit,
            minimum_servers=2,
            entropy=carrier.entropy,
        )

    def run(
        self,
        carrier: Carrier,
        layout: Layout,
        contributors: Mapping[str, Callable[[], npt.ArrayLike]],
        receivers: tuple[str, ...] | None = None,
    ) -> Vector:
        """Run all roles and return the total, shape (layout.length,).

        Raises:
            ThresholdError: Fewer than two contributors.
            RangeError: A value is beyond the layout's bound, or the bound too large.
        """
        session = self.session(carrier, layout, tuple(contributors), receivers)

        def role(kind: Any, name: str) -> Any:
            return kind(session, name, carrier.identity(name), carrier.entropy)

        # All inputs are checked before the first message leaves.
        inputs = {name: read() for name, read in contributors.items()}
        dealt = carrier.each(
            lambda name: role(sharing.Contributor, name).contribute(inputs[name]),
            session.contributors,
            layout.length,
        )

        def serve(name: str) -> dict[str, wire.Buffer]:
            server: sharing.Server = role(sharing.Server, name)
            for sender, messages in dealt.items():
                server.receive(carrier.send(sender, name, messages[name]))
            return server.publish()

        def finish(name: str) -> Vector:
            receiver: sharing.Receiver = role(sharing.Receiver, name)
            for sender, messages in published.items():
                receiver.receive(carrier.send(sender, name, messages[name]))
            return receiver.result()

        published = carrier.each(serve, session.servers, layout.length)
        carrier.next_round()
        totals = carrier.each(finish, session.receivers, layout.length)
        return totals[session.receivers[0]]

    def learned(self) -> dict[str, str]:
        """Say what each kind of party learns, and under which assumption."""
        if self.servers == "all":
            return {
                "hospital": "the result, and what it implies together with the hospital's own "
                "data; nothing else, even if all but two hospitals pool what they saw",
            }
        return {
            "hospital": "the result, and what it implies together with the hospital's own data",
            "server": f"nothing but sizes; any {self.servers - 1} of the {self.servers} servers "
            "together: nothing; all of them together: every hospital's figures",
        }


class Masking:
    """Secure aggregation: one server, which learns only the sum, and sites that may drop out."""

    name = "masking"
    servers = 1
    server = "server"

    def __init__(self, security: Security = "semi-honest") -> None:
        """Choose the adversary.

        Args:
            security: "semi-honest" for a server that follows the protocol, "active" for one
                that may not.
        """
        if security not in ("semi-honest", "active"):
            raise ParameterError(f'security is "semi-honest" or "active", not {security!r}')
        self.security: Security = security

    @property
    def limit(self) -> int:
        """The largest absolute total that comes out exactly: 63 bits with the sign."""
        return (1 << 62) - 1

    def session(
        self,
        carrier: Carrier,
        layout: Layout,
        contributors: tuple[str, ...],
        receivers: tuple[str, ...] | None = None,
    ) -> Session:
        """Agree on a session; every contributor receives the result unless told otherwise."""
        _apart(contributors, (self.server,))
        receivers = receivers or contributors
        parameters = secagg.Parameters.choose(
            len(contributors), layout.bound, security=self.security
        )
        parties = (*contributors, self.server, *receivers)
        return Session.create(
            secagg.PROTOCOL,
            contributors=contributors,
            servers=(self.server,),
            receivers=receivers,
            keys={name: carrier.identity(name).public for name in parties},
            layout=layout,
            limit=self.limit,
            terms=parameters.terms(),
            entropy=carrier.entropy,
        )

    def run(
        self,
        carrier: Carrier,
        layout: Layout,
        contributors: Mapping[str, Callable[[], npt.ArrayLike]],
        receivers: tuple[str, ...] | None = None,
    ) -> Vector:
        """Run all roles, nobody dropping out, and return the total, shape (layout.length,).

        Raises:
            ThresholdError: Fewer than three contributors.
            RangeError: A value is beyond the layout's bound, or the bound too large.
        """
        session = self.session(carrier, layout, tuple(contributors), receivers)
        inputs = {name: read() for name, read in contributors.items()}
        entropy = carrier.entropy
        clients = {
            name: secagg.Client(session, name, carrier.identity(name), entropy=entropy)
            for name in contributors
        }
        server = secagg.Server(session, self.server, carrier.identity(self.server), entropy=entropy)

        def step(
            act: Callable[[str, wire.Buffer], wire.Buffer], incoming: dict[str, wire.Buffer]
        ) -> dict[str, wire.Buffer]:
            """Give every client its message, the answers to the server, and close the step."""
            answers = carrier.each(
                lambda name: act(name, carrier.send(self.server, name, incoming[name])),
                incoming,
                layout.length,
            )
            carrier.next_round()
            for name, answer in answers.items():
                server.receive(carrier.send(name, self.server, answer))
            messages = server.close()
            carrier.next_round()
            return messages

        for name, client in clients.items():
            server.receive(carrier.send(name, self.server, client.advertise()))
        messages = server.close()
        carrier.next_round()
        messages = step(lambda name, data: clients[name].share(data), messages)
        messages = step(lambda name, data: clients[name].mask(data, inputs[name]), messages)
        if self.security == "active":
            messages = step(lambda name, data: clients[name].consent(data), messages)
        messages = step(lambda name, data: clients[name].unmask(data), messages)

        def finish(name: str) -> Vector:
            receiver = secagg.Receiver(session, name, carrier.identity(name))
            return receiver.receive(carrier.send(self.server, name, messages[name])).values

        return carrier.each(finish, messages, layout.length)[session.receivers[0]]

    def learned(self) -> dict[str, str]:
        """Say what each kind of party learns, and under which assumption."""
        lies = "even if it deviates" if self.security == "active" else "if it follows the protocol"
        return {
            "hospital": "the result, and what it implies together with the hospital's own data",
            "server": f"the result and nothing else, {lies}; with colluding hospitals below the "
            "threshold: the sum over the others",
        }


def _apart(contributors: tuple[str, ...], servers: tuple[str, ...]) -> None:
    both = sorted(set(contributors) & set(servers))
    if both:
        raise ParameterError(
            f"a site is named {both[0]!r}, as a computing server is; rename the site"
        )


PROTOCOLS = ("sharing", "masking")


def protocol(
    name: str, *, servers: int | Literal["all"] = 3, security: Security = "semi-honest"
) -> SumProtocol:
    """Return a protocol by name.

    Args:
        name: "sharing" or "masking".
        servers: For sharing: how many compute, or "all".
        security: For masking: "semi-honest" or "active".

    Raises:
        ParameterError: There is no such protocol; the message lists them.
    """
    if name == "sharing":
        return Sharing(servers)
    if name == "masking":
        return Masking(security)
    raise ParameterError(f"there is no protocol {name!r}; choose from: {', '.join(PROTOCOLS)}")
