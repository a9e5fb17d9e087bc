"""Epsilon of training: against dp-accounting itself, and the bound on what rounding costs."""

import math
from fractions import Fraction

import dp_accounting
import gmpy2
import pytest
from cases import each_case, named, some_or_all
from dp_accounting import pld, rdp

from securecomp.errors import ParameterError
from securecomp.federated import promise
from securecomp.federated.clipping import UNIT
from securecomp.privacy.privacy_amounts import delta_of

CASES = [(1.0, 0.1, 1000), (2.0, 0.1, 1000), (4.0, 0.1, 1000), (0.8, 0.01, 3000), (9.0, 1.0, 20)]


@some_or_all("cases", CASES[:1] + CASES[3:], CASES)
def test_epsilon_is_dp_accountings(cases):
    for noise, rate, steps in cases:
        with named(noise, rate, steps):
            is_dp_accountings(noise, rate, steps)


def is_dp_accountings(noise, rate, steps):
    found = promise.spent(noise, rate, steps, 500, 1e-5)
    event = dp_accounting.SelfComposedDpEvent(
        dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise)), steps
    )
    tight = pld.PLDAccountant().compose(event).get_epsilon(1e-5)
    wide = rdp.RdpAccountant().compose(event).get_epsilon(1e-5)
    assert found.bounds["PLD"] == pytest.approx(tight, rel=2e-3)
    assert found.bounds["RDP"] == pytest.approx(wide, rel=1e-9)
    assert found.bounds["RDP"] >= wide
    assert found.epsilon == min(found.bounds.values()) <= tight * 1.002
    assert found.delta == 1e-5


@each_case("noise, published", [(1.0, 28.5), (2.0, 9.8), (4.0, 4.2)])
def test_the_simple_bound_and_ours(noise, published):
    """Integer orders and the first conversion give the known figures; ours are smaller."""
    simple = promise.simple_epsilon(noise, 0.1, 1000, 1e-5)
    assert simple == pytest.approx(published, abs=0.06)
    by_hand = min(
        1000 * integer_order(order, 0.1, noise) + math.log(1e5) / (order - 1)
        for order in range(2, 33)
    )
    assert simple == pytest.approx(by_hand, rel=1e-9)
    ours = promise.spent(noise, 0.1, 1000, 500, 1e-5)
    # A better conversion from the same divergences, and then the whole distribution of the loss.
    assert ours.bounds["PLD"] < ours.bounds["RDP"] < simple
    assert ours.epsilon < 0.9 * simple


def integer_order(order, rate, noise):
    """Mironov, Talwar, Zhang (2019), section 3.3."""
    terms = (
        math.comb(order, k)
        * (1 - rate) ** (order - k)
        * rate**k
        * math.exp(k * (k - 1) / (2 * noise**2))
        for k in range(order + 1)
    )
    return math.log(math.fsum(terms)) / (order - 1)


@each_case("bits", [20, 23, 40])
def test_discrete_and_rounded_noise_differ_by_no_more_than_the_bound(bits):
    """Both probabilities to 600 bits, from the middle to 30 sigma."""
    sigma = 1 << bits
    factor, tail = promise.rounding(1, float(sigma))
    largest = 0.0
    with gmpy2.context(precision=600):
        root = gmpy2.sqrt(gmpy2.mpfr(2)) * sigma
        whole = gmpy2.sqrt(2 * gmpy2.const_pi()) * sigma  # up to exp(-2 pi^2 sigma^2)
        for x in (int(sigma * t / 4) for t in range(121)):
            low, high = (x - gmpy2.mpfr("0.5")) / root, (x + gmpy2.mpfr("0.5")) / root
            rounded = (gmpy2.erfc(low) - gmpy2.erfc(high)) / 2
            discrete = gmpy2.exp(-(gmpy2.mpfr(x) ** 2) / (2 * gmpy2.mpfr(sigma) ** 2)) / whole
            gap = abs(gmpy2.log(discrete / rounded))
            largest = max(largest, float(gap / gmpy2.mpfr(factor)))
        beyond = gmpy2.erfc((30 * sigma - 1) / root)
        assert beyond <= tail
    assert 0.5 < largest <= 1  # a bound, and not by orders of magnitude


@some_or_all("cases", CASES[-1:], CASES)
def test_rounding_costs_nothing_that_shows(cases):
    factor, tail = promise.rounding(10**9, promise.LEAST_NOISE * UNIT)
    assert 0 < 2 * factor < 1e-9
    assert 0 < tail < 1e-180
    for noise, rate, steps in cases:
        found = promise.spent(noise, rate, steps, 500, 1e-5)
        plain = promise.total([(promise.Sampled(rate, noise), steps)], 1e-5)
        assert plain.epsilon < found.epsilon < plain.epsilon * (1 + 1e-6)
    with pytest.raises(ParameterError, match="2\\^20"):
        promise.rounding(1, 1000.0)


@each_case("epsilon, rate, steps", [(8, 0.1, 1000), (0.5, 1.0, 50)])
def test_the_least_noise_that_keeps_a_promise(epsilon, rate, steps):
    noise, cost = promise.least_noise(rate, steps, 31, epsilon, 1e-5)
    assert cost.epsilon <= epsilon
    assert cost == promise.spent(noise, rate, steps, 31, 1e-5)
    assert promise.spent(noise * 0.997, rate, steps, 31, 1e-5).epsilon > epsilon
    hits = promise.least_noise.cache_info().hits
    assert promise.least_noise(rate, steps, 31, epsilon, 1e-5) == (noise, cost)
    assert promise.least_noise.cache_info().hits == hits + 1


def test_a_tiny_delta_is_accounted_as_tightly_as_any():
    noise, cost = promise.least_noise(0.5, 10, 3, 1, Fraction(1, 10**15))
    assert cost.accountant == "PLD"
    assert noise > 1
    assert cost.bounds["RDP"] > cost.epsilon
    assert promise.spent(noise * 0.997, 0.5, 10, 3, Fraction(1, 10**15)).epsilon > 1


def test_what_rounding_costs_is_in_epsilon_and_delta(monkeypatch):
    """The formula of the proof, with bounds that are large enough to show."""
    asked = []

    def rounding(*given):
        asked.append(given)
        return 0.1, 1e-6 * math.exp(-300)

    monkeypatch.setattr(promise, "rounding", rounding)
    found = promise.spent(2.0, 0.1, 10, 5, 1e-5)
    assert asked == [(50, 2.0 * UNIT)]
    steps = [(promise.Sampled(0.1, 2.0), 10)]
    plain = promise.total(steps, 9e-6 * math.exp(-0.1))
    assert found.epsilon == pytest.approx(plain.epsilon + 0.2, rel=1e-3)
    assert found.bounds["RDP"] == pytest.approx(plain.bounds["RDP"] + 0.2, rel=1e-9)
    assert found.delta == 1e-5


@pytest.mark.parametrize("delta", [1e-5, Fraction(1, 10**5), Fraction(1, 3), "1e-12", 3e-7])
def test_the_accounted_delta_is_below_the_promised_one(delta, monkeypatch):
    """What rounding takes is not given back by reading it as 15 digits."""
    real, asked = promise.total, []

    def total(steps, given, **options):
        asked.append(delta_of(given, needed=True))
        return real(steps, given, **options)

    monkeypatch.setattr(promise, "total", total)
    promise.spent(2.0, 0.1, 10, 5, delta)
    assert asked[0] < delta_of(delta, needed=True)
    assert asked[0] > delta_of(delta, needed=True) * (1 - Fraction(1, 10**14))


def test_little_to_keep_needs_the_least_noise_there_is():
    noise, cost = promise.least_noise(1e-4, 1, 3, 50, 1e-2)
    assert noise == pytest.approx(promise.LEAST_NOISE)
    assert cost.epsilon < 50


def test_promises_that_cannot_be():
    with pytest.raises(ParameterError, match="protects nobody"):
        promise.least_noise(0.1, 10, 3, 101, 1e-5)
    for least in (Fraction(99, 10**11), "1e-350"):
        with pytest.raises(ParameterError, match="drowns all"):
            promise.least_noise(0.1, 10, 3, least, 1e-5)
    with pytest.raises(ParameterError, match="less than what the proof leaves out"):
        promise.spent(1.0, 1.0, 10, 10**9, "1e-60")
    with pytest.raises(ParameterError, match="above 1000"):
        promise.least_noise(1.0, 10**6, 3, 0.01, 1e-9)
    with pytest.raises(ParameterError, match=r"from 0\.1 to 1000"):
        promise.spent(0.05, 0.1, 10, 3, 1e-5)
    with pytest.raises(ParameterError, match="more than 299"):
        promise.spent(0.1, 1.0, 1000, 3, 1e-5)
    with pytest.raises(ParameterError, match="delta"):
        promise.spent(1.0, 0.1, 10, 3, 0)


def test_the_variance_is_exact():
    assert promise.variance(1.1) == Fraction(1.1) ** 2 * UNIT**2
