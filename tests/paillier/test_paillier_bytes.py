"""Encrypted vectors as bytes: nothing is read that was not written."""

import contextlib
import struct
import tracemalloc

import gmpy2
import numpy as np
import pytest
from cases import each_case, examples
from hypothesis import given
from hypothesis import strategies as st
from paillier import textbook
from sharing.cast import flipped

from securecomp.errors import DecodeError, KeyMismatchError, RangeError, SecureCompError
from securecomp.paillier import EncryptedVector, Packing, decrypt, encoding, encrypt, interop

VALUES = [(-1) ** i * (1000 - i) for i in range(60)]


@pytest.fixture(scope="module")
def vector(public, replay):
    return encrypt(public, VALUES, bound=1000, additions=100, entropy=replay("bytes"))


@pytest.fixture(scope="module")
def data(vector):
    return encoding.encode_vector(vector, 100)


def head(key, bound=1000, additions=100, slot=None, slots=None, length=60, weight=1, scale=100):
    """The bytes before the ciphertexts, as the format says."""
    plan = Packing.plan(key, 1000, 100)
    slot = plan.slot if slot is None else slot
    slots = plan.slots if slots is None else slots

    def number(value):
        raw = value if isinstance(value, bytes) else value.to_bytes(-(-value.bit_length() // 8))
        return struct.pack(">H", len(raw)) + raw

    sizes = struct.pack(">QIIQQ", additions, slot, slots, length, weight)
    return b"SCPV\x01" + key.id + number(bound) + sizes + number(scale)


class TestFormat:
    def test_what_is_written(self, public, vector, data):
        size = 128
        body = b"".join(int(c).to_bytes(size) for c in vector.ciphertexts)
        assert data == head(public) + body
        assert len(body) == 3 * size

    @each_case(
        "values, bound, additions, scale",
        [
            ([], 0, 1, 1),
            ([0], 0, 1, 1),
            ([5, -5], 5, 2**64 - 1, 10**22),
            (VALUES, 2**200, 7, 1),
            (VALUES, 2**508 - 1, 1, 2**500),
            (VALUES * 9, 1000, 1024, 100),
        ],
    )
    def test_round_trip(self, private, public, values, bound, additions, scale):
        first = encrypt(public, values, bound=bound, additions=additions)
        for vector in (first, first * 0, first * additions):
            read, read_scale = encoding.decode_vector(encoding.encode_vector(vector, scale), public)
            assert read_scale == scale
            for name in EncryptedVector.__slots__:
                assert getattr(read, name) == getattr(vector, name)
            assert decrypt(private, read).tolist() == decrypt(private, vector).tolist()

    def test_one_slot_vectors(self, private, public):
        plan = interop.one_slot(public)
        vector = encrypt(public, [7, -9], bound=plan.bound)
        wide = EncryptedVector(public, Packing(9, 100, 300, 1), 2, 1, vector.ciphertexts)
        for one in (vector, wide):
            read, _ = encoding.decode_vector(encoding.encode_vector(one), public)
            assert read.packing == one.packing
            assert decrypt(private, read).tolist() == [7, -9]

    def test_without_a_scale_it_is_1(self, public, vector):
        assert encoding.decode_vector(encoding.encode_vector(vector), public)[1] == 1

    def test_any_buffer_is_read(self, public, data):
        for buffer in (bytearray(data), memoryview(data)):
            assert encoding.decode_vector(buffer, public)[1] == 100

    def test_more_additions_than_the_format_has_room_for(self, public):
        with pytest.raises(SecureCompError):
            encoding.encode_vector(encrypt(public, [1], bound=1, additions=2**64))


class TestRefusals:
    def test_every_truncation(self, public, data):
        for size in range(len(data)):
            with pytest.raises(DecodeError, match=r"cut off$|ciphertexts take \d+ bytes, not \d+$"):
                encoding.decode_vector(data[:size], public)

    @each_case("more", [b"\0", b"x" * 128, b"\0" * 384])
    def test_trailing_bytes(self, public, data, more):
        reason = f"^3 ciphertexts take 384 bytes, not {384 + len(more)}$"
        with pytest.raises(DecodeError, match=reason):
            encoding.decode_vector(data + more, public)

    @each_case("version", [0, 2, 255])
    def test_another_version(self, public, data, version):
        """A newer one says so before the rest is looked at, even for another key."""
        other = data[:4] + bytes([version]) + bytes(32)
        reason = f"^version {version}; this software reads version 1$"
        with pytest.raises(DecodeError, match=reason):
            encoding.decode_vector(other, public)

    @each_case("magic", [b"SCMP", b"SCPT", b"PK\3\4", b"\0\0\0\0", b"scpv"])
    def test_another_kind_of_file(self, public, data, magic):
        with pytest.raises(DecodeError, match=r"^not a file of encrypted values$"):
            encoding.decode_vector(magic + data[4:], public)

    def test_another_key(self, public, stranger, data):
        ours, theirs = public.id.hex()[:16], stranger.public.id.hex()[:16]
        reason = f"^encrypted under key {ours}, and this is key {theirs}$"
        with pytest.raises(KeyMismatchError, match=reason):
            encoding.decode_vector(data, stranger.public)

    @each_case(
        "changes, reason",
        [
            ({"additions": 0}, "^the file's numbers are out of range$"),
            (
                {"additions": 0, "weight": 0},
                "^an impossible layout: a bound is at least 0, and at least 1 add",
            ),
            ({"bound": 2**600}, "^an impossible layout: a slot of .* bits does not fit a key of"),
            ({"bound": 2000}, "^the file's layout is not the one that its bound and additions"),
            ({"additions": 200}, "^the file's layout is not the one that its bound and additions"),
            ({"slot": 21}, "^the file's layout is not the one that its bound and additions give$"),
            ({"slots": 1, "slot": 18}, "^the file's layout is not the one that its bound and"),
            ({"slots": 1, "slot": 511}, "^the file's layout is not the one that its bound and"),
            ({"slots": 2}, "^the file's layout is not the one that its bound and additions give$"),
            ({"slots": 0}, "^the file's layout is not the one that its bound and additions give$"),
            ({"weight": 101}, "^the file's numbers are out of range$"),
            ({"weight": 2**64 - 1}, "^the file's numbers are out of range$"),
            ({"scale": 0}, "^the file's numbers are out of range$"),
            ({"length": 2**32 + 1}, "^the file's numbers are out of range$"),
            ({"length": 2**64 - 1}, "^the file's numbers are out of range$"),
            ({"length": 2**32}, r"^165191050 ciphertexts take 21144454400 bytes, not 384$"),
            ({"length": 0}, "^0 ciphertexts take 0 bytes, not 384$"),
            ({"length": 79}, "^4 ciphertexts take 512 bytes, not 384$"),
            ({"bound": b"\x00\x03\xe8"}, "^a number has leading zeros$"),
            ({"scale": b"\x00\x64"}, "^a number has leading zeros$"),
            ({"scale": b"\x00"}, "^a number has leading zeros$"),
        ],
    )
    def test_a_head_that_cannot_be(self, public, data, changes, reason):
        body = data[len(head(public)) :]
        assert data == head(public) + body
        with pytest.raises(DecodeError, match=reason):
            encoding.decode_vector(head(public, **changes) + body, public)

    @each_case("position", [1, 2, 3])
    @each_case("case", ["zero", "n", "p", "n^2", "largest"])
    def test_what_is_no_ciphertext(self, private, data, position, case):
        p, q = textbook.factors(private)
        n = p * q
        bad = {"zero": 0, "n": n, "p": p * 3, "n^2": n * n, "largest": 2**1024 - 1}[case]
        start = len(data) - 384 + 128 * (position - 1)
        forged = data[:start] + bad.to_bytes(128) + data[start + 128 :]
        reason = (
            rf"^ciphertexts: number {position} (is not in \[1, n\^2\)|shares a factor with the "
            r"modulus)$"
        )
        with pytest.raises(DecodeError, match=reason):
            encoding.decode_vector(forged, private.public)

    def test_a_length_of_a_gigabyte_allocates_nothing(self, public, data):
        body = data[len(head(public)) :]
        lies = [
            head(public, length=2**32) + body,
            head(public, length=2**63) + body,
            head(public)[:37] + b"\xff\xff" + body,
        ]
        tracemalloc.start()
        try:
            for lie in lies:
                with pytest.raises(DecodeError):
                    encoding.decode_vector(lie, public)
            assert tracemalloc.get_traced_memory()[1] < 1 << 18
        finally:
            tracemalloc.stop()

    @examples(400)
    @given(draw=st.data())
    def test_mutations(self, private, data, draw):
        """Whatever is changed: an error that is documented, or a vector of this key."""
        mutated = bytearray(data)
        for _ in range(draw.draw(st.integers(1, 4))):
            # The head is where the structure is.
            at = draw.draw(st.integers(0, 120) | st.integers(0, len(mutated) - 1))
            mutated[at] = draw.draw(st.integers(0, 255) | st.sampled_from([0, 1, 127, 255]))
        self.read(private, bytes(mutated))

    @examples(200)
    @given(st.binary(max_size=300))
    def test_noise(self, private, public, noise):
        self.read(private, b"SCPV\x01" + public.id + noise)
        with pytest.raises(DecodeError):
            encoding.decode_vector(noise, public)

    def read(self, private, mutated):
        try:
            read, scale = encoding.decode_vector(mutated, private.public)
        except (DecodeError, KeyMismatchError):
            return
        assert encoding.encode_vector(read, scale) == mutated
        with contextlib.suppress(RangeError):
            assert decrypt(private, read).shape == (read.length,)

    @pytest.mark.slow
    def test_a_million_bits_flipped(self, private, data, random_residues):
        rows = random_residues("flips", 200_000, 2)
        for at, mask in zip(rows[:, 0] % len(data), rows[:, 1] % 255 + 1, strict=True):
            self.read(private, flipped(data, int(at), int(mask)))


def test_joined_ciphertexts(public):
    ciphertexts = [gmpy2.mpz(v) for v in (1, 255, 2**1000 + 1)]
    data = encoding.join_ciphertexts(public, ciphertexts)
    assert data == (1).to_bytes(128) + (255).to_bytes(128) + (2**1000 + 1).to_bytes(128)
    assert encoding.split_ciphertexts(public, data, 3) == ciphertexts
    assert encoding.split_ciphertexts(public, b"", 0) == []
    for count in (2, 4, 0):
        reason = f"^{count} ciphertexts take {count * 128} bytes, not 384$"
        with pytest.raises(DecodeError, match=reason):
            encoding.split_ciphertexts(public, data, count)
    view = encoding.split_ciphertexts(public, memoryview(np.frombuffer(data, np.uint8)), 3)
    assert view == ciphertexts
