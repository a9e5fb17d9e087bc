"""What is opened on the way is uniform and says nothing of the inputs; no message has more."""

import numpy as np
from cases import each_case
from mpc.computers import (
    LIMIT,
    NAMES,
    P,
    carrier,
    computation,
    opened_messages,
    openings,
    said,
    sent,
)
from scipy import stats

from securecomp.core import field
from securecomp.mpc.dealer_parties import DEALER
from securecomp.mpc.roles import Seed, ShareMessage, vector_body
from securecomp.mpc.selection import maximum, sort, where
from securecomp.protocol import wire

N = 64
RUNS = 24
UNLIKELY = 1e-4  # the seeds are fixed: a test fails always or never
INPUTS = {
    "zeros": (np.zeros(N), np.zeros(N)),
    "ends": (np.full(N, -(2**28)), np.tile([2**28, -(2**28)], N // 2)),
}
PROGRAMS = {
    "product": lambda x, y: x * y,
    "square": lambda x, _: x.square(),
    "matrix product": lambda x, y: x.reshape(8, 8) @ y.reshape(8, 8),
    "less": lambda x, y: x < y,
    "equal": lambda x, y: x == y,
    "truncation": lambda x, _: x.finer(1 << 8).truncate(5),
    "where": lambda x, y: where((x + y).within(1), x, y),
    "the same operand twice": lambda x, _: x * x,
}


def opened(name, inputs, seed, parties=3):
    """What the parties open in a program, without its inputs, and nothing is revealed in it."""
    run = computation(parties, seed)
    x = run.share("north", inputs[0], bound=2**28)
    y = run.share("south", inputs[1], bound=2**28)
    PROGRAMS[name](x, y)
    return openings(run)


def tallies(numbers, bits, low, high):
    """How often each value of some bits occurs."""
    codes = [(v >> low) & ((1 << (high - low)) - 1) for v in numbers]
    return np.bincount(codes, minlength=1 << (high - low))


def places(bits):
    return [(0, 4), (29, 33), (bits - 4, bits)]


@each_case("name", PROGRAMS)
def test_what_is_opened_is_uniform_whatever_the_inputs_are(name):
    seen = {}
    for which, inputs in INPUTS.items():
        runs = [opened(name, inputs, f"{which} {i}") for i in range(RUNS)]
        assert {len(steps) for steps in runs} == {len(runs[0])}
        assert runs[0]
        seen[which] = [
            (steps[0][0], [v for _, numbers in steps for v in numbers])
            for steps in zip(*runs, strict=True)
        ]
    for (bits, one), (other_bits, other) in zip(*seen.values(), strict=True):
        assert bits == other_bits
        # The last step of a comparison opens a word with the bits of 64 elements.
        assert len(one) == len(other) >= RUNS
        for low, high in places(bits):
            if len(one) < 1000:
                low, high = low, low + 1
            table = [tallies(numbers, bits, low, high) for numbers in (one, other)]
            for row in table:
                assert stats.chisquare(row).pvalue > UNLIKELY
            assert stats.chi2_contingency(table).pvalue > UNLIKELY
        if bits == field.BITS:
            assert all(0 <= v < P for v in one)
            assert stats.kstest(np.array(one) / P, "uniform").pvalue > UNLIKELY
            assert stats.ks_2samp(one, other).pvalue > UNLIKELY


@each_case("name", PROGRAMS)
@each_case("parties", [2, 3])
def test_every_bit_of_what_is_opened_is_balanced(name, parties):
    """Also where a step opens few words: over all steps, and in each place of a word."""
    counts, total = np.zeros(64), 0
    for i in range(RUNS // 2):
        for bits, numbers in opened(name, INPUTS["ends"], f"bits {i}", parties):
            if bits == 64:
                words = np.array(numbers, np.uint64)
                counts += [(words >> np.uint64(b) & np.uint64(1)).sum() for b in range(64)]
                total += len(words)
            else:
                assert len(set(numbers)) == len(numbers)
    if total:
        z = (counts - total / 2) / np.sqrt(total / 4)
        assert np.abs(z).max() < 4.5
        assert stats.chi2.sf((z**2).sum(), 64) > UNLIKELY


def test_the_same_randomness_masks_any_input_with_the_same_numbers():
    """What is opened first minus the input is the mask: the same for all inputs, and uniform."""
    for name in ("product", "less", "equal", "square", "truncation"):
        masks = []
        for inputs in INPUTS.values():
            bits, numbers = opened(name, inputs, "mask")[0]
            assert bits == field.BITS
            x, y = (v.astype(np.int64).astype(object) for v in inputs)
            hidden = {
                "product": [*x, *y], "less": 2 * (x - y), "equal": x - y, "square": x,
                "truncation": x * 256 + (1 << 59),
            }[name]  # fmt: skip
            masks.append([(v - h) % P for v, h in zip(numbers, hidden, strict=True)])
        assert masks[0] == masks[1]
        assert stats.kstest(np.array(masks[0]) / P, "uniform").pvalue > UNLIKELY


def test_no_mask_is_used_twice():
    """The same values, multiplied and compared again and again, are never opened as the same."""
    run = computation(3)
    x = run.share("north", np.zeros(70), bound=1)
    for _ in range(3):
        for made in (x * x, x.square(), x < 0, x == 0, x.finer(2).truncate(1)):
            assert made.size == 70
    numbers = [v for bits, step in openings(run) if bits == 61 for v in step]
    assert len(set(numbers)) == len(numbers) > 1000
    words = [v for bits, step in openings(run) if bits == 64 for v in step]
    assert len({v for v in words if v >> 32}) > 0.99 * len([v for v in words if v >> 32])


def test_one_partys_share_of_what_is_opened_is_uniform_too():
    numbers = []
    for i in range(RUNS):
        run = computation(2, f"shares {i}")
        x = run.share("north", np.zeros(N), bound=1)
        (x * x).reveal()
        for _, sender, _, kind, body in opened_messages(run):
            if kind == ShareMessage.KIND and sender == "north":
                numbers += said(body)[0]
    assert stats.kstest(np.array(numbers) / P, "uniform").pvalue > UNLIKELY


def test_shares_of_an_input_are_uniform_but_for_their_sum():
    for owner in NAMES[:3]:
        shares = [[], [], []]
        for i in range(RUNS):
            value = (
                computation(3, f"{owner} {i}").share(owner, np.full(N, LIMIT), bound=LIMIT).value
            )
            for kept, share in zip(shares, value, strict=True):
                kept += share.tolist()
        for kept in shares:
            assert stats.kstest(np.array(kept) / P, "uniform").pvalue > UNLIKELY
        a, b, c = (np.array(kept) / P for kept in shares)
        for u, v in ((a, b), (a, c), (b, c)):
            table = np.histogram2d(u, v, 4, [[0, 1], [0, 1]])[0]
            assert stats.chisquare(table.reshape(-1)).pvalue > UNLIKELY


# Messages


def trace(run):
    """Who says what kind of thing to whom, and how long it is."""
    return [(step, s, r, kind, len(body)) for step, s, r, kind, body in opened_messages(run)]


def everything(run, a, b):
    x, y = run.share("north", a, bound=100), run.share("south", b, bound=100)
    z = x * y + x.square()
    (x.finer(4).truncate(1) @ y).reveal()
    where(z < x, x, z).reveal(to="south")
    sort(x)
    maximum(y)
    (x == y).sum().reveal()


def test_who_speaks_and_how_much_does_not_depend_on_the_data():
    traces = []
    for seed, (a, b) in enumerate([([0] * 5, [0] * 5), ([1, 2, 3, 4, 5], [-100, 100, 7, 0, 5])]):
        run = computation(3, seed)
        everything(run, a, b)
        traces.append(trace(run))
    assert traces[0] == traces[1]


def test_messages_have_the_protocols_bytes_and_no_more():
    run = computation(3)
    everything(run, [1, 2, 3, 4, 5], [-100, 100, 7, 0, 5])
    seen = set()
    for _, sender, _, kind, body in opened_messages(run):
        if kind == Seed.KIND:
            message, payload = wire.decode_body(body, Seed)
            assert len(message.seed) == 32
            assert not len(payload)
            assert wire.encode_body(message).tobytes() == body
        else:
            assert kind == ShareMessage.KIND
            numbers, bits = said(body)
            assert vector_body(np.array(numbers, np.uint64), bits).tobytes() == body
        seen.add((sender, kind))
    seeding, speaking = ("north", "south", DEALER), (DEALER, *NAMES[:3])
    assert seen == {(n, Seed.KIND) for n in seeding} | {(n, ShareMessage.KIND) for n in speaking}


@each_case("parties", [2, 3, 5])
@each_case("to", [None, "south", ["north"], ["south", "north"], ("north",)])
def test_revealing_tells_those_that_it_names(parties, to):
    run = computation(parties)
    names = run.engine.names
    x = run.share("north", [7, -8], bound=9)
    before = sent(run)
    assert x.reveal(to=to).tolist() == [7, -8]
    wanted = names if to is None else ([to] if isinstance(to, str) else to)
    told = [(s, r) for s, r, _ in carrier(run).record[before:]]
    assert sorted(told) == sorted((s, r) for s in names for r in wanted if r != s)
    for _, sender, _, kind, body in opened_messages(run)[before:]:
        assert kind == ShareMessage.KIND
        assert said(body) == (x.value[names.index(sender)].tolist(), field.BITS)


def test_an_input_is_told_to_nobody():
    """The owner sends fresh seeds; nothing that it sends depends on its values."""
    told = []
    for values in ([0, 0], [99, -99]):
        run = computation(3)
        run.share("south", values, bound=99)
        told.append([m for m in opened_messages(run) if m[1] != DEALER])
    assert told[0] == told[1]
    assert [(s, r) for _, s, r, _, _ in told[0]] == [("south", "north"), ("south", "east")]


def test_sharing_the_same_twice_gives_other_shares():
    run = computation(2)
    x, y = (run.share("north", np.arange(9), bound=9) for _ in range(2))
    for one, other in zip(x.value, y.value, strict=True):
        assert not set(one.tolist()) & set(other.tolist())


def test_messages_are_sealed():
    """No seed, no share and no value is in any message's bytes."""
    run = computation(2)
    x = run.share("north", [123456789], bound=10**9)
    x.reveal()
    lockstep = run.engine.run
    everything_sent = b"".join(data for _, _, data in carrier(run).record)
    secrets = [*lockstep.dealer.seeds, *(s.tobytes() for s in x.value)]
    secrets += [int(s[0]).to_bytes(8, "little")[:7] for s in x.value]
    secrets += [(123456789).to_bytes(8, "little")]
    assert not any(secret in everything_sent for secret in secrets)
