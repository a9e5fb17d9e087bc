"""Lower bounds on epsilon: published values, exact error rates, adversaries, another auditor."""

import math

import numpy as np
import pytest
from cases import each_case, some_or_all
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from securecomp.audit.bounds import (
    converted,
    first_kept,
    from_counts,
    guessing_pvalue,
    halvings,
    share_high,
    share_low,
)
from securecomp.audit.membership.guesses import evidence
from securecomp.audit.membership.trials import Trials
from securecomp.audit.seeded_random import SeededRandom
from securecomp.errors import ParameterError


def one_run(units, guesses, right, delta, failure=0.05):
    return first_kept(lambda e: guessing_pvalue(units, guesses, right, e, delta), failure)


# Steinke, Nasr, Jagielski 2023, appendix D, as printed.
def test_the_papers_pvalue():
    assert guessing_pvalue(100, 100, 75, math.log(3), 0) == pytest.approx(0.553, abs=5e-4)


@each_case("units, delta, printed", [(100, 0, 0.702), (100, 1e-4, 0.699), (1000, 1e-4, 0.673)])
def test_the_papers_bounds(units, delta, printed):
    assert one_run(units, 100, 75, delta) == pytest.approx(printed, abs=6e-4)


# jax-privacy 2.0.0, CanaryScoreAuditor with threshold_strategy=Explicit(0.5), significance .05, on
# scores of 0 and 1: found, members, alarms, others, delta; then its epsilon_clopper_pearson.
JAX_TRIALS = [
    (280, 400, 300, 600, 0.0, 0.18780885574476902),
    (120, 400, 40, 600, 1e-3, 1.0429498328249218),
    (30, 400, 3, 600, 1e-5, 1.2579468945923287),
    (500, 500, 0, 500, 0.0, 4.905594210033932),
]
# The same, its epsilon_one_run.
JAX_ONE_RUN = [
    (280, 400, 300, 600, 1e-6, 0.0),
    (120, 400, 40, 600, 1e-6, 0.7874895760947269),
    (120, 400, 40, 600, 1e-4, 0.769175376155334),
    (30, 400, 3, 600, 1e-6, 1.2732457504988068),
    (30, 400, 3, 600, 1e-4, 1.1436077564373475),
    (500, 500, 0, 500, 1e-6, 5.111741757074521),
    (500, 500, 0, 500, 1e-4, 4.833513212620196),
]


@each_case("row", JAX_TRIALS)
def test_one_rule_gives_what_jax_privacy_gives(row):
    *counts, delta, theirs = row
    assert from_counts(*counts, delta, 0.05) == pytest.approx(theirs, abs=1e-9)


@each_case("row", JAX_ONE_RUN)
def test_one_run_gives_what_jax_privacy_gives(row):
    found, members, alarms, others, delta, theirs = row
    ours = one_run(members + others, found + alarms, found, delta)
    assert ours == pytest.approx(theirs, abs=2e-6)


@pytest.fixture
def jax_auditing():
    return pytest.importorskip("jax_privacy.auditing", reason="jax-privacy is not installed")


@each_case("seed", range(5))
def test_any_explicit_threshold_gives_what_jax_privacy_gives(jax_auditing, seed):
    rng = np.random.default_rng(seed)
    inside, outside = rng.normal(1, 1, 300), rng.normal(0, 1, 200)
    auditor = jax_auditing.CanaryScoreAuditor(inside, outside)
    for threshold in rng.normal(1, 1, 4):
        at = jax_auditing.Explicit(threshold)
        hits, alarms = int((inside >= threshold).sum()), int((outside >= threshold).sum())
        theirs = auditor.epsilon_clopper_pearson(0.05, 1e-4, threshold_strategy=at)
        assert from_counts(hits, 300, alarms, 200, 1e-4, 0.05) == pytest.approx(theirs, abs=1e-9)
        theirs = auditor.epsilon_one_run(0.05, 1e-5, threshold_strategy=at)
        assert one_run(500, hits + alarms, hits, 1e-5) == pytest.approx(theirs, abs=2e-6)


def test_our_choice_of_thresholds_differs_from_jax_privacys(jax_auditing):
    """It divides by how many corners the curve's hull has, which is known only afterwards, and does
    not pay for the second direction; ours are fixed beforehand. Both stay near each other."""
    rng = np.random.default_rng(0)
    inside, outside = rng.normal(1, 1, 1000), rng.normal(0, 1, 1000)
    auditor = jax_auditing.CanaryScoreAuditor(inside, outside)
    theirs = auditor.epsilon_clopper_pearson(0.05, 0, one_sided=False)
    ours = Trials(inside, outside).bound().epsilon
    assert ours != theirs
    assert abs(ours - theirs) < 0.3


# Error rates, by adding up all that can happen.


@each_case("epsilon", [0.1, 0.5, 1.0, 3.0])
@each_case("guesses", [1, 10, 37, 200])
@each_case("failure", [0.05, 0.2])
def test_randomised_response_is_refuted_no_more_often_than_stated(epsilon, guesses, failure):
    chance = 1 / (1 + math.exp(-epsilon))
    wrong = sum(
        stats.binom.pmf(right, guesses, chance)
        for right in range(guesses + 1)
        if one_run(guesses, guesses, right, 0, failure) > epsilon
    )
    assert wrong <= failure


@each_case("delta", [1e-3, 0.01])
@each_case("together", [True, False])
def test_what_delta_allows_is_no_refutation(delta, together):
    """With probability delta a mechanism tells everything at once, or each coin by itself."""
    epsilon, guesses, failure = 0.5, 60, 0.05
    chance = 1 / (1 + math.exp(-epsilon))
    if together:
        mass = [(1 - delta) * stats.binom.pmf(v, guesses, chance) for v in range(guesses + 1)]
        mass[guesses] += delta
    else:
        lucky = delta + (1 - delta) * chance
        mass = [stats.binom.pmf(v, guesses, lucky) for v in range(guesses + 1)]
    wrong = sum(
        p for v, p in enumerate(mass) if one_run(guesses, guesses, v, delta, failure) > epsilon
    )
    assert wrong <= failure


@each_case("delta", [0.0, 0.05])
@each_case("rate", [0.03, 0.2, 0.35])
def test_trials_at_a_fixed_threshold_err_no_more_often_than_stated(delta, rate):
    epsilon, runs, failure = 1.0, 40, 0.1
    found = min(1.0, math.exp(epsilon) * rate + delta)
    wrong = sum(
        stats.binom.pmf(i, runs, found) * stats.binom.pmf(j, runs, rate)
        for i in range(runs + 1)
        for j in range(runs + 1)
        if from_counts(i, runs, j, runs, delta, failure) > epsilon
    )
    assert wrong <= failure


def refuted(truth, bound, runs, failure):
    """Whether a bound exceeds the truth more often than the stated failure allows."""
    wrong = sum(bound() > truth for _ in range(runs))
    return stats.binomtest(wrong, runs, failure, "greater").pvalue < 1e-3


def by_coins(rng, units, noise):
    member = rng.random(units) < 0.5
    scores = noise(member)
    held = evidence(scores[member], scores[~member], "coins", "add/remove")
    return held.bound(0, 0.8, "add/remove")[0]


def by_split(rng, units, noise):
    member = np.zeros(units, bool)
    member[rng.permutation(units)[: units // 2]] = True
    scores = noise(member)
    held = evidence(scores[member], scores[~member], "split", "add/remove")
    return held.bound(0, 0.8, "add/remove")[0]


@each_case("way", [by_coins, by_split])
@each_case("epsilon", [0.3, 1.5])
@some_or_all("runs", 60, 400)
def test_one_run_errs_no_more_often_than_stated(way, epsilon, runs):
    rng = np.random.default_rng(1)
    chance = 1 / (1 + math.exp(-epsilon))

    def response(member):
        return np.where(rng.random(len(member)) < chance, member, ~member).astype(float)

    def laplace(member):
        return member + rng.laplace(size=len(member)) / epsilon

    for noise in (response, laplace):
        assert not refuted(epsilon, lambda noise=noise: way(rng, 120, noise), runs, 0.2)


@each_case("choice", ["all", "half"])
def test_trials_err_no_more_often_than_stated(choice):
    """Of Laplace noise every threshold in its tail is as close to the truth as can be."""
    rng = np.random.default_rng(2)

    def bound():
        trials = Trials(1 + rng.laplace(size=40), rng.laplace(size=40))
        return trials.bound(0, 0.8, choice).epsilon

    assert not refuted(1.0, bound, 300, 0.2)


def test_the_half_that_chooses_is_not_counted():
    """Of 41 runs 21 choose; the other 20 are counted, whatever place was chosen."""
    found = Trials(np.ones(41), np.zeros(41)).bound(0, 0.95, "half").epsilon
    possible = [from_counts(20, 20, alarms, 20, 0, 0.05) for alarms in range(20)]
    assert min(abs(found - one) for one in possible) < 1e-12
    assert found > 0


def test_trials_by_another_way():
    """Every threshold, with scipy's intervals; both directions, all paid for."""
    rng = np.random.default_rng(6)
    inside, outside = rng.normal(1, 1, 70), rng.normal(0, 1, 90)
    ranks = [[90, 45, 22, 11, 5, 2, 1], [70, 35, 17, 8, 4, 2, 1]]
    failure = 0.1 / 14
    found = []
    for ours, others, ks in ((inside, outside, ranks[0]), (-outside, -inside, ranks[1])):
        for k in ks:
            threshold = np.sort(others)[-k]
            hits = int((ours > threshold).sum())
            low = stats.beta.ppf(failure / 2, hits, len(ours) - hits + 1) if hits else 0
            high = stats.beta.ppf(1 - failure / 2, k, len(others) - k + 1)
            found.append(math.log((low - 0.01) / high) if low > 0.01 else 0)
    bound = Trials(inside, outside).bound(0.01, 0.9)
    assert bound.rules == 14
    assert bound.epsilon == pytest.approx(max(0, *found), abs=1e-9)
    assert bound.epsilon > 0.4


def test_guesses_that_cannot_be():
    for numbers in ((10, 11, 5), (10, 5, 6), (10, 5, -1)):
        with pytest.raises(ParameterError, match="about 10"):
            guessing_pvalue(*numbers, 1.0, 0.0)


def test_the_steepest_slope_is_not_cut_short():
    """The window that is searched gives what all of it gives."""
    for right in (520, 700, 990):
        chance = 1 / (1 + math.exp(-0.2))
        tail = stats.binom.sf(right - 1, 1000, chance)
        slopes = [(stats.binom.sf(right - i - 1, 1000, chance) - tail) / i for i in range(1, right)]
        full = min(1.0, tail + 2 * 1000 * 1e-5 * max(slopes))
        assert guessing_pvalue(1000, 1000, right, 0.2, 1e-5) == pytest.approx(full, rel=1e-6)


# Power.


def test_much_leakage_is_seen():
    rng = np.random.default_rng(3)
    inside, outside = rng.normal(4, 1, 1000), rng.normal(0, 1, 1000)
    assert evidence(inside, outside, "coins", "add/remove").bound(1e-6, 0.95, "add/remove")[0] > 3
    assert evidence(inside, outside, "split", "replace-one").bound(1e-6, 0.95, "replace-one")[0] > 4
    assert Trials(inside, outside).bound(1e-6).epsilon > 4


def test_both_directions_are_tried():
    rng = np.random.default_rng(4)
    # Only those without are ever recognised, and only those with.
    low = np.where(rng.random(500) < 0.3, -1.0, 0.0)
    assert Trials(np.zeros(500), low).bound().recognises == "without"
    assert Trials(-low, np.zeros(500)).bound().recognises == "with"
    for inside, outside in ((np.zeros(500), low), (-low, np.zeros(500))):
        held = evidence(inside, outside, "coins", "add/remove")
        assert held.bound(0, 0.95, "add/remove")[0] > 1.5


def test_no_information_shows_nothing():
    for chosen in ("coins", "split"):
        held = evidence(np.zeros(400), np.zeros(410), chosen, "add/remove")
        assert held.bound(0, 0.95, "add/remove")[0] < 0.5
    assert Trials(np.zeros(400), np.zeros(400)).bound().epsilon < 0.2


@each_case("odd", [0, 1])
def test_a_model_that_says_the_same_of_everybody_is_never_refuted(odd):
    """Its scores decide no lot: or some sizes would be refuted in every audit."""
    for members in range(12, 260, 4):
        for others in (members - 1, members, members + 8):
            scores = np.zeros(members), np.zeros(others)
            scores[0][:odd] = 1.0
            for chosen, relation in (("split", "replace-one"), ("coins", "add/remove")):
                if chosen == "split" or members > 30:
                    held = evidence(*scores, chosen, relation)
                    assert held.bound(0, 0.95, relation)[0] == 0, (members, others, chosen)
            assert Trials(*scores).bound().epsilon == 0


def test_equal_scores_of_a_pair_are_no_guess():
    held = evidence(np.r_[np.ones(30), np.zeros(70)], np.zeros(100), "split", "replace-one")
    assert [(test.guesses, test.right) for test in held.tests] == [
        (100, 30),
        (50, 30),
        (25, 25),
        (12, 12),
    ]


def test_a_score_that_most_share_is_guessed_all_the_same():
    scores = np.r_[np.ones(100), np.zeros(100)], np.r_[np.ones(20), np.zeros(180)]
    held = evidence(*scores, "coins", "add/remove")
    lowest = {
        test.guesses: test.right for test in held.tests if "lowest scores are no" in test.rule
    }
    assert lowest[200] == pytest.approx(200 * 180 / 280, abs=20)  # three standard deviations


@each_case("sizes", [(600, 60), (60, 600)])
def test_pairs_are_drawn_from_all_of_the_larger_side(sizes):
    rng = np.random.default_rng(9)
    right = 0
    for _ in range(20):
        scores = [np.sort(rng.normal(size=size)) for size in sizes]
        held = evidence(*scores, "split", "replace-one")
        assert held.units == held.tests[0].guesses == 60
        right += held.tests[0].right
    assert stats.binomtest(right, 1200).pvalue > 1e-3


def test_the_number_of_units_is_no_leak_between_replacements():
    """What publishes how many members there are keeps every promise for replace-one."""
    scores = np.full(300, 300.0), np.full(310, 300.0)
    held = evidence(*scores, "coins", "replace-one")
    assert held.relation == "replace-one"
    assert held.pvalue(0.01, 0.0, "replace-one") > 0.05


# Laws.


@given(
    st.integers(1, 300),
    st.data(),
    st.floats(0.01, 6),
    st.sampled_from([0.0, 1e-6, 1e-3]),
)
def test_a_pvalue_grows_with_delta_and_falls_with_right_guesses(guesses, data, epsilon, delta):
    right = data.draw(st.integers(0, guesses))
    value = guessing_pvalue(guesses, guesses, right, epsilon, delta)
    assert 0 <= value <= 1
    assert guessing_pvalue(guesses, guesses, right, epsilon, delta * 2) >= value
    assert guessing_pvalue(guesses, guesses, right, epsilon, 0) <= value
    if right < guesses and delta == 0:
        assert guessing_pvalue(guesses, guesses, right + 1, epsilon, 0) <= value


@given(st.integers(20, 200), st.data(), st.sampled_from([0.0, 1e-5]))
def test_what_is_below_the_bound_is_refuted(guesses, data, delta):
    right = data.draw(st.integers(guesses // 2, guesses))
    bound = one_run(guesses, guesses, right, delta)
    for share in (0.0, 0.3, 0.9, 1.0):
        if bound > 0:
            assert guessing_pvalue(guesses, guesses, right, share * bound, delta) < 0.05


@given(st.integers(0, 50), st.integers(1, 50), st.floats(0.001, 0.5))
def test_shares_are_clopper_and_pearsons(hits, trials, failure):
    hits = min(hits, trials)
    interval = stats.binomtest(hits, trials).proportion_ci(1 - 2 * failure if failure < 0.5 else 0)
    assert share_low(hits, trials, failure) == pytest.approx(interval.low, abs=1e-9)
    assert share_high(hits, trials, failure) == pytest.approx(interval.high, abs=1e-9)


def test_promises_between_relations():
    assert converted(1.0, 1e-5, "add/remove", "add/remove") == (1.0, 1e-5)
    epsilon, delta = converted(1.0, 1e-5, "add/remove", "replace-one")
    assert epsilon == 2.0
    assert delta == pytest.approx(1e-5 * (1 + math.e))
    with pytest.raises(ParameterError, match="replace-one"):
        converted(1.0, 1e-5, "replace-one", "add/remove")


def test_a_conversion_between_relations_is_tight_for_randomised_response():
    """Two coins of randomised response together: the worst ratio is that of twice epsilon."""
    epsilon = 0.7
    chance = 1 / (1 + math.exp(-epsilon))
    ratio = (chance * chance) / ((1 - chance) * (1 - chance))
    assert math.log(ratio) == pytest.approx(converted(epsilon, 0, "add/remove", "replace-one")[0])


def test_halvings():
    assert halvings(10) == [10, 5, 2, 1]
    assert halvings(100, 10) == [100, 50, 25, 12]
    assert halvings(5, 10) == []


def test_equal_scores_are_put_in_order_by_lot():
    places = SeededRandom.of("x", np.zeros(3)).ranks(np.array([0.0] * 100 + [-1.0, 1.0]))
    assert (places[100], places[101]) == (0, 101)
    assert sorted(places[:100].tolist()) == list(range(1, 101))
    assert abs(np.corrcoef(places[:100], np.arange(100))[0, 1]) < 0.4  # four standard deviations


def test_each_draw_of_a_lot_is_another():
    """Or the same places of both sides, which are sorted, would be paired."""
    lots = SeededRandom.of("x", np.zeros(3))
    first, second = lots.order(50), lots.order(50)
    assert first.tolist() != second.tolist()
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.6  # four standard deviations


def test_a_lot_from_data_cannot_be_drawn_again():
    rng = np.random.default_rng(5)
    scores = rng.normal(size=50)
    first, again = SeededRandom.of("x", scores), SeededRandom.of("x", scores)
    assert first.order(50).tolist() == again.order(50).tolist()
    assert (
        SeededRandom.of("y", scores).order(50).tolist()
        != SeededRandom.of("x", scores).order(50).tolist()
    )
    moved = SeededRandom.of("x", np.nextafter(scores, 9)).order(50)
    assert moved.tolist() != SeededRandom.of("x", scores).order(50).tolist()
    # Between arrays nothing can be moved.
    assert (
        SeededRandom.of("x", scores[:20], scores[20:]).order(9).tolist()
        != SeededRandom.of("x", scores[:21], scores[21:]).order(9).tolist()
    )


def test_unfair_coins():
    with pytest.raises(ParameterError, match="fair coins would not give"):
        evidence(np.zeros(900), np.zeros(100), "coins", "add/remove")


@pytest.mark.slow
@each_case("way", [by_coins, by_split])
@each_case("units", [30, 300, 2000])
def test_many_runs_err_no_more_often_than_stated(way, units):
    rng = np.random.default_rng(7)
    for epsilon in (0.2, 1.0, 3.0):
        chance = 1 / (1 + math.exp(-epsilon))
        for noise in (
            lambda m, p=chance: np.where(rng.random(len(m)) < p, m, ~m).astype(float),
            lambda m, e=epsilon: m + rng.laplace(size=len(m)) / e,
        ):
            assert not refuted(epsilon, lambda noise=noise: way(rng, units, noise), 1000, 0.2)


@pytest.mark.slow
@each_case("choice", ["all", "half"])
def test_many_gaussian_trials_err_no_more_often_than_stated(choice):
    """The Gaussian mechanism's epsilon at a delta is known (Balle, Wang 2018, theorem 8)."""
    rng, mu, delta = np.random.default_rng(8), 1.0, 0.05
    low, high = 0.0, 20.0
    for _ in range(100):
        middle = (low + high) / 2
        kept = stats.norm.cdf(mu / 2 - middle / mu) - math.exp(middle) * stats.norm.cdf(
            -mu / 2 - middle / mu
        )
        low, high = (middle, high) if kept > delta else (low, middle)

    def bound(runs=200):
        trials = Trials(mu + rng.normal(size=runs), rng.normal(size=runs))
        return trials.bound(delta, 0.8, choice).epsilon

    assert not refuted(high, bound, 2000, 0.2)
    assert np.median([bound(5000) for _ in range(5)]) > high / 2
