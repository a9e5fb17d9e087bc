"""Records come out of gradients exactly; where they cannot, an error says why."""

import numpy as np
import pytest
from cases import each_case
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from replaying import Replay
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from securecomp.audit.reconstruction.gradients import gradient_inversion, recover_row
from securecomp.audit.reconstruction.two_layer_net import Network
from securecomp.errors import ParameterError
from securecomp.federated.losses import Loss

SIZES = st.floats(-1e3, 1e3).filter(lambda v: v == 0 or abs(v) > 1e-3)
KINDS = [("sigmoid", 1), ("softmax", 2), ("softmax", 5), ("squared", 1), ("squared", 3)]


def target(loss, classes, label):
    if loss == "sigmoid":
        return np.array([[label % 2.0]])
    return np.eye(classes)[[label % classes]]


def gradient_of(loss, weights, intercept, row, aim):
    residual = Loss(loss).residuals(row[None] @ weights.T + intercept, aim)[0]
    return np.outer(residual, row), residual


@each_case("loss, classes", KINDS)
@given(data=st.data())
def test_a_record_comes_out_of_its_gradient(loss, classes, data):
    d = data.draw(st.integers(1, 8))
    weights = data.draw(arrays(float, (classes, d), elements=st.floats(-2, 2)))
    intercept = data.draw(arrays(float, classes, elements=st.floats(-2, 2)))
    row = data.draw(arrays(float, d, elements=SIZES))
    label = data.draw(st.integers(0, 9))
    aim = target(loss, classes, label)
    by_weights, residual = gradient_of(loss, weights, intercept, row, aim)
    # Below, a double has no digits left.
    assume(np.abs(residual).max() > 1e-250)
    found = recover_row(by_weights, residual, loss=loss)
    assert found.exact
    assert np.abs(found.row - row).max() <= 1e-9 * max(np.abs(row).max(), 1e-300)
    if loss == "squared":
        assert found.label is None
    elif loss == "softmax" and residual.min() == 0 and (residual == 0).sum() > 1:
        assert found.label is None  # the label's residual is one of those that rounded to 0
    else:
        assert found.label == label % (2 if loss == "sigmoid" else classes)


@each_case("loss, classes", KINDS)
@given(data=st.data())
def test_without_an_intercept_it_comes_out_up_to_its_length(loss, classes, data):
    d = data.draw(st.integers(2, 8))
    weights = data.draw(arrays(float, (classes, d), elements=st.floats(-0.01, 0.01)))
    row = data.draw(arrays(float, d, elements=st.floats(-50, 50)))
    assume(np.abs(row).max() > 1e-3)
    label = data.draw(st.integers(0, 9)) % (2 if loss == "sigmoid" else classes)
    by_weights, residual = gradient_of(loss, weights, 0.0, row, target(loss, classes, label))
    assume(np.abs(residual).max() > 1e-12)
    found = recover_row(by_weights, loss=loss)
    direction = row / np.linalg.norm(row)
    assert not found.exact
    assert abs(abs(found.row @ direction) - 1) < 1e-9
    assert found.signed == (loss == "softmax" and classes > 2)
    if loss == "squared":
        return
    if classes > 2:
        assert (found.label, found.row @ direction > 0) == (label, True)
    told = recover_row(by_weights, loss=loss, label=label)
    assert told.signed
    assert np.abs(told.row - direction).max() < 1e-9


@each_case(
    "residual, sign, label",
    [
        ([0.2, -0.9, 0.7], 1, 1),
        ([1e-30, 0.0, 1e-20], 1, 1),  # the label's has rounded to 0
        ([1e-30, 0.0, 0.0], 1, None),
        ([0.5, -0.5, 0.0], 0, None),  # either of two may be the label
        ([0.4, 0.2, 0.1, -0.7], 1, 3),
    ],
)
@each_case("turned", [1, -1])
def test_the_sign_of_a_softmax_without_an_intercept(residual, sign, label, turned):
    row = turned * np.array([3.0, -4.0])
    found = recover_row(np.outer(residual, row))
    assert found.signed == bool(sign)
    assert found.label == label
    if sign:
        assert found.row == pytest.approx(row / 5, abs=1e-12)


def test_a_gradient_of_zero_says_nothing():
    """The failing case: a row that the model fits to the last digit."""
    row, weights = np.array([1.0, 2.0]), np.array([[800.0, 0.0]])
    by_weights, residual = gradient_of("sigmoid", weights, 0.0, row, np.array([[1.0]]))
    assert residual.tolist() == [0.0]
    for arguments in ((by_weights, residual), (by_weights,)):
        with pytest.raises(ParameterError, match="gradient is zero, so nothing can be recovered"):
            recover_row(*arguments, loss="sigmoid")


def test_residuals_that_cancel_are_no_silence():
    """Two rows of one class and one of the other: the gradient is there, and says of both."""
    rows = np.array([[1.0, 2.0], [3.0, -1.0]])
    residuals = np.array([[0.4, -0.4], [-0.4, 0.4]])
    with pytest.raises(ParameterError, match="several rows, or noise"):
        recover_row(residuals.T @ rows, residuals.sum(axis=0))


@each_case("size", [1e-200, 1, 1e200])
def test_gradients_of_any_size(size):
    row, residual = np.array([1.0, 3.0, -2.0]), np.array([0.2, -0.5, 0.3])
    with np.errstate(over="raise"):
        found = recover_row(size * np.outer(residual, row), size * residual)
        assert found.row == pytest.approx(row, rel=1e-12)
        with pytest.raises(ParameterError, match="several rows, or noise"):
            recover_row(size * (np.outer(residual, row) + np.eye(3)), size * residual)


@each_case("label", [-1, 2, 0.5, True, "1"])
def test_labels_that_are_none(label):
    with pytest.raises(ParameterError, match="a class number below 2"):
        recover_row([[1.0, 2.0]], loss="sigmoid", label=label)


def test_a_gradient_in_single_precision():
    rng = np.random.default_rng(0)
    row, residual = rng.normal(size=50), rng.normal(size=4)
    found = recover_row(np.float32(np.outer(residual, row)), np.float32(residual))
    assert found.row == pytest.approx(row, rel=1e-6, abs=1e-6)


def test_a_batch_is_seen_to_be_one():
    rng = np.random.default_rng(0)
    rows, residuals = rng.normal(size=(2, 6)), rng.normal(size=(2, 4))
    summed = residuals.T @ rows
    for arguments in ((summed, residuals.sum(axis=0)), (summed,)):
        with pytest.raises(ParameterError, match="several rows, or noise"):
            recover_row(*arguments)
    # Who knows all rows but one takes them off.
    found = recover_row(
        summed - np.outer(residuals[1], rows[1]), residuals.sum(axis=0) - residuals[1]
    )
    assert found.row == pytest.approx(rows[0], rel=1e-9)


def test_of_two_classes_a_batch_gives_the_mean_by_residuals():
    rng = np.random.default_rng(1)
    rows, residuals = rng.normal(size=(7, 3)), rng.uniform(size=7)
    found = recover_row(residuals @ rows, residuals.sum(), loss="sigmoid")
    assert found.row == pytest.approx(np.average(rows, axis=0, weights=residuals), rel=1e-12)


def test_the_first_layer_of_a_network_gives_its_input():
    rng = np.random.default_rng(2)
    network, row = Network.draw(12, 9, 3, Replay(0)), rng.uniform(size=12)
    gradient = network.gradient(row[None], np.eye(3)[[1]])
    weights, bias, outer, outer_bias = network.split(gradient)
    assert recover_row(weights, bias, loss="squared").row == pytest.approx(row, rel=1e-9)
    hidden = network.forward(row[None])[0][0]
    told = recover_row(outer, outer_bias)
    assert told.label == 1
    assert told.row == pytest.approx(hidden, rel=1e-9)


@each_case(
    "weights, intercept, loss, message",
    [
        (np.ones((2, 3)), np.ones(3), "softmax", "3 intercepts for 2 rows of weights"),
        (np.ones((2, 3)), np.ones(2), "sigmoid", "a sigmoid has one row of weights, not 2"),
        (np.ones(3), np.ones(1), "softmax", "each of at least 2 classes"),
        (np.ones((2, 3, 4)), None, "softmax", "rows by columns"),
        ([[1, np.nan]], [1], "sigmoid", "element 1, 2 is NaN"),
        ([[1, 2]], [np.inf], "sigmoid", "element 1 is NaN or infinite"),
        ([["a", "b"]], [1], "sigmoid", "numbers"),
        (np.empty((1, 0)), [1], "sigmoid", "not empty"),
        ([[1, 2], [3]], [1], None, "numbers"),
        (np.ones((1, 2)) * 1j, [1], None, "numbers"),
        (np.ones((1, 3)), np.ones(1), "hinge", "a loss is one of"),
    ],
)
def test_gradients_that_are_none(weights, intercept, loss, message):
    with pytest.raises(ParameterError, match=message):
        recover_row(weights, intercept, loss=loss)


@each_case("two", [True, False])
def test_a_fitted_model_gives_every_record_away(two):
    rows, digits = load_digits(return_X_y=True)
    if two:
        rows, digits = rows[digits < 2], digits[digits < 2]
    model = LogisticRegression(C=0.01, max_iter=2000).fit(rows, digits)
    loss = "sigmoid" if two else "softmax"
    leak = gradient_inversion(model.coef_, model.intercept_, rows[:200], digits[:200], loss=loss)
    assert leak.exact.hits == leak.labels.hits == 200 - leak.silent
    assert leak.silent == 0
    assert leak.error < 1e-9
    assert leak.baseline > 0.1
    assert "100.0% (98.2% to 100.0%)" in str(leak)
    assert "the attacker knew: one row's gradient" in str(leak)
    assert leak.to_json()["exact"]["low"] == pytest.approx(0.025 ** (1 / 200))


def test_a_label_that_is_none():
    with pytest.raises(ParameterError, match="a class number below 2, not 7"):
        recover_row([[1.0, 2.0], [-1.0, -2.0]], label=7)


def test_the_loss_follows_from_the_weights():
    assert recover_row([[1.0, 2.0]], [0.5]).label == 0
    assert recover_row([[1.0, 2.0], [-1.0, -2.0]], [0.5, -0.5]).label == 1
    assert gradient_inversion([1.0, 2.0], 0.0, np.eye(2), [0, 1]).loss == "sigmoid"


def test_linear_regression_tells_rows_but_no_targets():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20, 3))
    leak = gradient_inversion([1, 2, 3], 0.5, rows, rng.normal(size=20), loss="squared")
    assert leak.exact.value == 1
    assert "not told" in str(leak)


def test_rows_that_are_fitted_are_counted_and_not_recovered():
    leak = gradient_inversion([800.0], 0.0, [[1.0], [2.0], [-0.001]], [1, 1, 1], loss="sigmoid")
    assert (leak.silent, leak.exact.hits) == (2, 1)
    assert "the model fits 2 rows so well" in str(leak)


@each_case(
    "rows, targets, message",
    [
        (np.ones((3, 3)), [0, 1, 0], "do not fit rows"),
        (np.ones((1, 2)), [0], "at least two rows"),
        (np.ones((3, 2)), [0, 1], r"the labels have shape \(2,\)"),
        (np.ones((3, 2)), [0, 1, 2], "numbers from 0 to 1"),
        (np.ones((3, 2)), [0, 1, 0.5], "numbers from 0 to 1"),
        ([[1, 2], [np.nan, 1]], [0, 1], "rows: element 2, 1 is NaN"),
    ],
)
def test_rows_that_do_not_fit(rows, targets, message):
    with pytest.raises(ParameterError, match=message):
        gradient_inversion([1.0, 2.0], 0.0, rows, targets, loss="sigmoid")


def test_several_targets_are_refused():
    with pytest.raises(ParameterError, match="one row of weights for its one target, not 2"):
        gradient_inversion(np.ones((2, 3)), np.ones(2), np.eye(3), [1.0, 2, 3], loss="squared")
