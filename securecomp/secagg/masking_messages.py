"""The messages of secure aggregation, one type a step. Clients go by their index in the session."""

from typing import ClassVar

from securecomp.protocol import wire


class Advertise(wire.Message, frozen=True):
    """Client to server: public keys of this session; signed under active security."""

    KIND: ClassVar[int] = 16
    cipher_key: bytes
    mask_key: bytes
    signature: bytes


class Keys(wire.Message, frozen=True):
    """Server to client: who advertised which keys, ascending by index.

    All clients under the complete graph; the client's neighbours and itself under a sparse one.
    """

    KIND: ClassVar[int] = 17
    clients: list[int]
    keys: list[Advertise]


class Shares(wire.Message, frozen=True):
    """Client to server: for each neighbour a sealed box with one share of each secret.

    `commitment` is a hash of the self-mask's seed, so that a wrong reconstruction is seen.
    """

    KIND: ClassVar[int] = 18
    commitment: bytes
    recipients: list[int]
    boxes: bytes


class Boxes(wire.Message, frozen=True):
    """Server to client: the boxes that neighbours sealed for it, ascending by sender."""

    KIND: ClassVar[int] = 19
    senders: list[int]
    boxes: bytes


class Masked(wire.Message, frozen=True):
    """Client to server: its vector under masks."""

    KIND: ClassVar[int] = 20
    vector: wire.Vector


class Survivors(wire.Message, frozen=True):
    """Server to client: whose masked vectors are in the sum."""

    KIND: ClassVar[int] = 21
    clients: list[int]


class Consent(wire.Message, frozen=True):
    """Client to server: a signature on the survivors (active security)."""

    KIND: ClassVar[int] = 22
    signature: bytes


class Consents(wire.Message, frozen=True):
    """Server to client: the survivors' signatures."""

    KIND: ClassVar[int] = 23
    clients: list[int]
    signatures: list[bytes]


class Unmask(wire.Message, frozen=True):
    """Client to server: one share for each neighbour and itself, ascending by owner.

    Of the self-mask's seed if the owner survived, of its mask key if it dropped out.
    """

    KIND: ClassVar[int] = 24
    owners: list[int]
    shares: wire.Vector


class UnmaskedTotal(wire.Message, frozen=True):
    """Server to receiver: the sum of the survivors' vectors."""

    KIND: ClassVar[int] = 25
    survivors: list[int]
    vector: wire.Vector
