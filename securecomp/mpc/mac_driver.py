"""The driver of parties that check each other (`mac_checks`), over a carrier."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar, cast

import numpy as np

from securecomp.core import field
from securecomp.core.field import Residues
from securecomp.errors import ProtocolError
from securecomp.mpc.correlated_randomness import Shape
from securecomp.mpc.dealer_parties import DEALER, Dealer, Lockstep, Party
from securecomp.mpc.mac_checks import (
    MacClient,
    MacDealer,
    MacParty,
)
from securecomp.mpc.mac_dealer import Kind
from securecomp.mpc.roles import Seed, ShareMessage, Speaker, vector_body
from securecomp.protocol import wire
from securecomp.protocol.carrier import Carrier
from securecomp.protocol.journal import Journal

Post = dict[str, dict[str, wire.Buffer]]
"""Recipient to sender to message."""
LARGEST_UNCHECKED = 1 << 22
"""After this many opened values there is a check, even if nothing is revealed."""


class MacDriver(Lockstep):
    """Drives parties that check each other. The first error aborts all of them.

    Attributes:
        members: The parties.
        checks: Number of checks that passed.
    """

    protocol: ClassVar[str] = "sharing/authenticated/1"
    party_role: ClassVar[type[Party]] = MacParty
    dealer_role: ClassVar[type[Dealer]] = MacDealer

    client_role: ClassVar[type[Speaker]] = MacClient

    def __init__(
        self,
        names: Sequence[str],
        carrier: Carrier,
        journal: Callable[[str], Journal] | None,
        clients: Sequence[str] = (),
    ) -> None:
        super().__init__(names, carrier, journal, clients=clients)
        self.members = cast("list[MacParty]", self.parties)
        dealer = cast("MacDealer", self.dealer)
        for name, seed in zip(clients, dealer.seed_clients(len(clients)), strict=True):
            client = self._client(name)
            data = self._tell(dealer, client, wire.encode_body(Seed(seed)), Seed.KIND)
            client.seeded(client.hear_seed(data, DEALER, self._step))
        self.checks = 0

    @contextlib.contextmanager
    def _or_abort(self) -> Iterator[None]:
        """Let every role drop its secrets if something breaks."""
        try:
            yield
        except BaseException:
            for role in (*self.members, self.dealer, *self.clients.values()):
                role.abort()
            raise

    def material(self, kind: Kind, shape: Shape) -> list[list[Residues]]:
        """Return every party's vectors of a fresh correlation, each of shape (2, n)."""
        start = time.perf_counter()
        with self._or_abort():
            self._serial += 1
            last = self.members[-1]
            dealer = cast("MacDealer", self.dealer)
            made = dealer.corrections(self._serial, kind, shape)
            heard = []
            for correction in made:
                self._step += 1
                body = vector_body(correction, field.BITS)
                data = self._tell(dealer, last, body, ShareMessage.KIND)
                heard.append(last.said(data, DEALER, self._step, correction.size))
            self.dealer_seconds += time.perf_counter() - start
            found = self._carrier.each(
                lambda name: self._member(name).vectors(self._serial, kind, shape, heard),
                self.names,
                max(made[0].size, 1),
            )
        return [found[name] for name in self.names]

    def _member(self, name: str) -> MacParty:
        return self.members[self.names.index(name)]

    def own_mask(self, owner: str, size: int) -> tuple[Residues, list[Residues]]:
        """Return a mask as its owner knows it, and every party's share of it, shape (2, n)."""
        parts = self.material("own", (size, (*self.names, *self.clients).index(owner)))
        knows = self._client(owner) if owner in self.clients else self._member(owner)
        return knows.own(self._serial, size), [part[0] for part in parts]

    def _client(self, name: str) -> MacClient:
        return cast("MacClient", self.clients[name])

    def pass_on(self, opened: Sequence[Residues], client: str) -> Residues:
        """Tell a client a checked result: every party sends it.

        Raises:
            ProtocolError: They do not say the same. At least one of them is honest, but nobody
                knows which.
        """
        with self._or_abort():
            self._next_round()
            hearer = self.clients[client]
            said = []
            for party, values in zip(self.members, opened, strict=True):
                report = party.report(client, self._step, values)
                data = self._carrier.send(party.name, client, report)
                said.append(hearer.said(data, party.name, self._step, values.size))
            if any(not np.array_equal(said[0], other) for other in said[1:]):
                raise ProtocolError(
                    f"{client}: the parties do not say the same result; the computation is aborted"
                )
        return said[0]

    def announce(self, owner: str, values: Residues) -> list[Residues]:
        """Bring one name's vector to all parties, and return it as each heard it."""
        with self._or_abort():
            self._next_round()
            sender = self._speaker(owner)
            others = [name for name in self.names if name != owner]
            body = vector_body(values, field.BITS)
            sealed = sender.say(others, self._step, body, ShareMessage.KIND)
            heard = {owner: values}
            for name, data in zip(others, sealed, strict=True):
                brought = self._carrier.send(owner, name, data)
                member = self._member(name)
                heard[name] = member.said(brought, owner, self._step, values.size)
            for party in self.members:
                party.remember(heard[party.name], None)
        return [heard[name] for name in self.names]

    def open_checked(self, pairs: Sequence[Residues]) -> list[Residues]:
        """Open a value to all parties, and return it as each heard it. The next check covers it."""
        with self._or_abort():
            if self.members[0].unchecked + pairs[0].shape[1] > LARGEST_UNCHECKED:
                self.check()

            def heard(party: int, value: Residues) -> Residues:
                self.members[party].remember(value, pairs[party][1])
                return value

            return self.open(pairs[0].shape[1], lambda i: pairs[i][0].copy(), heard)

    def check(self) -> None:
        """Check everything that was opened or announced since the last check: four rounds, or none.

        Raises:
            ProtocolError: Somebody deviated, perhaps by telling parties different things. All
                secrets are dropped.
        """
        if not any(party.fresh for party in self.members):
            return
        with self._or_abort():
            self._next_round()
            received = self._carried({p.name: p.commit_seed(self._step) for p in self.members})
            size = self.members[0].unchecked
            received = self._answers(received, lambda party, heard: party.open_seed(heard))
            received = self._answers(received, lambda party, heard: party.commit_sigma(heard), size)
            received = self._answers(received, lambda party, heard: party.open_sigma(heard))
            for party in self.members:
                party.verdict(received[party.name])
            self.checks += 1

    def _answers(
        self,
        received: Post,
        answer: Callable[[MacParty, dict[str, wire.Buffer]], dict[str, bytes]],
        elements: int = 0,
    ) -> Post:
        """Let every party answer what it received, and bring the answers: one round."""
        self._next_round()
        sent = self._carrier.each(
            lambda name: answer(self._member(name), received[name]), self.names, elements
        )
        return self._carried({name: sent[name] for name in self.names})

    def _carried(self, sent: Mapping[str, Mapping[str, bytes]]) -> Post:
        """Bring everybody's messages to everybody else."""
        received: Post = {name: {} for name in self.names}
        for sender, messages in sent.items():
            for name, data in messages.items():
                received[name][sender] = self._carrier.send(sender, name, data)
        return received
