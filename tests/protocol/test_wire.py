"""Messages to bytes and back: every cut, every lie, every byte that must be zero."""

import contextlib
import importlib
import pkgutil
import struct
import unicodedata
from dataclasses import replace
from typing import ClassVar

import msgspec
import numpy as np
import pytest
from cases import each_case

import securecomp
from securecomp.core import field
from securecomp.errors import BackendUnavailableError, DecodeError, ParameterError
from securecomp.protocol import wire

P = (1 << 61) - 1
HEADER = wire.Header(7, bytes(range(16)), 3, bytes(range(100, 132)), "north", "sérver 1")
FIXED = 4 + 1 + 1 + 16 + 4 + 32


class Facts(wire.Message, frozen=True):
    KIND: ClassVar[int] = 200
    name: str
    data: bytes
    count: int


class Either(wire.Message, frozen=True):
    KIND: ClassVar[int] = 201
    share: bytes | wire.Vector


class Carrying(wire.Message, frozen=True):
    KIND: ClassVar[int] = 202
    vector: wire.Vector


def source(values):
    """What `encode_body` asks for blocks."""
    return lambda start, stop: values[start:stop]


def body_of(values, bits=61):
    values = np.asarray(values, np.uint64)
    message = Carrying(wire.Vector(bits, values.size))
    return bytes(wire.encode_body(message, values.size, source(values), bits))


def bit_string(values, bits):
    """The payload, by way of one binary number."""
    digits = "".join(f"{v:0{bits}b}" for v in reversed(np.asarray(values, np.uint64).tolist()))
    return int(digits or "0", 2).to_bytes(-(-len(digits) // 64) * 8, "little")


def refused(function, *args):
    with pytest.raises(DecodeError) as caught:
        function(*args)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


class TestHeader:
    def test_the_bytes_are_what_is_written_down(self):
        want = (
            b"SCMP\x01\x07"
            + bytes(range(16))
            + b"\0\0\0\3"
            + bytes(range(100, 132))
            + b"\x05north"
            + b"\x09s\xc3\xa9rver 1"
            + b"\0\0\0\0\0\0\1\2"
        )
        assert HEADER.encode(258) == want

    @each_case("body", [b"", b"x", bytes(range(256)) * 5])
    @each_case("kind", [bytes, bytearray, memoryview])
    def test_round_trip(self, body, kind):
        head = HEADER.encode(len(body))
        header, first, rest = wire.split_header(kind(head + body))
        assert header == HEADER
        assert type(first) is type(rest) is memoryview
        assert (bytes(first), bytes(rest)) == (head, body)

    @each_case(
        "header",
        [
            wire.Header(0, bytes(16), 0, bytes(32), "a", "b"),
            wire.Header(255, b"\xff" * 16, 2**32 - 1, b"\xff" * 32, "a" * 100, "é" * 50),
            wire.Header(1, bytes(16), 1, bytes(32), "東京", "a"),
        ],
    )
    def test_the_extremes(self, header):
        assert wire.split_header(header.encode(0))[0] == header

    def test_every_cut(self):
        data = HEADER.encode(5) + b"12345"
        for size in range(len(data)):
            said = refused(wire.split_header, data[:size])
            if size < FIXED:
                assert said == f"a message of {size} bytes is too short to be one"
            elif size < FIXED + 16:
                assert said == "a party's name is missing, too long or cut off"
            elif size < FIXED + 24:
                assert said == "the header is cut off"
            else:
                assert said == f"the body has {size - FIXED - 24} bytes and the header says 5"

    @each_case("extra", [b"\0", b"x", bytes(8), bytes(1000)])
    def test_trailing_bytes(self, extra):
        said = refused(wire.split_header, HEADER.encode(5) + b"12345" + extra)
        assert said == f"the body has {5 + len(extra)} bytes and the header says 5"

    @each_case("length", [0, 4, 6, 5 + 2**8, 5 + 2**32, 2**63, 2**64 - 1])
    def test_a_body_length_that_lies(self, length):
        said = refused(wire.split_header, HEADER.encode(length) + b"12345")
        assert said == f"the body has 5 bytes and the header says {length}"

    @each_case("position", range(4))
    @each_case("change", [1, 0x20, 0x80, 0xFF])
    def test_another_magic(self, position, change):
        data = bytearray(HEADER.encode(0))
        data[position] ^= change
        assert refused(wire.split_header, data) == "not a securecomp message"

    @each_case("version", [0, 2, 3, 128, 255])
    def test_another_version(self, version):
        data = bytearray(HEADER.encode(0))
        data[4] = version
        assert refused(wire.split_header, data) == (
            f"message version {version}; this software reads version 1"
        )

    def name(self, first, second):
        """A message with these bytes where the names are."""
        data = HEADER.encode(0)
        return data[:FIXED] + first + second + bytes(8)

    @each_case(
        "bad",
        [
            b"\0",
            bytes([101]) + b"a" * 101,
            bytes([200]) + b"a" * 200,
            b"\xff" + b"a" * 255,
        ],
    )
    def test_names_that_are_empty_or_too_long(self, bad):
        want = "a party's name is missing, too long or cut off"
        assert refused(wire.split_header, self.name(bad, b"\1b")) == want
        assert refused(wire.split_header, self.name(b"\1a", bad)) == want

    @each_case("length", [20, 99, 100])
    def test_a_name_that_is_longer_than_the_message(self, length):
        want = "a party's name is missing, too long or cut off"
        data = HEADER.encode(0)[:FIXED]
        assert refused(wire.split_header, data + bytes([length]) + b"abc") == want
        assert refused(wire.split_header, data + b"\1a" + bytes([length]) + b"abc") == want

    def test_the_longest_name(self):
        header, _, _ = wire.split_header(self.name(b"\x64" + b"a" * 100, b"\x64" + b"b" * 100))
        assert (header.sender, header.recipient) == ("a" * 100, "b" * 100)

    @each_case(
        "bad",
        [
            b"\x80",
            b"\xff",
            b"a\xc3",
            b"\xe6\x9d",
            b"\xc0\x80",
            b"\xed\xa0\x80",
            b"\xf4\x90\x80\x80",
            b"\xf8\x88\x80\x80\x80",
        ],
    )
    def test_names_that_are_not_utf8(self, bad):
        bad = bytes([len(bad)]) + bad
        want = "a party's name is not UTF-8"
        assert refused(wire.split_header, self.name(bad, b"\1b")) == want
        assert refused(wire.split_header, self.name(b"\1a", bad)) == want

    @each_case("bad", [b"\x1b[2J", b"a\nb", b" a", b"a\0", "a\u202e".encode()])
    def test_names_that_no_party_can_have(self, bad):
        bad = bytes([len(bad)]) + bad
        assert "name" in refused(wire.split_header, self.name(bad, b"\1b"))
        assert "name" in refused(wire.split_header, self.name(b"\1a", bad))

    @each_case("side", ["sender", "recipient"])
    def test_names_that_cannot_be_sent(self, side):
        for name, why in (
            ("", "a party's name is empty"),
            ("a" * 101, "must have 1 to 100 bytes; shorten it"),
            ("é" * 51, "must have 1 to 100 bytes; shorten it"),
        ):
            with pytest.raises(ParameterError, match=why):
                replace(HEADER, **{side: name}).encode(0)

    @each_case(
        "part, value",
        [
            *(("session", bytes(n)) for n in (0, 15, 17)),
            *(("agreement", bytes(n)) for n in (0, 31, 33)),
            *(("kind", n) for n in (-1, 256)),
            *(("round", n) for n in (-1, 2**32)),
        ],
    )
    def test_parts_that_do_not_fit(self, part, value):
        with pytest.raises(ParameterError, match=f"the header's {part} does not fit its place"):
            replace(HEADER, **{part: value}).encode(0)


class TestNames:
    @each_case("name", ["a", "a" * 100, "é" * 50, "server 1", "Zürich", "東京 2", "'"])
    def test_a_name_that_can_stand(self, name):
        assert wire.check_name(name) == name

    @each_case("name", ["a" * 101, "é" * 51, "東" * 34])
    def test_too_long(self, name):
        with pytest.raises(ParameterError) as caught:
            wire.check_name(name)
        assert str(caught.value) == (
            f"the name {name[:20]!r}... must have 1 to 100 bytes; shorten it"
        )

    @each_case("name", [None, 3, b"north", ["north"]])
    def test_not_text(self, name):
        with pytest.raises(ParameterError) as caught:
            wire.check_name(name)
        assert str(caught.value) == f"a party's name is text, not {name!r}"

    def test_empty(self):
        with pytest.raises(ParameterError, match="a party's name is empty"):
            wire.check_name("")

    @each_case(
        "name", ["a\n", "\t", " a", "a ", "a\0b", "\x1b[2J", "a\u202eb", "\u00a0a", "a\u2028"]
    )
    def test_not_printable(self, name):
        with pytest.raises(ParameterError) as caught:
            wire.check_name(name)
        assert str(caught.value) == (
            f"the name {name!r} must be printable, without spaces around it"
        )

    @each_case("name", ["Zu\u0308rich", "e\u0301", "\u212bngstro\u0308m", "\u1100\u1161"])
    def test_another_form_of_a_name_is_no_name(self, name):
        with pytest.raises(ParameterError) as caught:
            wire.check_name(name)
        assert str(caught.value) == (
            f"the name {name!r} is not in Unicode's composed form (NFC), and another one could "
            "look the same; rename it"
        )
        composed = unicodedata.normalize("NFC", name)
        assert wire.check_name(composed) == composed
        with pytest.raises(DecodeError, match="not one that a party can have"):
            wire.split_header(replace(HEADER, sender=name).encode(0))

    def test_a_file_name_that_is_not_utf8(self):
        with pytest.raises(ParameterError, match="name"):
            wire.check_name(b"m\xfcnchen".decode("utf-8", "surrogateescape"))


class TestBody:
    @each_case("size", range(20))
    def test_facts(self, size):
        message = Facts("n" * size, b"d", size)
        body = wire.encode_body(message)
        assert body.dtype == np.uint8
        (length,) = struct.unpack_from("<I", body)
        facts = bytes(body[4 : 4 + length])
        assert msgspec.msgpack.decode(facts) == ["n" * size, b"d", size]
        assert len(body) == -(-(4 + length) // 8) * 8
        assert not body[4 + length :].any()
        for kind in (bytes, bytearray, memoryview):
            again, payload = wire.decode_body(kind(body.data), Facts)
            assert again == message
            assert type(again) is Facts
            assert len(payload) == 0

    def test_no_byte_of_the_padding_is_left_over_from_before(self):
        """A buffer that was used before is not all zero."""
        size = 1 << 19
        for fill in range(8):
            old = wire.encode_body(Either(b"\xff" * (size + fill)))
            old[:] = 0xFF
            del old
            body = wire.encode_body(Either(b"x" * (size + fill)))
            (length,) = struct.unpack_from("<I", body)
            assert not body[4 + length :].any()
            assert wire.decode_body(body.data, Either)[0].share == b"x" * (size + fill)

    @each_case("bits", range(1, 65))
    def test_a_vector_is_the_bit_string(self, bits, random_residues):
        for length in (0, 1, 2, 63, 64, 65, 129):
            values = random_residues(f"{bits}", length) % np.uint64(min(P, 1 << bits))
            body = body_of(values, bits)
            message, payload = wire.decode_body(body, Carrying)
            assert message.vector == wire.Vector(bits, length)
            assert bytes(payload) == bit_string(values, bits)
            assert len(payload) == wire.packed_size(length, bits)
            got = wire.unpack(message.vector, payload, length, bits)
            assert got.dtype == (np.uint32 if bits == 32 else np.uint64)
            assert got.tolist() == values.tolist()

    @each_case("bits", [1, 32, 61, 64])
    @each_case("length", [wire.BLOCK + d for d in (-1, 0, 1)] + [2 * wire.BLOCK + 65])
    def test_long_vectors_come_in_blocks(self, bits, length, random_residues):
        values = random_residues("long", length) & np.uint64(2 ** min(bits, 60) - 1)
        asked = []
        block = np.empty(wire.BLOCK, np.uint64)

        def give(start, stop):
            asked.append((start, stop))
            block[: stop - start] = values[start:stop]
            return block[: stop - start]

        body = wire.encode_body(Carrying(wire.Vector(bits, length)), length, give, bits)
        starts = range(0, length, wire.BLOCK)
        assert asked == [(s, min(s + wire.BLOCK, length)) for s in starts]
        message, payload = wire.decode_body(body.data, Carrying)
        assert bytes(payload) == bit_string(values, bits)
        assert np.array_equal(wire.unpack(message.vector, payload, length, bits), values)

    @each_case("length", [0, 1, 2, 63, 64, 65, wire.BLOCK + 3])
    @each_case("bits", [7, 20, 32])
    def test_a_vector_of_32_bit_words(self, bits, length, random_residues):
        values = (random_residues("lanes", length) % np.uint64(1 << bits)).astype(np.uint32)
        message = Carrying(wire.Vector(bits, length))
        body = wire.encode_body(message, length, source(values), bits)
        _, payload = wire.decode_body(body.data, Carrying)
        assert bytes(payload) == bit_string(values, bits)
        assert wire.unpack(message.vector, payload, length, bits).tolist() == values.tolist()

    def test_contents_do_not_show(self):
        """A message may hold shares and seeds."""
        for message in (Facts("name", b"secret", 7), Either(b"secret")):
            for text in (repr(message), str(message), f"{message}"):
                assert text == f"{type(message).__name__}(...)"

    def test_packed_size(self):
        for length in (0, 1, 2, 63, 64, 65, 1000):
            for bits in (1, 7, 32, 60, 61, 64):
                assert wire.packed_size(length, bits) == len(bit_string([0] * length, bits))

    def test_a_message_without_its_vector(self):
        message, payload = wire.decode_body(bytes(wire.encode_body(Either(b"seed"))), Either)
        assert message == Either(b"seed")
        assert len(payload) == 0


def refused_body(data, kind):
    said = refused(wire.decode_body, bytes(data), kind)
    assert said.startswith(f"{kind.__name__}: ")
    return said.removeprefix(f"{kind.__name__}: ")


def with_facts(value, length=None):
    """A body whose MessagePack is any value, or any bytes."""
    facts = value if isinstance(value, bytes) else msgspec.msgpack.encode(value)
    head = struct.pack("<I", len(facts) if length is None else length) + facts
    return head + bytes(-len(head) % 8)


class TestMalformedBodies:
    def test_every_cut_before_the_payload(self):
        body = body_of([1, 2, 3])
        first = len(body) - wire.packed_size(3, 61)
        for size in range(first):
            assert refused_body(body[:size], Carrying) == "the body is cut off or malformed"
        assert wire.decode_body(body[:first], Carrying)[1] == b""

    def test_every_byte_of_the_padding(self):
        for name in range(8):
            body = bytearray(wire.encode_body(Facts("n" * name, b"", 1)))
            (length,) = struct.unpack_from("<I", body)
            for position in range(4 + length, len(body)):
                for bit in range(8):
                    body[position] = 1 << bit
                    assert refused_body(body, Facts) == "the body is cut off or malformed"
                body[position] = 0
            wire.decode_body(bytes(body), Facts)

    @each_case(
        "length", [0, 2**16, wire.MAX_FACTS_BYTES, wire.MAX_FACTS_BYTES + 1, 2**31, 2**32 - 1]
    )
    def test_a_length_of_the_facts_that_lies(self, length):
        body = with_facts(["n", b"d", 1], length)
        assert refused_body(body, Facts) == "the body is cut off or malformed"

    def test_every_length_of_the_facts_but_the_right_one(self):
        facts = msgspec.msgpack.encode(["name", b"data", 1000])
        for length in range(60):
            body = with_facts(facts, length) + bytes(64)
            if length == len(facts):
                assert wire.decode_body(body, Facts)[0] == Facts("name", b"data", 1000)
            else:
                refused_body(body, Facts)

    def test_the_longest_facts(self, monkeypatch):
        assert wire.MAX_FACTS_BYTES <= 1 << 30
        monkeypatch.setattr(wire, "MAX_FACTS_BYTES", 1000)
        message = Either(b"x" * 996)
        body = bytes(wire.encode_body(message))
        assert struct.unpack_from("<I", body) == (1000,)
        assert wire.decode_body(body, Either)[0] == message
        body = bytes(wire.encode_body(Either(b"x" * 997)))
        assert refused_body(body, Either) == "the body is cut off or malformed"

    @each_case(
        "facts",
        [
            [],
            ["n"],
            ["n", b"d"],
            ["n", b"d", 1, 2],
            ["n", b"d", 1, None],
            ["n", b"d", 1, ["n", b"d", 1]],
            {"name": "n", "data": b"d", "count": 1},
            {},
            [b"n", b"d", 1],
            ["n", "d", 1],
            ["n", b"d", "1"],
            ["n", b"d", 1.5],
            ["n", b"d", True],
            ["n", b"d", None],
            [None, b"d", 1],
            ["n", [1], 1],
            [["n"], b"d", 1],
            None,
            0,
            "text",
            b"\xc4\x01\x00",
            [["n", b"d", 1]],
        ],
    )
    def test_other_fields_than_declared(self, facts):
        refused_body(with_facts(facts), Facts)

    @each_case(
        "facts",
        [
            [[]],
            [[61]],
            [[61, 3, 0]],
            [["61", 3]],
            [[61, -0.5]],
            [[61, None]],
            [{"bits": 61, "length": 3}],
            [b"seed"],
            [61],
        ],
    )
    def test_another_vector_than_declared(self, facts):
        refused_body(with_facts(facts), Carrying)

    @each_case(
        "facts",
        [
            b"\xc1",
            b"\x93",
            b"\x93\xa1n\xc4\x01d",
            b"\x93\xa1n\xc4\xffd\x01",
            b"\x93\xa1n\xc6\xff\xff\xff\xffd\x01",
            b"\x93\xa5n\xc4\x01d\x01",
            b"\x93\xdb\xff\xff\xff\xffn",
            b"\x93\xa1\xff\xc4\x01d\x01",
            b"\x93\xa2\xed\xa0\xc4\x01d\x01",
            b"\xdd\xff\xff\xff\xff",
            b"\xdc\xff\xff",
            b"\xdf\xff\xff\xff\xff",
            b"\x93\xa1n\xc4\x01d\xcf\xff\xff\xff",
            b"\x93\xa1n\xc9\xff\xff\xff\xff\x01d",
            b"\x93\xa1n\xc7\x04\xff\x00\x00\x00\x00\x01",
            b"\x93\xa1n\xd6\xff\x00\x00\x00\x00\x01",
            b"\x91" * 5000,
            b"\xdd\x00\x00\x00\x01" * 5000,
            b"\x93\xa1n\xc4\x01d" + b"\x91" * 100000 + b"\x01",
            b"\x81\xa1a" * 5000,
        ],
    )
    def test_msgpack_that_is_not_well_formed(self, facts):
        refused_body(with_facts(facts), Facts)

    @each_case("extra", [b"\xc0", b"\0", b"\x93\xa1n\xc4\x01d\x01"])
    def test_trailing_bytes_in_the_facts(self, extra):
        facts = msgspec.msgpack.encode(["n", b"d", 1]) + extra
        assert "trailing" in refused_body(with_facts(facts), Facts)

    def test_numbers_as_large_as_they_come(self):
        for count in (2**64 - 1, -(2**63), 0):
            assert wire.decode_body(with_facts(["n", b"d", count]), Facts)[0].count == count


class TestUnpack:
    VALUES: ClassVar = [0, 1, P - 1, 5, P // 2]

    def payload(self, values=None, bits=61):
        return memoryview(bit_string(self.VALUES if values is None else values, bits))

    @each_case("offset", range(9))
    def test_at_any_alignment(self, offset):
        payload = memoryview(bytes(offset) + bytes(self.payload()))[offset:]
        assert wire.unpack(wire.Vector(61, 5), payload, 5).tolist() == self.VALUES

    def test_the_result_is_new_and_the_payload_untouched(self):
        payload = bytearray(self.payload())
        before = bytes(payload)
        got = wire.unpack(wire.Vector(61, 5), memoryview(payload), 5)
        got[:] = 0
        assert bytes(payload) == before

    @each_case("length", [0, 4, 6, 2**32, 2**63, -1])
    def test_another_length_than_agreed(self, length):
        for payload in (self.payload(), memoryview(b"")):
            said = refused(wire.unpack, wire.Vector(61, length), payload, 5)
            assert said == f"the vector has {length} elements and 5 were agreed"

    @each_case("bits", [0, 1, 60, 62, 64, 2**40, -61])
    def test_another_width_than_agreed(self, bits):
        said = refused(wire.unpack, wire.Vector(bits, 5), self.payload(), 5)
        assert said == "the vector is not packed in 61 bits an element"
        said = refused(wire.unpack, wire.Vector(61, 5), self.payload(), 5, 7)
        assert said == "the vector is not packed in 7 bits an element"

    @each_case("size", [*range(40), *range(41, 57), 400])
    def test_another_payload_than_its_length(self, size):
        payload = memoryview((bytes(self.payload()) + bytes(400))[:size])
        said = refused(wire.unpack, wire.Vector(61, 5), payload, 5)
        assert said == "the vector is not packed in 61 bits an element"

    def test_no_vector_at_all(self):
        assert wire.unpack(wire.Vector(61, 0), memoryview(b""), 0).tolist() == []
        said = refused(wire.unpack, wire.Vector(61, 0), memoryview(bytes(8)), 0)
        assert said == "the vector is not packed in 61 bits an element"

    def test_a_declared_length_allocates_nothing(self, monkeypatch):
        monkeypatch.setattr(wire.buffers, "residues", None)
        for payload in (b"", bytes(8), bytes(800)):
            refused(wire.unpack, wire.Vector(61, 2**40), memoryview(payload), 2**40)

    @each_case("bits", [1, 3, 7, 32, 33, 60, 61, 63])
    @each_case("length", [1, 3, 5, 63, 65])
    def test_every_bit_of_the_padding(self, bits, length):
        payload = bytearray(wire.packed_size(length, bits))
        vector = wire.Vector(bits, length)
        assert not wire.unpack(vector, memoryview(payload), length, bits).any()
        for bit in range(length * bits, len(payload) * 8):
            payload[bit // 8] = 1 << bit % 8
            said = refused(wire.unpack, vector, memoryview(payload), length, bits)
            assert said == "the vector's padding is not zero"
            payload[bit // 8] = 0

    @each_case("length", [1, 2, 63, 64, 65, 128, 200])
    def test_the_modulus_at_any_position(self, length):
        values = [P - 1] * length
        for position in range(length):
            values[position] = P
            said = refused(wire.unpack, wire.Vector(61, length), self.payload(values), length)
            assert said == "the vector has a residue that is not below the modulus"
            values[position] = P - 1
        got = wire.unpack(wire.Vector(61, length), self.payload(values), length)
        assert field.check(got).tolist() == values

    def test_other_widths_take_all_ones(self):
        for bits in (1, 32, 60, 64):
            values = [2**bits - 1] * 66
            got = wire.unpack(wire.Vector(bits, 66), self.payload(values, bits), 66, bits)
            assert got.tolist() == values


class TestAddPacked:
    @each_case(
        "length",
        [0, 1, 63, 64, 65, 1000, *(wire.BLOCK + d for d in (-1, 0, 1)), 2 * wire.BLOCK + 7],
    )
    @each_case("offset", [0, 3])
    def test_is_the_sum(self, length, offset, random_residues):
        start, values = random_residues("acc", length), random_residues("packed", length)
        payload = memoryview(bytes(offset) + bit_string(values, 61))[offset:]
        acc = start.copy()
        assert wire.add_packed(wire.Vector(61, length), payload, acc) is None
        assert np.array_equal(acc, field.add(start, values))
        assert np.array_equal(wire.unpack(wire.Vector(61, length), payload, length), values)

    @each_case(
        "position", [0, 1, 63, 64, *(wire.BLOCK + d for d in (-1, 0, 1)), 2 * wire.BLOCK, -1]
    )
    def test_a_refused_vector_changes_nothing(self, position, random_residues):
        length = 2 * wire.BLOCK + 7
        start, values = random_residues("acc", length), random_residues("packed", length).copy()
        values[position] = P
        acc = start.copy()
        payload = memoryview(bit_string(values, 61))
        said = refused(wire.add_packed, wire.Vector(61, length), payload, acc)
        assert said == "the vector has a residue that is not below the modulus"
        assert np.array_equal(acc, start)

    @each_case(
        "vector, payload, said",
        [
            (wire.Vector(61, 4), bytes(40), "the vector has 4 elements and 5 were agreed"),
            (wire.Vector(61, 6), bytes(48), "the vector has 6 elements and 5 were agreed"),
            (wire.Vector(60, 5), bytes(40), "the vector is not packed in 61 bits an element"),
            (wire.Vector(61, 5), bytes(32), "the vector is not packed in 61 bits an element"),
            (wire.Vector(61, 5), bytes(48), "the vector is not packed in 61 bits an element"),
            (wire.Vector(61, 5), bytes(41), "the vector is not packed in 61 bits an element"),
            (wire.Vector(61, 5), b"\1" * 40, "the vector's padding is not zero"),
        ],
    )
    def test_what_unpack_refuses(self, vector, payload, said):
        acc = np.arange(5, dtype=np.uint64)
        assert refused(wire.add_packed, vector, memoryview(payload), acc) == said
        assert refused(wire.unpack, vector, memoryview(payload), 5) == said
        assert acc.tolist() == [0, 1, 2, 3, 4]


def subclasses(kind):
    for sub in kind.__subclasses__():
        yield sub
        yield from subclasses(sub)


def test_every_kind_is_one_message():
    for module in pkgutil.walk_packages(securecomp.__path__, "securecomp."):
        with contextlib.suppress(BackendUnavailableError):  # no message is in an extra's adapter
            importlib.import_module(module.name)
    kinds = [k for k in subclasses(wire.Message) if k.__module__.startswith("securecomp.")]
    assert {k.__repr__ for k in kinds} == {wire.Message.__repr__}
    assert len(kinds) >= 2
    assert len({k.KIND for k in kinds}) == len(kinds)
    for kind in kinds:
        assert 0 <= kind.KIND <= 255
        assert kind.__struct_config__.frozen
        assert kind.__struct_config__.array_like
        assert kind.__struct_config__.forbid_unknown_fields
