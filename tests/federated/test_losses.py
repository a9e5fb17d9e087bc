import numpy as np
import pytest
from cases import each_case
from scipy.optimize import approx_fprime

from securecomp.errors import ParameterError
from securecomp.federated.losses import NAMES, Loss, one_hot


@each_case("name", NAMES)
def test_residuals_are_the_gradients_of_the_losses(name):
    rng = np.random.default_rng(0)
    width = 4 if name == "softmax" else 1
    loss = Loss(name)
    for _ in range(20):
        scores = rng.normal(0, 3, (1, width))
        place = rng.integers(width if width > 1 else 2, size=1)
        targets = one_hot(place, max(width, 2))
        slope = approx_fprime(
            scores[0], lambda z, t=targets: loss.losses(z[None], t)[0], epsilon=1e-7
        )
        assert loss.residuals(scores, targets)[0] == pytest.approx(slope, abs=1e-5)


@each_case("name", ["sigmoid", "softmax"])
def test_large_scores_neither_overflow_nor_lose_the_small_probability(name):
    loss = Loss(name)
    scores = np.array([[-800.0], [-40.0], [0.0], [800.0]])
    if name == "softmax":
        scores = np.column_stack([np.zeros(4), scores[:, 0]])
    means = loss.means(scores)[:, -1]
    assert means == pytest.approx([0, np.exp(-40.0), 0.5, 1], rel=1e-12)
    targets = np.array([[1.0], [1.0], [1.0], [0.0]])
    if name == "softmax":
        targets = np.column_stack([1 - targets[:, 0], targets[:, 0]])
    assert loss.losses(scores, targets) == pytest.approx([800, 40, np.log(2), 800], rel=1e-12)


def test_two_classes_are_one_column_and_more_are_one_each():
    assert one_hot(np.array([0, 1, 1]), 2).tolist() == [[0], [1], [1]]
    assert one_hot(np.array([2, 0]), 3).tolist() == [[0, 0, 1], [1, 0, 0]]


def test_a_loss_that_is_none_of_them_is_refused():
    with pytest.raises(ParameterError, match="sigmoid, softmax, squared, not 'hinge'"):
        Loss("hinge")
