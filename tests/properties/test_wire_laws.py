"""Round trips of messages, and that decoding raises only `DecodeError`.

The last test changes real messages of every type in the package, millions of times with `-m slow`:
what comes out is a `DecodeError`, or a message that keeps every promise of the decoder.
"""

import contextlib
import importlib
import itertools
import pkgutil
import struct
from collections import Counter
from typing import ClassVar

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect

import securecomp
from securecomp.core import field
from securecomp.errors import BackendUnavailableError, DecodeError
from securecomp.protocol import wire

P = field.MODULUS


class Carrying(wire.Message, frozen=True):
    KIND: ClassVar[int] = 202
    vector: wire.Vector


def subclasses(kind):
    for sub in kind.__subclasses__():
        yield sub
        yield from subclasses(sub)


for _module in pkgutil.walk_packages(securecomp.__path__, "securecomp."):
    with contextlib.suppress(BackendUnavailableError):  # no message is in an extra's adapter
        importlib.import_module(_module.name)
KINDS = sorted(
    (k for k in subclasses(wire.Message) if k.__module__.startswith("securecomp.")),
    key=lambda k: k.KIND,
)

names = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=25)
headers = st.builds(
    wire.Header,
    st.integers(0, 255),
    st.binary(min_size=16, max_size=16),
    st.integers(0, 2**32 - 1),
    st.binary(min_size=32, max_size=32),
    names,
    names,
)


@given(headers, st.binary(max_size=100))
def test_a_header_comes_back(header, body):
    head = header.encode(len(body))
    again, first, rest = wire.split_header(head + body)
    assert again == header
    assert bytes(first) == head
    assert bytes(rest) == body


@given(headers, st.binary(max_size=20), st.binary(min_size=1, max_size=20))
def test_a_header_takes_no_more_and_no_less(header, body, extra):
    data = header.encode(len(body)) + body
    for wrong in (data + extra, data[: -len(extra)]):
        with pytest.raises(DecodeError):
            wire.split_header(wrong)


@given(st.integers(1, 64), st.data())
def test_a_vector_comes_back(bits, data):
    residue = st.integers(0, min(2**bits, P) - 1) if bits == 61 else st.integers(0, 2**bits - 1)
    values = np.array(data.draw(st.lists(residue, max_size=150)), np.uint64)
    message = Carrying(wire.Vector(bits, values.size))
    body = wire.encode_body(message, values.size, lambda a, b: values[a:b], bits)
    again, payload = wire.decode_body(body.data, Carrying)
    assert again == message
    assert wire.unpack(again.vector, payload, values.size, bits).tolist() == values.tolist()


@given(st.binary(max_size=200))
def test_garbage_is_no_header(data):
    with pytest.raises(DecodeError):
        wire.split_header(data)


@given(st.binary(max_size=300), st.sampled_from(KINDS))
def test_garbage_is_no_body(facts, kind):
    """Also when the length in front is right, and so the MessagePack is reached."""
    framed = struct.pack("<I", len(facts)) + facts
    for data in (facts, framed + bytes(-len(framed) % 8)):
        try:
            message, _ = wire.decode_body(data, kind)
        except DecodeError:
            continue
        assert type(message) is kind


# Examples of every message type, made from the types of its fields.


def samples(kind):
    """Some values of a type; a type that is not known here fails the test, so that it is added."""
    match kind:
        case inspect.StructType(cls=wire.Vector):
            return [wire.Vector(61, 70), wire.Vector(61, 1), wire.Vector(20, 9), wire.Vector(61, 0)]
        case inspect.StructType():
            return examples(kind.cls)
        case inspect.UnionType():
            return [value for part in kind.types for value in samples(part)]
        case inspect.ListType() | inspect.VarTupleType():
            some = samples(kind.item_type)
            lists = [some[:2] * 2, [], some[:1]]
            return lists if isinstance(kind, inspect.ListType) else [tuple(v) for v in lists]
        case inspect.TupleType():
            return [tuple(v) for v in itertools.product(*map(samples, kind.item_types))][:3]
        case inspect.DictType():
            return [dict(zip(samples(kind.key_type), samples(kind.value_type), strict=False)), {}]
        case inspect.BytesType():
            return [bytes(range(32)), b"", b"\xff" * 300]
        case inspect.StrType():
            return ["north", "", "é" * 40]
        case inspect.IntType():
            return [0, 100, 2**40]
        case inspect.BoolType():
            return [False, True]
        case inspect.FloatType():
            return [0.0, -1.5]
        case inspect.NoneType():
            return [None]
    raise NotImplementedError(kind)


def examples(kind):
    """Messages of a type: each field takes each of its sample values at least once."""
    fields = [samples(field.type) for field in inspect.type_info(kind).fields]
    count = max(map(len, fields), default=1)
    return [kind(*(some[i % len(some)] for some in fields)) for i in range(count)]


def vectors(message):
    """The vectors that a message names."""
    parts = (getattr(message, name) for name in message.__struct_fields__)
    return [part for part in parts if isinstance(part, wire.Vector)]


def encoded(message, random_residues):
    """The header's bytes without the body's length, and the body."""
    kind = type(message)
    header = wire.Header(kind.KIND, bytes(16), 1, bytes(range(32)), "north", "server 1")
    vector = next(iter(vectors(message)), None)
    if vector is None:
        return header.encode(0)[:-8], bytes(wire.encode_body(message))
    values = random_residues("wire", vector.length) & np.uint64(2**vector.bits - 1)
    source = values.__getitem__
    body = wire.encode_body(message, vector.length, lambda a, b: source(slice(a, b)), vector.bits)
    return header.encode(0)[:-8], bytes(body)


def decode(data, kind, agreed):
    """Decode all of a message, as a receiver does; say how far it came."""
    try:
        header, head, rest = wire.split_header(data)
    except DecodeError:
        return "header refused"
    assert header.encode(len(rest)) == bytes(head)
    assert len(head) + len(rest) == len(data)
    try:
        message, payload = wire.decode_body(rest, kind)
    except DecodeError:
        return "body refused"
    assert type(message) is kind
    assert wire.decode_body(bytes(wire.encode_body(message)), kind)[0] == message
    for vector in vectors(message):
        acc = np.ones(agreed.length, np.uint64)
        try:
            got = wire.unpack(vector, payload, agreed.length, agreed.bits)
        except DecodeError:
            if agreed.bits == field.BITS:
                with pytest.raises(DecodeError):
                    wire.add_packed(vector, payload, acc)
                assert (acc == 1).all()
            return "vector refused"
        if agreed.bits == field.BITS:
            wire.add_packed(vector, payload, acc)
            assert np.array_equal(acc, field.add(got, np.uint64(1)))
        assert got.shape == (agreed.length,)
        assert all(v < min(P, 1 << agreed.bits) for v in got.tolist())
        again = wire.encode_body(
            message, agreed.length, lambda a, b, got=got: got[a:b].astype(np.uint64), agreed.bits
        )
        assert bytes(again).endswith(bytes(payload))
    return "accepted"


class Dice:
    """Numbers below a limit, from replayed bytes."""

    def __init__(self, entropy):
        self._entropy = entropy
        self._drawn = iter(())

    def __call__(self, limit):
        for word in self._drawn:
            return word % limit
        self._drawn = iter(struct.unpack("<4096Q", self._entropy(8 * 4096)))
        return self(limit)


EXTREMES = [
    *(b"\0", b"\xff", b"\x7f", b"\x80", bytes(4), b"\xff" * 4, bytes(8), b"\xff" * 8),
    *(b"\1\0\0\0", b"\0\0\0\1", b"\xff\xff\xff\x7f", b"\xff" * 7 + b"\x1f", b"\xff" * 7 + b"\x7f"),
    # MessagePack: never used, nil, booleans, binary, extensions, floats, integers, text, containers
    *(bytes([code]) for code in range(0xC0, 0xE0)),
    *(b"\x90", b"\x9f", b"\x80", b"\x8f", b"\xa0", b"\xbf", b"\xdd\xff\xff\xff\xff", b"\xc9\xff"),
]


def mutated(data, other, dice):
    """The bytes with one change."""
    data = bytearray(data)
    at = dice(len(data) + 1)
    match dice(9):
        case 0 if at < len(data):
            data[at] ^= 1 << dice(8)
        case 1 if at < len(data):
            data[at] = dice(256)
        case 2:
            del data[at:]
        case 3:
            data[at:at] = dice(2**64).to_bytes(8, "little")[: 1 + dice(8)]
        case 4:
            del data[at : at + 1 + dice(16)]
        case 5:
            data[at:at] = data[at : at + 1 + dice(32)]
        case 6:
            data[at:at] = EXTREMES[dice(len(EXTREMES))]
        case 7:
            data[at:] = other[dice(len(other) + 1) :]
        case _:
            new = EXTREMES[dice(len(EXTREMES))]
            data[at : at + len(new)] = new
    return bytes(data)


def fuzz(turns, replay, random_residues):
    dice = Dice(replay("fuzz"))
    cases = []
    for kind in KINDS:
        for message in examples(kind):
            agreed = next(iter(vectors(message)), wire.Vector(61, 70))
            cases.append((kind, agreed, *encoded(message, random_residues)))
    for kind, agreed, head, body in cases:
        assert decode(head + len(body).to_bytes(8, "big") + body, kind, agreed) == "accepted"
    outcomes = Counter()
    for turn in range(turns):
        kind, agreed, head, body = cases[turn % len(cases)]
        _, _, other_head, other_body = cases[dice(len(cases))]
        for _ in range(1 + dice(3)):
            if dice(4):
                body = mutated(body, other_body, dice)
            else:
                head = mutated(head, other_head, dice)
        length = len(body).to_bytes(8, "big")
        if dice(16) == 0:
            length = mutated(length, bytes(8), dice)
        if dice(16) == 0:
            kind = KINDS[dice(len(KINDS))]
        outcomes[kind, decode(head + length + body, kind, agreed)] += 1
    return outcomes


def well_spread(outcomes, turns):
    """A fuzz that reaches only one place shows nothing: every stage of every type is met often."""
    assert outcomes.total() == turns
    share = turns // len(KINDS)
    for kind in KINDS:
        for stage in ("header refused", "body refused", "accepted"):
            assert outcomes[kind, stage] > share // 100, (kind, stage)
        if any(vectors(message) for message in examples(kind)):
            assert outcomes[kind, "vector refused"] > share // 100, kind


def test_decoding_raises_only_decode_error(replay, random_residues):
    well_spread(fuzz(50_000, replay, random_residues), 50_000)


@pytest.mark.slow
def test_decoding_raises_only_decode_error_a_million_times(replay, random_residues):
    well_spread(fuzz(1_000_000, replay, random_residues), 1_000_000)


def test_facts_may_be_any_msgpack(replay):
    """Well-formed MessagePack of other shapes: wrong counts, wrong types, deep and wide."""
    dice = Dice(replay("facts"))
    leaves = [None, True, 0, -1, 2**64 - 1, -(2**63), 1.5, "", "x" * 40, b"", b"\0" * 32]
    leaves += [[61, 3], [61], [], {}, msgspec.msgpack.Ext(1, b"x"), [[61, 3]], {"bits": 61}]
    outcomes = Counter()
    for _ in range(5000):
        value = [leaves[dice(len(leaves))] for _ in range(dice(5))]
        if dice(4) == 0:
            value = leaves[dice(len(leaves))]
        facts = msgspec.msgpack.encode(value)
        framed = struct.pack("<I", len(facts)) + facts
        framed += bytes(-len(framed) % 8)
        for kind in KINDS:
            try:
                message, payload = wire.decode_body(framed, kind)
            except DecodeError:
                outcomes["refused"] += 1
                continue
            outcomes["accepted"] += 1
            assert not payload
            assert msgspec.to_builtins(message, builtin_types=[bytes]) == value
    assert outcomes["refused"] > outcomes["accepted"] > 100
