"""The harness on jobs that turn the clock themselves: what is counted, and in which order."""

import pytest
from fakes import FakeClock, job

from securecomp.overhead import timing
from securecomp.overhead.job import Job

EFFORT = timing.Effort(seconds=1.0, least=3, most=9, sample=0.05, warm=0.01)


@pytest.fixture
def clock():
    return FakeClock()


def test_each_side_gets_its_own_seconds(clock):
    samples = timing.interleave(job(clock, setup=0.5), EFFORT, clock)
    assert samples.plain == pytest.approx([0.001] * 3)  # 3 rounds: the time is over before
    assert samples.setup == pytest.approx([0.5] * 3)
    assert samples.online == pytest.approx([0.25] * 3)
    assert samples.secure == pytest.approx([0.75] * 3)


def test_short_sides_are_means_over_their_calls(clock):
    short = job(clock, plain=2**-10, secure=2**-9, setup=2**-11)
    samples = timing.interleave(short, timing.Effort(0.1, 3, 3, 2**-4, 2**-6), clock)
    assert samples.plain == [2**-10] * 3
    assert samples.setup == [2**-11] * 3
    assert samples.online == [2**-9] * 3


def test_without_set_up_its_time_is_nothing(clock):
    def ticking():
        clock.now += 2**-20  # a real clock never stands still
        return clock.now

    samples = timing.interleave(job(clock), EFFORT, ticking)
    assert samples.setup == [0.0] * len(samples.setup)


def test_rounds_end_with_the_time_and_with_the_most(clock):
    effort = timing.Effort(seconds=1.0, least=3, most=50, sample=0.05, warm=0.01)
    short = timing.interleave(job(clock, secure=0.01), effort, clock)
    assert 3 < len(short.plain) < 50
    assert len(timing.interleave(job(clock, secure=0.001), EFFORT, clock).plain) == EFFORT.most


def test_the_sides_take_turns(clock):
    calls = []

    def told(name, seconds):
        def work(*_):
            calls.append(name)
            clock.now += seconds

        return work

    turns = Job(
        sizes={},
        plain=told("plain", 0.06),
        secure=told("secure", 0.07),
        floors={"floor": told("floor", 0.08)},
        check=lambda *_: 0.0,
    )
    timing.interleave(turns, EFFORT, clock)
    # One call is longer than a sample; it warms once, and is measured once.
    assert (
        calls
        == ["plain", "secure", "floor"] + ["plain"] * 2 + ["secure"] * 2 + ["floor"] * 2 + calls[9:]
    )
    assert calls[3:9] * ((len(calls) - 3) // 6) == calls[3:]


def test_warming_is_not_counted(clock):
    # The call after another side's is slow, as the caches are full of that one's data.
    last = None

    def work(name, seconds):
        def run(*_):
            nonlocal last
            clock.now += seconds if last == name else 10 * seconds
            last = name

        return run

    cold = Job({}, work("plain", 0.05), work("secure", 0.06), lambda *_: 0.0)
    samples = timing.interleave(cold, timing.Effort(9.0, 3, 3, 0.05, 0.05), clock)
    assert samples.plain == pytest.approx([0.05] * 3)
    assert samples.online == pytest.approx([0.06] * 3)


def test_short_work_is_repeated_and_long_work_is_not(clock):
    calls = 0

    def counted(seconds):
        def work(*_):
            nonlocal calls
            calls += 1
            clock.now += seconds

        return work

    def times(seconds):
        nonlocal calls
        calls = 0
        one = Job({}, clock.work(0.05), counted(seconds), lambda *_: 0.0)
        rounds = len(timing.interleave(one, EFFORT, clock).plain)
        return calls, rounds

    calls_of_short, rounds = times(2**-10)
    assert calls_of_short == 3 + rounds * (11 + 52)  # three to begin with; warm, and a sample
    calls_of_longer, rounds = times(2**-5)
    assert calls_of_longer == 3 + rounds * (1 + 2)
    assert times(0.5) == (1 + 3, 3)  # neither repeated nor warmed


def test_a_result_that_clocks_itself(clock):
    itself = job(clock, seconds=lambda _: 0.125, before=lambda _: 0.0625, setup=1.0)
    samples = timing.interleave(itself, EFFORT, clock)
    assert samples.online == [0.125] * 3
    assert samples.setup == pytest.approx([1.0625] * 3)


def test_parts_are_means_over_the_calls_of_a_sample(clock):
    turns = iter(range(10_000))
    parts = job(clock, secure=0.25, parts=lambda _, __: {"server": float(next(turns) % 2)})
    samples = timing.interleave(parts, timing.Effort(0.1, 3, 3, 1.0, 0.25), clock)
    assert samples.parts == {"server": [0.5] * 3}


def test_state_goes_from_set_up_to_all_that_reads_it(clock):
    seen = []
    whole = job(
        clock,
        setup=0.1,
        parts=lambda state, result: seen.append((state, result)) or {},
    )
    timing.interleave(whole, EFFORT, clock)
    assert set(seen) == {("keys", 7)}


def test_long_work_is_checked_each_time(clock):
    checks = []
    long = job(clock, secure=20.0, check=lambda *pair: checks.append(pair) or 0.0)
    samples = timing.measure_long(long, 2, clock)
    assert checks == [(7, 7)] * 2
    assert samples.online == [20.0] * 2
    assert samples.checked["error"] == 0.0
    assert samples.checked["rounds"] == 2


def test_work_that_takes_no_time_ends(clock):
    samples = timing.interleave(
        Job({}, clock.work(0.0), clock.work(0.01), lambda *_: 0.0),
        timing.Effort(0.1, 3, 3, 1e-6, 1e-7),
        clock,
    )
    assert samples.plain == [0.0] * 3
