"""The trainer: what it computes, what it draws, and an adversary who tries to tell neighbours."""

import math

import numpy as np
import pytest
from cases import each_case
from replaying import Replay
from scipy import stats

from securecomp.errors import ParameterError
from securecomp.federated import dpsgd, promise
from securecomp.federated.clipping import UNIT, UnitRows
from securecomp.federated.dpsgd import Schedule, train
from securecomp.federated.losses import Loss, one_hot
from securecomp.federated.poisson import batches, noises


def problem(seed, count=80, features=4, classes=2):
    g = np.random.default_rng(seed)
    return g.normal(size=(count, features)), one_hot(g.integers(0, classes, count), classes)


@each_case("name, classes", [("sigmoid", 2), ("softmax", 3), ("squared", 2)])
def test_without_noise_it_is_clipped_sgd_in_floats(name, classes):
    """A plain numpy loop with gradients written out, over the same batches."""
    table, targets = problem(0, classes=classes)
    targets = targets + 0.25  # no residual is 0
    schedule = Schedule(0.2, 60, 0.7, 0.0, 1.5, 16.0)
    loss = Loss(name)
    found = train(UnitRows(table), targets, loss, schedule, Replay(5))
    model = np.zeros((targets.shape[1], 4))
    for batch in batches(80, 0.2, 60, Replay(5)):
        x = table[batch]
        gradients = np.einsum("nk,nd->nkd", loss.residuals(x @ model.T, targets[batch]), x)
        norms = np.sqrt((gradients**2).sum(axis=(1, 2), keepdims=True))
        model -= 1.5 / 16.0 * (gradients * np.minimum(1, 0.7 / norms)).sum(axis=0)
    assert found == pytest.approx(model, abs=1e-4)


def test_it_replays_and_goes_on_from_where_it_is_told():
    table, targets = problem(1)
    schedule = Schedule(0.2, 20, 1.0, 2.0, 1.0, 16.0)
    rows, loss = UnitRows(table), Loss("sigmoid")
    one = train(rows, targets, loss, schedule, Replay(1))
    assert np.array_equal(one, train(rows, targets, loss, schedule, Replay(1)))
    assert not np.array_equal(one, train(rows, targets, loss, schedule, Replay(2)))
    assert not np.array_equal(train(rows, targets, loss, schedule), one)
    start = one.copy()
    train(rows, targets, loss, schedule, Replay(3), start=start)
    assert np.array_equal(start, one)


def test_noise_does_not_depend_on_the_data(monkeypatch):
    """The same draws, in the same order, whatever the rows are: also for batches that are empty."""
    real, seen = dpsgd.noises, []

    def recorded(*arguments):
        for noise in real(*arguments):
            seen.append(noise.copy())
            yield noise

    monkeypatch.setattr(dpsgd, "noises", recorded)
    asked = []
    for table in (np.zeros((5, 3)), np.full((5, 3), 1e50), np.eye(5, 3)):
        source, sizes = Replay(9), []

        def entropy(size, source=source, sizes=sizes):
            sizes.append(size)
            return source(size)

        train(
            UnitRows(table),
            np.ones((5, 1)),
            Loss("sigmoid"),
            Schedule(0.2, 40, 1.0, 1.0, 0.1, 1.0),
            entropy,
        )
        asked.append(sizes)
    assert asked[0] == asked[1] == asked[2]
    assert len(seen) == 3 * 40
    first, second, third = (np.array(seen[i : i + 40]) for i in (0, 40, 80))
    assert np.array_equal(first, second)
    assert np.array_equal(first, third)
    assert len({row.tobytes() for row in first}) == 40  # a draw a step, and none twice


def test_each_step_adds_its_noise_once_also_to_an_empty_batch():
    """Of rows that are zeros the weights are the noise of all steps, to the last digit."""
    steps, rate, variance = 30, 0.2, promise.variance(1.0)
    source = Replay(3)
    sizes = [len(batch) for batch in batches(5, rate, steps, source)]
    assert 5 < sizes.count(0) < 20
    drawn = sum(noises(variance, 6, steps, source))
    schedule = Schedule(rate, steps, 1.0, 1.0, float(UNIT), 1.0)
    found = train(UnitRows(np.zeros((5, 3))), np.ones((5, 2)), Loss("sigmoid"), schedule, Replay(3))
    assert np.array_equal(found.ravel(), -drawn)


def test_a_step_is_the_exact_sum_plus_noise_on_the_grid():
    """Zero rows leave noise alone: every weight is an integer times a public constant."""
    schedule = Schedule(1.0, 1, 1.0, 1.0, float(UNIT), 1.0)
    found = train(UnitRows(np.zeros((2, 50))), np.ones((2, 1)), Loss("sigmoid"), schedule)
    assert np.array_equal(found, np.rint(found))
    assert found.std() == pytest.approx(UNIT, rel=0.5)


@each_case(
    "change, said",
    [
        ({"steps": 0}, "steps from 1 on"),
        ({"steps": 2.0}, "steps from 1 on"),
        ({"clip": 0.0}, "clip is a number above 0"),
        ({"clip": math.nan}, "clip is"),
        ({"clip": "1"}, "clip is"),
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"expected": math.inf}, "expected"),
        ({"noise": 0.01}, "from 0.1 to 1000"),
        ({"noise": -1.0}, "from 0.1 to 1000"),
    ],
)
def test_schedules_that_cannot_be(change, said):
    fine = {
        "rate": 0.2,
        "steps": 2,
        "clip": 1.0,
        "noise": 1.0,
        "learning_rate": 1.0,
        "expected": 1.0,
    }
    with pytest.raises(ParameterError, match=said):
        Schedule(**(fine | change))


def test_batches_that_are_empty_as_a_rule():
    with pytest.raises(ParameterError, match="empty as a rule"):
        train(
            UnitRows(np.ones((5, 1))),
            np.ones((5, 1)),
            Loss("squared"),
            Schedule(0.1, 2, 1.0, 1.0, 1.0, 1.0),
        )


def told_apart(trainings, noise, rate, steps, entropy):
    """What a likelihood attacker gets from the weights, of trainings with one row and without.

    All other rows are zeros, so the first weight is the row's share and noise, and nothing else.
    """
    shares = []
    for present in (True, False):
        table = np.zeros((8 - (not present), 2))
        if present:
            table[7] = 1e9
        rows, wanted = UnitRows(table), np.ones((len(table), 1))
        schedule = Schedule(rate, steps, 1.0, noise, 1.0, 1.0)
        found = [train(rows, wanted, Loss("sigmoid"), schedule, entropy) for _ in range(trainings)]
        shares.append(np.array(found)[:, 0].sum(axis=1))
    return shares


def refuted(shares, delta, confidence=1e-4):
    """The largest epsilon that these samples show, by Clopper and Pearson, over all thresholds."""
    present, absent = shares
    best = 0.0
    thresholds = np.quantile(np.concatenate(shares), np.linspace(0.02, 0.98, 25))
    level = confidence / (4 * len(thresholds))
    for threshold in thresholds:
        for one, other in ((present, absent), (absent, present)):
            for above in (True, False):
                hits = int(((one > threshold) == above).sum())
                false = int(((other > threshold) == above).sum())
                low = stats.beta.ppf(level, hits, len(one) - hits + 1) if hits else 0
                high = stats.beta.isf(level, false + 1, len(other) - false)
                if low > delta:
                    best = max(best, math.log((low - delta) / high))
    return best


@each_case("noise, rate, steps", [(0.7, 1.0, 1), (0.8, 0.5, 3)])
def test_an_adversary_does_not_refute_epsilon(noise, rate, steps):
    epsilon = promise.spent(noise, rate, steps, 2, 1e-5).epsilon
    shown = refuted(told_apart(1200, noise, rate, steps, Replay("adversary")), 1e-5)
    assert 0.2 < shown <= epsilon


def test_an_adversary_would_refute_a_lie():
    """With less noise than is accounted for."""
    epsilon = promise.spent(4.0, 1.0, 1, 2, 1e-5).epsilon
    assert refuted(told_apart(400, 0.5, 1.0, 1, Replay("liar")), 1e-5) > epsilon


@pytest.mark.slow
def test_an_adversary_with_many_trainings():
    for noise, rate, steps in ((0.5, 1.0, 1), (0.6, 0.3, 2), (1.0, 0.5, 8)):
        epsilon = promise.spent(noise, rate, steps, 2, 1e-5).epsilon
        shown = refuted(told_apart(20_000, noise, rate, steps, Replay("many")), 1e-5)
        assert 0.3 < shown <= epsilon
