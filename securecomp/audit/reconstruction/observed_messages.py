"""A server's view of a secure sum: the messages that it receives, opened with its own key.

The sum is the real one of `secure_sum`, with a carrier that copies the messages to one server. With
masking these are the sites' vectors under masks, and with sharing one share of each vector. Both
are uniform residues whatever the vector is, so an attack on them finds nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from securecomp.core import entropy as entropy_
from securecomp.core import field, prg
from securecomp.core.entropy import Entropy
from securecomp.core.fixedpoint import Number
from securecomp.errors import ParameterError
from securecomp.protocol import identity as identity_
from securecomp.protocol import wire
from securecomp.protocol.carrier import Carrier, Inputs, Vector
from securecomp.protocol.identity import Identity
from securecomp.protocol.local_carrier import LocalCarrier
from securecomp.protocol.secure_sum import SecureSum, secure_sum
from securecomp.protocol.session import Layout, Session
from securecomp.protocol.sum_protocols import SumProtocol
from securecomp.secagg.masked_sum import Masking
from securecomp.secagg.masking_messages import Masked
from securecomp.secagg.parameters import Parameters
from securecomp.sharing.additive import seed_key
from securecomp.sharing.additive_sum import Sharing
from securecomp.sharing.private_sum import Deal

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class View:
    """The view of one server, and the result.

    Attributes:
        server: Name of the server.
        words: For each site, the residues that the server received, shape (d,), below `modulus`.
        modulus: 2^bits with masking, the field's prime with sharing.
        result: The sum, which all receivers know. With masking the server knows it too.
    """

    server: str
    words: Mapping[str, npt.NDArray[np.uint64]]
    modulus: int
    result: SecureSum

    def reading(self, site: str) -> Floats:
        """Return a site's residues read as a vector, as if nothing hid it, shape (d,)."""
        words = self.words[site].astype(np.float64)
        half = self.modulus / 2
        return np.where(words < half, words, words - self.modulus) / self.result.scale


def server_view(
    vectors: Mapping[str, npt.ArrayLike],
    *,
    bound: Number,
    bits: int,
    protocol: Literal["masking", "sharing"] = "masking",
    entropy: Entropy = entropy_.system,
) -> View:
    """Add vectors securely, and keep the messages to the (first) server.

    Args:
        vectors: Site to numbers, shape (d,).
        bound: Largest absolute value.
        bits: Values are rounded to multiples of 2^-bits.
        protocol: "masking" or "sharing".
        entropy: Source of all randomness.

    Raises:
        ParameterError: Unknown protocol, or sums that do not fit one residue per element.
        RangeError, ThresholdError: As `secure_sum`.
    """
    if protocol not in ("masking", "sharing"):
        raise ParameterError(f'protocol must be "masking" or "sharing", not {protocol!r}')
    watched = _Watched(Masking() if protocol == "masking" else Sharing())
    result = secure_sum(vectors, bound=bound, bits=bits, protocol=watched, entropy=entropy)
    session = watched.session
    read = _masked if protocol == "masking" else _share
    words = dict(read(session, watched.identity, data) for data in watched.messages)
    if session.layout.length != np.size(next(iter(vectors.values()))):
        raise ParameterError("the sums need several residues per element; use a smaller bound")
    modulus = 1 << Parameters.of(session).bits if protocol == "masking" else field.MODULUS
    ordered = {name: words[name] for name in vectors}
    return View(session.servers[0], ordered, modulus, result)


def _masked(
    session: Session, identity: Identity, data: wire.Buffer
) -> tuple[str, npt.NDArray[np.uint64]]:
    header, body = _opened(session, identity, data)
    if header.kind != Masked.KIND:
        return "", np.empty(0, np.uint64)  # keys, and shares of keys
    bits = Parameters.of(session).bits
    message, payload = wire.decode_body(body, Masked)
    words = wire.unpack(message.vector, payload, session.layout.length, bits)
    return header.sender, words.astype(np.uint64)


def _share(
    session: Session, identity: Identity, data: wire.Buffer
) -> tuple[str, npt.NDArray[np.uint64]]:
    header, body = _opened(session, identity, data)
    deal, payload = wire.decode_body(body, Deal)
    length = session.layout.length
    if isinstance(deal.share, bytes):
        key = seed_key(deal.share, session.agreement, header.sender, header.recipient)
        return header.sender, prg.expand(key, length)
    return header.sender, wire.unpack(deal.share, payload, length)


def _opened(
    session: Session, identity: Identity, data: wire.Buffer
) -> tuple[wire.Header, memoryview]:
    return identity_.open_sealed(identity, session, session.agreement, data, session.servers[0])


class _Watched(SumProtocol):
    """A protocol that keeps its session, and the messages to its first server."""

    session: Session
    identity: Identity

    def __init__(self, inner: Masking | Sharing) -> None:
        self.name = inner.name
        self.messages: list[bytes] = []
        self._inner = inner

    @property
    def limit(self) -> int:
        """The largest absolute total that comes out exactly."""
        return self._inner.limit

    def learned(self) -> dict[str, str]:
        """Tell what each kind of party learns, and under which assumption."""
        return self._inner.learned()

    def run(
        self,
        carrier: Carrier,
        layout: Layout,
        contributors: Inputs,
        receivers: tuple[str, ...] | None = None,
    ) -> Vector:
        """Run the protocol over a carrier that keeps copies."""
        agree = self._inner.session

        def session(*given: Any) -> Session:
            self.session = agree(*given)
            self.identity = carrier.identity(self.session.servers[0])
            return self.session

        self._inner.session = session  # type: ignore[method-assign, assignment]
        return self._inner.run(_Tap(carrier, self), layout, contributors, receivers)


class _Tap(LocalCarrier):
    """Carries messages as another carrier does, and copies those to the server."""

    def __init__(self, carrier: Carrier, watched: _Watched) -> None:
        super().__init__(carrier.entropy)
        self._carrier, self._watched = carrier, watched

    def identity(self, name: str) -> Identity:
        """Return a party's key."""
        return self._carrier.identity(name)

    def next_round(self) -> None:
        """Begin a round."""
        self._carrier.next_round()

    def send(self, sender: str, recipient: str, data: wire.Buffer) -> wire.Buffer:
        """Carry a message."""
        if recipient == self._watched.session.servers[0]:
            self._watched.messages.append(bytes(data))
        return self._carrier.send(sender, recipient, data)
