"""Batches and noise: the sampled rate is never above the accounted one, nothing is used twice."""

import math
from fractions import Fraction
from itertools import islice

import numpy as np
import pytest
from cases import each_case
from hypothesis import given
from hypothesis import strategies as st
from replaying import Replay
from scipy import stats

from securecomp.core import prg
from securecomp.errors import ParameterError
from securecomp.federated.poisson import batches, check_rate, noises, threshold


@given(st.floats(2.0**-80, 1.0))
def test_the_sampled_rate_is_at_most_the_accounted_one(rate):
    sampled = Fraction(threshold(rate), 1 << 64)
    assert sampled <= Fraction(rate) < sampled + Fraction(1, 1 << 64)


@each_case("rate", [0.01, 0.1, 0.5, 0.93])
def test_rates(rate):
    units, steps = 400, 2000
    taken = np.zeros((steps, units))
    for step, batch in enumerate(batches(units, rate, steps, Replay(f"rates {rate}"))):
        assert (np.diff(batch) > 0).all()
        taken[step, batch] = 1
    assert stats.binomtest(int(taken.sum()), taken.size, rate).pvalue > 1e-6
    # Each unit by itself: sizes are binomial, and units and steps are not correlated.
    sizes = taken.sum(axis=1)
    assert sizes.var() == pytest.approx(units * rate * (1 - rate), rel=0.2)
    centred = taken - rate
    for a, b in ((centred[:, :-1], centred[:, 1:]), (centred[:-1], centred[1:])):
        deviation = rate * (1 - rate) / math.sqrt(a.size)
        assert abs((a * b).mean()) < 6 * deviation


def test_no_batch_comes_again():
    """Over several blocks of steps, which have keys of their own."""
    found = [batch.tobytes() for batch in batches(1000, 0.5, 600, Replay(3))]
    assert len(set(found)) == 600


def test_a_word_at_the_threshold_is_out(monkeypatch):
    below = threshold(0.25)
    words = np.array([below - 1, below, below + 1, 0], np.uint64)
    monkeypatch.setattr(prg, "expand_words", lambda *_: words)
    assert [batch.tolist() for batch in batches(4, 0.25, 1, Replay(0))] == [[0, 3]]


def test_everybody_at_rate_1():
    assert [b.tolist() for b in batches(3, 1.0, 2, Replay(0))] == [[0, 1, 2], [0, 1, 2]]


def test_empty_batches_are_steps():
    found = list(batches(2, 0.5, 64, Replay(1)))
    assert len(found) == 64
    assert 5 <= sum(len(b) == 0 for b in found) <= 30


def test_a_rate_at_which_batches_are_empty_as_a_rule():
    with pytest.raises(ParameterError, match=r"empty as a rule; take a rate of 0\.01 or more"):
        check_rate(0.009, 100)
    assert check_rate(0.01, 100) == 0.01
    for rate in (0.0, -0.1, 1.01, float("nan")):
        with pytest.raises(ParameterError, match="above 0 and at most 1"):
            check_rate(rate, 100)


def test_replays_and_fresh_draws():
    def drawn(seed):
        entropy = Replay(seed)
        chosen = [b.tolist() for b in batches(50, 0.3, 5000, entropy)]
        return chosen, [n.tolist() for n in noises(Fraction(1 << 60), 3, 50, entropy)]

    assert drawn(1) == drawn(1)
    one, other = drawn(1), drawn(2)
    assert one[0] != other[0]
    assert not {tuple(n) for n in one[1]} & {tuple(n) for n in other[1]}


def test_every_step_has_noise_of_its_own():
    """Over several blocks: no number comes twice, and each is of the right size."""
    seeds = []

    def entropy(size):
        seeds.append(Replay(len(seeds))(size))
        return seeds[-1]

    variance = Fraction(1 << 80) * 9
    found = np.array(list(noises(variance, 1000, 300, entropy)))
    assert found.shape == (300, 1000)
    assert len(np.unique(found)) > 0.999 * found.size  # of 2^40; doublets happen
    assert len({row.tobytes() for row in found}) == 300
    assert len(seeds) == len(set(seeds)) == 3
    assert found.std() == pytest.approx(3 * 2.0**40, rel=0.01)
    scaled = found.ravel()[::50] / (3 * 2.0**40)
    assert stats.kstest(scaled, "norm").pvalue > 1e-4


def test_noise_is_drawn_as_it_is_needed():
    drawn = []

    def entropy(size):
        drawn.append(size)
        return Replay(len(drawn))(size)

    list(islice(noises(Fraction(1 << 60), 1 << 17, 50, entropy), 2))
    assert len(drawn) == 2


def test_no_noise():
    def entropy(size):
        raise AssertionError

    assert [n.tolist() for n in noises(Fraction(0), 2, 3, entropy)] == [[0, 0]] * 3
