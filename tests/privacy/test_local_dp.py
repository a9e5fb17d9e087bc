"""Noise that every person adds: exact probabilities, unbiased estimates, intervals that hold."""

import math

import numpy as np
import pytest
from cases import each_case
from scipy import stats

from securecomp.errors import ParameterError, RangeError
from securecomp.privacy.local_dp import Response, Unary
from securecomp.protocol.secure_sum import secure_sum

_RARE = 1e-6


def codes(counts):
    return np.repeat(np.arange(len(counts)), counts)


@each_case("epsilon", [0.1, 1.0, 3.0])
@each_case("answers", [2, 5])
def test_responses_have_exactly_their_probabilities(epsilon, answers, replay):
    people = 60_000
    drawn = Response(epsilon, answers).answer(np.zeros(people, int), replay(1))
    truth = math.exp(epsilon) / (math.exp(epsilon) + answers - 1)
    lie = 1 / (math.exp(epsilon) + answers - 1)
    found = np.bincount(drawn, minlength=answers)
    want = np.array([truth, *[lie] * (answers - 1)]) * people
    assert stats.chisquare(found, want).pvalue > _RARE


def test_a_response_promises_epsilon_and_no_less():
    """The ratio of what two answers say, from the mechanism's own probabilities: e^epsilon."""
    for epsilon in (0.2, 1.5):
        for answers in (2, 7):
            response = Response(epsilon, answers)
            assert math.isclose(response.kept / response.false, math.exp(epsilon))
            assert math.isclose(response.kept + (answers - 1) * response.false, 1)


@each_case("epsilon", [0.5, 2.0])
def test_bits_are_flipped_as_they_should_be(epsilon, replay):
    people, answers = 20_000, 4
    unary = Unary(epsilon, answers)
    bits = unary.reports(np.full(people, 2), replay(2))
    assert bits.shape == (people, answers)
    for answer in range(answers):
        p = unary.kept if answer == 2 else unary.false
        assert stats.binomtest(int(bits[:, answer].sum()), people, p).pvalue > _RARE
    # Bits of one person are flipped independently.
    assert abs(np.corrcoef(bits[:, 0], bits[:, 1])[0, 1]) < 5 / math.sqrt(people)
    # Two answers differ in two bits, each of which tells epsilon / 2.
    ratio = (unary.kept / unary.false) * ((1 - unary.false) / (1 - unary.kept))
    assert math.isclose(ratio, math.exp(epsilon))


@each_case("mechanism", [Response, Unary])
def test_estimates_are_unbiased_and_their_intervals_hold(mechanism, replay):
    true = [900, 500, 80, 20]
    people = sum(true)
    chosen = mechanism(1.0, 4)
    runs, inside, sums, squares, promised = 300, 0, np.zeros(4), np.zeros(4), np.zeros(4)
    for run in range(runs):
        totals = chosen.counts(codes(true), replay(run))
        estimates = chosen.estimates(totals, people)
        found = np.array([e.count for e in estimates])
        sums += found
        squares += found**2
        promised += [e.deviation for e in estimates]
        inside += sum(e.low <= n <= e.high for e, n in zip(estimates, true, strict=True))
    mean = sums / runs
    spread = np.sqrt(squares / runs - mean**2)
    assert (np.abs(mean - true) < 5 * spread / math.sqrt(runs)).all()
    assert (np.abs(spread / (promised / runs) - 1) < 0.25).all()
    assert stats.binomtest(inside, 4 * runs, 0.95).pvalue > _RARE


def test_the_variance_is_the_published_one():
    """Wang et al. 2017: for rare answers, n q (1 - q) / (p - q)^2."""
    people, epsilon = 10_000, 1.0
    response, unary = Response(epsilon, 10), Unary(epsilon, 10)
    zero = round(people * response.false)
    e = math.exp(epsilon)
    expected = people * (e + 8) / (e - 1) ** 2
    assert math.isclose(
        response.estimates([zero] * 10, people)[0].deviation ** 2, expected, rel_tol=0.01
    )
    half = math.exp(epsilon / 2)
    zero = round(people * unary.false)
    expected = people * half / (half - 1) ** 2
    assert math.isclose(
        unary.estimates([zero] * 10, people)[0].deviation ** 2, expected, rel_tol=0.01
    )


def test_sums_may_be_secure_or_in_the_clear(replay):
    unary = Unary(2.0, 3)
    sites = {f"site {i}": codes([30 * i + 40, 20, 10]) for i in range(4)}
    counts = {name: unary.counts(c, replay(name)) for name, c in sites.items()}
    people = sum(map(len, sites.values()))
    total = secure_sum(counts, bound=1000)
    clear = np.sum(list(counts.values()), axis=0).tolist()
    assert total.integers == clear
    assert unary.estimates(total.integers, people) == unary.estimates(clear, people)


def test_answers_follow_from_the_entropy_alone(replay):
    for mechanism in (Response(1.0, 3), Unary(1.0, 3)):
        first, again, other = (mechanism.counts(codes([50, 50, 50]), replay(s)) for s in (1, 1, 2))
        assert first == again != other
        assert mechanism.reports(np.zeros(0, int)).shape == (0, 3)


@each_case("bad", [0, -1.0, math.nan, math.inf, True])
def test_bad_epsilon(bad):
    with pytest.raises(ParameterError, match="epsilon is a positive finite"):
        Response(bad, 2)


def test_bad_input():
    with pytest.raises(ParameterError, match="at least two answers"):
        Unary(1.0, 1)
    response = Response(1.0, 3)
    with pytest.raises(RangeError, match="person 2 has none of the 3 answers"):
        response.answer([0, 3])
    with pytest.raises(ParameterError, match="whole numbers"):
        response.answer([0.5])
    with pytest.raises(ParameterError, match="2 totals for 3 answers"):
        response.estimates([1, 2], 10)
    with pytest.raises(ParameterError, match="confidence"):
        response.estimates([1, 2, 3], 10, confidence=1.0)
    with pytest.raises(RangeError, match="from 0 to the number of people"):
        response.estimates([1, 2, 11], 10)
