"""The private sum by additive sharing, as a `SumProtocol`."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy.typing as npt

from securecomp.core import checks, field
from securecomp.errors import ParameterError
from securecomp.protocol import wire
from securecomp.protocol.carrier import HOSPITAL_LEARNS, Carrier, Vector
from securecomp.protocol.session import Layout, Session
from securecomp.protocol.sum_protocols import PlayedSum
from securecomp.sharing.private_sum import PROTOCOL, Contributor, Receiver, Server


class Sharing(PlayedSum):
    """Additive secret sharing among computing servers."""

    name = "sharing"
    OPTIONS: ClassVar[tuple[str, ...]] = ("servers",)

    @property
    def limit(self) -> int:
        """The largest absolute total that comes out exactly."""
        return field.LIMIT

    def __init__(self, servers: int | Literal["all"] = 3) -> None:
        """Choose who computes.

        Args:
            servers: Number of computing servers, at least 2, or "all" to make every contributor a
                server, and no party has to be trusted.

        Raises:
            ParameterError: Fewer than 2 servers, or not a number.
        """
        if servers != "all" and type(servers) is not int:
            raise ParameterError(f'servers is a number of at least 2 or "all", not {servers!r}')
        if servers != "all":
            checks.integer(servers, "servers", 2, 1000)
        self.servers = servers
        self.computes_on_shares = servers != "all"

    def server_names(self) -> tuple[str, ...]:
        """Return the names of the servers; none if all contributors compute."""
        count = 0 if self.servers == "all" else self.servers
        return tuple(f"server {i + 1}" for i in range(count))

    def session(
        self,
        carrier: Carrier,
        layout: Layout,
        contributors: tuple[str, ...],
        receivers: tuple[str, ...] | None = None,
    ) -> Session:
        """Agree on a session; every contributor receives the result unless told otherwise."""
        return self._agreed(carrier, layout, contributors, receivers, PROTOCOL, minimum_servers=2)

    def play(
        self,
        carrier: Carrier,
        session: Session,
        inputs: Mapping[str, npt.ArrayLike],
    ) -> Vector | None:
        """Play the roles of the parties that are here, and return the total if it arrives here."""
        elements = session.layout.length

        def role(kind: Any, name: str) -> Any:
            entropy = carrier.randomness(session, name, kind.__name__)
            return kind(session, name, carrier.identity(name), entropy)

        dealt = carrier.each(
            lambda name: role(Contributor, name).contribute(inputs[name]),
            filter(carrier.here, session.contributors),
            elements,
        )
        shares = carrier.deliver(session, "shares", dealt, session.contributors, session.servers)

        def serve(name: str) -> dict[str, wire.Buffer]:
            server: Server = role(Server, name)
            for message in shares[name].values():
                server.receive(message)
            return server.publish()

        def finish(name: str) -> Vector:
            receiver: Receiver = role(Receiver, name)
            for message in sums[name].values():
                receiver.receive(message)
            return receiver.result()

        published = carrier.each(serve, filter(carrier.here, session.servers), elements)
        carrier.next_round()
        sums = carrier.deliver(session, "totals", published, session.servers, session.receivers)
        totals = carrier.each(finish, filter(carrier.here, session.receivers), elements)
        return next(iter(totals.values()), None)

    def learned(self) -> dict[str, str]:
        """Say what each kind of party learns, and under which assumption."""
        if self.servers == "all":
            return {
                "hospital": f"{HOSPITAL_LEARNS}; nothing else, even if all but two hospitals "
                "pool what they saw",
            }
        return {
            "hospital": HOSPITAL_LEARNS,
            "server": f"nothing but sizes; any {self.servers - 1} of the {self.servers} servers "
            "together: nothing; all of them together: every hospital's figures",
        }
