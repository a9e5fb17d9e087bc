"""The same model over secure sums and in the clear, bit for bit, and that other software finds."""

import numpy as np
from cases import each_case
from federated.cohort import averaged, model, sites
from sklearn.linear_model import LogisticRegression

from securecomp.federated import FederatedLinearRegression, local_update
from securecomp.federated.config import TrainingTerms
from securecomp.paillier.encrypted_sum import Paillier
from securecomp.secagg.masked_sum import Masking
from securecomp.sharing.additive_sum import Sharing

PROTOCOLS = {
    "sharing": Sharing(),
    "sharing among all": Sharing("all"),
    "masking": Masking(),
    "active masking": Masking("active"),
    "paillier": Paillier(bits=512, insecure_for_tests=True),
}
HOW = {
    "sgd": {"strategy": "sgd"},
    "averaging": {"local_epochs": 3, "learning_rate": 0.2, "l2": 0.1},
    "batches": {"local_epochs": 2, "batch_size": 7, "track_loss": True},
    "a fraction": {"strategy": "sgd", "batch_size": 10, "fraction": 0.75},
    "wide integers": {"bits": 52, "max_rows": 1 << 30},
}


def same(one, other):
    assert one.coef_.tobytes() == other.coef_.tobytes()
    assert one.intercept_.tobytes() == other.intercept_.tobytes()
    assert one.history_ == other.history_


def in_the_clear(how, classes=2):
    return model("clear", **how).fit(sites(classes=classes))


@each_case("how", HOW.values())
@each_case("protocol", PROTOCOLS.values())
def test_secure_sums_give_the_model_of_the_clear_bit_for_bit(protocol, how):
    same(model(protocol, **how).fit(sites()), in_the_clear(how))


@each_case("scaling", ["none", "bounds", "moments"])
def test_three_classes_and_every_scaling_bit_for_bit(scaling):
    how = {"scaling": scaling, "local_epochs": 2}
    same(model(Sharing(2), **how).fit(sites(classes=3)), in_the_clear(how, classes=3))


@each_case("epochs, l2", [(1, 0.0), (5, 0.0), (2, 0.3)])
def test_averaging_is_the_papers_within_the_grid(epochs, l2):
    data, rounds = sites(), 7
    found = model(rounds=rounds, local_epochs=epochs, l2=l2, learning_rate=0.3).fit(data)
    expected = averaged(data, rounds, 0.3, epochs, l2)
    # Each round rounds four sites' sums to 2^-30, and divides by the rows.
    error = np.abs(np.append(found.coef_[0], found.intercept_) - expected).max()
    assert error < rounds * 4 * 2.0**-30


def test_the_grid_is_what_it_differs_by():
    data = sites()
    expected = averaged(data, 7, 0.3)

    def error(bits):
        found = model(rounds=7, learning_rate=0.3, bits=bits).fit(data)
        return np.abs(np.append(found.coef_[0], found.intercept_) - expected).max()

    assert error(10) > 1e-6 > 100 * error(40)


def test_sgd_is_one_step_on_the_pooled_rows():
    data = sites()
    x, y = (np.concatenate(parts) for parts in zip(*data.values(), strict=True))
    found = model(strategy="sgd", rounds=9).fit(data)
    expected = averaged({"pooled": (x, y)}, 9, 0.5)
    assert np.allclose(np.append(found.coef_[0], found.intercept_), expected, atol=1e-8)


def test_sgd_ends_where_scikit_learn_does():
    data = sites()
    x, y = (np.concatenate(parts) for parts in zip(*data.values(), strict=True))
    pooled = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(x, y)
    found = model("clear", strategy="sgd", rounds=400, learning_rate=2, scaling="moments").fit(data)
    assert np.abs(found.coef_ - pooled.coef_).max() < 1e-6
    assert np.abs(found.intercept_ - pooled.intercept_).max() < 1e-6


def test_many_classes_end_where_scikit_learn_does():
    data = sites(classes=3)
    x, y = (np.concatenate(parts) for parts in zip(*data.values(), strict=True))
    pooled = LogisticRegression(C=1, tol=1e-10, max_iter=5000).fit(x, y)
    # scikit-learn's penalty is on the sum of losses, ours on the mean.
    how = {"strategy": "sgd", "rounds": 3000, "l2": 1 / len(y), "learning_rate": 1.0}
    found = model("clear", **how).fit(data)
    assert found.coef_.shape == (3, 3)
    difference = found.predict_proba(x) - pooled.predict_proba(x)
    assert np.abs(difference).max() < 1e-4
    assert (found.predict(x) == pooled.predict(x)).all()


@each_case("intercept", [True, False])
def test_least_squares(intercept):
    rng = np.random.default_rng(3)
    data = {}
    for name, (x, _) in sites().items():
        data[name] = (x, x @ [0.3, -0.2, 0.1] + 0.5 + rng.normal(0, 0.1, len(x)))
    x, y = (np.concatenate(parts) for parts in zip(*data.values(), strict=True))
    design = np.column_stack([x, np.ones(len(x))]) if intercept else x
    expected = np.linalg.lstsq(design, y, rcond=None)[0]
    found = FederatedLinearRegression("clear", rounds=600, fit_intercept=intercept).fit(data)
    assert np.allclose(found.coef_, expected[:3], atol=1e-7)
    assert np.allclose(found.intercept_, expected[3] if intercept else 0, atol=1e-7)
    assert np.allclose(found.predict(x), design @ expected, atol=1e-6)
    assert found.score(x, y) > 0.5 or not intercept


def test_rows_weigh_alike_wherever_they_are():
    """A site that is split into two of the same rows leaves the sum as it is."""
    data = sites()
    x, y = data.pop("east")
    halves = {"east 1": (x[:20], y[:20]), "east 2": (x[20:], y[20:])}
    how = {"strategy": "sgd", "rounds": 6}
    whole = model(**how).fit(data | {"east": (x, y)})
    split = model(**how).fit(data | halves)
    assert np.allclose(whole.coef_, split.coef_, atol=1e-7)
    assert split.history_[0].examples == whole.history_[0].examples == 159


def test_who_takes_part_is_drawn_and_everybody_knows_it():
    names = tuple(f"site {i}" for i in range(20))
    terms = TrainingTerms(fraction=0.3)
    rounds = [terms.participants(names, bytes(32), number) for number in range(400)]
    assert {len(r) for r in rounds} == {6}
    assert len(set(rounds)) > 350
    counts = [sum(name in r for r in rounds) for name in names]
    assert 80 < min(counts) < 120 < max(counts) < 160  # of 120 each
    assert rounds[7] == terms.participants(names, bytes(32), 7)
    assert terms.participants(names, bytes(31) + b"1", 7) != rounds[7]


def test_a_fraction_is_rounded_up():
    assert [TrainingTerms(fraction=f).per_round(10) for f in (0.01, 0.3, 0.31, 1)] == [1, 3, 4, 10]


def test_the_loss_of_a_round_is_that_of_the_pooled_rows_before_it():
    data = sites()
    found = model(track_loss=True, rounds=5).fit(data)
    assert abs(found.history_[0].loss - np.log(2)) < 1e-6
    x, y = (np.concatenate(parts) for parts in zip(*data.values(), strict=True))
    w = averaged(data, 4, 0.5)
    p = 1 / (1 + np.exp(-(x @ w[:3] + w[3])))
    expected = -np.mean(np.log(np.where(y == 1, p, 1 - p)))
    assert abs(found.history_[4].loss - expected) < 1e-5
    assert "loss" in found.run_.opened
    assert model().fit(data).history_[0].loss is None


def test_batches_are_drawn_anew_and_replayed():
    how = {"batch_size": 8, "local_epochs": 2}
    one, other = (model(**how).fit(sites()) for _ in range(2))
    same(one, other)
    another = model(seed="another", **how).fit(sites())
    assert not np.array_equal(one.coef_, another.coef_)


def test_rows_are_mixed_anew_at_each_site_in_each_round(monkeypatch):
    orders, change = [], local_update.change
    monkeypatch.setattr(local_update, "change", lambda *a: orders.append(a[-1]) or change(*a))
    model(rounds=3, batch_size=5).fit(sites())
    assert len(orders) == len(set(orders)) == 12
