"""Who sees what: servers, those who carry messages, and whoever looks at a role afterwards."""

import gc

import msgspec
import numpy as np
import pytest
from cases import each_case
from scipy import stats
from sharing.cast import CASTS, Cast, stream, vector

from securecomp.core import field, prg
from securecomp.errors import LocalProtocolError, SecureCompError
from securecomp.protocol import wire
from securecomp.protocol.role import State
from securecomp.protocol.session import Layout
from securecomp.sharing import Contributor, Server
from securecomp.sharing.additive import seed_key
from securecomp.sharing.private_sum import Deal, PartialSum, explicit_server

P = field.MODULUS


@pytest.fixture
def cast():
    return Cast()


# Which share travels as a vector.


def test_hospitals_spread_their_vectors_over_the_servers():
    cast = Cast([f"h{i}" for i in range(7)])
    explicit = [explicit_server(cast.session, name) for name in cast.contributors]
    assert explicit == ["one", "two", "three", "one", "two", "three", "one"]


def test_a_hospital_that_is_a_server_keeps_its_vector():
    cast = Cast(servers=("one", "south", "north"))
    explicit = {name: explicit_server(cast.session, name) for name in cast.contributors}
    assert explicit == {"north": "north", "south": "south", "east": "north"}


@each_case("facts", CASTS.values())
def test_every_server_but_one_gets_a_seed(facts):
    cast = Cast(**facts)
    for name, messages in cast.deals().items():
        for server, data in messages.items():
            deal, payload = cast.open(data, server, Deal)
            if server == explicit_server(cast.session, name):
                assert deal.share == vector(cast.layout.length)
                assert len(payload) == wire.packed_size(cast.layout.length, 61)
            else:
                assert len(deal.share) == prg.SEED_BYTES
                assert len(payload) == 0


@each_case("length", [1, 100, 10_000])
def test_with_all_only_seeds_leave_their_owner(length):
    cast = Cast(("north", "south", "east", "west"), "all", length=length)
    for name, messages in cast.deals().items():
        for server, data in messages.items():
            if server != name:
                assert type(cast.open(data, server, Deal)[0].share) is bytes
                assert len(data) < 200


def shares_of(cast, name, messages):
    """The residues that each server gets from one contributor."""
    shares, length = {}, cast.layout.length
    for server, data in messages.items():
        deal, payload = cast.open(data, server, Deal)
        if isinstance(deal.share, bytes):
            key = seed_key(deal.share, cast.session.agreement, name, server)
            shares[server] = prg.expand(key, length)
        else:
            shares[server] = wire.unpack(deal.share, payload, length)
    return shares


@each_case("facts", CASTS.values())
def test_the_shares_add_up_to_the_vector(facts):
    cast = Cast(**facts)
    values = cast.values()
    for name, messages in cast.deals(values).items():
        exact = [0] * cast.layout.length
        for share in shares_of(cast, name, messages).values():
            exact = [(a + int(b)) % P for a, b in zip(exact, share, strict=True)]
        assert exact == [int(v) % P for v in values[name]]


def test_the_share_of_a_seed_depends_on_who_sent_it_to_whom_and_when(cast):
    seed, agreement = bytes(range(32)), cast.session.agreement
    keys = {
        seed_key(seed),
        seed_key(seed, agreement, "north", "one"),
        seed_key(seed, agreement, "north", "two"),
        seed_key(seed, agreement, "south", "one"),
        seed_key(seed, agreement, "one", "north"),
        seed_key(seed, cast.agree().agreement, "north", "one"),
    }
    assert len(keys) == 6


# What servers see.

RUNS, LENGTH = 40, 256


def views(inputs, servers, seen, seed):
    """Residues that some servers get from one hospital, over many runs: shape (all, servers)."""
    cast = Cast(("north", "south"), servers, length=LENGTH, bound=field.LIMIT // 2, seed=seed)
    parts = []
    for _ in range(RUNS):
        shares = shares_of(cast, "north", cast.contributor("north").contribute(inputs))
        parts.append(np.stack([shares[s] for s in seen], axis=1))
    return np.concatenate(parts)


def histogram(residues, bits):
    code = np.zeros(len(residues), np.int64)
    for column in residues.T:
        code = (code << bits) | (column >> np.uint64(61 - bits)).astype(np.int64)
    return np.bincount(code, minlength=1 << (bits * residues.shape[1]))


@each_case(
    "servers, seen",
    [
        (("one", "two"), ("one",)),
        (("one", "two"), ("two",)),
        (("one", "two", "three"), ("one", "two")),
        (("one", "two", "three"), ("one", "three")),
        (("one", "two", "three"), ("two", "three")),
        ("all", ("south",)),
    ],
)
def test_what_all_servers_but_one_see_does_not_depend_on_the_vector(servers, seen):
    bits = 4 if len(seen) == 1 else 3
    inputs = {
        "zeros": np.zeros(LENGTH, np.int64),
        "largest": np.full(LENGTH, field.LIMIT // 2),
        "lowest": np.full(LENGTH, -(field.LIMIT // 2)),
    }
    counts = [
        histogram(views(vector_, servers, seen, f"{name} {seen}"), bits)
        for name, vector_ in inputs.items()
    ]
    for row in counts:
        assert stats.chisquare(row).pvalue > 1e-3
    assert stats.chi2_contingency(np.array(counts)).pvalue > 1e-3


def test_what_all_servers_together_see_does_depend_on_it():
    # The test above can fail: the sum of both servers' shares is the vector.
    seen = views(np.zeros(LENGTH, np.int64), ("one", "two"), ("one", "two"), "control")
    assert stats.chisquare(histogram(seen, 3)).pvalue < 1e-100


def test_the_servers_sums_show_nothing_but_the_total():
    """Given the total, all partial sums but one are uniform: here for opposite inputs."""
    counts = []
    for inputs in ({"north": 10**17, "south": -(10**17)}, {"north": -5, "south": 5}):
        cast = Cast(("north", "south"), "all", length=LENGTH, bound=2**57, seed=f"sums {inputs}")
        seen = []
        for _ in range(RUNS):
            values = {name: np.full(LENGTH, value) for name, value in inputs.items()}
            partials = cast.partials(cast.deals(values))
            message, payload = cast.open(partials["north"]["south"], "south", PartialSum)
            seen.append(wire.unpack(message.total, payload, LENGTH))
        counts.append(histogram(np.concatenate(seen)[:, None], 4))
    for row in counts:
        assert stats.chisquare(row).pvalue > 1e-3
    assert stats.chi2_contingency(np.array(counts)).pvalue > 1e-3


# Secrets are gone when they are no longer needed.


def reachable(role):
    """The bytes and arrays that a role still holds, however deep; not its key and its entropy."""
    stop = {id(getattr(role, name)) for name in ("_identity", "_entropy", "_session")}
    todo, seen, found = list(vars(role).values()), set(), []
    while todo:
        item = todo.pop()
        if id(item) in seen | stop or isinstance(item, type) or callable(item):
            continue
        seen.add(id(item))
        if isinstance(item, bytes | bytearray | np.ndarray):
            found.append(item)
        todo += gc.get_referents(item)
    return found


@pytest.mark.parametrize("end", ["publish", "abort", "both"])
def test_a_server_forgets_its_shares(cast, end):
    deals = cast.deals()
    server = cast.server("two")
    keys = set()
    for name, messages in deals.items():
        server.receive(messages["two"])
        share = cast.open(messages["two"], "two", Deal)[0].share
        if isinstance(share, bytes):
            keys.add(seed_key(share, cast.session.agreement, name, "two"))
    assert len(keys) == 2
    assert keys <= {bytes(item) for item in reachable(server)}
    assert any(isinstance(item, np.ndarray) for item in reachable(server))
    if end != "abort":
        server.publish()
    if end != "publish":
        server.abort()
    assert {bytes(item) for item in reachable(server)} <= {b"", cast.session.agreement}


@pytest.mark.parametrize("end", ["result", "abort"])
def test_a_receiver_forgets_the_sums(cast, end):
    partials = cast.partials(cast.deals())
    receiver = cast.received("south", partials)
    assert any(isinstance(item, np.ndarray) for item in reachable(receiver))
    marks = set(receiver._dealings.values())  # public: what the servers say they added
    getattr(receiver, end)()
    kept = {bytes(item) for item in reachable(receiver)}
    assert kept - marks == {cast.session.agreement}


def test_a_contributor_keeps_nothing(cast):
    contributor = cast.contributor("north")
    contributor.contribute([1, 2, 3, 4])
    assert {bytes(item) for item in reachable(contributor)} == {cast.session.agreement}


class Failing:
    """Entropy that fails once, when it is told to."""

    def __init__(self, source):
        self.source, self.armed = source, False

    def __call__(self, size):
        if self.armed:
            self.armed = False
            raise OSError("no entropy")
        return self.source(size)


@each_case("servers", [("one", "two", "three"), "all"])
def test_a_failed_publication_is_not_followed_by_a_wrong_one(servers):
    cast = Cast(servers=servers)
    name = cast.servers[0]
    values = cast.values()
    deals = cast.deals(values)
    partials = cast.partials(deals)
    entropy = Failing(cast.entropy)
    server = Server(cast.session, name, cast.identities[name], entropy)
    for messages in deals.values():
        server.receive(messages[name])
    entropy.armed = True
    with pytest.raises(OSError, match="no entropy"):
        server.publish()
    try:
        partials[name] = server.publish()
    except LocalProtocolError:
        assert server.state is State.ABORTED
        return
    assert cast.received("south", partials).result().tolist() == cast.total(values)


def test_a_failed_result_is_not_followed_by_a_wrong_one(cast, monkeypatch):
    values = cast.values()
    receiver = cast.received("south", cast.partials(cast.deals(values)))

    def no_memory(*_, **__):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(field, "decode", no_memory)
        with pytest.raises(MemoryError):
            receiver.result()
    try:
        total = receiver.result()
    except LocalProtocolError:
        assert receiver.state is State.ABORTED
        return
    assert total.tolist() == cast.total(values)


@pytest.mark.parametrize("case", ["one server", "another protocol", "a limit beyond the field"])
def test_a_session_that_is_not_one_of_a_private_sum(cast, case):
    session = {
        # One server would get the vector itself.
        "one server": lambda: cast.agree(servers=("one",), minimum_servers=1),
        "another protocol": lambda: msgspec.structs.replace(cast.session, protocol="paillier/1"),
        # Totals would wrap.
        "a limit beyond the field": lambda: cast.agree(layout=Layout(4, 2**60 - 1), limit=2**70),
    }[case]
    with pytest.raises(SecureCompError):
        Contributor(session(), "north", cast.identities["north"])


def test_a_share_in_a_message_is_not_shown():
    seed = stream("a seed that nobody should see")(32)
    text = repr(Deal(bytes(16), seed))
    assert seed.hex() not in text
    assert repr(seed)[2:-1] not in text
    assert "Deal" in text


def test_shares_of_two_dealings_of_one_contributor_are_not_mixed():
    """A contributor that starts again after a crash: some servers get its old shares."""
    cast = Cast(("north", "south"), ("one", "two"), bound=field.LIMIT // 2)
    values = cast.values()
    deals = cast.deals(values)
    again = cast.contributor("north").contribute(values["north"])
    deals["north"] = {"one": deals["north"]["one"], "two": again["two"]}
    try:
        total = cast.received("south", cast.partials(deals)).result().tolist()
    except SecureCompError:
        return
    assert total == cast.total(values)
