"""Damaged, cut and made-up bytes: one of our errors, nothing counted, and all goes on."""

import struct
import tracemalloc
from functools import cache

import numpy as np
import pytest
from cases import each_case, examples
from ckks.parties import Parties, table
from hypothesis import given
from hypothesis import strategies as st

from securecomp.errors import AuthenticationError, DecodeError, RemoteProtocolError
from securecomp.protocol import identity, wire

DOCUMENTED = (DecodeError, AuthenticationError, RemoteProtocolError)
ROWS = table(2)
CHOICES = {"plain": {}, "protected": {"protect_model": True}, "encrypted": {"encrypted": True}}


class Case:
    """One message, who takes it, and what shows that nothing came of a refused one."""

    def __init__(self, kind, choice):
        self.parties = Parties(**choice)
        self.kind = kind
        parties = self.parties
        request = bytes(parties.ann.encrypt(ROWS))
        if kind == "request":
            self.data, self.take = request, parties.server.predict
        elif kind == "answer":
            self.data, self.take = bytes(parties.server.predict(request)), parties.ann.decrypt
        else:
            registration = parties.ann.registration.encode()
            self.data = bytes(parties.owner.encrypt(registration))
            self.take = parties.server.load_model

    def refuse(self, data, errors=DOCUMENTED):
        before = self.state()
        with pytest.raises(errors) as caught:
            self.take(data)
        assert type(caught.value) in errors
        assert self.state() == before
        return caught.value

    def state(self):
        ledger = self.parties.server._ledger
        pending = dict(self.parties.ann._pending)
        weights = [id(c.account._weights) for c in self.parties.server._clients.values()]
        return dict(ledger._spent), set(ledger._seen), pending, weights

    def still_works(self):
        assert self.take(self.data) is not None


CASES = [
    *(("request", name) for name in CHOICES),
    *(("answer", name) for name in CHOICES),
    ("model", "encrypted"),
]


@cache
def made(names):
    kind, name = names
    return Case(kind, CHOICES[name])


def regions(data):
    """Where a message's parts begin: header fields, salt, body, tag."""
    body = len(wire.split_header(data)[1])
    return [
        range(4),  # magic
        range(4, 5),  # version
        range(5, 6),  # kind
        range(6, 22),  # session
        range(22, 26),  # round
        range(26, 58),  # agreement
        range(58, body - 8),  # names
        range(body - 8, body),  # length
        range(body, body + 32),  # salt
        range(body + 32, body + 100),  # facts
        range(body + 100, len(data) - 16),  # residues
        range(len(data) - 16, len(data)),  # tag
    ]


@each_case("case", CASES, made)
@given(data=st.data())
@examples(60)
def test_a_flipped_bit_anywhere(case, data):
    region = data.draw(st.sampled_from(regions(case.data)))
    at = data.draw(st.integers(region.start, region.stop - 1))
    damaged = bytearray(case.data)
    damaged[at] ^= 1 << data.draw(st.integers(0, 7))
    case.refuse(bytes(damaged))


@each_case("case", CASES, made)
def test_a_flipped_bit_in_every_region(case):
    for region in regions(case.data):
        for at in (region.start, region.stop - 1):
            damaged = bytearray(case.data)
            damaged[at] ^= 0x80
            case.refuse(bytes(damaged))


@each_case("case", CASES, made)
@given(data=st.data())
@examples(40)
def test_cut_anywhere(case, data):
    size = data.draw(st.integers(0, 300) | st.integers(0, len(case.data) - 1))
    case.refuse(case.data[:size], (DecodeError,))


@each_case("case", CASES, made)
@each_case("extra", [b"\x00", b"x" * 8, b"x" * 4096])
def test_trailing_bytes(case, extra):
    error = case.refuse(case.data + extra, (DecodeError,))
    assert "the header says" in str(error)
    case.refuse(extra + case.data, (DecodeError,))
    case.refuse(case.data + case.data, (DecodeError,))


@each_case("case", CASES, made)
@each_case("version", [0, 2, 255])
def test_another_version(case, version):
    damaged = case.data[:4] + bytes([version]) + case.data[5:]
    assert f"message version {version}" in str(case.refuse(damaged, (DecodeError,)))


@each_case("case", CASES, made)
def test_a_gigabyte_that_is_not_there(case):
    """Neither in the header nor in the facts: nothing is allocated for what was only claimed."""
    start = len(wire.split_header(case.data)[1]) - 8
    tracemalloc.start()
    try:
        for size in (2**30, 2**40, 2**63, 2**64 - 1):
            case.refuse(
                case.data[:start] + struct.pack(">Q", size) + case.data[start + 8 :],
                (DecodeError,),
            )
        assert tracemalloc.get_traced_memory()[1] < (1 << 20) + 3 * len(case.data)
    finally:
        tracemalloc.stop()


@each_case("case", CASES, made)
def test_more_than_any_message_of_the_session(case):
    """Larger than the largest is refused before it is opened."""
    header = wire.split_header(case.data)[0]
    largest = case.parties.ann._engagement.largest_message
    body = np.zeros(largest + 49, np.uint8)
    error = case.refuse(header.encode(len(body)) + body.tobytes(), (DecodeError,))
    assert "larger than any" in str(error)
    almost = header.encode(len(body) - 1) + body[:-1].tobytes()
    case.refuse(almost, (AuthenticationError,))


@each_case("case", CASES, made)
@given(st.binary(max_size=300))
def test_anything(case, data):
    case.refuse(data, (DecodeError,))


@each_case("case", CASES, made)
@each_case("size", [0, 1, 31, 32, 47])
def test_a_body_without_its_seal(case, size):
    header = wire.split_header(case.data)[0]
    error = case.refuse(header.encode(size) + bytes(size), (DecodeError,))
    assert "the sealed body is cut off" in str(error)
    case.refuse(header.encode(48) + bytes(48), (AuthenticationError,))


@each_case("case", CASES, made)
@given(body=st.binary(max_size=64))
@examples(60)
def test_any_body_of_somebody_with_the_key(case, body):
    """Sealed rightly: the parser is all that is left."""
    header = wire.split_header(case.data)[0]
    engagement = case.parties.ann._engagement
    mine = case.parties.identities[header.sender]
    data = np.frombuffer(body, np.uint8)
    sealed = identity.seal(mine, engagement, header, data, case.parties.entropy)
    case.refuse(sealed)


@each_case("case", CASES, made)
def test_in_the_end_the_message_is_taken(case):
    """Runs last: after all that was refused, the same roles take the message itself."""
    case.still_works()
