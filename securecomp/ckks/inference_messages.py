"""The bodies of the messages between an inference client, its server and a model's owner."""

from typing import ClassVar

from securecomp.protocol.wire import Message, Vector

REQUEST_BYTES = 16


class Query(Message, frozen=True):
    """Encrypted rows, from the client.

    Attributes:
        request: 16 random bytes that the answer repeats.
        rows: Number of rows.
        seed: Expands to the masks c_1.
        residues: c_0 of every polynomial, as values: by prime, then by polynomial (`layout`).
    """

    KIND: ClassVar[int] = 48
    request: bytes
    rows: int
    seed: bytes
    residues: Vector


class EncryptedLogits(Message, frozen=True):
    """Encrypted logits, from the server.

    Attributes:
        request: Id of the answered query.
        rows: Number of rows.
        residues: By prime: c_0 of each logit, K rows of coefficients; then, for every group of
            rows and logit, c_1 (and c_2 under an encrypted model) as values.
    """

    KIND: ClassVar[int] = 49
    request: bytes
    rows: int
    residues: Vector


class EncryptedWeights(Message, frozen=True):
    """A model under the client's key, from its owner to the server.

    Attributes:
        residues: By prime: (c_0, c_1) of every weight polynomial as values, by logit and term;
            first by columns, then by rows.
    """

    KIND: ClassVar[int] = 50
    residues: Vector


class Columns(Message, frozen=True):
    """Encrypted rows for a server that computes on SEAL, from the client.

    Attributes:
        request: 16 random bytes that the answer repeats.
        rows: Number of rows.
        batches: For every batch of rows one ciphertext for each feature, in SEAL's form.
    """

    KIND: ClassVar[int] = 51
    request: bytes
    rows: int
    batches: list[list[bytes]]


class EncryptedScores(Message, frozen=True):
    """Encrypted probabilities, from the server.

    Attributes:
        request: Id of the answered query.
        rows: Number of rows.
        batches: For every batch and model the probabilities, and the logits over their bound.
    """

    KIND: ClassVar[int] = 52
    request: bytes
    rows: int
    batches: list[list[bytes]]


class EncryptedSlots(Message, frozen=True):
    """Encrypted logits, from a server that computes on SEAL.

    Attributes:
        request: Id of the answered query.
        rows: Number of rows.
        batches: For every batch of rows one ciphertext for each logit.
    """

    KIND: ClassVar[int] = 53
    request: bytes
    rows: int
    batches: list[list[bytes]]
