"""Keys and keystreams against a second implementation, with rejections that are forced."""

import hashlib
import hmac
import itertools
import json

import numpy as np
import pytest
from cases import each_case
from core.prg_reference import (
    BLOCK,
    VECTORS,
    P,
    derive,
    hkdf,
    info_string,
    lanes,
    residues,
    vectors,
    words,
)

from securecomp.core import prg
from securecomp.errors import ParameterError

ONES = 2**64 - 1
KEY, OTHER = hashlib.sha256(b"a key").digest(), hashlib.sha256(b"another").digest()
FILE = json.loads(VECTORS.read_text(encoding="utf-8"))


class Forced:
    """AES-GCM with some keystream words replaced: no key is known that meets a rejection."""

    words = ()

    def __init__(self, key):
        self._real = Forced.real(key)

    def encrypt_into(self, nonce, data, associated_data, out):
        written = self._real.encrypt_into(nonce, data, associated_data, out)
        attempt, index = int.from_bytes(nonce[:4], "big"), int.from_bytes(nonce[4:], "big")
        for at, block, position, word in Forced.words:
            if (at, block) == (attempt, index) and position < len(data) // 8:
                out[8 * position : 8 * position + 8] = word.to_bytes(8, "little")
        return written


@pytest.fixture
def force(monkeypatch):
    """`force(words)` makes every keystream have these words, (attempt, block, position, word)."""
    monkeypatch.setattr(Forced, "real", prg.AESGCM, raising=False)
    monkeypatch.setattr(prg, "AESGCM", Forced)

    def install(words):
        monkeypatch.setattr(Forced, "words", tuple(words))

    return install


def test_the_layout_is_what_is_written_down():
    assert prg.BLOCK_WORDS == BLOCK == 32768
    assert prg.SEED_BYTES == 32


class TestReference:
    def test_hkdf_is_that_of_the_rfc(self):
        """RFC 5869, appendix A, cases 1 and 3."""
        secret = b"\x0b" * 22
        assert hkdf(secret, bytes(range(13)), bytes(range(0xF0, 0xFA)), 42).hex() == (
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"
        )
        assert hkdf(secret, b"", b"", 42).hex() == (
            "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"
        )

    def test_the_file_is_what_the_reference_writes(self):
        assert {name: FILE[name] for name in FILE if name != "note"} == vectors()


class TestDerive:
    @each_case("case", FILE["derive"])
    def test_the_published_keys(self, case):
        read = {"integer": int, "text": str, "bytes": bytes.fromhex}
        context = [read[kind](v) for part in case["context"] for kind, v in part.items()]
        secret, salt = bytes.fromhex(case["secret"]), bytes.fromhex(case["salt"])
        assert prg.derive(secret, case["purpose"], *context, salt=salt).hex() == case["key"]

    def test_by_hand(self):
        """One key with nothing but `hmac`, byte by byte."""
        info = (
            b"\0\0\0\x0dbsecurecomp/1"
            b"\0\0\0\x06smasks"
            b"\0\0\0\x09i\0\0\0\0\0\0\1\2"
            b"\0\0\0\x03bxy"
            b"\0\0\0\x03s\xc3\xa9"
        )
        extracted = hmac.digest(b"salt", KEY, "sha256")
        want = hmac.digest(extracted, info + b"\1", "sha256")
        assert prg.derive(KEY, "masks", 258, b"xy", "é", salt=b"salt") == want

    def test_no_two_contexts_give_one_key(self):
        parts = ["", "a", "b", "ab", "aa", b"", b"a", b"b", b"ab", 0, 1, 97, "0", "1", b"i", "i"]
        parts += [b"\0" * 8, b"\0" * 7 + b"\1", "a\0\0\0\1s", b"a\0\0\0\2sb", 256]
        contexts = [c for n in (0, 1, 2) for c in itertools.product(parts, repeat=n)]
        contexts += [("a", "b", "ab"), ("a", "ba", "b"), ("ab", "a", "b"), (b"a", b"b", b"ab")]
        inputs = [("p", *c) for c in contexts] + [("", *c) for c in contexts] + [("pa",), ("pab",)]
        keys = {prg.derive(KEY, *given) for given in inputs}
        assert len(keys) == len(inputs)
        infos = {prg.join(*given) for given in inputs}
        assert len(infos) == len(inputs)
        assert prg.join("p", "a", 1, b"x") == info_string("p", "a", 1, b"x")

    def test_every_argument_counts(self):
        base = prg.derive(KEY, "purpose", "context", 1, salt=b"salt")
        assert base == prg.derive(bytearray(KEY), "purpose", "context", 1, salt=b"salt")
        others = [
            prg.derive(OTHER, "purpose", "context", 1, salt=b"salt"),
            prg.derive(KEY, "purposf", "context", 1, salt=b"salt"),
            prg.derive(KEY, "purpose", "context", 2, salt=b"salt"),
            prg.derive(KEY, "purpose", 1, "context", salt=b"salt"),
            prg.derive(KEY, "purpose", "context", 1, salt=b"salu"),
            prg.derive(KEY, "purpose", "context", 1),
        ]
        assert base not in others
        assert len(set(others)) == len(others)

    @each_case("size", [0, 1, 15])
    def test_a_secret_that_is_too_short(self, size):
        with pytest.raises(ParameterError) as caught:
            prg.derive(bytes(size), "purpose")
        assert str(caught.value) == "derive: the secret must have at least 16 bytes"

    def test_the_shortest_secret(self):
        assert prg.derive(bytes(16), "purpose") == derive(bytes(16), "purpose")

    @each_case("number", [-1, 2**64])
    def test_an_integer_that_does_not_fit(self, number):
        with pytest.raises(ParameterError, match="derive"):
            prg.derive(KEY, "purpose", number)


class TestExpand:
    @each_case("case", FILE["expand"])
    def test_the_published_residues(self, case):
        got = prg.expand(bytes.fromhex(case["key"]), case["size"])
        assert got.dtype == np.uint64
        assert got.shape == (case["size"],)
        assert {i: f"{int(got[int(i)]):016x}" for i in case["residues"]} == case["residues"]
        assert hashlib.sha256(got.astype("<u8").tobytes()).hexdigest() == case["sha256"]

    @each_case("size", [0, 1, 3, 64, 1000, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
    def test_is_the_reference(self, size):
        assert prg.expand(KEY, size).tolist() == residues(KEY, size)

    def test_a_shorter_vector_is_a_prefix(self):
        longest = prg.expand(KEY, 2 * BLOCK + 5)
        for size in (1, 2, 100, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK):
            assert np.array_equal(prg.expand(KEY, size), longest[:size])

    def test_blocks_differ(self):
        blocks = prg.expand(KEY, 3 * BLOCK).reshape(3, BLOCK)
        assert len({block.tobytes() for block in blocks}) == 3

    @each_case("index", [0, 1, 255, 256, 2**32, 2**40 + 5, 2**64 - 1])
    def test_the_index_fills_eight_bytes(self, index):
        block = np.zeros(3, np.uint64)
        prg.Masks([KEY]).add_to(block, index)
        assert block.tolist() == [word & P for word in words(KEY, 3, index)]

    @each_case("size", [16, 24])
    def test_a_key_that_is_too_short(self, size):
        with pytest.raises(ParameterError, match="32 bytes"):
            prg.expand(bytes(size), 1)


class TestAccumulate:
    @each_case("size", [0, 1, 5, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 7])
    @each_case("sign", [1, -1])
    def test_several_keys(self, size, sign, random_residues):
        start = random_residues("acc", size)
        acc = start.copy()
        assert prg.accumulate(acc, [KEY, OTHER, KEY], sign) is None
        masks = 2 * np.array(residues(KEY, size), object) + np.array(residues(OTHER, size), object)
        assert acc.tolist() == ((start.astype(object) + sign * masks) % P).tolist()

    def test_no_keys(self, random_residues):
        acc = random_residues("acc", 10)
        before = acc.tolist()
        acc = acc.copy()
        prg.accumulate(acc, [])
        assert acc.tolist() == before

    def test_both_signs_cancel(self, random_residues):
        start = random_residues("acc", BLOCK + 3)
        acc = start.copy()
        prg.accumulate(acc, [KEY, OTHER])
        assert (acc != start).mean() > 0.99
        prg.accumulate(acc, iter([OTHER, KEY]), -1)
        assert np.array_equal(acc, start)

    def test_block_by_block_in_any_order(self):
        want = prg.expand(KEY, 2 * BLOCK + 9)
        acc = np.zeros(2 * BLOCK + 9, np.uint64)
        masks = prg.Masks([KEY])
        for index in (2, 0, 1):
            masks.add_to(acc[index * BLOCK : (index + 1) * BLOCK], index)
        assert np.array_equal(acc, want)
        for index in (1, 2, 0):
            masks.subtract_from(acc[index * BLOCK : (index + 1) * BLOCK], index)
        assert not acc.any()

    def test_a_block_that_is_too_long(self):
        for masks in (prg.Masks([KEY]).add_to, prg.Masks([KEY]).subtract_from):
            block = np.zeros(BLOCK + 1, np.uint64)
            with pytest.raises(ParameterError, match="block"):
                masks(block, 0)
            assert not block.any()

    def test_secrets_do_not_show(self):
        masks = prg.Masks([KEY, OTHER])
        assert repr(masks) == str(masks) == "Masks(2 secret keys)"


ROWS = {
    "first": [(0, 0, 0, P)],
    "top bits set": [(0, 0, 0, ONES), (0, 0, 1, P + 2**61), (0, 0, 2, P + 2**63)],
    "several in a row": [(0, 0, 3, P), (1, 0, 3, P), (2, 0, 3, ONES), (3, 0, 3, P)],
    "different lengths": [
        *((a, 0, position, ONES) for position in range(8) for a in range(position)),
    ],
    "only a later attempt": [(1, 0, 2, P), (2, 0, 4, ONES)],
    "neighbours": [(0, 0, i, P) for i in range(16)],
    "zero in the end": [(0, 0, 1, P), (1, 0, 1, 0), (0, 0, 2, P), (1, 0, 2, P - 1)],
    "end of a block": [(0, 0, BLOCK - 1, P), (1, 0, BLOCK - 1, ONES)],
    "start of a block": [(0, 1, 0, P), (1, 1, 0, P), (0, 0, 0, ONES)],
    "both sides of a border": [(0, 0, BLOCK - 1, P), (0, 1, 0, ONES), (1, 1, 0, P)],
    "end of the vector": [(0, 1, 19, P), (1, 1, 19, ONES)],
    "beyond the vector": [(0, 1, 20, P), (0, 2, 0, P)],
    "left over from a longer block": [(0, 0, 3, P), (1, 0, BLOCK - 5, P), (0, 1, 0, P)],
    "every block": [(0, i, BLOCK - 1 if i < 1 else 5, P) for i in range(2)],
}


class TestRejection:
    @pytest.mark.parametrize("forced", ROWS.values(), ids=ROWS)
    @pytest.mark.parametrize("sign", [1, -1])
    def test_is_the_reference(self, forced, sign, force, random_residues):
        size = BLOCK + 20
        start = random_residues("acc", size)
        plain = np.array(residues(KEY, size), object)
        want = np.array(residues(KEY, size, forced), object)
        hit = {b * BLOCK + p for a, b, p, _ in forced if a == 0 and b * BLOCK + p < size}
        assert {int(i) for i in np.flatnonzero(plain != want)} == hit
        force(forced)
        acc = start.copy()
        prg.accumulate(acc, [KEY], sign)
        assert acc.tolist() == ((start.astype(object) + sign * want) % P).tolist()

    @pytest.mark.parametrize("sign", [1, -1])
    def test_several_keys(self, sign, force, random_residues):
        forced = ROWS["different lengths"]
        force(forced)
        start = random_residues("acc", 40)
        acc = start.copy()
        prg.accumulate(acc, [KEY, OTHER], sign)
        masks = [np.array(residues(key, 40, forced), object) for key in (KEY, OTHER)]
        assert acc.tolist() == ((start.astype(object) + sign * sum(masks)) % P).tolist()

    def test_more_attempts_than_fit_a_byte(self, force):
        forced = [(attempt, 0, 1, P) for attempt in range(300)]
        force(forced)
        got = prg.expand(KEY, 3).tolist()
        assert got == residues(KEY, 3, forced)
        assert got[0] == residues(KEY, 1)[0]

    @pytest.mark.parametrize("forced", ROWS.values(), ids=ROWS)
    def test_both_sides_draw_the_same(self, forced, force):
        force(forced)
        acc = np.zeros(BLOCK + 20, np.uint64)
        prg.accumulate(acc, [KEY], -1)
        prg.accumulate(acc, [KEY])
        assert not acc.any()
        for size in (1, 4, 20, BLOCK - 1, BLOCK, BLOCK + 1):
            assert np.array_equal(prg.expand(KEY, size), prg.expand(KEY, BLOCK + 20)[:size])

    @pytest.mark.parametrize("forced", [(), *ROWS.values()], ids=["none", *ROWS])
    def test_a_difference_is_of_two_vectors(self, forced, force):
        force(forced)
        size = BLOCK + 20
        got, difference = np.empty(size, np.uint64), prg.Difference(KEY, OTHER)
        for index in (1, 0):
            difference.fill(got[index * BLOCK :][:BLOCK], index)
        want = prg.expand(KEY, size)
        prg.accumulate(want, [OTHER], -1)
        assert np.array_equal(got, want)

    def test_nearly_a_rejection(self, force):
        """Words beside the one that is refused are taken at once."""
        force([(0, 0, 0, P - 1), (0, 0, 1, 2**61), (0, 0, 2, ONES - 1), (0, 0, 3, 0)])
        assert prg.expand(KEY, 4).tolist() == [P - 1, 0, P - 1, 0]

    @pytest.mark.parametrize("case", FILE["reject"], ids=lambda c: str(c["size"]))
    def test_the_published_residues(self, case, force):
        force([(a, block, at, int(word, 16)) for a, block, at, word in case["forced"]])
        got = prg.expand(bytes.fromhex(case["key"]), case["size"])
        assert {i: f"{int(got[int(i)]):016x}" for i in case["residues"]} == case["residues"]
        assert hashlib.sha256(got.astype("<u8").tobytes()).hexdigest() == case["sha256"]


@each_case("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 20])
def test_words_are_the_keystreams(size):
    want = [w for i in range(3) for w in prg.Uniform(KEY).words(BLOCK, i).tolist()]
    assert prg.expand_words(KEY, size).tolist() == want[:size]


class TestRing:
    @each_case("dtype", [np.uint32, np.uint64])
    @each_case("index", [0, 1, 300])
    @each_case("size", [0, 1, 2, 3, 7, 8, 1001, BLOCK])
    def test_some_added_and_some_subtracted(self, dtype, index, size, replay):
        width = np.dtype(dtype).itemsize * 8
        start = np.frombuffer(replay("ring")(size * width // 8), dtype)
        drawn = {key: np.array(lanes(key, size, width, index), object) for key in (KEY, OTHER)}
        block = start.copy()
        assert prg.RingMasks([KEY, KEY], [OTHER]).apply(block, index) is None
        assert block.dtype == dtype
        want = (start.astype(object) + 2 * drawn[KEY] - drawn[OTHER]) % 2**width
        assert block.tolist() == want.tolist()
        prg.RingMasks([OTHER], [KEY, KEY]).apply(block, index)
        assert np.array_equal(block, start)

    @each_case("dtype", [np.uint32, np.uint64])
    def test_a_block_that_is_too_long(self, dtype):
        block = np.zeros(BLOCK + 1, dtype)
        with pytest.raises(ParameterError, match=f"a block has at most {BLOCK} elements"):
            prg.RingMasks([KEY], []).apply(block, 0)
        assert not block.any()

    def test_all_ones_are_a_word_like_any_other(self, force):
        force([(0, 0, 0, ONES)])
        block = np.zeros(2, np.uint64)
        prg.RingMasks([KEY], []).apply(block, 0)
        assert int(block[0]) == ONES

    def test_secrets_do_not_show(self):
        assert repr(prg.RingMasks([KEY], [OTHER, KEY])) == "RingMasks(3 secret keys)"
