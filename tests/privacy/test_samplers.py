"""Samplers of noise: exact probabilities, any size, real randomness, and never too little noise."""

import itertools
import math
from fractions import Fraction

import gmpy2
import numpy as np
import pytest
from cases import each_case
from scipy import special, stats

from securecomp.core import entropy
from securecomp.errors import ParameterError
from securecomp.privacy import samplers, uniforms
from securecomp.privacy.noise_distributions import gaussian_mass, skellam_mass

_DRAWS = 200_000
_RARE = 1e-6  # a right sampler fails a seeded test with this probability, once and for all


def laplace_mass(scale, upto):
    ratio = math.exp(-1 / scale)
    return (1 - ratio) / (1 + ratio) * ratio ** np.arange(upto + 1)


_SYMMETRIC = [
    pytest.param(f, p, mass, id=f"{f.__name__}-{float(p):g}")
    for f, mass, parameters in (
        (samplers.discrete_laplace, laplace_mass, (0.4, 1, Fraction(7, 3), 20.5)),
        (samplers.discrete_gaussian, gaussian_mass, (0.25, 1, Fraction(25, 2), 300.0)),
        (samplers.skellam, skellam_mass, (0.01, 1, Fraction(25, 2), 300.0)),
    )
    for p in parameters
]


def assert_fits(drawn, values, masses):
    """Chi-square against exact probabilities; rare values are put together, the rest too."""
    expected = masses * len(drawn)
    common = expected >= 10
    found = np.array([(drawn == v).sum() for v in values[common]])
    want = expected[common]
    rest = len(drawn) - want.sum()
    if rest > 1:
        found, want = np.append(found, len(drawn) - found.sum()), np.append(want, rest)
    else:
        want = want / want.sum() * len(drawn)
        found[0] += len(drawn) - found.sum()
    assert stats.chisquare(found, want).pvalue > _RARE


@each_case("draw, parameter, mass", _SYMMETRIC)
def test_values_have_exactly_their_probabilities(draw, parameter, mass, replay):
    drawn = draw(parameter, _DRAWS, replay(1))
    half = mass(float(parameter), 400)
    values = np.arange(-400, 401)
    assert_fits(drawn, values, half[np.abs(values)])


@each_case("draw, parameter, mass", _SYMMETRIC)
def test_the_variance_is_not_too_small(draw, parameter, mass, replay):
    """Fails if noise is narrower than it says, by a confidence bound from its fourth moment."""
    drawn = draw(parameter, _DRAWS, replay(2)).astype(float)
    half, values = mass(float(parameter), 400), np.arange(-400, 401.0)
    whole = half[np.abs(values).astype(int)]
    second, fourth = (whole * values**2).sum(), (whole * values**4).sum()
    error = math.sqrt((fourth - second**2) / _DRAWS)
    assert second - 5 * error < (drawn**2).mean() < second + 5 * error
    # The test has power: noise of 9/10 of the variance would fail it.
    assert 0.9 * second < second - 5 * error or parameter == 0.01


def test_the_gaussians_variance_is_that_of_the_formula():
    whole = gaussian_mass(4.0, 100)
    assert math.isclose(2 * (whole * np.arange(101.0) ** 2).sum(), 4.0, rel_tol=1e-9)


@each_case("mean", [0.3, 5, Fraction(80, 3), 1000])
def test_poisson_has_its_probabilities(mean, replay):
    drawn = samplers.poisson(mean, _DRAWS, replay(3))
    assert drawn.min() >= 0
    values = np.arange(0, 1400)
    assert_fits(drawn, values, stats.poisson.pmf(values, float(mean)))


@each_case("mean", [1.5e6, 1e12, Fraction(2) ** 101])
def test_poisson_of_large_means_fits_the_normal_law(mean, replay):
    drawn = samplers.poisson(mean, 50_000, replay(4))
    whole = math.floor(mean)
    offsets = np.array([int(n) - whole for n in drawn.tolist()], float)
    z = (offsets + 0.5) / math.sqrt(float(mean))
    assert stats.kstest(z, "norm").pvalue > _RARE
    error = math.sqrt(2 / len(z))
    assert 1 - 5 * error < z.var() < 1 + 5 * error


@each_case("mean", [0.7, 15.5, 40.0, 1e4, 1e9, 1e15])
def test_logarithms_of_poisson_are_right_where_they_decide(mean):
    """Against interval arithmetic: within 2^-44 of what a proposal is accepted with."""
    whole, spread = math.floor(mean), math.sqrt(mean)
    offsets = sorted({max(-whole, round(z * spread)) for z in np.linspace(-8, 9, 200)})
    x = np.array(offsets, np.int64)
    found = samplers._log_poisson((x + whole).astype(float), x - (mean - whole), mean)
    with gmpy2.context(precision=300):
        for off, log in zip(offsets, found.tolist(), strict=True):
            k = whole + off
            exact = k * gmpy2.log(mean) - gmpy2.mpfr(mean) - gmpy2.lngamma(gmpy2.mpfr(k + 1))
            # Against the peak and the proposal, which at one standard deviation has exp(-1).
            rise = abs(off) / max(1, math.isqrt(whole))
            rise -= -0.5 * math.log(max(1.0, 2 * math.pi * mean)) + 0.5
            assert abs(gmpy2.exp(gmpy2.mpfr(log) + rise) - gmpy2.exp(exact + rise)) < 2.0**-44


@each_case("mean", [1e-6, 0.4, 1, 2.5, 17, 16.999, 1e3, 12345.6, 1e8, 1e13, 2**90])
def test_proposals_are_nowhere_too_rare_for_poisson(mean, replay):
    """The sampler checks it itself, on all that it draws; here far into both tails too."""
    for seed in range(20):
        samplers.poisson(mean, 2000, replay(seed))
    whole, step = math.floor(mean), max(1, math.isqrt(math.floor(mean)))
    offsets = [round(z * step) for z in np.linspace(-30, 30, 5001)]
    x = np.array([max(-whole, off) for off in offsets], object)
    log = samplers._log_poisson(
        (x + whole).astype(float), x.astype(float) - float(Fraction(mean) - whole), float(mean)
    )
    height = log + np.abs(x).astype(float) / step
    near = [math.floor(mean * math.expm1(w / step)) + i for w in (-1, 0, 1) for i in (-1, 0, 1)]
    spots = np.array([max(-whole, off) for off in near], object)
    peaks = samplers._log_poisson(
        (spots + whole).astype(float),
        spots.astype(float) - float(Fraction(mean) - whole),
        float(mean),
    )
    assert height.max() <= (peaks + np.abs(spots).astype(float) / step).max() + 1e-9


def test_noise_of_any_size_comes_out_whole(replay):
    """No 32 or 64 bits that fill up: the spread is right beyond both, and low bits are random."""
    for bits in (40, 62, 64, 100, 500):
        sigma = 1 << bits
        for draw, parameter, variance in (
            (samplers.discrete_gaussian, sigma**2, 1.0),
            (samplers.skellam, sigma**2, 1.0),
            (samplers.discrete_laplace, sigma, 2.0),
        ):
            drawn = draw(parameter, 4000, replay(bits)).tolist()
            z = np.array([n / sigma for n in drawn])
            error = math.sqrt(5 * variance**2 / len(z))
            assert abs(z.var() - variance) < 5 * error
            assert 0.4 < np.mean([n & 1 for n in drawn]) < 0.6


def test_sums_of_noise_do_not_saturate_at_32_bits(replay):
    drawn = samplers.discrete_laplace(2.0**31, 2000, replay(6))
    assert drawn.dtype == np.int64
    assert np.abs(drawn).max() > 2**32
    assert abs(int(drawn.sum())) > 2**31


@pytest.mark.parametrize(
    ("draw", "parameter"),
    [
        (samplers.discrete_laplace, 3.7),
        (samplers.discrete_gaussian, 14.2),
        (samplers.discrete_gaussian, 2**140),
        (samplers.skellam, 0.3),
        (samplers.skellam, 14.2),
        (samplers.skellam, 1e12),
        (samplers.skellam, 2**140),
        (samplers.bernoulli_exp, 0.9),
    ],
)
def test_doubles_decide_nothing_that_intervals_would_not(draw, parameter, replay, monkeypatch):
    """With a doubt of 2 every choice is made exactly, and every number is the same."""
    quick = draw(parameter, 400, replay(7)).tolist()
    monkeypatch.setattr(uniforms, "_DOUBT", 2.0)
    assert draw(parameter, 400, replay(7)).tolist() == quick


class Fixed(uniforms.Uniforms):
    """Uniform numbers that begin with a given word; their further digits are random."""

    word = 0

    def words(self, count):
        return np.full(count, self.word, np.uint64)


def test_equal_digits_are_decided_by_further_ones():
    """Words on a threshold itself: the next digits say on which side the number is."""
    table = uniforms._thresholds()
    seeds = itertools.count()
    found = []
    for _ in range(200):
        drawn = Fixed(lambda size: next(seeds).to_bytes(size, "big"))
        drawn.word = table[-1]  # exp(-1), cut to 64 digits
        found.append(int(drawn.geometric(1)[0]))
    with gmpy2.context(precision=200):  # of the numbers that begin so, these are below exp(-1)
        share = float(gmpy2.frac(gmpy2.exp(-1) * 2**64))
    assert set(found) == {0, 1}
    assert abs(np.mean(found) - share) < 5 * math.sqrt(share * (1 - share) / 200)


def test_a_zero_word_goes_on_beyond_the_table():
    assert Fixed(lambda size: b"\x01" * size).geometric(3).min() >= 44


def test_uniform_integers_are_uniform(replay):
    assert not uniforms.Uniforms(replay(8)).integers(1, 100).any()
    for bound in (2, 3, 10, 1000):
        drawn = uniforms.Uniforms(replay(8)).integers(bound, 50_000)
        assert_fits(drawn, np.arange(bound), np.full(bound, 1 / bound))
    wide = uniforms.Uniforms(replay(9)).integers(3 << 200, 3000)
    assert_fits(np.array([int(n) >> 200 for n in wide]), np.arange(3), np.full(3, 1 / 3))


@each_case("p", [0, 1, Fraction(1, 3), 0.1, Fraction(1, 10**30)])
def test_bernoulli(p, replay):
    drawn = samplers.bernoulli(p, _DRAWS, replay(10))
    assert stats.binomtest(int(drawn.sum()), _DRAWS, float(p)).pvalue > _RARE
    if p in (0, 1):
        assert drawn.all() == bool(p)


@each_case("exponent", [0, 0.001, 1, Fraction(5, 2), 8.0])
def test_bernoulli_of_an_exponential(exponent, replay):
    drawn = samplers.bernoulli_exp(exponent, _DRAWS, replay(11))
    assert stats.binomtest(int(drawn.sum()), _DRAWS, math.exp(-exponent)).pvalue > _RARE
    assert samplers.bernoulli_exp(10**6, 100, replay(1)).sum() == 0


def test_draws_follow_from_the_entropy_alone(replay):
    for draw in (samplers.discrete_laplace, samplers.discrete_gaussian, samplers.skellam):
        first, again, other = (draw(9.5, 300, replay(s)).tolist() for s in (1, 1, 2))
        assert first == again != other


def test_noise_comes_from_the_operating_system_and_no_clock(monkeypatch):
    """Two draws at the same moment differ, and 32 bytes of the system's generator are asked for."""
    asked = []

    def fixed(size):
        asked.append(size)
        return bytes([len(asked)]) * size

    monkeypatch.setattr("time.time", lambda: 0.0)
    monkeypatch.setattr("time.time_ns", lambda: 0)
    monkeypatch.setattr(entropy.secrets, "token_bytes", fixed)
    first, second = samplers.skellam(50, 100), samplers.skellam(50, 100)
    assert asked == [32, 32]
    assert first.tolist() != second.tolist()


def test_draws_are_independent_of_each_other(replay):
    drawn = samplers.discrete_gaussian(100, _DRAWS, replay(12)).astype(float)
    for lag in (1, 2, 17):
        assert abs(np.corrcoef(drawn[:-lag], drawn[lag:])[0, 1]) < 5 / math.sqrt(_DRAWS)


def test_skellam_is_closed_under_sums(replay):
    drawn = sum(samplers.skellam(2.5, _DRAWS, replay(seed)) for seed in range(4))
    values = np.arange(-60, 61)
    assert_fits(drawn, values, skellam_mass(10.0, 60)[np.abs(values)])


def test_sizes():
    assert samplers.skellam(3, 0).shape == (0,)
    assert samplers.discrete_laplace(3, 1).shape == (1,)
    assert len(samplers.discrete_gaussian(3, 150_000)) == 150_000  # several batches


@each_case("bad", [0, -1, math.nan, math.inf, "1", None, True])
def test_bad_parameters(bad):
    for draw in (samplers.discrete_laplace, samplers.discrete_gaussian, samplers.skellam):
        with pytest.raises(ParameterError, match="positive finite number"):
            draw(bad, 10)
    with pytest.raises(ParameterError, match="number of draws"):
        samplers.skellam(1, -1)
    for beyond in (Fraction(1, 1 << 500), 1 << 1001):
        with pytest.raises(ParameterError, match="choose another unit"):
            samplers.skellam(beyond, 1)
    if bad is not True and bad != 0:
        with pytest.raises(ParameterError):
            samplers.bernoulli(bad, 1)


def test_seeds_are_not_shown():
    assert repr(uniforms.Uniforms(entropy.system)) == "Uniforms(...)"


def test_the_masses_that_calibration_uses():
    """Bessel's functions at sizes that calibration meets, by their normal limit."""
    for variance in (1.0, 1e3, 4096.0**2):
        upto = math.ceil(12 * math.sqrt(variance) + 40)
        mass = skellam_mass(variance, upto)
        assert math.isclose(2 * mass.sum() - mass[0], 1, rel_tol=1e-9)
        second = 2 * (mass * np.arange(upto + 1.0) ** 2).sum()
        assert math.isclose(second, variance, rel_tol=1e-8)
    assert math.isclose(special.ive(0, 2.0), skellam_mass(2.0, 0)[0])
