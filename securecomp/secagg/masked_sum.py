"""Secure aggregation by masking, as a `SumProtocol`."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy.typing as npt

from securecomp.core import checks
from securecomp.errors import ParameterError, ThresholdError
from securecomp.protocol import wire
from securecomp.protocol.carrier import HOSPITAL_LEARNS, Carrier, Inputs, Vector
from securecomp.protocol.session import Layout, Session
from securecomp.protocol.sum_protocols import PlayedSum
from securecomp.secagg import masking
from securecomp.secagg.client import Client
from securecomp.secagg.parameters import PROTOCOL, SMALLEST_COHORT, Parameters, Security
from securecomp.secagg.receiver import Aggregate, Receiver
from securecomp.secagg.server import Server

STEPS = ("advertise", "share", "mask", "consent", "unmask")
"""What a client does in a sum, in order; to consent is for active security."""
RESULT = "result"
"""The server's last message. A client that was dropped gets it instead of the next step's."""


class Masking(PlayedSum):
    """Secure aggregation: one server, which learns only the sum, and sites that may drop out."""

    name = "masking"
    OPTIONS: ClassVar[tuple[str, ...]] = ("security",)
    fewest = SMALLEST_COHORT
    stands_dropouts = True
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

    def server_names(self) -> tuple[str, ...]:
        """Return the one server's name."""
        return (self.server,)

    def session(
        self,
        carrier: Carrier,
        layout: Layout,
        contributors: tuple[str, ...],
        receivers: tuple[str, ...] | None = None,
    ) -> Session:
        """Agree on a session; every contributor receives the result unless told otherwise."""
        clients, bound = len(contributors), layout.bound
        parameters = Parameters.choose(clients, bound, security=self.security)
        least = max(self.minimum or 0, parameters.minimum)
        parameters = replace(parameters, minimum=least).check(bound)
        return self._agreed(
            carrier, layout, contributors, receivers, PROTOCOL, terms=parameters.terms()
        )

    def play(
        self,
        carrier: Carrier,
        session: Session,
        inputs: Mapping[str, npt.ArrayLike],
    ) -> Vector | None:
        """Play the roles of the parties that are here, and return the total if it arrives here."""
        found = self._aggregated(carrier, session, inputs, {})
        if found is None:
            return None
        carrier.counted(session, found.survivors)
        return found.values

    def fewest_counted(self, session: Session) -> int:
        """Return the agreed minimum of survivors."""
        return Parameters.of(session).minimum

    def run_without(
        self,
        carrier: Carrier,
        layout: Layout,
        contributors: Inputs,
        receivers: tuple[str, ...] | None,
        gone: Mapping[str, Collection[str]],
    ) -> tuple[Vector, tuple[str, ...]]:
        """Run with clients that vanish; as `aggregate`."""
        if not any(gone.values()):
            return self.run(carrier, layout, contributors, receivers), tuple(contributors)
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
        inputs = {name: read() for name, read in contributors.items()}
        found = self._aggregated(carrier, session, inputs, vanished)
        if found is None:
            raise ThresholdError(1, 0, "nobody is left to receive the total")
        return found

    def _aggregated(
        self,
        carrier: Carrier,
        session: Session,
        inputs: Mapping[str, npt.ArrayLike],
        vanished: Mapping[str, set[str]],
    ) -> Aggregate | None:
        """Play the roles here; return the total over the survivors if it arrives here."""

        def away(what: str) -> set[str]:
            """Return who is gone at a step: since then, or since one before."""
            return set().union(*(vanished.get(s, ()) for s in STEPS[: STEPS.index(what) + 1]))

        there = [name for name in session.receivers if name not in away("unmask")]
        if not there:
            return None
        # Every vector is checked before the first key leaves.
        agreed = Parameters.of(session)
        for name, values in inputs.items():
            masking.encode(values, None, session.layout, agreed, name)
        clients = {
            name: Client(
                session,
                name,
                carrier.identity(name),
                entropy=carrier.randomness(session, name, "client"),
            )
            for name in inputs
        }
        steps = _Steps(carrier, session, self.server)
        messages = steps.closed(
            "advertise",
            {n: client.advertise() for n, client in clients.items() if n not in away("advertise")},
            session.contributors,
        )
        acts: dict[str, Callable[[str, wire.Buffer], wire.Buffer]] = {
            "share": lambda name, data: clients[name].share(data),
            "mask": lambda name, data: clients[name].mask(data, inputs[name]),
            "consent": lambda name, data: clients[name].consent(data),
            "unmask": lambda name, data: clients[name].unmask(data),
        }
        if self.security != "active":
            del acts["consent"]
        for what, act in acts.items():
            messages = steps.step(what, act, messages, away(what))
        return steps.result(messages, there)

    def learned(self) -> dict[str, str]:
        """Say what each kind of party learns, and under which assumption."""
        lies = "even if it deviates" if self.security == "active" else "if it follows the protocol"
        return {
            "hospital": HOSPITAL_LEARNS,
            "server": f"the result and nothing else, {lies}; with colluding hospitals below the "
            "threshold: the sum over the others",
        }


class _Steps:
    """The steps of one aggregation: messages to the clients here, and answers to the server."""

    def __init__(self, carrier: Carrier, session: Session, name: str) -> None:
        self._carrier, self._session, self._name = carrier, session, name
        self._server = None
        if carrier.here(name):
            entropy = carrier.randomness(session, name, "server")
            self._server = Server(session, name, carrier.identity(name), entropy=entropy)

    def step(
        self,
        what: str,
        act: Callable[[str, wire.Buffer], wire.Buffer],
        messages: dict[str, wire.Buffer],
        gone: Collection[str],
    ) -> dict[str, wire.Buffer]:
        """Give every client its message, the answers to the server, and close the step."""
        incoming = self._from_server(what, messages, messages or self._session.contributors, gone)
        answers = self._carrier.each(
            lambda name: act(name, incoming[name]), incoming, self._session.layout.length
        )
        self._carrier.next_round()
        return self.closed(what, answers, messages or self._session.contributors)

    def closed(
        self, what: str, answers: Mapping[str, wire.Buffer], clients: Collection[str]
    ) -> dict[str, wire.Buffer]:
        """Bring the server what the clients here answered; if it is here, close its step."""
        posts = {name: {self._name: answer} for name, answer in answers.items()}
        arrived = self._carrier.deliver(
            self._session, f"{what} answer", posts, clients, (self._name,), patient=False
        )
        messages: dict[str, wire.Buffer] = {}
        if self._server is not None:
            for answer in arrived[self._name].values():
                self._server.receive(answer)
            messages = self._server.close()
        self._carrier.next_round()
        return messages

    def result(self, messages: dict[str, wire.Buffer], there: Sequence[str]) -> Aggregate | None:
        """Bring the receivers what the server closed with."""
        incoming = self._from_server(RESULT, messages, there, ())

        def finish(name: str) -> Aggregate:
            receiver = Receiver(self._session, name, self._carrier.identity(name))
            return receiver.receive(incoming[name])

        found = self._carrier.each(finish, incoming, self._session.layout.length)
        return next(iter(found.values()), None)

    def _from_server(
        self,
        what: str,
        messages: dict[str, wire.Buffer],
        clients: Collection[str],
        gone: Collection[str],
    ) -> dict[str, wire.Buffer]:
        """Return what the server sends to the clients here that are not gone."""
        to = [name for name in clients if name not in gone]
        arrived = self._carrier.deliver(
            self._session, what, {self._name: messages}, (self._name,), to, instead=RESULT
        )
        return {n: found[self._name] for n, found in arrived.items() if self._name in found}
