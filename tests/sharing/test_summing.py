"""The private sum's roles in honest runs, what a contributor does not send, and false totals."""

import importlib
import pkgutil

import numpy as np
import pytest
from cases import each_case
from sharing.cast import CASTS, Cast, vector, vector_body

import securecomp
from securecomp.core import field, prg
from securecomp.errors import LocalProtocolError, ParameterError, RangeError
from securecomp.protocol import wire
from securecomp.protocol.role import State
from securecomp.protocol.session import Layout
from securecomp.sharing.private_sum import ROUNDS, Deal, PartialSum

P = field.MODULUS
DEAL, PARTIAL = Deal.KIND, PartialSum.KIND


@pytest.fixture
def cast():
    return Cast()


# Honest runs.


@each_case("facts", CASTS.values())
def test_the_total_is_exact_for_every_receiver(facts):
    cast = Cast(**facts)
    values = cast.values()
    partials = cast.partials(cast.deals(values))
    for name in cast.receivers:
        receiver = cast.received(name, partials)
        total = receiver.result()
        assert receiver.state is State.DONE
        assert total.dtype == np.int64
        assert total.shape == (cast.layout.length,)
        assert total.tolist() == (cast.total(values) if cast.layout.length else [])


@each_case("length", [prg.BLOCK_WORDS, prg.BLOCK_WORDS + 1, 3 * prg.BLOCK_WORDS + 77])
@each_case("servers", ["all", ("one", "two")])
def test_long_vectors(length, servers):
    bound = field.LIMIT // 3
    cast = Cast(servers=servers, length=length, bound=bound)
    ramp = np.arange(length, dtype=np.int64)
    values = {"north": ramp, "south": np.full(length, bound), "east": -bound + ramp}
    partials = cast.partials(cast.deals(values))
    assert np.array_equal(cast.received("east", partials).result(), 2 * ramp)


@each_case("sign", [1, -1])
def test_the_largest_total_of_the_field(sign):
    cast = Cast(("north", "south"), length=2, bound=field.LIMIT // 2)
    values = {name: np.full(2, sign * (field.LIMIT // 2)) for name in cast.contributors}
    partials = cast.partials(cast.deals(values))
    assert cast.received("north", partials).result().tolist() == [sign * 2 * (field.LIMIT // 2)] * 2


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint8, np.int32, np.uint64, ">i4", bool, object, list, tuple]
)
def test_every_integer_type_is_taken(cast, dtype):
    bits = [1, 0, 0, 1]
    given = dtype(bits) if dtype in (list, tuple) else np.array(bits, dtype)
    values = dict.fromkeys(cast.contributors, given)
    deals = {name: cast.contributor(name).contribute(v) for name, v in values.items()}
    assert cast.received("south", cast.partials(deals)).result().tolist() == [3, 0, 0, 3]


def test_a_view_of_an_array_is_taken(cast):
    table = np.arange(40).reshape(4, 10)
    values = {"north": table[:, 3], "south": table[::-1, 0], "east": table[0, 9:1:-2]}
    partials = cast.partials(cast.deals(values))
    assert cast.received("south", partials).result().tolist() == [
        sum(map(int, column)) for column in zip(*values.values(), strict=True)
    ]


def test_messages_may_come_in_any_order(cast):
    values = cast.values()
    deals = cast.deals(values)
    partials = cast.partials(dict(reversed(deals.items())))
    receiver = cast.received("south", dict(reversed(partials.items())))
    assert receiver.result().tolist() == cast.total(values)


def test_who_gets_which_message(cast):
    contributor = cast.contributor("north")
    assert tuple(sorted(contributor.contribute([1, 2, 3, 4]))) == tuple(sorted(cast.servers))
    partials = cast.partials(cast.deals())
    for messages in partials.values():
        assert tuple(messages) == cast.receivers


def test_the_protocol_has_two_rounds_and_two_kinds_of_message():
    assert ROUNDS == 2
    assert (DEAL, PARTIAL) == (1, 2)


def test_no_two_messages_of_the_package_have_one_kind():
    for module in pkgutil.walk_packages(securecomp.__path__, "securecomp."):
        if module.name.startswith(("securecomp.sharing", "securecomp.secagg")):
            importlib.import_module(module.name)
    todo, kinds = [wire.Message], []
    while todo:
        message = todo.pop()
        todo += message.__subclasses__()
        if message.__module__.startswith("securecomp.") and hasattr(message, "KIND"):
            kinds.append(message.KIND)
    assert {DEAL, PARTIAL} < set(kinds)
    assert len(set(kinds)) == len(kinds)
    assert all(0 < kind < 256 for kind in kinds)


def test_a_later_round_of_the_session():
    cast = Cast()
    later = cast.session.next(Layout(6, 50))
    values = {name: np.arange(6) for name in cast.contributors}
    deals = cast.deals(values, later)
    partials = cast.partials(deals, later)
    receiver = cast.receiver("east", later)
    for messages in partials.values():
        receiver.receive(messages["east"])
    assert receiver.result().tolist() == [0, 3, 6, 9, 12, 15]


# What a contributor refuses, and that it can go on.


@pytest.mark.parametrize(
    ("values", "error", "reason"),
    [
        ([1, 2, 3], ParameterError, r"north: the vector has shape \(3,\) and \(4,\) was agreed"),
        ([1, 2, 3, 4, 5], ParameterError, r"shape \(5,\) and \(4,\) was agreed"),
        ([[1, 2], [3, 4]], ParameterError, r"shape \(2, 2\) and \(4,\) was agreed"),
        ([[1, 2, 3, 4]], ParameterError, r"shape \(1, 4\) and \(4,\) was agreed"),
        (5, ParameterError, r"shape \(\) and \(4,\) was agreed"),
        ([], ParameterError, r"shape \(0,\) and \(4,\) was agreed"),
        ([1.0, 2, 3, 4], ParameterError, "north: expected integers, got float64"),
        (["1", "2", "3", "4"], ParameterError, "north: expected integers, got <U1"),
        ([1, 2, 3, None], ParameterError, "north: expected integers, got object"),
        ([1, 2, 3, 1001], RangeError, "north: a value is beyond the bound 1000"),
        ([-1001, 2, 3, 4], RangeError, "north: a value is beyond the bound 1000"),
        ([0, 0, 0, 2**70], RangeError, "north: a value is beyond the bound 1000"),
        ([0, 0, 0, -(2**63)], RangeError, "north: a value is beyond the bound 1000"),
        (np.array([0, 0, 0, 2**64 - 1], np.uint64), RangeError, "beyond the bound 1000"),
    ],
)
def test_what_a_contributor_does_not_send(cast, values, error, reason):
    contributor = cast.contributor("north")
    with pytest.raises(error, match=reason) as raised:
        contributor.contribute(values)
    assert "1001" not in str(raised.value)
    assert contributor.state is State.READY
    honest = cast.values()
    deals = {n: cast.contributor(n).contribute(honest[n]) for n in ("south", "east")}
    deals["north"] = contributor.contribute(honest["north"])
    partials = cast.partials(deals)
    assert cast.received("south", partials).result().tolist() == cast.total(honest)


def test_a_ragged_vector(cast):
    with pytest.raises(ParameterError, match="north"):
        cast.contributor("north").contribute([[1], [2, 3], 4, 5])


@each_case("where", [0, prg.BLOCK_WORDS - 1, prg.BLOCK_WORDS, prg.BLOCK_WORDS + 4])
def test_a_value_beyond_the_bound_anywhere_in_the_vector(where):
    cast = Cast(length=prg.BLOCK_WORDS + 5)
    values = np.zeros(prg.BLOCK_WORDS + 5, np.int64)
    values[where] = 1001
    contributor = cast.contributor("north")
    with pytest.raises(RangeError, match="north: a value is beyond the bound 1000"):
        contributor.contribute(values)
    values[where] = -1000
    assert len(contributor.contribute(values)) == 3


def test_contributing_twice_is_refused(cast):
    contributor = cast.contributor("north")
    contributor.contribute([1, 2, 3, 4])
    with pytest.raises(LocalProtocolError, match=r"contribute\(\) is not allowed when done"):
        contributor.contribute([1, 2, 3, 4])


def test_nothing_is_drawn_twice(cast):
    """Two contributions of one vector: no seed, salt or ciphertext occurs twice."""
    deals = [cast.contributor("north").contribute([0, 0, 0, 0]) for _ in range(2)]
    seeds = [
        cast.open(messages[s], s, Deal)[0].share for messages in deals for s in ("two", "three")
    ]
    assert len(set(seeds)) == 4
    assert all(len(seed) == prg.SEED_BYTES for seed in seeds)
    salts = [bytes(m)[-80:-48] for messages in deals for m in messages.values()]
    assert len(set(salts)) == 6


def test_a_contributor_asks_the_entropy_for_seeds_a_mark_and_salts_only(cast):
    asked = []
    entropy = cast.entropy
    cast.entropy = lambda size: asked.append(size) or entropy(size)
    cast.contributor("north").contribute([1, 2, 3, 4])
    assert asked == [32, 32, 16, 32, 32, 32]  # two seeds, the dealing's mark, three salts


# Totals that no honest run gives.


def cheated(cast, added):
    """Partials of a run in which one server adds something to its sum."""
    values = cast.values()
    partials = cast.partials(cast.deals(values))
    message, payload = cast.open(partials["two"]["south"], "south", PartialSum)
    length = cast.layout.length
    residues = wire.unpack(message.total, payload, length).tolist()
    moved = [(r + a) % P for r, a in zip(residues, added, strict=True)]
    partials["two"]["south"] = cast.seal(
        PARTIAL, "two", "south", vector_body(PartialSum(message.dealings, vector(length)), moved)
    )
    return [t + a for t, a in zip(cast.total(values), added, strict=True)], partials


@pytest.mark.parametrize("sign", [1, -1])
def test_the_total_may_reach_what_the_bounds_allow_and_no_more(cast, sign):
    total = cast.total(cast.values())
    reach = [0, 0, 0, sign * 3000 - total[3]]
    want, partials = cheated(cast, reach)
    assert cast.received("south", partials).result().tolist() == want
    assert want[3] == sign * 3000

    beyond = [0, 0, 0, reach[3] + sign]
    receiver = cast.received("south", cheated(cast, beyond)[1])
    with pytest.raises(RangeError, match="the total is beyond what the agreed bounds allow"):
        receiver.result()
    assert receiver.state is State.ABORTED
    assert receiver._total is None
    for event in (receiver.result, lambda: receiver.receive(b"")):
        with pytest.raises(LocalProtocolError, match="is not allowed when aborted"):
            event()


@pytest.mark.parametrize("added", [(P // 2, 0, 0, 0), (0, 0, P // 2 + 1, 0), (P - 1, -1, 4000, 7)])
def test_a_total_far_beyond_the_bounds(cast, added):
    with pytest.raises(RangeError, match="additive sharing cannot say which"):
        cast.received("south", cheated(cast, added)[1]).result()


@each_case("where", [0, 1, prg.BLOCK_WORDS, prg.BLOCK_WORDS + 4])
@each_case("sign", [1, -1])
def test_one_element_beyond_the_bounds_anywhere(where, sign):
    cast = Cast(length=prg.BLOCK_WORDS + 5)
    added = np.zeros(prg.BLOCK_WORDS + 5, int)
    added[where] = sign * 3000 - cast.total(cast.values())[where]
    want, partials = cheated(cast, added.tolist())
    assert cast.received("south", partials).result().tolist() == want
    added[where] += sign
    with pytest.raises(RangeError, match="a party did not keep to the protocol"):
        cast.received("south", cheated(cast, added.tolist())[1]).result()


def test_the_error_about_a_total_does_not_show_it(cast):
    with pytest.raises(RangeError) as raised:
        cast.received("south", cheated(cast, (0, 7654321, 0, 0))[1]).result()
    assert "7654" not in str(raised.value)


def test_a_contributor_beyond_the_bound_is_noticed_by_the_total(cast):
    values = cast.values()
    deals = cast.deals(values)
    # north sends its seeds as they are, and a vector that stands for one more than the bound.
    message, payload = cast.open(deals["north"]["one"], "one", Deal)
    residues = wire.unpack(message.share, payload, 4).tolist()
    residues[0] = (residues[0] + 4000) % P
    changed = vector_body(Deal(message.dealing, vector()), residues)
    deals["north"]["one"] = cast.seal(DEAL, "north", "one", changed)
    with pytest.raises(RangeError, match="a party did not keep to the protocol"):
        cast.received("east", cast.partials(deals)).result()


def test_a_bound_of_zero_allows_zero_only():
    cast = Cast(bound=0)
    zeros = {name: np.zeros(4, int) for name in cast.contributors}
    partials = cast.partials(cast.deals(zeros))
    assert cast.received("south", partials).result().tolist() == [0, 0, 0, 0]
    with pytest.raises(RangeError, match="beyond the bound 0"):
        cast.contributor("north").contribute([0, 0, 0, 1])
