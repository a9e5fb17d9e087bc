"""The promised error and the modulus hold for any model, with fractions as the reference."""

import math
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case, examples
from ckks.parties import Parties, linear_model
from hypothesis import assume, given
from hypothesis import strategies as st

from securecomp.ckks import LogisticModel, inputs, planner
from securecomp.ckks.native.logits import integers
from securecomp.ckks.plan import MAX_FEATURES
from securecomp.ckks.scaled_model import power_above
from securecomp.errors import ParameterError

KINDS = {
    "plain": {},
    "protected": {"protect_model": True},
    "encrypted": {"encrypted": True},
    "shareable": {"shareable_rows": 1000},
    "protected and shareable": {"protect_model": True, "shareable_rows": 7},
}
NOISE = 21


def weight():
    """Any magnitude, and zero."""
    magnitude = st.builds(
        lambda m, e, s: s * m * 2.0**e,
        st.floats(1, 2),
        st.integers(-30, 8),
        st.sampled_from([1, -1]),
    )
    return magnitude | st.sampled_from([0.0, -0.0, 1.0, 0.5])


@st.composite
def models(draw, most=12):
    features = draw(st.integers(1, most))
    outputs = draw(st.sampled_from([1, 1, 3]))
    row = st.tuples(*[weight()] * features)
    bound = st.builds(lambda m, e: m * 2.0**e, st.floats(1, 2), st.integers(-20, 20))
    bounds = tuple(draw(st.lists(bound, min_size=features, max_size=features)))
    # whatever the bounds are, most logits should be of a size that can be planned
    weights = tuple(
        tuple(w / b for w, b in zip(draw(row), bounds, strict=True)) for _ in range(outputs)
    )
    return LogisticModel(
        weights=weights,
        intercepts=draw(st.tuples(*[weight()] * outputs)),
        classes=(0, 1) if outputs == 1 else (0, 1, 2),
        features=tuple(f"x{j}" for j in range(features)),
        bounds=bounds,
        link="sigmoid" if outputs == 1 else "softmax",
    )


def planned(model, precision, kind):
    try:
        return planner.plan(model, precision=precision, backend="native", **KINDS[kind])
    except ParameterError as error:
        assume("no ring up to degree" not in str(error))
        raise


def rows_of(model, plan, source, count=4):
    """Corners of the bounds, rows that are hardest to round, and some in between."""
    bounds = np.array(plan.bounds)
    step = bounds / 2.0**plan.circuit.input_bits
    signs = np.sign(np.array(model.weights[0]))
    worst = [bounds, -bounds, bounds * np.where(signs < 0, -1, 1), np.zeros(len(bounds))]
    worst += [bounds - step * 0.5000001, step * 0.4999999 * np.where(signs < 0, -1, 1)]
    return np.vstack([*worst, source.uniform(-1, 1, (count, len(bounds))) * bounds])


def exact_logit(model, row, k):
    weights = zip(model.weights[k], row, strict=True)
    return sum(
        (Fraction(w) * Fraction(float(x)) for w, x in weights), Fraction(model.intercepts[k])
    )


def noise_of(plan, weights):
    """(the reply's own noise at its worst, each e_j at 21; what hides it)."""
    c, n = plan.circuit, plan.circuit.degree
    total = sum(map(abs, weights))
    fresh = min(NOISE * total, math.isqrt(947 * sum(w * w for w in weights)) + 1)
    public = NOISE * (2 * n + 1)
    if plan.model == "encrypted":
        fresh += len(weights) * n * public * (2**c.input_bits + NOISE)
    if plan.protect_model:
        fresh += public
    return fresh, sum(2**bits for bits in (c.flood_bits, c.release_bits) if bits)


@each_case("kind", KINDS)
@given(model=models(), digits=st.integers(1, 9), seed=st.integers(0, 2**32))
@examples(25)
def test_the_error_is_what_the_plan_says(kind, model, digits, seed):
    """Integers in place of ciphertexts, with the largest noise: rounded, it is still within."""
    plan = planned(model, 10.0**-digits, kind)
    c = plan.circuit
    weights, intercepts = integers(model, plan)
    rows = rows_of(model, plan, np.random.default_rng(seed))
    numbers = inputs.integers(rows, plan).tolist()
    assert all(abs(x) <= 2**c.input_bits for row in numbers for x in row)
    scale = Fraction(2**c.scale_bits)
    modulus = math.prod(c.primes)
    for row, number in zip(rows, numbers, strict=True):
        for k in range(plan.outputs):
            logit = exact_logit(model, row, k)
            assert abs(logit) <= plan.logit_bound
            sign = 1 if logit >= 0 else -1
            whole = sum(x * w for x, w in zip(number, weights[k], strict=True)) << c.lift_bits
            whole += intercepts[k]
            most = sum(noise_of(plan, weights[k]))
            assert 2 * (abs(whole) + most) < modulus
            # the certain bound on the noise, larger than the likely one, does not wrap either
            assert 2 * (abs(whole) + NOISE * sum(map(abs, weights[k]))) < modulus
            for noise in (most, -sign * most):
                got = (whole + noise) / scale
                assert abs(got - logit) <= Fraction(plan.error)
                rounded = Fraction(float(np.round(float(got), plan.decimals)))
                slack = Fraction(1, 10**9) + abs(logit) * Fraction(2) ** -50
                assert (
                    abs(rounded - logit) <= Fraction(plan.precision) * (1 + slack) + slack / 10**9
                )


@each_case("kind", KINDS)
@given(model=models(), digits=st.integers(1, 12))
@examples(25)
def test_what_a_plan_promises(kind, model, digits):
    plan = planned(model, 10.0**-digits, kind)
    assert plan.precision == 10.0**-digits
    assert 0 < plan.error <= plan.precision * (0.5 + 1e-6)
    assert 0.5 * 10.0**-plan.decimals <= (plan.precision - plan.error) * (1 + 1e-8)
    assert 0.5 * 10.0 ** (1 - plan.decimals) > plan.precision - plan.error
    for planned_bound, bound in zip(plan.bounds, model.bounds, strict=True):
        assert bound <= planned_bound < 2 * bound
        assert math.frexp(planned_bound)[0] == 0.5
    c, protected = plan.circuit, "protected" in kind
    assert c.lift_bits == 0 or kind not in ("plain", "encrypted")
    assert (c.flood_bits > 0) == plan.protect_model == protected
    assert (c.release_bits > 0) == ("shareable" in kind)
    assert plan.max_rows == (len(model.features) if protected else 0)
    assert plan.shareable_rows == KINDS[kind].get("shareable_rows", 0)
    assert plan.model == ("encrypted" if kind == "encrypted" else "plain")
    # what hides the noise of so many numbers is 2^40 of all of it: the distance is below 2^-40
    weights, _ = integers(model, plan)
    noise = max(noise_of(plan, w)[0] for w in weights)
    for bits, rows in ((c.flood_bits, plan.max_rows), (c.release_bits, plan.shareable_rows)):
        assert not bits or noise * rows * plan.outputs * 2**40 <= 2 * 2**bits


@each_case(
    "features, precision",
    [(1, 0.5), (1, 1e-4), (1, 1e-12), (3, 0.5), (3, 1e-4), (3, 1e-9), (2049, 1e-4)],
)
def test_real_answers_are_within_the_precision(features, precision):
    """One feature, constant ones, more than fit a polynomial; corners; equal with fractions."""
    model = linear_model(features, scale=3.0 / features, bound=7.0)
    parties = Parties(model, precision=precision)
    bounds = np.array(parties.plan.bounds)
    rows = rows_of(model, parties.plan, np.random.default_rng(5))
    rows = np.vstack([rows, np.full((2, features), 0.3), -bounds])
    rows = rows if features < 2000 else rows[::3]
    got = parties.ask(rows).logits
    for row, logit in zip(rows, got[:, 0], strict=True):
        error = abs(Fraction(float(logit)) - exact_logit(model, row, 0))
        assert error <= Fraction(precision)
        assert round(float(logit), parties.plan.decimals) == logit


@each_case("bound", [2.0**-100, 1e-20, 1.0, 1e20, 2.0**100])
def test_tiny_and_huge_bounds(bound):
    model = LogisticModel(
        ((1.5 / bound, -0.25 / bound),), (0.125,), (0, 1), ("a", "b"), (bound,) * 2, "sigmoid"
    )
    parties = Parties(model)
    rows = np.array([[1.0, -1.0], [-1.0, 1.0], [0.5, 0.25]]) * bound
    got = parties.ask(rows).logits[:, 0]
    want = [float(exact_logit(model, row, 0)) for row in rows]
    assert np.abs(got - want).max() <= 1e-4


def test_a_model_of_zeros():
    model = LogisticModel(((0.0, 0.0),), (0.0,), (0, 1), ("a", "b"), (1.0, 1.0), "sigmoid")
    assert np.abs(Parties(model).ask(np.ones((3, 2))).logits).max() <= 1e-4


@given(st.fractions(min_value=Fraction(1, 10**30), max_value=10**30) | st.floats(1e-300, 1e300))
def test_the_power_of_two_above(x):
    exponent = power_above(x)
    assert Fraction(2) ** (exponent - 1) < Fraction(x) <= Fraction(2) ** exponent


class TestRefusals:
    @each_case("precision", [0, -1, 1, 1e-13, math.nan, math.inf, 2])
    def test_a_precision_that_is_none(self, precision):
        with pytest.raises(
            ParameterError, match="the precision must be at least 1e-12 and below 1"
        ):
            planner.plan(linear_model(), precision=precision)

    @each_case("rows", [4, 5, -1, 0, 10**9])
    def test_more_rows_than_protect_a_model(self, rows):
        with pytest.raises(ParameterError, match="4 rows determine a model of 3 features"):
            planner.plan(linear_model(), protect_model=True, max_rows=rows)

    @each_case("rows", [1, 2, 3])
    def test_fewer_rows_than_features(self, rows):
        assert planner.plan(linear_model(), protect_model=True, max_rows=rows).max_rows == rows

    def test_a_limit_without_protection(self):
        assert planner.plan(linear_model(), max_rows=10**6).max_rows == 10**6

    def test_more_features_than_a_plan_has(self):
        with pytest.raises(ParameterError, match="65,537 features, and at most 65,536 are"):
            planner.plan(linear_model(MAX_FEATURES + 1))

    def test_protected_and_encrypted(self):
        with pytest.raises(ParameterError, match="a third part, which no flood noise hides"):
            planner.plan(linear_model(), protect_model=True, encrypted=True)

    @each_case("scale", [1e30, 1e100])
    def test_what_no_ring_reaches(self, scale):
        with pytest.raises(
            ParameterError, match=r"no ring up to degree 32,768 gives|beyond 2\^200"
        ):
            planner.plan(linear_model(scale=scale))

    @each_case(
        "change",
        [{"scale": 1e200}, {"scale": 1e300, "bound": 2.0**100}, {"intercept": 1.7e308}],
    )
    def test_what_not_even_a_float_reaches(self, change):
        model = linear_model(**change)
        with pytest.raises(ParameterError):
            planner.plan(model)

    def test_a_precision_finer_than_a_float(self):
        """Refused, or kept."""
        model = linear_model(1, intercept=1e6)
        try:
            parties = Parties(model, precision=1e-12)
        except ParameterError:
            return
        row = np.array([[0.3]])
        logit = float(parties.ask(row).logits[0, 0])
        assert abs(Fraction(logit) - exact_logit(model, row[0], 0)) <= Fraction(1e-12)

    @each_case("intercept", [100.0, 1000.0, 1e5])
    def test_an_encrypted_model_with_a_large_intercept(self, intercept):
        model = linear_model(2, scale=0.01, intercept=intercept)
        plan = planner.plan(model, encrypted=True)
        assert plan.error < 1e-4


def test_a_plan_for_another_model():
    plan = planner.plan(linear_model(), backend="native")
    for other, reason in (
        (linear_model(4), "for other features or classes"),
        (linear_model(outputs=3), "for other features or classes"),
        (linear_model(scale=1000.0), "for other weights"),
        (linear_model(intercept=1000.0), "for other weights"),
    ):
        with pytest.raises(ParameterError, match=reason):
            integers(other, plan)
