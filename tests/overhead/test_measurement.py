"""A row says what was measured; a wrong result says so, and has no time."""

import pytest
from cases import named
from fakes import SPREADS, FakeClock, equal, job

from securecomp.errors import WrongResultError
from securecomp.overhead import measure, report, text
from securecomp.overhead.job import Case, Target
from securecomp.overhead.measurement import measure_case
from securecomp.overhead.runner import failures


@pytest.fixture
def clock():
    return FakeClock()


def case(made, **facts):
    return Case("fake/one", "A fake", lambda _: made, size=1, quick=1, tiny=1, **facts)


def test_a_row(clock):
    row = measure(
        job(clock, setup=0.25, parts=lambda *_: {"hospital": 0.1, "decode": 0.05}),
        "fake",
        quick=True,
        clock=clock,
    )
    assert (row["case"], row["sizes"], row["error"]) == ("fake", {"elements": 10}, 0.0)
    assert {name: row[name]["median"] for name in SPREADS} == pytest.approx(
        {"plain": 0.001, "online": 0.25, "secure": 0.5, "ratio": 500}
    )
    for name in SPREADS:
        assert row[name]["low"] <= row[name]["median"] <= row[name]["high"]
    assert row["setup"]["median"] == pytest.approx(0.25)
    assert row["parts"]["hospital"]["median"] == pytest.approx(0.1)
    assert row["decode"]["median"] == pytest.approx(0.05)
    assert row["bytes_by_role"] == {"hospital": 20}
    assert len(row["samples"]["online"]) == row["runs"] >= 7
    assert failures(report([row])) == []


def test_a_wrong_result_gets_no_time(clock):
    row = measure(job(clock, check=lambda *_: equal(1, 2)), "fake", quick=True, clock=clock)
    assert row == {
        "case": "fake",
        "title": "fake",
        "series": "",
        "failure": "wrong result: not plaintext's",
    }
    assert failures(report([row])) == ["fake"]
    assert "failed: fake: wrong result: not plaintext's" in text(report([row]))


def test_a_result_that_becomes_wrong_gets_no_time_either(clock):
    calls = 0

    def check(*_):
        nonlocal calls
        calls += 1
        if calls > 1:  # right before the timing, and wrong after it
            raise WrongResultError("drifted")
        return 0.0

    row = measure(job(clock, check=check), "fake", quick=True, clock=clock)
    assert row["failure"] == "wrong result: drifted"
    assert not {"secure", "plain", "ratio", "error"} & row.keys()


def test_the_larger_of_both_errors_counts(clock):
    errors = iter([1e-9, 1e-6])
    row = measure(job(clock, check=lambda *_: next(errors)), "fake", quick=True, clock=clock)
    assert row["error"] == 1e-6


def test_work_that_breaks(clock):
    def broken(_):
        raise ZeroDivisionError("at home")

    row = measure_case(case(job(clock, seconds=broken)), True, clock)
    assert row["failure"] == "ZeroDivisionError: at home"


def test_targets(clock):
    for target, value, met in [
        (Target("", 300), 250.0, True),
        (Target("", 100), 250.0, False),
        (Target("", 5, floor="copy"), 2.5, True),
        (Target("", 1e4, unit="us"), 25_000.0, False),
        (Target("", 2, unit="bytes there"), 2.0, True),
        (Target("", 2, unit="bytes back"), 4.0, False),
        (Target("", 0, unit="error"), 0.0, True),
    ]:
        with named(target, value, met):
            made = job(clock, floors={"copy": clock.work(0.1)})
            (found,) = measure_case(case(made, targets=(target,)), False, clock)["targets"]
            assert found["value"] == pytest.approx(value)
            assert found["met"] is met


def test_a_quick_run_judges_nothing(clock):
    assert "targets" not in measure_case(case(job(clock), targets=(Target("", 1),)), True, clock)


def test_a_case_says_how_often_long_work_runs(clock):
    row = measure_case(case(job(clock, secure=30.0), rounds=2, scheme="s"), False, clock)
    assert (row["runs"], row["scheme"]) == (2, "s")
    assert row["secure"]["low"] is None
