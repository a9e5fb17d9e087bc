"""Scoring encrypted rows: the error bound holds, what does not fit is refused."""

import numpy as np
import pytest
from cases import each_case

from securecomp.ckks.native import ciphertext_noise
from securecomp.ckks.native.ciphertext_noise import Trace, Tracer
from securecomp.ckks.native.moduli import choose
from securecomp.ckks.native.security import LARGEST
from securecomp.ckks.seal import chebyshev
from securecomp.ckks.seal.chebyshev import Series, Value
from securecomp.ckks.seal.sigmoid_circuit import SigmoidClient, SigmoidServer
from securecomp.ckks.seal.sigmoid_plan import SigmoidPlan, plan
from securecomp.core import minimax
from securecomp.errors import DecodeError, ParameterError, RangeError

pytest.importorskip("tenseal")

RNG = np.random.default_rng(20)


def table(agreed: SigmoidPlan, rows: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Rows and weights that use the whole domain, and no more."""
    size = (rows or agreed.slots, agreed.features)
    weights = RNG.normal(size=agreed.features)
    weights *= agreed.weight_bound / np.sum(np.abs(weights))
    x = RNG.uniform(-1, 1, size)
    x *= np.min([agreed.domain / np.max(np.abs(x @ weights)), agreed.feature_bound])
    return np.clip(x, -agreed.feature_bound, agreed.feature_bound) * (1 - 1e-9), weights


def parties(agreed: SigmoidPlan) -> tuple[SigmoidClient, SigmoidServer]:
    client = SigmoidClient(agreed)
    return client, SigmoidServer(agreed, client.evaluation_keys())


@pytest.fixture(scope="module")
def small():
    agreed = plan(3, 8.0, 3, feature_bound=4.0, weight_bound=2.0, precision=1e-3)
    return agreed, *parties(agreed)


# The circuit, without encryption


@each_case("degree", [1, 3, 5, 7, 9, 11, 15, 21, 31, 33, 63])
@each_case("domain", [0.5, 8.0, 128.0])
def test_the_circuit_computes_the_polynomial_in_its_depth(degree, domain):
    chain = choose(32768, 36, 1 + chebyshev.depth(degree))
    tracer = Tracer(chain)
    t = Value(Trace(tracer.grid, {}), chain.levels - 1, 2.0**36)
    polynomial = minimax.sigmoid(domain, degree)
    result = Series(chain.moduli, tracer, t)(polynomial.coefficients, 2.0**36)
    assert result.payload.value == pytest.approx(polynomial(domain * tracer.grid), abs=1e-10)
    assert (result.level, result.scale) == (1, 2.0**36)


def test_depth_is_the_logarithm():
    assert [chebyshev.depth(d) for d in (1, 3, 7, 15, 31, 63)] == [1, 2, 3, 4, 5, 6]


def test_a_series_of_nothing_is_refused():
    chain = choose(8192, 30, 3)
    tracer = Tracer(chain)
    t = Value(Trace(tracer.grid, {}), chain.levels - 1, 2.0**30)
    with pytest.raises(ParameterError, match="zero"):
        Series(chain.moduli, tracer, t)([0.5, 0.0, 0.0, 0.0], 2.0**30)


def test_the_logits_noise_comes_out_times_the_slope():
    chain = choose(16384, 40, 5)
    tracer = Tracer(chain)
    errors = tracer.source(1e-9, True)
    t = Value(Trace(tracer.grid, errors), chain.levels - 1, 2.0**40)
    polynomial = minimax.sigmoid(8.0, 15)
    result = Series(chain.moduli, tracer, t)(polynomial.coefficients, 2.0**40)
    slope = np.polynomial.Chebyshev(polynomial.coefficients).deriv()(tracer.grid)
    assert result.payload.errors[0] == pytest.approx(1e-9 * slope, abs=1e-20)


# Plans


def test_default_degrees_fit_small_rings():
    assert plan(30, 8.0, 3, weight_bound=8.0).chain.ring == 8192
    assert plan(30, 8.0, 7, weight_bound=8.0).chain.ring == 8192
    assert plan(30, 8.0, 15, weight_bound=8.0).chain.ring <= 16384
    coarse = plan(30, 8.0, 1, weight_bound=8.0, precision=1e-2)
    assert coarse.chain.ring == 4096


@each_case("degree", [3, 7, 15])
def test_a_plan_states_what_it_costs_and_what_it_gives(degree):
    agreed = plan(10, 8.0, degree, weight_bound=8.0)
    assert agreed.numeric_error <= 1e-4
    assert agreed.polynomial_error == agreed.polynomial.error
    assert agreed.polynomial.domain == 8.125
    assert agreed.error == agreed.numeric_error + agreed.polynomial_error
    assert agreed.depth == agreed.chain.levels - 1
    assert agreed.slots == agreed.chain.ring // 2
    assert agreed.chain.bits <= LARGEST[agreed.chain.ring]
    assert agreed == plan(10, 8.0, degree, weight_bound=8.0)


def test_more_precision_costs_more_bits():
    bits = [plan(10, precision=p).chain.bits for p in (1e-2, 1e-3, 1e-4, 1e-5, 1e-8)]
    assert bits == sorted(bits)
    assert plan(10).weight_bound == 1.0


@each_case(
    "arguments, message",
    [
        ({"features": 0}, "features"),
        ({"features": 1 << 20}, "features"),
        ({"features": 2.5}, "features"),
        ({"degree": 4}, "degree"),
        ({"degree": 65}, "degree"),
        ({"domain": 1000.0}, "domain"),
        ({"feature_bound": 0.0}, "feature_bound"),
        ({"feature_bound": float("nan")}, "feature_bound"),
        ({"weight_bound": -1.0}, "weight_bound"),
        ({"precision": 0.0}, "precision"),
        ({"precision": 1e-15}, "with 5 features and degree 7; ask for 1e-12"),
    ],
)
def test_what_does_not_fit_is_refused_before_any_key_is_made(arguments, message):
    with pytest.raises(ParameterError, match=message):
        plan(**{"features": 5, **arguments})


# Encrypted


@each_case("precision", [1e-3, 1e-5])
@each_case("degree", [1, 3, 7, 15, 31])
def test_the_error_stays_within_its_bounds(degree, precision):
    agreed = plan(4, 8.0, degree, feature_bound=8.0, weight_bound=8.0, precision=precision)
    client, server = parties(agreed)
    x, weights = table(agreed)
    (result,) = server.evaluate(client.encrypt_columns(x), weights)
    found = client.decrypt(result, agreed.slots).probabilities
    logits = np.clip(x @ weights, -8, 8)
    numeric = np.max(np.abs(found - agreed.polynomial(logits)))
    # Far from exceeded, and not so far that it says nothing. SEAL's noise is drawn anew each time:
    # half of the bound is passed in 1 of 100 runs (exp(-28.4 / 2) in each of 2,048 slots and ten
    # cases), three quarters in 1 of 100,000.
    assert agreed.numeric_error / 40 < numeric < agreed.numeric_error * 0.75
    assert np.max(np.abs(found - minimax.logistic(logits))) <= agreed.error


def test_the_noise_is_of_the_stated_size_and_law():
    """Its standard deviation is the predicted one, and its tail is Laplace's, not Gauss's."""
    agreed = plan(2, 8.0, 1, feature_bound=8.0, weight_bound=8.0, precision=1e-2)
    sigma = (
        agreed.numeric_error / ciphertext_noise.ALLOWANCE / ciphertext_noise.factor(agreed.slots)
    )
    x = RNG.uniform(-0.5, 0.5, (agreed.slots, 2))
    found = []
    for _ in range(12):
        client, server = parties(agreed)
        (result,) = server.evaluate(client.encrypt_columns(x), [4.0, -4.0])
        found.append(client.decrypt(result, agreed.slots)[0] - agreed.polynomial(x @ [4.0, -4.0]))
    error = np.concatenate(found) / sigma
    assert np.std(error) == pytest.approx(1, abs=0.08)
    assert np.mean(np.abs(error)) / np.std(error) == pytest.approx(np.sqrt(0.5), abs=0.02)
    assert np.mean(np.abs(error) > 4) == pytest.approx(np.exp(-4 * np.sqrt(2)), rel=0.5)


@each_case("domain", [0.5, 30.0, 126.0])
def test_small_and_wide_domains(domain):
    agreed = plan(2, domain, 7, feature_bound=1.0, weight_bound=domain)
    client, server = parties(agreed)
    x, weights = table(agreed)
    (result,) = server.evaluate(client.encrypt_columns(x), weights)
    found = client.decrypt(result, agreed.slots).probabilities
    expected = agreed.polynomial(np.clip(x @ weights, -domain, domain))
    assert np.max(np.abs(found - expected)) < agreed.numeric_error / 2


def test_one_feature_one_row():
    agreed = plan(1, 4.0, 3, precision=1e-3)
    client, server = parties(agreed)
    (result,) = server.evaluate(client.encrypt_columns([[2.0]]), [0.5], 1.0)
    (found,) = client.decrypt(result, 1).probabilities
    assert found == pytest.approx(float(agreed.polynomial(2.0)), abs=agreed.numeric_error)


def test_several_models_at_once_and_zero_weights(small):
    agreed, client, server = small
    x = RNG.uniform(-4, 4, (100, 3))
    weights = np.array([[1, 0, -0.5], [0, 0, 0], [0, 0, 1e-13], [0, -2, 0], [0.2, 0.3, 0.4]])
    intercept = np.array([0.5, -1.0, 0.0, 0.0, 8.0 - 3.7])
    results = server.evaluate(client.encrypt_columns(x), weights, intercept)
    assert len(results) == 5
    for k, result in enumerate(results):
        expected = agreed.polynomial(np.clip(x @ weights[k] + intercept[k], -8, 8))
        assert client.decrypt(result, 100)[0] == pytest.approx(expected, abs=agreed.numeric_error)
    assert len(server.evaluate(client.encrypt_columns(x), weights, 0.5)) == 5


def test_a_client_that_comes_back_has_the_same_key(small):
    agreed, client, server = small
    again = SigmoidClient(agreed, client.secret())
    (result,) = server.evaluate(client.encrypt_columns([[1.0, 1, 1]]), [1, 0, 0])
    assert again.decrypt(result, 1)[0] == pytest.approx(client.decrypt(result, 1)[0], abs=1e-12)
    with pytest.raises(DecodeError):
        SigmoidClient(agreed, b"no key")
    stranger = SigmoidClient(agreed)
    with pytest.raises(DecodeError, match="did not keep to the plan"):
        stranger.decrypt(result, 1)


def test_the_result_is_the_smallest_message(small):
    _, client, server = small
    columns = client.encrypt_columns([[1.0, 1, 1]])
    (result,) = server.evaluate(columns, [1, 0, 0])
    assert max(map(len, result)) < min(map(len, columns))


def test_rows_outside_the_domain_are_finished_by_the_client_and_flagged(small):
    agreed, client, server = small
    x = np.zeros((10, 3))
    x[4] = 4
    columns = client.encrypt_columns(x)
    # Row 4 has the logit 9. Far outside it overflows and spoils the probabilities of all, but no
    # logit.
    for intercept, beyond in ((1.0, [4]), (7.9, [4]), (-8.9, range(10))):
        (result,) = server.evaluate(columns, [1.0, 1.0, 0.0], intercept)
        found = client.decrypt(result, 10)
        if intercept > 0:
            assert np.flatnonzero(found.outside).tolist() == list(beyond)
        expected = minimax.logistic(x @ [1.0, 1.0, 0.0] + intercept)
        assert found.probabilities == pytest.approx(expected, abs=agreed.error)


def test_rows_at_the_edge_of_the_domain_are_answered(small):
    agreed, client, server = small
    x = np.zeros((2, 3))
    x[0], x[1] = 4, -4
    (result,) = server.evaluate(client.encrypt_columns(x), [2.0, 0.0, 0.0])
    found = client.decrypt(result, 2).probabilities
    assert found == pytest.approx([1 / (1 + np.exp(-8)), 1 / (1 + np.exp(8))], abs=agreed.error)


def test_rows_that_were_not_planned_are_refused(small):
    agreed, client, _ = small
    for rows in ([[1.0, 2.0]], [1.0, 2.0, 3.0], np.zeros((0, 3)), np.zeros((agreed.slots + 1, 3))):
        with pytest.raises(ParameterError, match="rows"):
            client.encrypt_columns(rows)
    for value in (4.1, -5, np.nan, np.inf):
        with pytest.raises(RangeError, match="feature 1"):
            client.encrypt_columns([[0.0, value, 0.0]])


def test_weights_that_were_not_planned_are_refused(small):
    _, client, server = small
    columns = client.encrypt_columns([[1.0, 1, 1]])
    for weights in ([1.0, 2.0], np.zeros((0, 3)), np.zeros((1, 1, 3))):
        with pytest.raises(ParameterError, match="shape"):
            server.evaluate(columns, weights)
    for weights in ([1.0, 1.0, 0.1], [np.nan, 0, 0], [np.inf, 0, 0]):
        with pytest.raises(ParameterError, match="add up"):
            server.evaluate(columns, weights)
    with pytest.raises(ParameterError, match="intercepts of shape"):
        server.evaluate(columns, [1.0, 0, 0], [1.0, 2.0])
    for intercept in (17.0, np.nan):
        with pytest.raises(ParameterError, match="an intercept"):
            server.evaluate(columns, [1.0, 0, 0], intercept)


def test_hostile_bytes_raise_decode_errors_only(small):
    agreed, client, server = small
    columns = client.encrypt_columns([[1.0, 1, 1]])
    (result,) = server.evaluate(columns, [1, 0, 0])
    for wrong in (columns[:2], [*columns, columns[0]], [b"", *columns[1:]], [result.logits] * 3):
        with pytest.raises(DecodeError):
            server.evaluate(wrong, [1, 1, 0])
    good = result.logits
    for wrong in (b"", columns[0], good[:-1], good + b"\0", client.secret()):
        for part in ("logits", "probabilities"):
            with pytest.raises(DecodeError):
                client.decrypt(result._replace(**{part: wrong}), 1)
    # Probabilities that are none.
    (other,) = server.evaluate(client.encrypt_columns([[4.0, 1, 1]]), [-2, 0, 0])
    with pytest.raises(DecodeError, match="not probabilities"):
        client.decrypt(other._replace(probabilities=other.logits), 1)
    with pytest.raises(ParameterError, match="rows"):
        client.decrypt(result, 0)
    for wrong in (b"", columns[0], client.secret(), client.evaluation_keys()[:-1]):
        with pytest.raises(DecodeError):
            SigmoidServer(agreed, wrong)
    other = plan(3, 8.0, 3, feature_bound=4.0, weight_bound=2.0, precision=1e-4)
    with pytest.raises(DecodeError):
        SigmoidServer(other, client.evaluation_keys())


def test_nothing_shows_a_secret_and_the_server_has_none(small):
    _, client, server = small
    assert repr(client) == "SigmoidClient(features=3, ring=8192)"
    assert repr(server) == "<SigmoidServer features=3 ring=8192>"
    reachable = vars(server) | vars(server._context) | vars(server._arithmetic)
    assert not any(
        "Secret" in type(v).__name__ or "Decrypt" in type(v).__name__ for v in reachable.values()
    )
