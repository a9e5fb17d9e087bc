"""The layer over SEAL: chains are secure, bytes are what they should be or are refused."""

import os
import struct
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from cases import each_case, examples
from hypothesis import given
from hypothesis import strategies as st

from securecomp.ckks.native import moduli as chains
from securecomp.ckks.native.moduli import Chain, choose
from securecomp.ckks.native.security import LARGEST
from securecomp.ckks.seal import seal_context
from securecomp.errors import BackendUnavailableError, DecodeError, ParameterError

pytest.importorskip("tenseal")
pa = pytest.importorskip("pyarrow")

SCALE = 2.0**20
TOP = 3


@pytest.fixture(scope="module")
def context():
    return seal_context.Context(choose(4096, 20, TOP - 1))


@pytest.fixture(scope="module")
def key(context):
    return seal_context.SealSecretKey(context)


@pytest.fixture(scope="module")
def fresh(key):
    return key.encrypt([0.5, -0.25], SCALE)


@pytest.fixture(scope="module")
def full(context, fresh):
    return context.save(context.load(fresh, TOP, SCALE, seeded=True))


@pytest.fixture(scope="module")
def keys(key):
    return key.relinearisation_keys()


def stored(data: bytes) -> bytes:
    """The same message, not compressed."""
    raw = pa.CompressedInputStream(pa.BufferReader(data[16:]), "zstd").read()
    return data[:5] + b"\0\0\0" + struct.pack("<Q", len(raw) + 16) + raw


def compressed(message: bytes) -> bytes:
    body = pa.Codec("zstd").compress(message[16:], asbytes=True)
    return message[:5] + b"\2\0\0" + struct.pack("<Q", len(body) + 16) + body


# Chains


@each_case("ring", [4096, 8192, 16384, 32768])
@each_case("rescalings", [2, 3, 4, 5])
def test_a_chosen_chain_is_secure_and_seal_agrees(ring, rescalings):
    for bits in (24, 27, 30, 40):
        chain = choose(ring, bits, rescalings)
        if chain is None:
            assert bits * (rescalings + 2) + chains.HEADROOM_BITS > LARGEST[ring]
            continue
        assert chain.bits <= LARGEST[ring]
        assert chain.levels == rescalings + 1
        assert all(q % (2 * ring) == 1 for q in (*chain.moduli, chain.special))
        if ring <= 8192:
            assert seal_context.Context(chain).chain == chain


def test_our_limits_are_stricter_than_seals():
    for ring, bits in LARGEST.items():
        theirs = seal_context.backend().CoeffModulus.MaxBitCount(
            ring, seal_context.backend().SEC_LEVEL_TYPE.TC128
        )
        assert bits < theirs


def test_seal_has_the_last_word_on_a_chain():
    moduli = choose(8192, 40, 2).moduli
    unchecked = SimpleNamespace(ring=4096, primes=(*moduli, 12289), special=12289)
    with pytest.raises(ParameterError, match="SEAL refuses"):
        seal_context.Context(unchecked)


def test_insecure_and_unusable_chains_are_refused():
    good = choose(4096, 20, 2)
    with pytest.raises(ParameterError, match="ring of size 2000"):
        Chain(2000, good.moduli, good.special)
    with pytest.raises(ParameterError, match="at least one"):
        Chain(4096, (), good.special)
    with pytest.raises(ParameterError, match="twice"):
        Chain(4096, good.moduli, good.moduli[0])
    with pytest.raises(ParameterError, match="bits"):
        Chain(4096, good.moduli, 12289)
    with pytest.raises(ParameterError, match="bits"):
        Chain(4096, good.moduli, 1 << 4000)
    with pytest.raises(ParameterError, match="insecure"):
        Chain(4096, choose(8192, 35, 2).moduli, good.special)
    with pytest.raises(ParameterError, match="not a prime"):
        Chain(4096, good.moduli, 8192 * 129)
    with pytest.raises(ParameterError, match="not a prime"):
        Chain(4096, good.moduli, (1 << 20) + 1)
    assert choose(4096, 58, 1) is None
    assert choose(32768, 60, 1) is None  # no room for the first prime
    assert choose(32768, 18, 5) is None  # too few primes


# Round trips


def test_what_was_encrypted_comes_back(context, key, fresh, full):
    for data, seeded in ((fresh, True), (full, False)):
        slots = key.decrypt(context.load(data, TOP, SCALE, seeded=seeded))
        assert len(slots) == context.chain.slots
        assert slots[:3] == pytest.approx([0.5, -0.25, 0], abs=5e-3)
    assert len(fresh) < 0.6 * len(full)
    assert np.std(slots[2:]) > 0


def test_bytes_may_come_uncompressed(context, key, fresh):
    slots = key.decrypt(context.load(stored(fresh), TOP, SCALE, seeded=True))
    assert slots[0] == pytest.approx(0.5, abs=5e-3)
    assert context.load(compressed(stored(fresh)), TOP, SCALE, seeded=True).size() == 2


def test_two_encryptions_differ(key):
    assert key.encrypt([1.0], SCALE) != key.encrypt([1.0], SCALE)


def test_a_saved_key_decrypts(context, key, fresh):
    again = seal_context.SealSecretKey.from_bytes(context, key.to_bytes())
    assert again.decrypt(context.load(fresh, TOP, SCALE, seeded=True))[0] == pytest.approx(
        0.5, abs=5e-3
    )
    other = seal_context.SealSecretKey(context).decrypt(
        context.load(fresh, TOP, SCALE, seeded=True)
    )
    assert abs(other[0] - 0.5) > 5e-3


def test_a_server_multiplies_with_public_bytes_only(context, key, fresh, keys):
    server = seal_context.Context(context.chain)
    relinearisation = server.load_relinearisation_keys(keys)
    ciphertext = server.load(fresh, TOP, SCALE, seeded=True)
    square = server.empty()
    server.evaluator.square(ciphertext, square)
    server.evaluator.relinearize_inplace(square, relinearisation)
    server.evaluator.rescale_to_next_inplace(square)
    result = context.load(server.save(square), TOP - 1, square.scale, seeded=False)
    assert key.decrypt(result)[:2] == pytest.approx([0.25, 0.0625], abs=1e-2)


def test_too_many_and_too_large_values_are_refused(context, key):
    with pytest.raises(ParameterError, match="cannot encode"):
        key.encrypt([0.0] * (context.chain.slots + 1), SCALE)
    with pytest.raises(ParameterError, match="cannot encode"):
        key.encrypt([1e30], SCALE)


def test_nothing_shows_a_secret(context, key):
    assert repr(key) == "SealSecretKey(ring=4096)"
    assert repr(context) == "<Context ring=4096 levels=3>"


# Files


def test_without_memory_files_a_private_temporary_file_is_used(monkeypatch, tmp_path, key):
    monkeypatch.delattr(os, "memfd_create", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with seal_context._file(b"content") as path:
        assert os.path.dirname(path) == str(tmp_path)
        assert os.stat(path).st_mode & 0o777 == 0o600
        with open(path, "rb") as stream:
            assert stream.read() == b"content"
    assert key.to_bytes()
    with pytest.raises(KeyError), seal_context._file(b""):
        raise KeyError
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_no_descriptor_stays_open(context, key, fresh):
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        context.load(fresh, TOP, SCALE, seeded=True)
        with pytest.raises(DecodeError):
            context.load(stored(fresh)[:-1], TOP, SCALE, seeded=True)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_missing_backend_is_named(monkeypatch):
    seal_context.backend.cache_clear()
    try:
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, "tenseal", None)
            patch.setitem(sys.modules, "tenseal.sealapi", None)
            with pytest.raises(BackendUnavailableError, match=r"securecomp\[ckks\]"):
                seal_context.backend()
        with monkeypatch.context() as patch:
            patch.setattr(seal_context, "_written_by", lambda _: (3, 7))
            with pytest.raises(BackendUnavailableError, match="SEAL 4"):
                seal_context.backend()
    finally:
        seal_context.backend.cache_clear()


# Hostile bytes


def test_the_level_the_scale_and_the_kind_are_checked(context, key, fresh, full):
    for level, scale, seeded in ((TOP, SCALE * 2, True), (TOP - 1, SCALE, True)):
        with pytest.raises(DecodeError):
            context.load(fresh, level, scale, seeded=seeded)
    with pytest.raises(DecodeError):
        context.load(fresh, TOP, SCALE, seeded=False)
    with pytest.raises(DecodeError):
        context.load(full, TOP, SCALE, seeded=True)
    with pytest.raises(DecodeError):
        context.load(key.to_bytes(), TOP, SCALE, seeded=True)
    with pytest.raises(DecodeError, match="another scale"):
        context.load(fresh, TOP, np.nextafter(SCALE, 0), seeded=True)


def test_other_parameters_are_refused(context, fresh, keys, key):
    other = seal_context.Context(choose(4096, 21, TOP - 1))
    with pytest.raises(DecodeError, match="other parameters"):
        other.load(fresh, TOP, SCALE, seeded=True)
    with pytest.raises(DecodeError, match="other parameters"):
        other.load_relinearisation_keys(keys)
    with pytest.raises(DecodeError, match="other parameters"):
        seal_context.SealSecretKey.from_bytes(other, key.to_bytes())
    larger = seal_context.Context(choose(8192, 20, TOP - 1))
    for load in (larger.load_relinearisation_keys, larger.load_secret_key):
        with pytest.raises(DecodeError):
            load(keys)


@each_case(
    "at, value, why",
    [
        (at, value, "SEAL")
        for at, value in ((0, 0), (2, 8), (3, 3), (4, 99), (6, 1), (8, 1), (15, 1))
    ]
    + [(5, 1, "zstd"), (5, 7, "zstd")],
)
def test_seals_header_is_checked_before_seal_sees_it(context, fresh, at, value, why):
    changed = bytearray(fresh)
    changed[at] = value if changed[at] != value else value + 1
    with pytest.raises(DecodeError, match=why):
        context.load(bytes(changed), TOP, SCALE, seeded=True)


def test_a_bomb_is_refused_before_it_inflates(context, fresh):
    body = pa.Codec("zstd").compress(bytes(1 << 28), asbytes=True)
    assert len(body) < len(fresh)
    bomb = fresh[:8] + struct.pack("<Q", 16 + len(body)) + body
    with pytest.raises(DecodeError, match="inflate"):
        context.load(bomb, TOP, SCALE, seeded=True)
    with pytest.raises(DecodeError, match="inflate"):
        context.load_relinearisation_keys(bomb)
    with pytest.raises(DecodeError, match="bytes"):
        context.load(stored(fresh) * 3, TOP, SCALE, seeded=True)
    short = fresh[:5] + b"\0" + fresh[6:]
    with pytest.raises(DecodeError, match="in place of"):
        context.load(short, TOP, SCALE, seeded=True)


def test_no_member_but_data_can_be_changed(context, fresh, keys, key):
    """Each of the members' bytes is compared; a nested header cannot start a second inflation."""
    message = stored(fresh)
    seed = len(message) - 81
    for at in (*range(16, 16 + 97), *range(seed, seed + 17)):
        changed = bytearray(message)
        changed[at] ^= 1
        with pytest.raises(DecodeError):
            context.load(bytes(changed), TOP, SCALE, seeded=True)
    message = stored(keys)
    for at in range(16, 16 + 48 + 16 + 97):
        changed = bytearray(message)
        changed[at] ^= 1
        with pytest.raises(DecodeError):
            context.load_relinearisation_keys(bytes(changed))
    message = stored(key.to_bytes())
    for at in range(16, 16 + 72):
        changed = bytearray(message)
        changed[at] ^= 1
        with pytest.raises(DecodeError):
            context.load_secret_key(bytes(changed))


def test_a_residue_above_its_modulus_is_refused(context, fresh, keys, key):
    for message, at, load in (
        (fresh, 16 + 97, lambda data: context.load(data, TOP, SCALE, seeded=True)),
        (keys, 16 + 48 + 16 + 97, context.load_relinearisation_keys),
        (key.to_bytes(), 16 + 72, context.load_secret_key),
    ):
        changed = bytearray(stored(message))
        changed[at : at + 8] = b"\xff" * 8
        with pytest.raises(DecodeError, match="SEAL says"):
            load(bytes(changed))


@given(st.data())
@examples(60)
def test_hostile_bytes_raise_decode_errors_only(context, fresh, full, keys, key, data):
    message, load = data.draw(
        st.sampled_from(
            [
                (fresh, lambda b: context.load(b, TOP, SCALE, seeded=True)),
                (full, lambda b: context.load(b, TOP, SCALE, seeded=False)),
                (keys, context.load_relinearisation_keys),
                (key.to_bytes(), context.load_secret_key),
            ]
        )
    )
    if data.draw(st.booleans()):
        message = stored(message)
    changed = bytearray(message)
    kind = data.draw(st.sampled_from(["flip", "cut", "longer", "noise"]))
    if kind == "flip":
        changed[data.draw(st.integers(0, len(changed) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    elif kind == "cut":
        del changed[data.draw(st.integers(0, len(changed) - 1)) :]
    elif kind == "longer":
        changed += data.draw(st.binary(min_size=1, max_size=40))
    else:
        changed = bytearray(data.draw(st.binary(max_size=200)))
    try:
        load(bytes(changed))
    except DecodeError:
        return
    assert kind == "flip"  # within a residue or a seed: what a MAC is for
