"""Exact sums of clipped gradients: integers, one row's share of them, and no rounding anywhere."""

import numpy as np
import pytest
from cases import each_case

from securecomp.errors import LocalProtocolError, ParameterError, RangeError
from securecomp.federated.clipping import UNIT, UnitRows
from securecomp.federated.losses import Loss, one_hot

WORST = np.array([1e60, -1e60, 1e30, 1.0, -1.0, 1e-30, 5e-324, 0.0])
LOSSES = [("sigmoid", 1), ("softmax", 4), ("squared", 1)]


def tables(seed, count, features):
    """Ordinary rows, then rows of any size, then one direction with all that is odd."""
    g = np.random.default_rng(seed)
    table = g.normal(size=(count, features))
    odd = g.random(count) < 0.5
    table[odd] = g.choice(WORST, (count, features))[odd]
    table[g.random(count) < 0.1] = 0
    return table


def targets(seed, count, name, outputs):
    g = np.random.default_rng(seed + 1000)
    if name == "squared":
        return g.choice(WORST[:5], (count, 1)) * g.normal(size=(count, 1)).clip(-1, 1)
    return one_hot(g.integers(0, max(outputs, 2), count), max(outputs, 2))


def squared_norm(total):
    return sum(int(x) ** 2 for x in total.ravel())


@each_case("name, outputs", LOSSES)
@each_case("clip", [1e-6, 1.0, 1e40])
def test_a_row_changes_the_sum_by_at_most_the_unit(name, outputs, clip):
    """Two tables that differ in a row, put in anywhere: in Python's integers, no tolerance."""
    largest = 0
    for seed in range(60):
        g = np.random.default_rng(seed)
        count, features = int(g.integers(1, 40)), int(g.integers(1, 30))
        table, wanted = tables(seed, count, features), targets(seed, count, name, outputs)
        model = g.normal(size=(wanted.shape[1], features)) * 10.0 ** g.integers(-5, 6)
        out = int(g.integers(count))
        keep = np.arange(count) != out
        loss = Loss(name)
        whole = UnitRows(table).total(np.arange(count), model, wanted, loss, clip)
        rest = UnitRows(table[keep]).total(np.arange(count - 1), model, wanted[keep], loss, clip)
        alone = UnitRows(table[[out]]).total(np.arange(1), model, wanted[[out]], loss, clip)
        assert np.array_equal(whole - rest, alone)
        assert squared_norm(alone) <= UNIT**2
        largest = max(largest, squared_norm(alone))
    if clip <= 1:  # nothing is given away either
        assert largest > 0.9999 * UNIT**2


@each_case("name, outputs", LOSSES)
def test_a_patient_changes_the_sum_by_at_most_the_unit(name, outputs):
    for seed in range(60):
        g = np.random.default_rng(seed)
        count, features = int(g.integers(2, 60)), int(g.integers(1, 10))
        table, wanted = tables(seed, count, features), targets(seed, count, name, outputs)
        # Rows that all point one way, so that the triangle inequality is an equality.
        table[: count // 2], wanted[: count // 2] = table[0], wanted[0]
        owners = np.sort(g.integers(0, 4, count))
        owners = np.unique(owners, return_inverse=True)[1]
        model = g.normal(size=(wanted.shape[1], features))
        loss = Loss(name)
        rows = UnitRows(table, owners)
        assert rows.units == owners.max() + 1
        everyone = np.arange(rows.units)
        whole = rows.total(rows.of(everyone), model, wanted, loss, 0.5)
        for patient in everyone:
            others = rows.of(np.delete(everyone, patient))
            assert list(others) == list(np.flatnonzero(owners != patient))
            change = whole - rows.total(others, model, wanted, loss, 0.5)
            assert squared_norm(change) <= UNIT**2


@each_case("name, outputs", LOSSES)
@each_case("count", [1, 2, 7, 8, 9, 17, 64, 1000, 9001])
def test_a_row_adds_the_same_wherever_it_stands(name, outputs, count):
    """The sum over all is the sum of what each adds alone, bit for bit: also across chunks."""
    table, wanted = tables(count, count, 5), targets(count, count, name, outputs)
    model = np.random.default_rng(count).normal(size=(wanted.shape[1], 5))
    rows, loss = UnitRows(table), Loss(name)
    whole = rows.total(np.arange(count), model, wanted, loss, 1.0)
    places = np.random.default_rng(0).permutation(count)[: min(count, 400)]
    rest = np.setdiff1d(np.arange(count), places)
    total = rows.total(rest, model, wanted, loss, 1.0)
    for place in places:
        total = total + rows.total(np.array([place]), model, wanted, loss, 1.0)
    assert np.array_equal(whole, total)


@each_case("layout", [np.asfortranarray, lambda t: t.repeat(2, axis=1)[:, ::2]])
@each_case("count", [1, 2, 3, 9])
def test_a_row_adds_the_same_however_the_table_lies(layout, count):
    """Data frames come in columns, of which numpy adds one row's squares in another order."""
    g, loss = np.random.default_rng(count), Loss("squared")
    for _ in range(100):
        table, wanted, model = (g.normal(size=(n, 40)) for n in (count, count, 1))
        wanted = np.asfortranarray(3 * wanted[:, :1])
        whole = UnitRows(layout(table)).total(np.arange(count), model, wanted, loss, 1.0)
        alone = [
            UnitRows(table[[row]]).total(np.arange(1), model, wanted[[row]], loss, 1.0)
            for row in range(count)
        ]
        assert np.array_equal(whole, sum(alone))


def test_a_table_of_single_precision_is_as_one_of_double():
    table, wanted = tables(4, 50, 6).clip(-1e30, 1e30).astype(np.float32), np.ones((50, 1))
    both = [
        UnitRows(given).total(np.arange(50), np.ones((1, 6)), wanted, Loss("squared"), 1.0)
        for given in (table, table.astype(np.float64))
    ]
    assert np.array_equal(*both)


@each_case("name", ["sigmoid", "softmax"])
def test_exponentials_do_not_depend_on_the_place(name):
    """What exactness rests on, of numbers of all sizes: each row alone and among any others."""
    g, loss = np.random.default_rng(0), Loss(name)
    for count in [*range(1, 20), 63, 64, 65]:
        outputs = 1 if name == "sigmoid" else count
        scores = g.normal(size=(count, outputs)) * 10.0 ** g.integers(-300, 4, (count, outputs))
        wanted = g.integers(0, 2, (count, outputs)).astype(float)
        whole = loss.residuals(scores, wanted)
        for row in range(count):
            alone = loss.residuals(scores[[row]], wanted[[row]])
            assert np.array_equal(whole[[row]], alone)


def test_the_product_is_that_of_pythons_integers():
    table, wanted = tables(3, 300, 6), targets(3, 300, "softmax", 4)
    rows, loss = UnitRows(table), Loss("softmax")
    model = np.random.default_rng(3).normal(size=(4, 6))
    everything = np.arange(300)
    scores = rows._scores(rows._directions, everything, model)
    weights = rows.weights(everything, loss.residuals(scores, wanted), 1.0)
    found = rows.total(everything, model, wanted, loss, 1.0)
    u = [[int(x) for x in row] for row in rows._directions.tolist()]
    v = [[int(x) for x in row] for row in weights.tolist()]
    for k in range(4):
        for j in range(6):
            assert int(found[k, j]) == sum(v[i][k] * u[i][j] for i in range(300))
    for u_i, v_i in zip(u, v, strict=True):
        assert sum(x * x for x in u_i) * sum(x * x for x in v_i) <= UNIT**2


def test_sums_beyond_what_floats_hold():
    """So many rows that point one way that their sum passes 2^53: exact all the same."""
    count = 20_001
    table = np.random.default_rng(1).normal(size=(count, 2)) * [0, 0.3] + [1, 0]
    rows, loss, wanted = UnitRows(table), Loss("squared"), np.full((count, 1), -5.0)
    everything = np.arange(count)
    found = rows.total(everything, np.zeros((1, 2)), wanted, loss, 1.0)
    weights = rows.weights(everything, -wanted, 1.0).astype(np.int64)
    expected = weights.T @ rows._directions.astype(np.int64)  # of integers, without BLAS
    assert expected.max() > 1 << 54
    assert expected.max() % 2 == 1  # which no float of this size is
    assert np.array_equal(found, expected)


def test_scores_are_exact_products():
    table = np.random.default_rng(0).normal(size=(50, 9))
    rows = UnitRows(table)
    model = np.random.default_rng(1).normal(size=(2, 9))
    found = rows._scores(rows._directions, np.arange(50), model)
    assert found == pytest.approx(table @ model.T, rel=1e-4, abs=1e-5)
    zero = rows._scores(rows._directions, np.arange(50), np.zeros((2, 9)))
    assert not zero.any()


@each_case("name, outputs", LOSSES)
def test_it_is_the_sum_of_clipped_gradients(name, outputs):
    g = np.random.default_rng(5)
    table, model = g.normal(size=(200, 7)) * 3, g.normal(size=(outputs, 7))
    wanted = one_hot(g.integers(0, max(outputs, 2), 200), max(outputs, 2))
    loss = Loss(name)
    gradients = np.einsum("nk,nd->nkd", loss.residuals(table @ model.T, wanted), table)
    norms = np.sqrt((gradients**2).sum(axis=(1, 2)))
    clip = float(np.median(norms))
    expected = (gradients * np.minimum(1, clip / norms)[:, None, None]).sum(axis=0)
    found = UnitRows(table).total(np.arange(200), model, wanted, loss, clip) * (clip / UNIT)
    assert found == pytest.approx(expected, abs=1e-3 * clip)


def test_patients_rows_are_clipped_together():
    table = np.ones((4, 1))
    wanted = np.full((4, 1), -1.0)  # residuals of 1 at the model 0
    rows = UnitRows(table, np.array([0, 0, 0, 1]))
    found = rows.total(np.arange(4), np.zeros((1, 1)), wanted, Loss("squared"), 2.0)
    assert found[0, 0] / UNIT == pytest.approx(1.0 + 0.5, abs=1e-5)


def test_no_rows():
    rows = UnitRows(np.ones((3, 2)))
    nobody = np.arange(0)
    found = rows.total(nobody, np.ones((1, 2)), np.ones((3, 1)), Loss("squared"), 1.0)
    assert found.tolist() == [[0, 0]]


@each_case("value, said", [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf"), (1.1e60, "beyond")])
def test_a_bad_value_is_named_by_its_row(value, said):
    table = np.zeros((5, 3))
    table[3, 1] = value
    with pytest.raises(RangeError, match=rf"X: row 3 .*{said}"):
        UnitRows(table)


def test_what_is_too_large_for_exact_sums():
    huge = np.broadcast_to(np.float64(0), ((1 << 22) + 1, 1))
    with pytest.raises(ParameterError, match="up to 4,194,304 rows"):
        UnitRows(huge)
    with pytest.raises(ParameterError, match="up to 4,194,304 rows"):
        UnitRows(huge, np.zeros(len(huge), np.intp))
    with pytest.raises(ParameterError, match="1 to 1,048,576 features"):
        UnitRows(np.zeros((1, 0)))


def test_a_model_beyond_floats():
    rows = UnitRows(np.ones((2, 1)))
    for weight in (np.nan, np.inf, 1e61):
        with pytest.raises(ParameterError, match="smaller learning rate"):
            rows.total(np.arange(2), np.array([[weight]]), np.ones((2, 1)), Loss("squared"), 1.0)


@each_case("owners", [None, np.array([0, 0])])
def test_a_computer_that_computes_wrongly_shows_nothing(owners):
    rows = UnitRows(np.ones((2, 1)), owners)
    rows._largest = rows._largest + 3
    with pytest.raises(LocalProtocolError, match="nothing is shown"):
        rows.weights(np.arange(2), np.full((2, 1), 9.0), 1.0)
    with pytest.raises(LocalProtocolError):
        rows.weights(np.arange(2), np.full((2, 1), np.nan), 1.0)
