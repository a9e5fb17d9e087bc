"""The encrypted aggregator, as a `SumProtocol`."""

from typing import Any

from securecomp.core import checks
from securecomp.errors import ThresholdError
from securecomp.paillier import sum_roles, sum_session
from securecomp.paillier.keys import PrivateKey, check_bits
from securecomp.protocol import wire
from securecomp.protocol.carrier import HOSPITAL_LEARNS, Carrier, Inputs, Vector, check_apart
from securecomp.protocol.journal import MemoryJournal
from securecomp.protocol.session import Layout, Session
from securecomp.protocol.sum_protocols import SumProtocol


class Paillier(SumProtocol):
    """Encryption under one public key: an aggregator adds, a key holder decrypts the total."""

    name = "paillier"
    servers = 2
    aggregator = "aggregator"
    key_holder = "key holder"

    def __init__(
        self, *, bits: int = 3072, blind: bool = False, insecure_for_tests: bool = False
    ) -> None:
        """Choose the key. It is drawn at the first sum and kept.

        Args:
            bits: Length of the modulus.
            blind: Whether sites mask their plaintexts among themselves, against an aggregator and
                a key holder that collude.
            insecure_for_tests: Allow short keys.

        Raises:
            ParameterError: An odd, impossible or unsafe length.
        """
        check_bits(bits, insecure_for_tests)
        self.bits = bits
        self.blind = checks.truth(blind, "blind")
        self._insecure = insecure_for_tests
        self._key: PrivateKey | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_key": None}  # a copy draws its own key

    @property
    def limit(self) -> int:
        """The largest absolute total that comes out exactly: 63 bits with the sign."""
        return (1 << 62) - 1

    def key(self, carrier: Carrier) -> PrivateKey:
        """Return the private key, drawn at the first call."""
        if self._key is None:
            self._key = PrivateKey.generate(
                self.bits, insecure_for_tests=self._insecure, entropy=carrier.entropy
            )
        return self._key

    def session(
        self,
        carrier: Carrier,
        layout: Layout,
        contributors: tuple[str, ...],
        receivers: tuple[str, ...] | None = None,
    ) -> Session:
        """Agree on a session; every contributor receives the result unless told otherwise."""
        servers = (self.aggregator, self.key_holder)
        check_apart(contributors, servers)
        if len(contributors) < 2:
            raise ThresholdError(
                2, len(contributors), "a sum over one party is that party's own value"
            )
        receivers = contributors if receivers is None else receivers
        parties = (*contributors, *servers, *receivers)
        return Session.create(
            sum_session.protocol_name(self.key(carrier).public),
            contributors=contributors,
            servers=servers,
            receivers=receivers,
            keys={name: carrier.identity(name).public for name in parties},
            layout=layout,
            limit=self.limit,
            minimum_servers=2,
            terms=sum_session.terms(len(contributors), blind=self.blind),
            entropy=carrier.entropy,
        )

    def run(
        self,
        carrier: Carrier,
        layout: Layout,
        contributors: Inputs,
        receivers: tuple[str, ...] | None = None,
    ) -> Vector:
        """Run all roles and return the total, shape (layout.length,).

        Raises:
            ThresholdError: Fewer than two contributors.
            RangeError: A value is beyond the layout's bound, or the bound too large.
        """
        session = self.session(carrier, layout, tuple(contributors), receivers)
        inputs = {name: read() for name, read in contributors.items()}
        private, entropy = self.key(carrier), carrier.entropy
        journal = MemoryJournal()  # nobody takes this session up again: its id is drawn here

        def upload(name: str) -> wire.Buffer:
            role = sum_roles.Contributor(
                session,
                name,
                carrier.identity(name),
                private.public,
                journal=journal,
                entropy=entropy,
            )
            return role.contribute(inputs[name])

        aggregator = sum_roles.Aggregator(
            session,
            self.aggregator,
            carrier.identity(self.aggregator),
            private.public,
            key_holder=self.key_holder,
            entropy=entropy,
        )
        for name, data in carrier.each(upload, session.contributors, layout.length).items():
            aggregator.receive(carrier.send(name, self.aggregator, data))
        carrier.next_round()
        aggregate = carrier.send(self.aggregator, self.key_holder, aggregator.close())
        carrier.next_round()
        holder = sum_roles.KeyHolder(
            session, self.key_holder, carrier.identity(self.key_holder), private, entropy=entropy
        )
        totals = holder.decrypt(aggregate)

        def finish(name: str) -> Vector:
            receiver = sum_roles.Receiver(session, name, carrier.identity(name), entropy=entropy)
            return receiver.receive(carrier.send(self.key_holder, name, totals[name]))

        return carrier.each(finish, totals, layout.length)[session.receivers[0]]

    def learned(self) -> dict[str, str]:
        """Say what each kind of party learns, and under which assumption."""
        together = "the result" if self.blind else "every hospital's figures"
        return {
            "hospital": HOSPITAL_LEARNS,
            "aggregator": "nothing but sizes",
            "key holder": f"the result; together with the aggregator: {together}",
        }
