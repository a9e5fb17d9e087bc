"""Bodies that a party with a good key can seal, and that nobody may take."""

import numpy as np
from sharing.cast import vector, vector_body

from securecomp.core import field
from securecomp.protocol import wire
from securecomp.sharing.private_sum import Deal, PartialSum

P = field.MODULUS
MARK = bytes(16)  # of a dealing
MARKS = bytes(32)  # the digest of everyone's

# Good ones, for messages that are wrong in another way.
SEED_BODY = wire.encode_body(Deal(MARK, bytes(range(32))))
SUM_BODY = vector_body(PartialSum(MARKS, vector()), [1, 2, 3, 4])

BAD_DEALS = {
    "no seed": wire.encode_body(Deal(MARK, b"")),
    "a seed of 31 bytes": wire.encode_body(Deal(MARK, bytes(31))),
    "a seed of 33 bytes": wire.encode_body(Deal(MARK, bytes(33))),
    "four thousand bytes of seed": wire.encode_body(Deal(MARK, bytes(4000))),
    "no mark of a dealing": wire.encode_body(Deal(b"", bytes(32))),
    "a mark of 17 bytes": wire.encode_body(Deal(bytes(17), bytes(32))),
    "a seed and a vector": vector_body(Deal(MARK, bytes(32)), [1, 2, 3, 4]),
    "the modulus": vector_body(Deal(MARK, vector()), [0, P, 0, 0]),
    "a modulus at the end": vector_body(Deal(MARK, vector()), [0, 0, 0, P]),
    "an element less": vector_body(Deal(MARK, vector(3)), [1, 2, 3]),
    "an element more": vector_body(Deal(MARK, vector(5)), [1, 2, 3, 4, 5]),
    "a length that lies": vector_body(Deal(MARK, vector(4)), [1, 2, 3]),
    "a length that is vast": vector_body(Deal(MARK, vector(2**63)), [1, 2, 3, 4]),
    "a negative length": vector_body(Deal(MARK, vector(-4)), [1, 2, 3, 4]),
    "no payload": wire.encode_body(Deal(MARK, vector())),
    "another width": vector_body(Deal(MARK, wire.Vector(60, 4)), [1, 2, 3, 4]),
    "no width": vector_body(Deal(MARK, wire.Vector(0, 4)), [1, 2, 3, 4]),
    "a vast width": vector_body(Deal(MARK, wire.Vector(2**63, 4)), [1, 2, 3, 4]),
    "a word more": np.append(
        vector_body(Deal(MARK, vector()), [1, 2, 3, 4]), np.zeros(8, np.uint8)
    ),
    "a byte more": np.append(
        vector_body(Deal(MARK, vector()), [1, 2, 3, 4]), np.zeros(1, np.uint8)
    ),
    "a byte less": vector_body(Deal(MARK, vector()), [1, 2, 3, 4])[:-1],
    "padding that is not zero": np.append(
        vector_body(Deal(MARK, vector()), [1, 2, 3, 4])[:-1], np.uint8(128)
    ),
}


BAD_PARTIALS = {
    "the modulus": vector_body(PartialSum(MARKS, vector()), [0, P, 0, 0]),
    "an element less": vector_body(PartialSum(MARKS, vector(3)), [1, 2, 3]),
    "an element more": vector_body(PartialSum(MARKS, vector(5)), [1, 2, 3, 4, 5]),
    "a length that lies": vector_body(PartialSum(MARKS, vector(4)), [1, 2, 3]),
    "a length that is vast": vector_body(PartialSum(MARKS, vector(2**63)), [1, 2, 3, 4]),
    "no payload": wire.encode_body(PartialSum(MARKS, vector())),
    "another width": vector_body(PartialSum(MARKS, wire.Vector(64, 4)), [1, 2, 3, 4]),
    "a word more": np.append(
        vector_body(PartialSum(MARKS, vector()), [1, 2, 3, 4]), np.zeros(8, np.uint8)
    ),
    "padding that is not zero": np.append(
        vector_body(PartialSum(MARKS, vector()), [1, 2, 3, 4])[:-1], np.uint8(16)
    ),
}


def raw(facts):
    """A body with these MessagePack bytes."""
    padded = len(facts).to_bytes(4, "little") + facts
    return padded + bytes(-len(padded) % 8)


MALFORMED = {
    "nothing": b"",
    "three bytes": bytes(3),
    "no facts": bytes(8),
    "facts that are cut off": raw(b"\x92\xc4\x01a\xc4\x20")[:-1],
    "a length beyond the body": b"\xff\xff\xff\xff" + bytes(4),
    "padding that is not zero": raw(b"\x91\xc4\x02ab")[:-1] + b"\x01",
    "nil": raw(b"\xc0"),
    "a map": raw(b"\x81\xa1a\x01"),
    "an empty list": raw(b"\x90"),
    "a field more": raw(b"\x93\xc4\x01a\xc4\x01a\x01"),
    "a number": raw(b"\x92\xc4\x01a\x07"),
    "text": raw(b"\x92\xc4\x01a\xa2hi"),
    "a vector of three facts": raw(b"\x92\xc4\x01a\x93\x3d\x04\x04"),
    "a vector of text": raw(b"\x92\xc4\x01a\x92\xa1a\xa1b"),
    "two messages": raw(b"\x92\xc4\x01a\xc4\x01a\x92\xc4\x01a\xc4\x01a"),
    "not MessagePack": raw(b"\xc1"),
    "lists in lists": raw(b"\x91" * 5000),
}
