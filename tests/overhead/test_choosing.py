from fractions import Fraction

import numpy as np
import pytest
from cases import named

from securecomp.overhead import rates
from securecomp.overhead.line_model import LINES, Line
from securecomp.overhead.rates import fitted
from securecomp.overhead.scheme_choice import CASES, ProtocolCost, count, fastest, protocol_costs
from securecomp.paillier.encrypted_sum import Paillier
from securecomp.secagg.masked_sum import Masking
from securecomp.sharing.additive_sum import Sharing

SCHEMES = {
    "sharing, 3 servers": Sharing(3),
    "sharing, all sites serve": Sharing("all"),
    "masking": Masking(),
}


@pytest.fixture(scope="module")
def choice(runs) -> dict[str, ProtocolCost]:
    found, missing = protocol_costs([row for one in runs.values() for row in one["rows"]])
    assert missing == []
    return {way.name: way for way in found}


def test_rounds_and_bytes_are_what_the_library_counts(choice):
    for name in SCHEMES:
        for sites, values in [(3, 1), (5, 4_000), (10, 500), (25, 90), (55, 30)]:
            with named(name, sites, values):
                transcript = count(SCHEMES[name], sites, values)
                way = choice[name]
                assert way.rounds == transcript.rounds
                assert way.load(sites, values) == pytest.approx(sum(transcript.loads), rel=0.012)


def test_paillier_too(choice):
    for sites, values in [(3, 1), (5, 130), (20, 61)]:
        with named(sites, values):
            transcript = count(Paillier(bits=3072), sites, values)
            way = choice["paillier, 3072 bits"]
            assert way.rounds == transcript.rounds == 3
            assert way.load(sites, values) == pytest.approx(sum(transcript.loads), rel=0.012)


def test_rates_that_made_the_times_come_out_of_them():
    units = [(n, n * d) for n in (18, 30, 90) for d in (10, 1000, 10**6)]
    points = [((a, b), 5e-5 * a + 1.5e-9 * b) for a, b in units]
    found = fitted(points, ("message", "value"))
    assert found == pytest.approx({"message": 5e-5, "value": 1.5e-9})


def test_rows_that_cannot_tell_units_apart_give_no_rates():
    for points in [
        [],
        [((1.0, 2.0), 3.0)],
        [((1.0, 2.0), 3.0), ((2.0, 4.0), 6.5)],
        [((1.0, 0.0), 1.0)] * 3,
    ]:
        with named(points):
            assert fitted(points, ("message", "value")) is None


def test_a_rate_is_never_negative():
    found = fitted([((1.0, 1.0), 1.0), ((1.0, 100.0), 0.5), ((2.0, 1.0), 2.1)], ("a", "b"))
    assert min(found.values()) >= 0


def _sum_row(
    scheme: str, parties: int, elements: int, *, decode: float = 1e-9, **parts: float
) -> dict:
    sizes = {"parties": parties, "elements": elements}
    sizes |= {"bits": 2048} if scheme == "paillier" else {}
    return {
        "case": f"sum/{scheme}/{parties}x{elements}",
        "scheme": scheme,
        "sizes": sizes,
        "online": {"median": decode + sum(parts.values())},
        "decode": {"median": decode},
        "parts": {name.replace("_", " "): {"median": s} for name, s in parts.items()},
    }


def test_sums_whose_roles_were_clocked_apart_tell_all_rates():
    rows = []
    for n, d in ((3, 100), (3, 10_000), (10, 100), (30, 1_000)):
        rows += [
            _sum_row("sharing", n, d, hospital=6e-5 + 3e-9 * d, server=n * (2e-5 + 1e-9 * d)),
            _sum_row(
                "masking",
                n,
                d,
                hospital=1e-4 * n + 1e-9 * n * d,
                server=1e-5 * n * n + n * d * 1e-9,
            ),
            _sum_row(
                "paillier", n, d, hospital=d * 3e-5, aggregator=n * d * 2e-7, key_holder=d * 2e-4
            ),
        ]
    found, missing = protocol_costs(rows)
    assert missing == []
    assert [way.name for way in found][2:] == ["masking", "paillier, 2048 bits"]
    encrypt, add, decrypt = found[-1].rates.values()
    assert encrypt < 3.1e-5 < 1.9e-4 < 2.01e-4
    assert add < 2.1e-7
    assert decrypt < 2.1e-4
    assert all(way.computing(10, 1000) > 0 for way in found)


def test_a_run_without_a_protocol_names_the_cases_that_are_missing(runs):
    assert protocol_costs(runs["ckks"]["rows"]) == ([], list(CASES))
    found, missing = protocol_costs(runs["sharing-masking"]["rows"])
    assert [way.name for way in found] == list(SCHEMES)
    assert missing == ["paillier"]
    assert protocol_costs([]) == ([], list(CASES))


def test_failed_rows_tell_nothing(runs):
    rows = [{"case": "sum/x", "title": "x", "series": "", "failure": "wrong result"}]
    assert protocol_costs(rows) == ([], list(CASES))


def test_the_fastest_is_the_least_of_computing_and_messages(choice):
    line = Line("none", 1e18, 0.0)
    for sites, values in ((3, 10), (100, 10_000)):
        ordered = fastest(list(choice.values()), sites, values, line)
        assert [time for time, _ in ordered] == sorted(time for time, _ in ordered)
        computing = {way.name: way.computing(sites, values) for way in choice.values()}
        assert ordered[0][1] == min(computing, key=computing.get)
    slow = LINES[-1]
    way = choice["masking"]
    wanted = way.computing(9, 50) + 8 * Fraction(slow.round_trip) / 2
    wanted += 8 * Fraction(way.load(9, 50)) / Fraction(slow.bandwidth)
    assert way.seconds(9, 50, slow) == pytest.approx(float(wanted))


def test_times_grow_with_sites_and_values(choice):
    for way in choice.values():
        for line in LINES:
            times = np.array(
                [[way.seconds(n, d, line) for d in (1, 100, 10**5)] for n in (3, 40, 1000)]
            )
            assert (np.diff(times, axis=0) > 0).all()
            assert (np.diff(times, axis=1) >= 0).all()


def test_a_message_path_is_that_of_its_docstring():
    # 3 dealt, n read and n answered, 3 read.
    assert rates.path(5, 7) == (3 + 5 + 5 + 3, 16 * 7)
