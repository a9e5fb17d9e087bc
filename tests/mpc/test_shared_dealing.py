"""Correlations: what they are, that seeds alone make them, and that none is used twice."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from cases import each_case
from mpc.computers import NAMES, Listener, P, carrier, computation, opened_messages, said, units
from replaying import Replay

from securecomp.core import field, prg
from securecomp.errors import LocalProtocolError, ParameterError
from securecomp.mpc import correlated_randomness
from securecomp.mpc.computation import Computation
from securecomp.mpc.correlated_randomness import Correlations
from securecomp.mpc.dealer_parties import DEALER, Dealer
from securecomp.mpc.roles import Seed, ShareMessage
from securecomp.mpc.selection import argmax, sort
from securecomp.protocol import wire
from securecomp.protocol.journal import FileJournal, MemoryJournal
from securecomp.protocol.local_carrier import LocalCarrier

COUNTS = [0, 1, 63, 64, 65, 130]
PARTIES = [2, 3, 4]
SHAPES = {
    "triple": [(n,) for n in COUNTS],
    "square": [(n,) for n in COUNTS],
    "matrix": [(2, 3, 4), (1, 1, 1), (3, 0, 2), (0, 2, 1), (5, 70, 3)],
    "mask": [(n,) for n in COUNTS],
    "cut": [(n, by) for n in (0, 1, 64, 65) for by in (1, 2, 30, 58)],
    "gates": [(n,) for n in COUNTS],
    "fork": [(n,) for n in COUNTS],
    "bits": [(n,) for n in COUNTS],
}


def parts_of(count, seed="dealing"):
    source = Replay(seed)
    return [
        Correlations(correlated_randomness.seed_keys(source(32), b"session")) for _ in range(count)
    ]


def dealt(count, kind, shape, serial=7, seed="dealing"):
    """Every party's vectors, the last one's corrected, in Python ints."""
    parts = parts_of(count, seed)
    vectors = [correlated_randomness.expand(part, serial, kind, shape) for part in parts]
    made = correlated_randomness.corrections(parts, serial, kind, shape)
    for place, corrected in zip(correlated_randomness.CORRECTED[kind], made, strict=True):
        vectors[-1][place] = corrected
    return [[v.tolist() for v in of_one] for of_one in vectors]


def added(vectors, place):
    return [sum(column) % P for column in zip(*(v[place] for v in vectors), strict=True)]


def joined(vectors, place):
    columns = zip(*(v[place] for v in vectors), strict=True)
    return [list(itertools.accumulate(c, lambda a, b: a ^ b))[-1] for c in columns]


def bit(words, i):
    return words[i // 64] >> (i % 64) & 1


@each_case("count", PARTIES)
@each_case("kind", SHAPES)
def test_correlations_are_right(kind, count):
    for shape in SHAPES[kind]:
        vectors = dealt(count, kind, shape)
        numbers = range(len(correlated_randomness.sizes(kind, shape)[0]))
        assert all(v < P for of_one in vectors for place in numbers for v in of_one[place])
        if kind == "triple":
            a, b, c = (added(vectors, i) for i in range(3))
            assert c == [x * y % P for x, y in zip(a, b, strict=True)]
        elif kind == "square":
            a, c = (added(vectors, i) for i in range(2))
            assert c == [x * x % P for x in a]
        elif kind == "matrix":
            m, k, n = shape
            a, b, c = (added(vectors, i) for i in range(3))
            assert c == [sum(a[i * k + j] * b[j * n + z] for j in range(k)) % P
                         for i in range(m) for z in range(n)]  # fmt: skip
        elif kind == "gates":
            x, y, z = (joined(vectors, i) for i in range(3))
            assert z == [u & v for u, v in zip(x, y, strict=True)]
        elif kind == "fork":
            x, y, z = (joined(vectors, i) for i in range(3))
            assert z == [u & v for u, v in zip(2 * x, y, strict=True)]
        elif kind == "bits":
            b, words = added(vectors, 0), joined(vectors, 1)
            assert b == [bit(words, i) for i in range(shape[0])]
        else:
            r, words = added(vectors, 0), joined(vectors, -1)
            width = -(-shape[0] // 64)
            for i, value in enumerate(r):
                rows = (bit(words[k * width : (k + 1) * width], i) for k in range(61))
                assert sum(b << k for k, b in enumerate(rows)) == value
            by = shape[1] if kind == "cut" else 0
            pairs = [*range(0, by - 1, 2), *range(by, 60, 2)]
            assert len(words) == (61 + len(pairs)) * width == correlated_randomness.ROWS * width
            for place, k in enumerate(pairs):
                low, high, product = (
                    words[row * width : (row + 1) * width] for row in (k, k + 1, 61 + place)
                )
                assert product == [u & v for u, v in zip(low, high, strict=True)]
            if kind == "cut":
                assert added(vectors, 1) == [v >> shape[1] for v in r]


@each_case("kind", SHAPES)
def test_sizes_are_those_of_the_vectors(kind):
    for shape in SHAPES[kind]:
        numbers, words = correlated_randomness.sizes(kind, shape)
        vectors = dealt(2, kind, shape)
        assert [len(v) for v in vectors[0]] == [len(v) for v in vectors[1]] == [*numbers, *words]
        for place in range(len(vectors[0])):
            assert correlated_randomness.is_words(kind, place) == (place >= len(numbers))


@each_case("kind", ["triple", "mask", "gates"])
def test_correlations_of_several_keystream_blocks(kind):
    n = prg.BLOCK_WORDS + 1 if kind != "mask" else 64 * 540
    parts = parts_of(2)
    (made,) = correlated_randomness.corrections(parts, 1, kind, (n,))
    assert made.size == correlated_randomness.sizes(kind, (n,))[kind != "triple"][-1]
    own = correlated_randomness.expand(parts[0], 1, kind, (n,))
    assert len({v.tobytes() for v in own}) == len(own)
    blocks = own[-1][: prg.BLOCK_WORDS], own[-1][prg.BLOCK_WORDS :]
    assert blocks[1][0] != blocks[0][0]


def test_all_parts_but_the_last_come_from_their_seeds_alone():
    for kind, shapes in SHAPES.items():
        for seed in ("one", "two"):
            source = Replay("fixed")
            fixed = [
                Correlations(correlated_randomness.seed_keys(source(32), b"session"))
                for _ in range(2)
            ]
            other = [*fixed, *parts_of(1, seed)]
            vectors = [correlated_randomness.expand(part, 3, kind, shapes[-1]) for part in other]
            before = [v.copy() for of_one in vectors[:2] for v in of_one]
            correlated_randomness.corrections(other, 3, kind, shapes[-1])
            after = [
                v for part in fixed for v in correlated_randomness.expand(part, 3, kind, shapes[-1])
            ]
            assert [v.tolist() for v in before] == [v.tolist() for v in after]


def test_keys_of_parts_are_bound_to_all_that_they_are_for():
    part, size = parts_of(1)[0], 4
    drawn = [part.residues(s, i, size) for s in (1, 2, 12) for i in (0, 1, 2)]
    drawn += [part.words(s, i, size) & np.uint64(P) for s in (1, 2, 12) for i in (0, 1, 2)]
    drawn.append(parts_of(2)[1].residues(1, 0, size))
    drawn.append(
        Correlations(correlated_randomness.seed_keys(Replay("dealing")(32), b"other")).residues(
            1, 0, size
        )
    )
    numbers = [v for vector in drawn for v in vector.tolist()]
    assert len(set(numbers)) == len(numbers)


def program(run):
    """Something of every kind."""
    x = run.share("north", [1.5, -2, 0.25], bound=4, bits=3)
    y = run.share("south", [0.5, 1, -3], bound=4, bits=3)
    z = x * y + x.square().truncate(3) * 8
    (x.reshape(3, 1) @ y.reshape(1, 3)).sum().reveal()
    (z > y).reveal()
    (x == y).reveal()
    argmax(sort(x)).reveal()
    return z


@pytest.mark.parametrize("parties", PARTIES)
def test_a_number_is_never_used_twice(parties, monkeypatch):
    numbers, keys = [], []
    expand, derive = correlated_randomness.expand, prg.derive

    def spy(part, serial, kind, shape, waiting=()):
        numbers.append((part._key, serial, kind, shape))
        return expand(part, serial, kind, shape, waiting)

    def spy_key(secret, purpose, *context, **more):
        key = derive(secret, purpose, *context, **more)
        if purpose in ("residues", "words"):
            keys.append(key)
        return key

    monkeypatch.setattr(correlated_randomness, "expand", spy)
    monkeypatch.setattr(prg, "derive", spy_key)
    run = computation(parties)
    program(run)
    # A party expands its part once, and of each vector a key is drawn twice: by its party, and by
    # the dealer for the last one's correction.
    assert len(set(numbers)) == len(numbers)
    assert all(keys.count(key) == 2 for key in keys)
    uses = {number[:2] for number in numbers}
    assert len(uses) == len(set(numbers))  # no serial for two kinds or shapes
    assert {kind for _, _, kind, _ in numbers} == set(correlated_randomness.CORRECTED)


@each_case("parties", PARTIES)
def test_the_dealer_sends_a_seed_to_each_and_corrections_to_the_last(parties):
    run = computation(parties)
    program(run)
    names = run.engine.names
    got = {name: [] for name in names}
    for _, sender, recipient, kind, body in opened_messages(run):
        assert recipient != DEALER  # which hears nothing
        if sender == DEALER:
            got[recipient].append((kind, body))
    for name in names:
        kind, body = got[name][0]
        assert kind == Seed.KIND
        assert len(wire.decode_body(body, Seed)[0].seed) == 32
        assert (len(got[name]) == 1) == (name != names[-1])
    assert {kind for kind, _ in got[names[-1]][1:]} == {ShareMessage.KIND}
    seeds = [wire.decode_body(got[name][0][1], Seed)[0].seed for name in names]
    assert len(set(seeds)) == parties
    assert seeds == run.engine.run.dealer.seeds


def test_parties_have_what_the_dealers_messages_say():
    run = computation(3)
    program(run)
    session = run.engine.run.parties[0]._computing.id
    seeds = [wire.decode_body(body, Seed)[0].seed for _, s, _, k, body in opened_messages(run)
             if s == DEALER and k == Seed.KIND]  # fmt: skip
    start = len(carrier(run).record)
    found = run.engine.run.correlation("triple", (5,))
    serial = run.engine.run._serial
    for seed, vectors in zip(seeds, found, strict=True):
        want = correlated_randomness.expand(
            Correlations(correlated_randomness.seed_keys(seed, session)), serial, "triple", (5,)
        )
        assert [v.tolist() for v in vectors[:2]] == [v.tolist() for v in want[:2]]
    ((_, _, recipient, _, body),) = opened_messages(run)[start:]
    assert recipient == "east"
    assert said(body) == (found[-1][2].tolist(), field.BITS)


def test_fresh_sessions_have_other_correlations():
    listener = Listener(Replay("fresh"))
    seen = []
    for _ in range(3):
        run = Computation(NAMES[:2], listener)
        seen += [v for part in run.engine.run.correlation("triple", (4,)) for v in part[0].tolist()]
    assert len(set(seen)) == len(seen) == 24


@pytest.mark.parametrize("kind", [MemoryJournal, FileJournal])
def test_a_journal_refuses_a_session_twice(kind, tmp_path):
    made = {n: kind(*([tmp_path / n] if kind is FileJournal else [])) for n in NAMES[:3]}
    run = computation(3, journal=made.__getitem__)
    assert units(program(run))
    listener = Listener(Replay("computers"))  # draws the same session once more
    with pytest.raises(LocalProtocolError, match=r"computing .* as north: was done before"):
        Computation(NAMES[:3], listener, journal=made.__getitem__)
    assert not listener.record
    Computation(NAMES[:3], Listener(Replay("another")), journal=made.__getitem__)


def test_every_party_has_its_own_mark(tmp_path):
    one = MemoryJournal()
    computation(3, journal=lambda _: one)


def test_nothing_shows_a_secret():
    run = computation(3)
    x = run.share("north", [987654321], bound=10**9)
    lockstep = run.engine.run
    dealer, parties = lockstep.dealer, lockstep.parties
    secrets = [*dealer.seeds, *(p._part._key for p in parties), *(p._key for p in dealer._parts)]
    texts = [v.hex() for v in secrets] + [repr(v) for v in secrets]
    texts += [str(int(s[0])) for s in x.value] + ["987654321"]
    things = [run, x, run.engine, lockstep, dealer, *parties, *dealer._parts]
    things += [Seed(secrets[0]), ShareMessage(wire.Vector(61, 1)), parties[0]._computing]
    for thing in things:
        for shown in (repr(thing), str(thing)):
            assert not any(text in shown for text in texts)
    assert repr(dealer._parts[0]) == "Correlations(...)"
    assert repr(run) == "Computation(north, south, east)"


def test_roles_are_neither_copied_nor_pickled():
    lockstep = computation(2).engine.run
    for role in (lockstep.dealer, *lockstep.parties):
        for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="holds secrets and cannot be copied"):
                duplicate(role)


def test_aborted_roles_have_no_secrets():
    lockstep = computation(2).engine.run
    for role in (lockstep.dealer, *lockstep.parties):
        role.abort()
        with pytest.raises(LocalProtocolError, match="is not allowed when aborted"):
            role.say(["north"], 1, wire.encode_body(Seed(bytes(32))), Seed.KIND)
        with pytest.raises(LocalProtocolError, match="is not allowed when aborted"):
            role.hear(b"", "north", 1, Seed)
    assert lockstep.dealer.seeds == lockstep.dealer._parts == []
    with pytest.raises(ParameterError, match="the dealer's seed is not here"):
        lockstep.parties[0].correlation(1, "triple", (1,))


def test_a_dealer_needs_no_data():
    run = Computation(NAMES[:2], LocalCarrier())
    assert isinstance(run.engine.run.dealer, Dealer)
    assert not any(isinstance(v, np.ndarray) for v in vars(run.engine.run.dealer).values())
