"""Secure aggregation by masking, as a `SumProtocol`."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import ClassVar

from securecomp.core import checks
from securecomp.errors import ParameterError, ThresholdError
from securecomp.protocol import wire
from securecomp.protocol.carrier import HOSPITAL_LEARNS, Carrier, Inputs, Vector, check_apart
from securecomp.protocol.session import Layout, Session
from securecomp.protocol.sum_protocols import SumProtocol
from securecomp.secagg import masking
from securecomp.secagg.client import Client
from securecomp.secagg.parameters import PROTOCOL, SMALLEST_COHORT, Parameters, Security
from securecomp.secagg.receiver import Aggregate, Receiver
from securecomp.secagg.server import Server

STEPS = ("advertise", "share", "mask", "consent", "unmask")
"""What a client does in a sum, in order; to consent is for active security."""


class Masking(SumProtocol):
    """Secure aggregation: one server, which learns only the sum, and sites that may drop out."""

    name = "masking"
    OPTIONS: ClassVar[tuple[str, ...]] = ("security",)
    fewest = SMALLEST_COHORT
    servers = 1
    server = "server"

    def __init__(self, security: Security = "semi-honest", minimum: int | None = None) -> None:
        """Choose the adversary.

        Args:
            security: "semi-honest" for a server that follows the protocol, "active" for one
                that may not.
            minimum: Fewest survivors whose sum a client helps to reveal; by default, and at least,
                what secrecy needs.
        """
        if security not in ("semi-honest", "active"):
            raise ParameterError(f'security is "semi-honest" or "active", not {security!r}')
        self.security: Security = security
        self.minimum = None if minimum is None else checks.integer(minimum, "minimum", 0)

    def requiring(self, minimum: int, contributors: int, colluding: int = 0) -> "Masking":
        """Return the same protocol, whose sums of fewer survivors no client helps to reveal.

        Args:
            minimum: Fewest survivors.
            contributors: How many clients there will be.
            colluding: How many of them may put together what they know, with the server.

        Raises:
            ThresholdError: There are not so many clients.
            ParameterError: So many colluding clients have the others' secrets.
        """
        checks.integer(minimum, "minimum", 0)
        clients = checks.integer(contributors, "contributors")
        checks.integer(colluding, "colluding", 0)
        if minimum > clients or clients < SMALLEST_COHORT:
            least = max(minimum, SMALLEST_COHORT)
            raise ThresholdError(least, clients, "masking: too few clients for a sum")
        chosen = Parameters.choose(clients, 1, security=self.security)
        sparse = chosen.degree < clients - 1
        most = clients * chosen.corrupt // 1000 if sparse else chosen.threshold - 1
        if colluding > most:
            raise ParameterError(
                f"masking among {clients} protects against {most} that collude with the server, "
                f"not {colluding}; declare fewer, or use sharing with all sites as servers"
            )
        return Masking(self.security, max(minimum, self.minimum or 0))

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
        check_apart(contributors, (self.server,))
        receivers = contributors if receivers is None else receivers
        clients, bound = len(contributors), layout.bound
        parameters = Parameters.choose(clients, bound, security=self.security)
        least = max(self.minimum or 0, parameters.minimum)
        parameters = replace(parameters, minimum=least).check(bound)
        parties = (*contributors, self.server, *receivers)
        return Session.create(
            PROTOCOL,
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
        contributors: Inputs,
        receivers: tuple[str, ...] | None = None,
    ) -> Vector:
        """Run all roles, nobody dropping out, and return the total, shape (layout.length,).

        Raises:
            ThresholdError: Fewer than three contributors.
            RangeError: A value is beyond the layout's bound, or the bound too large.
        """
        return self.aggregate(carrier, layout, contributors, receivers).values

    def run_without(
        self,
        carrier: Carrier,
        layout: Layout,
        contributors: Inputs,
        receivers: tuple[str, ...] | None,
        gone: Mapping[str, Collection[str]],
    ) -> tuple[Vector, tuple[str, ...]]:
        """Run with clients that vanish; as `aggregate`."""
        found = self.aggregate(carrier, layout, contributors, receivers, gone)
        return found.values, found.survivors

    def aggregate(
        self,
        carrier: Carrier,
        layout: Layout,
        contributors: Inputs,
        receivers: tuple[str, ...] | None = None,
        gone: Mapping[str, Collection[str]] | None = None,
    ) -> Aggregate:
        """Run all roles, of which some vanish, and return the total over those that stay.

        Who vanishes after its masked vector arrived is in the total; before, it is not.

        Args:
            carrier: Brings messages.
            layout: What is summed.
            contributors: Each one's name, and how it reads its vector.
            receivers: Who gets the total; by default every contributor.
            gone: A step of `STEPS` to those that answer no more from it on.

        Raises:
            ParameterError: An unknown step, or somebody who does not take part.
            ThresholdError: Fewer than three contributors, or too few are left for what was agreed;
                then nothing is opened.
            RangeError: A value is beyond the layout's bound, or the bound too large.
        """
        vanished = {step: set(names) for step, names in (gone or {}).items()}
        for unknown in vanished.keys() - set(STEPS):
            raise ParameterError(f"there is no step {unknown!r}; one of {', '.join(STEPS)}")
        session = self.session(carrier, layout, tuple(contributors), receivers)
        known = {*session.contributors, *session.receivers}
        for name in set().union(*vanished.values()) - known:
            raise ParameterError(f"{name!r} cannot vanish: it does not take part")

        def away(what: str) -> set[str]:
            """Return who is gone at a step: since then, or since one before."""
            return set().union(*(vanished.get(s, ()) for s in STEPS[: STEPS.index(what) + 1]))

        there = [name for name in session.receivers if name not in away("unmask")]
        if not there:
            raise ThresholdError(1, 0, "nobody is left to receive the total")
        inputs = {name: read() for name, read in contributors.items()}
        # Every vector is checked before the first key leaves.
        agreed = Parameters.of(session)
        for name, values in inputs.items():
            masking.encode(values, None, layout, agreed, name)
        entropy = carrier.entropy
        clients = {
            name: Client(session, name, carrier.identity(name), entropy=entropy)
            for name in contributors
        }
        server = Server(session, self.server, carrier.identity(self.server), entropy=entropy)

        def step(
            what: str,
            act: Callable[[str, wire.Buffer], wire.Buffer],
            incoming: dict[str, wire.Buffer],
        ) -> dict[str, wire.Buffer]:
            """Give every client its message, the answers to the server, and close the step."""
            gone = away(what)
            answers = carrier.each(
                lambda name: act(name, carrier.send(self.server, name, incoming[name])),
                [name for name in incoming if name not in gone],
                layout.length,
            )
            carrier.next_round()
            for name, answer in answers.items():
                server.receive(carrier.send(name, self.server, answer))
            messages = server.close()
            carrier.next_round()
            return messages

        for name, client in clients.items():
            if name not in away("advertise"):
                server.receive(carrier.send(name, self.server, client.advertise()))
        messages = server.close()
        carrier.next_round()
        messages = step("share", lambda name, data: clients[name].share(data), messages)
        messages = step("mask", lambda name, data: clients[name].mask(data, inputs[name]), messages)
        if self.security == "active":
            messages = step("consent", lambda name, data: clients[name].consent(data), messages)
        messages = step("unmask", lambda name, data: clients[name].unmask(data), messages)

        def finish(name: str) -> Aggregate:
            receiver = Receiver(session, name, carrier.identity(name))
            return receiver.receive(carrier.send(self.server, name, messages[name]))

        return carrier.each(finish, there, layout.length)[there[0]]

    def learned(self) -> dict[str, str]:
        """Say what each kind of party learns, and under which assumption."""
        lies = "even if it deviates" if self.security == "active" else "if it follows the protocol"
        return {
            "hospital": HOSPITAL_LEARNS,
            "server": f"the result and nothing else, {lies}; with colluding hospitals below the "
            "threshold: the sum over the others",
        }
