"""Masked vectors look the same whatever is in them; secrets are shown nowhere and do not stay."""

import io
import itertools

import msgspec
import numpy as np
from cases import each_case, named, some_or_all
from rich.console import Console
from rich.pretty import pretty_repr
from scipy.stats import chi2_contingency, chisquare
from secagg.cohort import Cohort
from secagg.lying import again, finishes

from securecomp.core.prg import RingMasks
from securecomp.protocol import wire
from securecomp.protocol.identity import Identity
from securecomp.protocol.session import Session
from securecomp.secagg import masking
from securecomp.secagg.client import Client
from securecomp.secagg.keyring import KeyRing

SECURITY = ["semi-honest", "active"]


# Distributions.

CELLS = 64
LENGTH = 40_000


def masked(values, seed, bound, who="c1", clients=3):
    """What the server sees of one client, as residues, and the client itself."""
    cohort = Cohort(clients, length=LENGTH, bound=bound, seed=seed)
    cohort.reach("mask")
    client = cohort.clients[who]
    index = cohort.names.index(who)
    seed_ = client._ring.seed
    peers = [i for i in range(clients) if i != index]
    plus, minus = client._ring.mask_keys(index, peers, client._agreement)
    client._ring.seed = seed_
    _, message, payload = cohort.read(client.mask(cohort.inbox[who], np.full(LENGTH, values)))
    bits = message.vector.bits
    residues = wire.unpack(message.vector, payload, LENGTH, bits).astype(np.uint64)
    return residues, bits, plus, minus


def cells(residues, bits):
    """Counts by the top and by the lowest six bits."""
    return [
        np.bincount((part & np.uint64(CELLS - 1)).astype(int), minlength=CELLS)
        for part in (residues, residues >> np.uint64(bits - 6))
    ]


@some_or_all(
    "senders",
    [(1000, "c0"), (2**28, "c1"), (2**40, "c2")],
    list(itertools.product([1000, 2**28, 2**40], ["c0", "c1", "c2"])),
)
def test_masked_vectors_of_two_inputs_look_the_same(senders):
    for bound, who in senders:
        with named(bound, who):
            look_the_same(bound, who)


def look_the_same(bound, who):
    one, bits, _, _ = masked(bound, "inputs one", bound, who)
    two, _, _, _ = masked(-bound, "inputs two", bound, who)
    for a, b in zip(cells(one, bits), cells(two, bits), strict=True):
        assert chisquare(a).pvalue > 0.001
        assert chisquare(b).pvalue > 0.001
        assert chi2_contingency([a, b]).pvalue > 0.001
    # Neighbours and the first half against the second are not alike either.
    for residues in (one, two):
        top = (residues >> np.uint64(bits - 3)).astype(int)
        pairs = np.bincount(8 * top[:-1:2] + top[1::2], minlength=64)
        assert chisquare(pairs).pvalue > 0.001
        assert (residues[: LENGTH // 2] == residues[LENGTH // 2 :]).mean() < 0.01


@each_case("known", ["pairwise masks", "self mask"])
def test_either_mask_alone_hides_the_vector(known):
    """Who dropped out has its seed left (double masking), who survived its masks with peers."""
    residues, bits, plus, minus = masked(1000, "double", 1000)
    assert (len(plus), len(minus)) == (2, 1)
    plus, minus = (plus[1:], minus) if known == "pairwise masks" else (plus[:1], [])
    lanes = residues.astype(np.uint32)
    RingMasks(minus, plus).apply(lanes[:32768], 0)
    left = masking.reduced(lanes[:32768], bits).astype(np.uint64)
    for counts in cells(left, bits):
        assert chisquare(counts).pvalue > 0.001


def test_with_both_masks_known_the_vector_lies_open():
    """The check of the check above: what it takes off is what was put on."""
    residues, bits, plus, minus = masked(1000, "double", 1000)
    lanes = residues.astype(np.uint32)
    RingMasks(minus, plus).apply(lanes[:32768], 0)
    opened = masking.decode(masking.reduced(lanes, bits), bits)
    assert set(opened[:32768].tolist()) == {1000}


def test_the_statistics_see_a_vector_without_masks(monkeypatch):
    """And the check of the first one: it fails as soon as nothing is masked."""
    monkeypatch.setattr(RingMasks, "apply", lambda self, block, index: None)
    one, bits, _, _ = masked(1000, "inputs one", 1000)
    assert all(chisquare(counts).pvalue < 1e-100 for counts in cells(one, bits))


def test_commitments_and_boxes_say_nothing_of_equal_inputs():
    """Two runs with the same inputs have nothing in common that is secret."""
    seen = []
    for seed in ("one", "two"):
        cohort = Cohort(3, seed=seed)
        for step in ("advertise", "share"):
            for name in cohort:
                data = cohort.do(step, name)
                cohort.server.receive(data)
                _, message, _ = cohort.read(data)
                seen += [v for v in msgspec.structs.astuple(message) if isinstance(v, bytes)]
            cohort.inbox = cohort.server.close()
    seen = [v for v in seen if v]
    assert len(set(seen)) == len(seen) == 2 * 3 * (2 + 2)


# What is shown.


def texts(thing):
    """All that a log, a traceback or a console may print of an object."""
    out = io.StringIO()
    Console(file=out, width=1000).print(thing)
    yield from (repr(thing), str(thing), f"{thing}", repr([thing]), repr({"x": thing}))
    yield out.getvalue()
    yield pretty_repr(thing)


def shown(secret, text):
    forms = (secret.hex()[:12], repr(secret)[2:14], str(int.from_bytes(secret, "little"))[:12])
    return any(form in text for form in forms)


def secrets_of(client):
    ring = client._ring
    found = [ring.cipher_key, ring.mask_key, ring.seed, *ring.held.values(), *ring.shared.values()]
    return [secret for secret in found if secret]


@each_case("step", ["share", "mask", "unmask"])
def test_no_secret_is_shown_by_a_client(step):
    cohort = Cohort(4)
    cohort.reach(step)
    client = cohort.clients["c1"]
    secrets = secrets_of(client)
    assert len(secrets) >= 2
    for thing in (client, cohort.server, cohort):
        for text in texts(thing):
            assert not any(shown(secret, text) for secret in secrets)


@each_case("show", [repr, str, lambda ring: repr([ring]), "{}".format])
def test_no_secret_is_shown_by_a_key_ring(show):
    cohort = Cohort(4)
    cohort.reach("mask")
    client = cohort.clients["c1"]
    text = show(client._ring)
    assert "KeyRing(4 peers)" in text
    assert not any(shown(secret, text) for secret in secrets_of(client))


def test_no_secret_is_shown_by_a_pretty_printer():
    cohort = Cohort(4)
    cohort.reach("mask")
    client = cohort.clients["c1"]
    secrets = secrets_of(client)
    assert not any(shown(s, text) for text in texts(client._ring) for s in secrets)


# What stays.


def reachable(thing, seen=None):
    """The bytes of everything that an object holds on to, arrays included."""
    seen = {} if seen is None else seen
    if id(thing) in seen or isinstance(thing, Session | Identity | type):
        return
    seen[id(thing)] = thing  # alive, or its id would be used again
    if isinstance(thing, bytes | bytearray | memoryview):
        yield bytes(thing)
    elif isinstance(thing, np.ndarray):
        yield thing.tobytes()
    elif isinstance(thing, dict):
        for pair in thing.items():
            yield from reachable(pair, seen)
    elif isinstance(thing, list | tuple | set):
        for item in thing:
            yield from reachable(item, seen)
    elif isinstance(thing, msgspec.Struct):
        yield from reachable(msgspec.structs.astuple(thing), seen)
    elif hasattr(thing, "__dict__"):
        yield from reachable(vars(thing), seen)


def holds(role, secret):
    return any(secret in data for data in reachable(role))


@each_case("security", SECURITY)
def test_secrets_go_when_they_are_spent(security):
    cohort = Cohort(4, security=security)
    client = cohort.clients["c1"]
    cohort.reach("share")
    keys = [client._ring.cipher_key, client._ring.mask_key]
    assert all(len(key) == 32 and holds(client, key) for key in keys)
    cohort.step("share")
    seed = client._ring.seed
    assert len(seed) == 32
    assert holds(client, seed)
    cohort.step("mask")
    assert not holds(client, seed)
    shares = list(client._ring.held.values())
    assert len(shares) == 4
    for step in cohort.steps[3:]:
        assert all(holds(client, share) for share in shares)
        cohort.step(step)
    assert not any(holds(client, share[:40]) or holds(client, share[40:]) for share in shares)
    # Nobody dropped out: the keys stay for the next round, and go with the client.
    assert holds(client, keys[0])
    client.abort()
    assert not any(holds(client, secret) for secret in (*keys, seed, *shares))


@each_case("security", SECURITY)
def test_all_secrets_go_when_somebody_dropped_out(security):
    cohort = Cohort(4, security=security)
    cohort.reach("mask")
    secrets = {n: [k for k in secrets_of(cohort.clients[n]) if k] for n in cohort}
    finishes(cohort, {"mask": {"c3"}})
    for name in ("c0", "c1", "c2"):
        assert cohort.clients[name]._ring == KeyRing()
        assert not any(holds(cohort.clients[name], secret) for secret in secrets[name])
    assert any(holds(cohort.clients["c3"], secret) for secret in secrets["c3"])


@each_case("step", ["share", "mask", "unmask"])
def test_a_stopped_client_has_no_secrets(step):
    cohort = Cohort(4)
    cohort.reach(step)
    client = cohort.clients["c1"]
    secrets = secrets_of(client)
    assert all(holds(client, secret) for secret in secrets)
    client.abort()
    assert not any(holds(client, secret) for secret in secrets)


def test_every_round_forgets_the_last_ones_seed_and_shares():
    cohort = Cohort(4)
    cohort.reach("mask")
    client = cohort.clients["c1"]
    old = [client._ring.seed, *client._ring.held.values()]
    finishes(cohort)
    again(cohort)
    assert not any(holds(client, secret) for secret in old)
    assert client._ring.seed not in old


def test_the_server_holds_no_clients_vector():
    """Masked vectors are added as they come, so that none is there to be opened later."""
    cohort = Cohort(4, length=2000)
    cohort.reach("mask")
    payloads = []
    for name in cohort:
        data = cohort.do("mask", name)
        cohort.server.receive(data)
        message, payload = cohort.read(data)[1:]
        lanes = wire.unpack(message.vector, payload, 2000, message.vector.bits)
        payloads += [bytes(payload), lanes.astype(np.uint32).tobytes(), bytes(data)[-500:]]
    payloads = payloads[3:]  # the first is the sum, as long as it is alone
    assert not any(holds(cohort.server, payload) for payload in payloads)


def test_every_client_draws_its_own_secrets():
    asked = []

    def entropy(size):
        asked.append(size)
        return len(asked).to_bytes(size)

    cohort = Cohort(3)
    cohort.clients["c1"] = Client(cohort.session, "c1", cohort.identities["c1"], entropy=entropy)
    cohort.reach("mask")
    # Two keys and a salt; a seed, the coefficients' seed and a salt.
    assert asked == [32] * 6
    ring = cohort.clients["c1"]._ring
    assert (ring.cipher_key, ring.mask_key) == ((1).to_bytes(32), (2).to_bytes(32))
    assert ring.seed == (4).to_bytes(32)
