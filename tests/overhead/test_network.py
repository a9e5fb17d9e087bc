import json
from pathlib import Path

import links
import numpy as np
import pytest
from cases import named
from hypothesis import given
from hypothesis import strategies as st

from securecomp.errors import ParameterError
from securecomp.mpc import Computation
from securecomp.overhead.line_model import LINES, Line
from securecomp.overhead.scheme_choice import count
from securecomp.paillier.encrypted_sum import Paillier
from securecomp.protocol.local_carrier import LocalCarrier
from securecomp.secagg.masked_sum import Masking
from securecomp.sharing.additive_sum import Sharing

LAN, WAN, SLOW = LINES


def test_the_lines_are_those_of_the_report():
    assert [line.facts for line in LINES] == [
        "1 Gbit/s, 1 ms there and back",
        "100 Mbit/s, 40 ms there and back",
        "20 Mbit/s, 80 ms there and back",
    ]


def test_a_time_worked_out_by_hand():
    # 3 rounds of 20 ms one way; 1 MB is 8 Mbit, at 100 Mbit/s 80 ms.
    assert WAN.seconds(3, 1_000_000) == pytest.approx(0.060 + 0.080)
    assert LAN.seconds(0, 125_000_000) == pytest.approx(1.0)
    assert SLOW.seconds(1, 0) == pytest.approx(0.040)


def test_the_directions_do_not_slow_each_other():
    assert WAN.seconds(1, 5_000, 80_000) == WAN.seconds(1, 80_000, 5_000) == WAN.seconds(1, 80_000)


@given(
    st.sampled_from(LINES),
    *(st.integers(0, 10**9) for _ in range(4)),
)
def test_rounds_in_two_parts_take_the_sum_of_the_parts_times(line, rounds, more, sent, others):
    together = line.seconds(rounds + more, sent + others)
    assert together == pytest.approx(line.seconds(rounds, sent) + line.seconds(more, others))
    assert together >= line.seconds(rounds, sent)


def test_negative_numbers_are_refused():
    for numbers in [(-1, 0, 0), (1, -1, 0), (1, 0, -1)]:
        with named(numbers), pytest.raises(ParameterError, match="at least 0"):
            WAN.seconds(*numbers)


def test_what_a_line_carries_lies_between_a_partys_bytes_and_all():
    for scheme in [Sharing(3), Sharing("all"), Masking(), Paillier(bits=2048)]:
        with named(scheme):
            transcript = count(scheme, 5, 70)
            assert len(transcript.loads) == transcript.rounds
            assert max(transcript.sent.values()) <= sum(transcript.loads) <= transcript.bytes_sent
            assert sum(transcript.crossed.values()) == 2 * transcript.bytes_sent


def test_computing_on_shares_is_counted_by_round_too():
    carrier = LocalCarrier()
    both = Computation(["a", "b"], carrier)
    x = both.share("a", np.arange(50), bound=50)
    y = both.share("b", np.arange(50), bound=50)
    (x < y).reveal()
    found = carrier.transcript
    assert len(found.loads) == found.rounds > 3
    assert max(found.sent.values()) <= sum(found.loads) <= found.bytes_sent


def _alternating() -> list[tuple[int, int]]:
    return [(400_000, 0), (0, 60_000), (120_000, 0), (0, 250_000)]


def _shared_sum() -> list[tuple[int, int]]:
    found = count(Sharing("all"), 2, 40_000)
    numbers = range(1, found.rounds + 1)
    return [(found.crossed[n, "site 1", "out"], found.crossed[n, "site 2", "out"]) for n in numbers]


@pytest.mark.slow  # a timing, if one of the model and not of the code
@pytest.mark.parametrize("join", [links.netem, links.packets])
@pytest.mark.parametrize("line", LINES, ids=lambda line: line.name)
@pytest.mark.parametrize("exchange", [_alternating, _shared_sum])
def test_tcp_between_two_namespaces_takes_what_the_model_says(line: Line, join, exchange):
    """The same rounds and bytes over real TCP, within 10 % and a little for each round.

    TCP's and IP's headers, which the model leaves out, are 52 of 1,500 bytes. The quickest of five
    repeats counts, as other work on the machine only adds.
    """
    links.needed()
    rounds = exchange()
    model = sum(line.seconds(1, there, back) for there, back in rounds)
    script = str(Path(__file__).with_name("exchange.py"))
    with links.namespaces(), join(line):
        outputs = links.both(script, json.dumps(rounds), "5")
    repeats = [max(end for _, end in both) - both[0][0] for both in zip(*outputs, strict=True)]
    measured = min(repeats)
    assert model * 0.99 <= measured <= model * 1.10 + 0.004 * len(rounds), (model, repeats)
