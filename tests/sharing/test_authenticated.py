"""Computing on shares with MACs: right results, and no result at all where a party deviates."""

import functools

import numpy as np
import pytest

from securecomp import wire
from securecomp.core import field
from securecomp.errors import (
    AuthenticationError,
    LocalProtocolError,
    ParameterError,
    ProtocolError,
    RemoteProtocolError,
)
from securecomp.local import LocalCarrier
from securecomp.roles import State
from securecomp.sharing import authdealing, checking, choosing
from securecomp.sharing.checking import CheckingParty, Commitment, Opening, inner
from securecomp.sharing.computing import Said, vector_body
from securecomp.sharing.dealing import Part
from securecomp.sharing.shared import Computation

ONE = np.array(1, np.uint64)
NAMES = ("ada", "ben", "cyd", "dan")


class Network(LocalCarrier):
    """Keeps the last message of every pair, and can bring it again instead of the next."""

    def __init__(self, entropy):
        super().__init__(entropy)
        self.last = {}
        self.again = False

    def send(self, sender, recipient, data):
        data = bytes(data)
        if self.again and sender == "ben":
            return super().send(sender, recipient, self.last[sender, recipient])
        self.last[sender, recipient] = data
        return super().send(sender, recipient, data)


class Run:
    """A computation, and all that it opened."""

    def __init__(self, replay, parties=3, seed=0):
        self.network = Network(replay(seed))
        self.computation = Computation(NAMES[:parties], self.network, integrity="mac")
        self.engine = self.computation.engine
        self.driver = self.engine.run
        self.members = self.driver.members
        self.opened = set()
        original = self.driver.open_checked

        def spy(pairs):
            heard = original(pairs)
            for vector in heard:
                self.opened |= {int(v) for v in vector}
            return heard

        self.driver.open_checked = spy

    def share(self, owner, values, **how):
        return self.computation.share(owner, values, **{"bound": 1000, **how})

    def revealed(self, integers):
        """Which of these integers were opened as they are."""
        return self.opened & {int(v) for v in field.encode(integers)}


@pytest.fixture
def run(replay):
    return functools.partial(Run, replay)


# Right results


@pytest.mark.parametrize("parties", [2, 3, 4])
def test_all_operations_are_numpys(run, parties):
    r = run(parties)
    rng = np.random.default_rng(parties)
    a, b = rng.integers(-1000, 1001, (2, 6, 4))
    b[:2] = a[:2]
    a[3, 0], b[3, 0] = 1000, -1000
    x, y = r.share("ada", a), r.share(NAMES[parties - 1], b)
    table = rng.integers(-9, 10, (3, 6))
    for got, expected in (
        (x, a),
        (x + y, a + b),
        (x - y, a - b),
        (x + 7, a + 7),
        (5 - x, 5 - a),
        (x + b, a + b),
        (x * 3, a * 3),
        (x * b, a * b),
        (-x, -a),
        (x[1:3, ::2], a[1:3, ::2]),
        (x.T, a.T),
        (x.sum(), a.sum()),
        (x.sum(0), a.sum(0)),
        (x.sum(1), a.sum(1)),
        (table @ x, table @ a),
        (x @ table.T[:4], a @ table.T[:4]),
        (x * y, a * b),
        (x * y[0], a * b[0]),
        (x.square(), a**2),
        (x @ y.T, a @ b.T),
        (x[0].dot(y[0]), a[0] @ b[0]),
        (x < y, a < b),
        (x > 0, a > 0),
        (x <= y, a <= b),
        (x >= y, a >= b),
        (x == y, a == b),
        (x != y, a != b),
        (choosing.where(x < y, x, y), np.minimum(a, b)),
        (choosing.maximum(x), a.max()),
        (choosing.sort(x[0]), np.sort(a[0])),
    ):
        assert np.array_equal(got.reveal(), expected)
    assert r.driver.checks
    assert not r.members[0].unchecked


@pytest.mark.parametrize("parties", [2, 3, 4])
@pytest.mark.parametrize("by", [1, 10, 30, 58])
def test_truncation_is_exact(run, parties, by):
    r = run(parties)
    limit = (1 << 59) - 1
    integers = np.array([0, 1, -1, limit, -limit, 1 << 58, (1 << by) - 1, -(1 << by), 12345])
    x = r.engine.input("ben", field.encode(integers))
    shifted = field.decode(r.engine.reveal(r.engine.shifted(x, by), r.engine.names))
    assert np.array_equal(shifted, integers >> by)


def test_comparisons_reach_the_ends_of_the_field(run):
    r = run(2)
    integers = np.array([field.LIMIT, -field.LIMIT, 0, 1, -1, field.LIMIT - 1])
    x = r.engine.input("ada", field.encode(integers))
    names = r.engine.names
    assert np.array_equal(r.engine.reveal(r.engine.negative(x), names), integers < 0)
    assert np.array_equal(r.engine.reveal(r.engine.zero(x), names), integers == 0)


def test_reals(run):
    r = run(2)
    x = r.share("ada", [1.5, -2.25], bits=8)
    assert (x * x).truncate(8).reveal().tolist() == [2.25, 5.0625]
    assert r.share("ben", [0.25, 0.5], decimals=2).mean().reveal() == 0.375


def test_long_comparisons_go_in_blocks(run, monkeypatch):
    monkeypatch.setattr("securecomp.sharing.authenticated._BLOCK", 4)
    r = run(2)
    a = np.arange(-5, 6)
    assert np.array_equal((r.share("ada", a) < 0).reveal(), a < 0)
    assert (r.share("ben", np.zeros(0, int)) < 0).reveal().shape == (0,)


def test_long_vectors(run):
    r = run(3)
    a = np.arange(-35000, 35000)
    x = r.share("cyd", a, bound=35000)
    assert np.array_equal((x * x + x.square()).reveal(["ada"]), 2 * a**2)
    assert r.members[0].unchecked == 0


@pytest.mark.parametrize("to", [["ben"], ["cyd", "ada"]])
def test_who_is_no_recipient_never_sees_the_result(run, to):
    r = run(3)
    x = r.share("ada", [111, 222])
    assert x.reveal(to).tolist() == [111, 222]
    assert not r.revealed([111, 222])
    assert x.reveal().tolist() == [111, 222]
    assert r.revealed([111, 222])


def test_a_check_passes_and_begins_anew(run):
    r = run(3)
    x, y = r.share("ada", [3, 4]), r.share("ben", [5, 6])
    z = x * y
    assert [m.unchecked for m in r.members] == [4, 4, 4]
    r.driver.check()
    assert [m.unchecked for m in r.members] == [0, 0, 0]
    assert r.driver.checks == 1
    r.driver.check()  # nothing was said: no messages
    assert r.driver.checks == 1
    assert z.reveal().tolist() == [15, 24]
    assert r.driver.checks == 2
    assert not r.revealed([3, 4])


def test_much_is_checked_before_anything_is_revealed(run, monkeypatch):
    monkeypatch.setattr(checking, "LARGEST_UNCHECKED", 10)
    honest = run(2)
    x = honest.share("ada", [1, 2, 3])
    assert (x * x * x).reveal().tolist() == [1, 8, 27]
    assert honest.driver.checks == 3
    r = run(2)
    x = r.share("ada", [1, 2, 3])
    lie_to_all(r, 0)
    y = x * x
    with pytest.raises(ProtocolError, match="MACs"):
        y * x


def test_integrity_is_mac_or_none(replay):
    with pytest.raises(ParameterError, match="integrity"):
        Computation(["a", "b"], LocalCarrier(replay(0)), integrity="sha")
    with pytest.raises(ParameterError, match="needs a dealer"):
        Computation(["a", "b", "c"], LocalCarrier(replay(0)), integrity="mac", dealer=False)


# Cheating. Each takes a run and its first value, x, before x is multiplied and revealed.


def bumped(body):
    message, payload = wire.decode_body(body.data, Said)
    values = wire.unpack(message.vector, payload, message.vector.length).copy()
    values[0] = field.add(values[0], ONE)
    return vector_body(values, field.BITS)


def lie_to_all(r, cheater, turn=0, errors=(1,)):
    """Open a share that is not one's own, and believe it, as all others do."""
    exchange, turns = r.driver._exchange, []

    def lying(shares, bits, to):
        turns.append(bits)
        if len(turns) == turn + 1:
            shares = [share.copy() for share in shares]
            wrong = field.encode(np.array(errors))
            part = shares[cheater][: wrong.size]
            part[:] = field.add(part, wrong)
        return exchange(shares, bits, to)

    r.driver._exchange = lying


def lie(party, turn=0, to=None, kind=Said, change=bumped):
    """A `say` whose message number `turn` of a kind is another, to all or to some."""
    say, said = party.say, []

    def lying(recipients, step, body, of):
        sealed = say(recipients, step, body, of)
        if of == kind.KIND:
            said.append(step)
            if len(said) == turn + 1:
                other = say(recipients, step, change(body), of)
                pairs = zip(recipients, sealed, other, strict=True)
                return [b if to is None or name in to else a for name, a, b in pairs]
        return sealed

    return lying


def product_opening(r, x):
    lie_to_all(r, 1)


def output_opening(r, x):
    lie_to_all(r, 0, turn=1)


def input_share(r, x):
    x.value[1][0, 0] = field.add(x.value[1][0, 0], ONE)


def input_mac(r, x):
    x.value[0][1, 0] = field.add(x.value[0][1, 0], ONE)


def guessed_mac(r, x):
    """A share changed by one, and its MAC by a guess of alpha."""
    input_share(r, x)
    x.value[1][1, 0] = field.add(x.value[1][1, 0], r.members[1].key)


def correction(vector, row):
    def cheat(r, x):
        last = r.members[-1]
        vectors = last.vectors

        def changed(*args):
            last.vectors = vectors
            found = vectors(*args)
            found[vector][row, 0] = field.add(found[vector][row, 0], ONE)
            return found

        last.vectors = changed

    return cheat


def sigma(r, x):
    own = r.members[1].sigma
    r.members[1].sigma = lambda: field.add(own(), ONE)


def key(r, x):
    r.members[0]._key = field.add(r.members[0].key, ONE)


changed_product, changed_product_mac = correction(2, 0), correction(2, 1)
MACS = [
    product_opening,
    output_opening,
    input_share,
    input_mac,
    guessed_mac,
    correction(0, 0),
    correction(0, 1),
    correction(1, 1),
    changed_product,
    changed_product_mac,
    sigma,
    key,
]


def two_stories(r, x):
    r.members[1].say = lie(r.members[1], to=["ada"])


def another_story_than_its_own(r, x):
    r.members[1].say = lie(r.members[1])


def two_stories_of_the_output(r, x):
    r.members[1].say = lie(r.members[1], turn=1, to=["cyd"])


def said_otherwise(kind, turn, **fields):
    """The same message with other contents."""

    def change(body):
        message, _ = wire.decode_body(body.data, kind)
        told = {name: getattr(message, name) for name in kind.__struct_fields__}
        return wire.encode_body(kind(**{**told, **fields}))

    return lambda r, x: setattr(
        r.members[1], "say", lie(r.members[1], turn=turn, kind=kind, change=change)
    )


def one_commitment_to_ada(r, x):
    def change(body):
        return wire.encode_body(Commitment(bytes(32)))

    r.members[1].say = lie(r.members[1], kind=Commitment, to=["ada"], change=change)


def replayed(r, x):
    r.network.again = True


def too_long(r, x):
    def change(body):
        return vector_body(np.zeros(5, np.uint64), field.BITS)

    r.members[1].say = lie(r.members[1], change=change)


def something_behind(r, x):
    def change(body):
        return np.concatenate([body, np.zeros(8, np.uint8)])

    r.members[1].say = lie(r.members[1], kind=Commitment, change=change)


def nonsense(r, x):
    say = r.members[1].say
    r.members[1].say = lambda to, step, body, kind: say(to, step, body[:3], kind)


another_sigma_of_the_output = said_otherwise(Opening, 3, secret=bytes(8))
OTHERS = [
    (two_stories, "did not hear the same"),
    (another_story_than_its_own, "did not hear the same"),
    (two_stories_of_the_output, "did not hear the same"),
    (said_otherwise(Opening, 0, heard=bytes(32)), "did not hear the same"),
    (said_otherwise(Commitment, 0, digest=bytes(32)), "^ben: does not open"),
    (said_otherwise(Commitment, 0, digest=b""), "^ben: does not open"),
    (said_otherwise(Opening, 0, secret=bytes(32)), "^ben: does not open"),
    (said_otherwise(Opening, 0, nonce=bytes(32)), "^ben: does not open"),
    (said_otherwise(Opening, 0, nonce=b""), "^ben: does not open"),
    (said_otherwise(Commitment, 1, digest=bytes(32)), "^ben: does not open"),
    (said_otherwise(Opening, 1, secret=bytes(8)), "^ben: does not open"),
    (another_sigma_of_the_output, "^ben: does not open"),
    (one_commitment_to_ada, "^ben: does not open"),
    (replayed, "^ben: the message is of round"),
    (too_long, "^ben: the vector has 5 elements"),
    (something_behind, "^ben: its message has something behind"),
    (nonsense, "^ben: Said: the body is cut off"),
]
AT_THE_OUTPUT = [
    output_opening,
    changed_product,
    changed_product_mac,
    two_stories_of_the_output,
    another_sigma_of_the_output,
]
"""Nothing is wrong before the result is opened; all others are found before that."""


def multiply_and_reveal(r, cheat=None, to=None):
    x = r.share("ada", [31, 47])
    y = r.share("ben", [53, 59])
    if cheat is not None:
        cheat(r, x)
    return (x * y).reveal(to)


def check_aborted(r):
    assert [m.state for m in r.members] == [State.ABORTED] * len(r.members)
    assert r.driver.dealer.state == State.ABORTED
    assert not r.driver.dealer.seeds
    for member in r.members:
        assert member._part is None
        assert not member._opened
        with pytest.raises(LocalProtocolError, match="aborted"):
            _ = member.key


def check_nothing_works(r, x):
    for use in (
        lambda: r.share("ada", [1, 2]),
        lambda: x * x,
        lambda: x.square(),
        lambda: x + 1,
        lambda: x < 0,
        lambda: x == 0,
        lambda: x.reshape(1, 2) @ x.reshape(2, 1),
        lambda: x.reveal(),
        lambda: x.reveal("ben"),
        lambda: r.engine.shifted(x.value, 3),
    ):
        with pytest.raises((ProtocolError, IndexError)):
            use()


@pytest.mark.parametrize("to", [None, "cyd", ["ada", "ben"]], ids=["all", "one", "two"])
@pytest.mark.parametrize(
    ("cheat", "reason"),
    [*((cheat, "MACs do not fit") for cheat in MACS), *OTHERS],
)
def test_who_cheats_ends_it_and_nothing_is_revealed(run, cheat, reason, to):
    honest = run(3)
    result = [31 * 53, 47 * 59]
    assert multiply_and_reveal(honest, None, to).tolist() == result
    assert honest.revealed(result) if to is None else not honest.revealed(result)

    r = run(3)
    kept = []

    def cheating(r, x):
        kept.append(x)
        cheat(r, x)

    with pytest.raises(ProtocolError, match=reason):
        multiply_and_reveal(r, cheating, to)
    assert r.driver.checks == (cheat in AT_THE_OUTPUT)
    if cheat not in AT_THE_OUTPUT or to is not None:
        assert not r.revealed(result)  # neither returned nor opened
    check_aborted(r)
    check_nothing_works(r, kept[0])


@pytest.mark.parametrize("parties", [2, 4])
@pytest.mark.parametrize("cheat", MACS)
def test_macs_are_checked_by_any_number_of_parties(run, parties, cheat):
    assert multiply_and_reveal(run(parties)).tolist() == [31 * 53, 47 * 59]
    r = run(parties)
    with pytest.raises(ProtocolError, match="MACs do not fit"):
        multiply_and_reveal(r, cheat)
    check_aborted(r)


def test_who_knew_alpha_could_cheat(run):
    """What the checks rest on: a share and its MAC that are changed together are not found."""

    def cheat(r, x):
        alpha = ONE - ONE
        for member in r.members:
            alpha = field.add(alpha, member.key)
        input_share(r, x)
        x.value[1][1, 0] = field.add(x.value[1][1, 0], alpha)

    assert multiply_and_reveal(run(3), cheat).tolist() == [32 * 53, 47 * 59]


def test_a_message_that_is_changed_on_the_way(run):
    r = run(3)
    x = r.share("ada", [1, 2])
    send = r.network.send
    r.network.send = lambda a, b, data: send(a, b, bytes(data)[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(AuthenticationError, match="changed on the way"):
        x.square()
    r.network.send = send
    check_aborted(r)
    check_nothing_works(r, x)


def test_an_owner_tells_two_stories(run):
    r = run(3)
    r.members[0].say = lie(r.members[0], to=["cyd"])
    x = r.share("ada", [1, 2])
    with pytest.raises(ProtocolError, match="did not hear the same"):
        x.reveal()
    assert not r.revealed([1, 2])
    check_aborted(r)


def test_an_owner_says_a_vector_of_another_length(run):
    r = run(3)
    change = functools.partial(vector_body, np.zeros(3, np.uint64))
    r.members[0].say = lie(r.members[0], change=lambda body: change(field.BITS))
    with pytest.raises(RemoteProtocolError, match=r"^ada: the vector has 3 elements"):
        r.share("ada", [1, 2])
    check_aborted(r)


def test_a_sigma_is_a_residue(run):
    r = run(3)
    x = r.share("ada", [1, 2])
    commit = r.members[1].commit
    r.members[1].commit = lambda secret: commit(secret if len(secret) == 32 else bytes(9))
    with pytest.raises(RemoteProtocolError, match=r"^ben: its part of the check is no residue"):
        x.square().reveal()
    check_aborted(r)


@pytest.mark.parametrize("row", [0, 1])
@pytest.mark.parametrize(
    "work",
    [
        lambda x: x < 40,
        lambda x: x == 40,
        lambda x: x.truncate(3),
        lambda x: x.square(),
        lambda x: x.reshape(1, 2) @ x.reshape(2, 1),
    ],
    ids=["less", "equal", "truncate", "square", "matmul"],
)
def test_material_that_the_last_party_changes(run, work, row):
    honest = run(3)
    work(honest.share("ada", [31, 47], bits=4)).reveal()
    r = run(3)
    x = r.share("ada", [31, 47], bits=4)
    correction(0, row)(r, x)
    with pytest.raises(ProtocolError, match="MACs do not fit"):
        work(x).reveal()
    check_aborted(r)


@pytest.mark.parametrize("turn", range(7))
def test_every_opening_of_a_comparison_is_checked(run, turn):
    r = run(2)
    x = r.share("ada", [31, -47])
    lie_to_all(r, 1, turn=turn)
    below = x < 0
    with pytest.raises(ProtocolError, match="MACs do not fit"):
        below.reveal()
    check_aborted(r)


def test_errors_that_would_cancel_without_coefficients_are_found(run):
    r = run(2)
    x = r.share("ada", [31, 47])
    lie_to_all(r, 1, errors=(1, -1))
    with pytest.raises(ProtocolError, match="MACs do not fit"):
        x.square().reveal()


# The pieces


@pytest.mark.parametrize("parties", [2, 3])
@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        ("triple", (5,)),
        ("square", (5,)),
        ("matrix", (2, 3, 4)),
        ("own", (5, 1)),
        ("digits", (5, 0)),
        ("digits", (5, 20)),
    ],
)
def test_correlations_are_what_they_say(parties, kind, shape):
    parts = [Part(bytes([i + 1]) * 32) for i in range(parties)]
    made = authdealing.corrections(parts, 3, kind, shape)
    each = [authdealing.expand(part, 3, kind, shape) for part in parts[:-1]]
    each.append(authdealing.expand(parts[-1], 3, kind, shape, made))
    alpha = functools.reduce(field.add, map(authdealing.key_share, parts))
    values = []
    for vector, size in enumerate(authdealing.sizes(kind, shape)):
        value, mac = functools.reduce(field.add, [pairs[vector] for pairs in each])
        assert value.shape == (size,)
        assert np.array_equal(mac, field.multiply(value, alpha))
        values.append(value)
    if kind == "matrix":
        a, b = values[0].reshape(2, 3), values[1].reshape(3, 4)
        assert np.array_equal(field.matmul(a, b).reshape(-1), values[2])
    elif kind == "own":
        assert np.array_equal(values[0], authdealing.known(parts[1], 3, 5))
    elif kind == "digits":
        r = functools.reduce(field.add, [authdealing.known(part, 3, 5) for part in parts])
        rows = iter(values[0].reshape(-1, 5))
        found = np.zeros(5, np.uint64)
        for place, bits in authdealing.digits(shape[1]):
            digit = sum(next(rows) for _ in range(1, 1 << bits))
            found += digit << np.uint64(place)
        assert next(rows, None) is None
        assert np.array_equal(found, r)
        assert set(values[0].tolist()) == {0, 1}
    else:
        assert np.array_equal(field.multiply(values[0], values[-2]), values[-1])


def test_inner_products(random_residues):
    a, b = random_residues(1, 1000), random_residues(2, 1000)
    exact = sum(int(v) * int(w) for v, w in zip(a, b, strict=True)) % field.MODULUS
    assert int(inner(a, b)) == exact
    top = np.full(1 << 16, field.MODULUS - 1, np.uint64)
    assert int(inner(top, top)) == 1 << 16
    assert int(inner(top[:0], top[:0])) == 0


def test_a_party_says_what_it_committed_to_once(run):
    member = run(2).members[0]
    with pytest.raises(LocalProtocolError, match="no commitment"):
        member.opening({})
    member.commit(bytes(32))
    member.opening({"ben": Commitment(bytes(32))})
    with pytest.raises(LocalProtocolError, match="no commitment"):
        member.opening({"ben": Commitment(bytes(32))})


@pytest.mark.parametrize("event", sorted({event for _, event in CheckingParty.TRANSITIONS}))
def test_who_aborted_does_nothing(run, event):
    member = run(2).members[0]
    assert CheckingParty.TRANSITIONS[State.READY, event] == State.READY
    member.abort()
    calls = {
        "say": lambda: member.say(["ben"], 1, wire.encode_body(Commitment(b"")), 5),
        "hear": lambda: member.hear(b"", "ben", 1, Commitment),
        "remember": lambda: member.remember(np.zeros(1, np.uint64), None),
        "commit": lambda: member.commit(bytes(32)),
        "opening": lambda: member.opening({}),
        "settle": lambda: member.seeds({}, bytes(32)),
    }
    with pytest.raises(LocalProtocolError, match=r"not allowed when aborted"):
        calls[event]()
    with pytest.raises(LocalProtocolError, match="aborted; begin another"):
        member.own(1, 1)
