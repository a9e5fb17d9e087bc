"""The encrypted aggregator, as a `SumProtocol`."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy.typing as npt

from securecomp.core import checks
from securecomp.errors import KeyMismatchError, ThresholdError
from securecomp.paillier import sum_roles, sum_session
from securecomp.paillier.keys import PrivateKey, PublicKey, check_bits
from securecomp.protocol import wire
from securecomp.protocol.carrier import HOSPITAL_LEARNS, Carrier, Vector
from securecomp.protocol.journal import MemoryJournal
from securecomp.protocol.session import Layout, Session
from securecomp.protocol.sum_protocols import PlayedSum


class Paillier(PlayedSum):
    """Encryption under one public key: an aggregator adds, a key holder decrypts the total."""

    name = "paillier"
    OPTIONS: ClassVar[tuple[str, ...]] = ("blind", "key")
    servers = 2
    aggregator = "aggregator"
    key_holder = "key holder"

    def __init__(
        self,
        *,
        bits: int = 3072,
        blind: bool = False,
        key: PrivateKey | PublicKey | None = None,
        insecure_for_tests: bool = False,
    ) -> None:
        """Choose the key.

        Args:
            bits: Length of the modulus.
            blind: Whether sites mask their plaintexts among themselves, against an aggregator and
                a key holder that collude.
            key: The key holder's key; elsewhere its public key. By default a key is drawn at the
                first sum and kept: then all parties must be here.
            insecure_for_tests: Allow short keys.

        Raises:
            ParameterError: An odd, impossible or unsafe length.
        """
        check_bits(bits, insecure_for_tests)
        self.bits = bits
        self.blind = checks.truth(blind, "blind")
        self._insecure = insecure_for_tests
        self._private = key if isinstance(key, PrivateKey) else None
        self._public = key if isinstance(key, PublicKey) else None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_private": None}  # a copy draws its own key

    @property
    def limit(self) -> int:
        """The largest absolute total that comes out exactly: 63 bits with the sign."""
        return (1 << 62) - 1

    def key(self, carrier: Carrier) -> PrivateKey:
        """Return the private key, drawn at the first call.

        Raises:
            KeyMismatchError: Only the public key is here.
        """
        if self._private is None:
            if self._public is not None:
                raise KeyMismatchError("the private key is elsewhere; start the key holder with it")
            self._private = PrivateKey.generate(
                self.bits, insecure_for_tests=self._insecure, entropy=carrier.entropy
            )
        return self._private

    def public(self, carrier: Carrier) -> PublicKey:
        """Return the public key."""
        return self._public if self._public is not None else self.key(carrier).public

    def server_names(self) -> tuple[str, ...]:
        """Return the names of aggregator and key holder."""
        return self.aggregator, self.key_holder

    def session(
        self,
        carrier: Carrier,
        layout: Layout,
        contributors: tuple[str, ...],
        receivers: tuple[str, ...] | None = None,
    ) -> Session:
        """Agree on a session; every contributor receives the result unless told otherwise."""
        if len(contributors) < 2:
            raise ThresholdError(
                2, len(contributors), "a sum over one party is that party's own value"
            )
        return self._agreed(
            carrier,
            layout,
            contributors,
            receivers,
            sum_session.protocol_name(self.public(carrier)),
            minimum_servers=2,
            terms=sum_session.terms(len(contributors), blind=self.blind),
        )

    def play(
        self,
        carrier: Carrier,
        session: Session,
        inputs: Mapping[str, npt.ArrayLike],
    ) -> Vector | None:
        """Play the roles of the parties that are here, and return the total if it arrives here."""
        public, elements = self.public(carrier), session.layout.length
        # In one process nobody takes this session up again: its id is drawn here. A carrier that
        # replays gives the same randomness again, and refuses other bytes.
        journal = MemoryJournal()

        def upload(name: str) -> dict[str, wire.Buffer]:
            role = sum_roles.Contributor(
                session,
                name,
                carrier.identity(name),
                public,
                journal=journal,
                entropy=carrier.randomness(session, name, "contributor"),
            )
            return {self.aggregator: role.contribute(inputs[name])}

        aggregator = None
        if carrier.here(self.aggregator):
            aggregator = sum_roles.Aggregator(
                session,
                self.aggregator,
                carrier.identity(self.aggregator),
                public,
                key_holder=self.key_holder,
                entropy=carrier.randomness(session, self.aggregator, "aggregator"),
            )
        uploads = carrier.each(upload, filter(carrier.here, session.contributors), elements)
        arrived = carrier.deliver(
            session, "uploads", uploads, session.contributors, (self.aggregator,)
        )
        carrier.next_round()
        posts: dict[str, dict[str, wire.Buffer]] = {}
        if aggregator is not None:
            for data in arrived[self.aggregator].values():
                aggregator.receive(data)
            posts = {self.aggregator: {self.key_holder: aggregator.close()}}
        arrived = carrier.deliver(
            session, "aggregate", posts, (self.aggregator,), (self.key_holder,)
        )
        carrier.next_round()
        posts = {}
        if carrier.here(self.key_holder):
            holder = sum_roles.KeyHolder(
                session,
                self.key_holder,
                carrier.identity(self.key_holder),
                self.key(carrier),
                entropy=carrier.randomness(session, self.key_holder, "key holder"),
            )
            posts = {self.key_holder: holder.decrypt(arrived[self.key_holder][self.aggregator])}
        totals = carrier.deliver(session, "totals", posts, (self.key_holder,), session.receivers)

        def finish(name: str) -> Vector:
            entropy = carrier.randomness(session, name, "receiver")
            receiver = sum_roles.Receiver(session, name, carrier.identity(name), entropy=entropy)
            return receiver.receive(totals[name][self.key_holder])

        found = carrier.each(finish, totals, elements)
        return next(iter(found.values()), None)

    def learned(self) -> dict[str, str]:
        """Say what each kind of party learns, and under which assumption."""
        together = "the result" if self.blind else "every hospital's figures"
        return {
            "hospital": HOSPITAL_LEARNS,
            "aggregator": "nothing but sizes",
            "key holder": f"the result; together with the aggregator: {together}",
        }
