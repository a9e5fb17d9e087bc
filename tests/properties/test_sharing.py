"""Laws of sharing: round trips, linearity, exact sums, and agreements that never coincide."""

import hashlib

import msgspec
import numpy as np
from cases import examples
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sharing.cast import Cast, stream

from securecomp.core import field
from securecomp.errors import KeyMismatchError
from securecomp.protocol.session import Layout, Session
from securecomp.sharing import reconstruct, split

P = field.MODULUS
SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5)
EDGES = st.sampled_from([0, 1, 2, P // 2, P // 2 + 1, P - 2, P - 1])
RESIDUES = st.one_of(EDGES, st.integers(0, P - 1))
PARTIES = st.integers(2, 10)
SEEDS = st.integers(0, 2**32)
CONSTANTS = st.one_of(EDGES, EDGES.map(lambda v: -v), st.integers(-(2**130), 2**130))


def arrays(shape, elements=RESIDUES, dtype=np.uint64):
    return hnp.arrays(dtype, shape, elements=elements)


def shared(values, parties, seed):
    return split(values, parties, entropy=stream(seed))


@given(SHAPES.flatmap(arrays), PARTIES, SEEDS)
def test_reconstruct_undoes_split(values, parties, seed):
    total = reconstruct(shared(values, parties, seed))
    assert total.shape == values.shape
    assert total.tolist() == values.tolist()


@given(st.data(), hnp.integer_dtypes(endianness="?"), SHAPES, PARTIES)
def test_every_integer_type_round_trips(data, dtype, shape, parties):
    top = min(int(np.iinfo(dtype).max), P - 1)
    values = data.draw(arrays(shape, st.integers(0, top), dtype))
    assert reconstruct(shared(values, parties, 1)).tolist() == values.tolist()


@given(st.data(), SHAPES, PARTIES, CONSTANTS, CONSTANTS, CONSTANTS)
def test_shares_are_linear(data, shape, parties, u, v, w):
    a, b = data.draw(arrays(shape)), data.draw(arrays(shape))
    pairs = zip(shared(a, parties, 1), shared(b, parties, 2), strict=True)
    total = reconstruct([u * x - y * v + w for x, y in pairs])
    exact = u * a.astype(object) - b.astype(object) * v + w
    assert total.tolist() == (exact % P).tolist()


@given(st.data(), hnp.mutually_broadcastable_shapes(num_shapes=2, min_dims=1, max_dims=3))
def test_public_arrays_broadcast_as_in_numpy(data, shapes):
    left, right = shapes.input_shapes
    a = data.draw(arrays(left))
    c = data.draw(arrays(right, st.integers(-(2**63), 2**63 - 1), np.int64))
    shares = shared(a, 3, 5)
    exact_a, exact_c = a.astype(object), c.astype(object)
    for result, want in (
        ([s + c for s in shares], exact_a + exact_c),
        ([c - s for s in shares], exact_c - exact_a),
        ([c * s for s in shares], exact_a * exact_c),
    ):
        total = reconstruct(result)
        assert total.shape == shapes.result_shape
        assert total.tolist() == (want % P).tolist()


@given(SHAPES.flatmap(arrays), PARTIES, SEEDS)
def test_no_share_is_the_secret_or_another_share(values, parties, seed):
    shares = [s.residues for s in shared(values, parties, seed)]
    # A coincidence of two residues has probability 2^-61.
    for i, one in enumerate(shares):
        assert not (one == values).any()
        assert not any((one == other).any() for other in shares[:i])


@examples(40)
@given(st.data())
def test_the_private_sum_is_the_sum(data):
    hospitals = [f"hospital {i}" for i in range(data.draw(st.integers(2, 5)))]
    servers = data.draw(st.sampled_from(["all", ("s", "t"), ("s", "t", "u", hospitals[0])]))
    receivers = data.draw(st.sampled_from([None, ("registry",), (hospitals[1], "s")]))
    bound = data.draw(st.sampled_from([0, 1, 10**6, field.LIMIT // len(hospitals)]))
    length = data.draw(st.integers(0, 70))
    cast = Cast(hospitals, servers, receivers, length=length, bound=bound)
    element = st.one_of(st.sampled_from([-bound, bound]), st.integers(-bound, bound))
    values = {n: data.draw(arrays(length, element, np.int64)) for n in hospitals}
    deals = cast.deals(values)
    order = data.draw(st.permutations(hospitals))
    partials = cast.partials({name: deals[name] for name in order})
    for name in cast.receivers:
        receiver = cast.receiver(name)
        for server in data.draw(st.permutations(cast.servers)):
            receiver.receive(partials[server][name])
        assert receiver.result().tolist() == (cast.total(values) if length else [])


# Short names over few letters: what is written without a border would soon coincide.
NAMES = st.text("ab,é", min_size=1, max_size=3)


def key(name, salt):
    drawn = bytearray(hashlib.sha512(f"{salt}/{name}".encode()).digest())
    for last in (31, 63):
        drawn[last] &= 0x7F  # as the encoding of a key has it
    return bytes(drawn)


@st.composite
def sessions(draw):
    """Sessions that could be real: everyone has a key of his own, and the sum fits."""
    people = [
        tuple(draw(st.lists(NAMES, min_size=least, max_size=3, unique=True))) for least in (2, 2, 1)
    ]
    salt = draw(st.integers(0, 2))
    length = draw(st.integers(0, 3))
    return Session(
        protocol="sharing/sum/1",
        id=draw(st.sampled_from([bytes(16), bytes(15) + b"a", b"a" * 16])),
        round=draw(st.integers(0, 2)),
        contributors=people[0],
        servers=people[1],
        receivers=people[2],
        keys={name: key(name, salt) for name in sorted({*people[0], *people[1], *people[2]})},
        layout=Layout(
            length,
            draw(st.integers(0, 20)),
            draw(st.sampled_from([(), tuple("abc"[:length]), tuple("bca"[:length])])),
        ),
        limit=draw(st.integers(60, 80)),
    )


@given(sessions(), sessions())
def test_different_sessions_have_different_agreements(one, two):
    assert (one.agreement == two.agreement) == (one == two)


@given(sessions(), sessions(), st.sampled_from(["id", "round", "layout", "limit"]))
def test_a_change_of_one_fact_changes_the_agreement(session, other, fact):
    changed = msgspec.structs.replace(session, **{fact: getattr(other, fact)})
    same = getattr(other, fact) == getattr(session, fact)
    assert (changed.agreement == session.agreement) == same


@given(sessions(), st.data())
def test_one_changed_bit_of_one_key_changes_the_agreement(session, data):
    name = data.draw(st.sampled_from(sorted(session.keys)))
    bit = 1 << data.draw(st.integers(0, 511))
    other = (int.from_bytes(session.keys[name]) ^ bit).to_bytes(64)
    try:
        changed = msgspec.structs.replace(session, keys=session.keys | {name: other}).checked()
    except KeyMismatchError:  # the first key's top bit, which X25519 would ignore
        assert bit == 1 << 8 * 32 + 7
        return
    assert changed.agreement != session.agreement


@given(st.lists(NAMES, min_size=6, max_size=8, unique=True), st.data())
def test_moving_a_border_between_lists_changes_the_agreement(names, data):
    agreements = {}
    for _ in range(3):
        first = data.draw(st.integers(2, len(names) - 3))
        second = data.draw(st.integers(first + 2, len(names) - 1))
        people = tuple(names[:first]), tuple(names[first:second]), tuple(names[second:])
        keys = {name: key(name, 0) for name in sorted(names)}
        session = Session("sharing/sum/1", bytes(16), 0, *people, keys, Layout(1, 1), 60)
        agreements[first, second] = session.agreement
    assert len(set(agreements.values())) == len(agreements)
