"""Attacks: on models that know their rows by heart, on ones that never saw them, and bad input."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from cases import each_case
from replaying import Replay
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from securecomp.audit.confidences import answers
from securecomp.audit.membership.attacks import LikelihoodRatio, LossThreshold, ShadowModels
from securecomp.audit.membership.roc_curve import Roc
from securecomp.audit.membership.shadows import halves
from securecomp.audit.seeded_random import SeededRandom
from securecomp.errors import ParameterError

SIZE = 150


def noisy(seed, features=20):
    """Members, holdout and pool, whose labels are half noise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(4 * SIZE, features))
    y = (x[:, 0] + rng.normal(size=len(x)) > 0).astype(int)
    parts = slice(0, SIZE), slice(SIZE, 2 * SIZE), slice(2 * SIZE, None)
    return [(x[part], y[part]) for part in parts]


def attacked(attack, model, members, holdout):
    rows = np.concatenate([members[0], holdout[0]]), np.concatenate([members[1], holdout[1]])
    scores = attack.scores(model, rows)
    return Roc(scores[: len(members[1])], scores[len(members[1]) :])


def attacks(estimator, pool, seed=0):
    return [
        LossThreshold(),
        ShadowModels(estimator, pool, 8, entropy=Replay(seed)),
        LikelihoodRatio(estimator, shadows=16, entropy=Replay(seed)),
        LikelihoodRatio(estimator, pool, 16, "offline", entropy=Replay(seed)),
    ]


TREE = DecisionTreeClassifier(random_state=0)


@each_case("estimator", [TREE, KNeighborsClassifier(1)])
@each_case("which", range(4))
def test_what_was_learned_by_heart_is_recognised(estimator, which):
    members, holdout, pool = noisy(0)
    model = estimator.fit(*members)
    area = attacked(attacks(estimator, pool)[which], model, members, holdout).area(0.999)
    assert area.low > 0.55


def test_an_overfitted_logistic_model_is_recognised():
    members, holdout, _ = noisy(1, features=100)
    estimator = LogisticRegression(max_iter=2000)
    model = estimator.fit(*members)
    area = attacked(
        LikelihoodRatio(estimator, shadows=16, entropy=Replay(0)), model, members, holdout
    ).area(0.999)
    assert area.low > 0.6


@each_case("which", range(4))
def test_on_a_model_of_other_rows_nothing_is_found(which):
    estimator = DecisionTreeClassifier(random_state=0, max_depth=6)
    outside = 0
    for seed in range(12):
        members, holdout, pool = noisy(seed)
        pool, others = (pool[0][:SIZE], pool[1][:SIZE]), (pool[0][SIZE:], pool[1][SIZE:])
        attack = attacks(estimator, pool, seed)[which]
        area = attacked(attack, estimator.fit(*others), members, holdout).area(0.99)
        outside += not area.low <= 0.5 <= area.high
    assert outside <= 2


@each_case("depth", [8, None])
def test_the_likelihood_ratio_beats_the_loss_on_average(depth):
    gains = []
    for seed in range(6):
        members, holdout, _ = noisy(seed)
        estimator = DecisionTreeClassifier(random_state=0, max_depth=depth)
        model = estimator.fit(*members)
        lira = LikelihoodRatio(estimator, shadows=32, entropy=Replay(seed))
        areas = [
            attacked(attack, model, members, holdout).area().value
            for attack in (lira, LossThreshold())
        ]
        gains.append(areas[0] - areas[1])
    assert np.mean(gains) > 0.02


def test_online_shadows_that_learn_a_pool_too():
    members, holdout, pool = noisy(8)
    estimator = DecisionTreeClassifier(random_state=0)
    model = estimator.fit(*members)
    attack = LikelihoodRatio(estimator, pool, shadows=16)
    assert attacked(attack, model, members, holdout).area().low > 0.6


def test_variances_of_each_row():
    members, holdout, _ = noisy(2)
    estimator = DecisionTreeClassifier(random_state=0, max_depth=5)
    lira = LikelihoodRatio(estimator, shadows=32, variance="each", entropy=Replay(0))
    assert attacked(lira, estimator.fit(*members), members, holdout).area(0.99).low > 0.55


def test_the_same_entropy_gives_the_same_scores():
    members, holdout, pool = noisy(3)
    estimator = DecisionTreeClassifier(random_state=0, max_features=3)  # it draws features
    model = DecisionTreeClassifier(random_state=0).fit(*members)
    for which in (1, 2, 3):
        first, again, other = (
            attacks(estimator, pool, seed)[which].scores(model, holdout) for seed in (0, 0, 1)
        )
        np.testing.assert_array_equal(first, again)
        assert (first != other).any()


def test_the_estimator_is_not_touched():
    members, holdout, pool = noisy(4)
    estimator = DecisionTreeClassifier()
    model = DecisionTreeClassifier(random_state=0).fit(*members)
    for attack in attacks(estimator, pool)[1:]:
        attack.scores(model, holdout)
    assert not hasattr(estimator, "tree_")
    assert estimator.random_state is None


def test_each_row_is_in_half_of_the_shadows():
    inside = halves(16, 5000, SeededRandom(b"0" * 32, "x"))
    assert (inside.sum(axis=0) == 8).all()
    assert abs(inside.sum(axis=1) - 2500).max() < 200  # some six standard deviations
    together = (inside[0] & inside[1]).mean()
    assert together == pytest.approx(0.5 * 7 / 15, abs=0.03)


def test_progress_is_told():
    members, holdout, _ = noisy(5)
    told = []
    lira = LikelihoodRatio(
        DecisionTreeClassifier(random_state=0), shadows=4, progress=lambda *done: told.append(done)
    )
    lira.scores(DecisionTreeClassifier(random_state=0).fit(*members), holdout)
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


@each_case("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames(frame):
    data = load_breast_cancer(as_frame=True)
    x, y = data.data.iloc[:300], data.target.iloc[:300].map({0: "malignant", 1: "benign"})
    inside, outside, yes, no = train_test_split(x, y, random_state=0)

    def made(part):
        return frame({name: part[name].to_numpy() for name in part})

    estimator = make_pipeline(StandardScaler(), LogisticRegression())
    model = estimator.fit(made(inside), yes)
    rows = made(outside), no
    pool = made(inside), yes
    plain = LossThreshold().scores(model, rows)
    assert plain.shape == (len(no),)
    for attack in (
        LikelihoodRatio(estimator, pool, 4, entropy=Replay(0)),
        LikelihoodRatio(estimator, pool, 4, "offline", entropy=Replay(0)),
    ):
        assert np.isfinite(attack.scores(model, rows)).all()


def test_losses_and_logits_are_exact():
    class Said:
        classes_ = np.array(["a", "b", "c"])

        def predict_proba(self, x):
            return np.array([[0.5, 0.3, 0.2], [1 - 3e-17, 1e-17, 2e-17], [0.0, 1.0, 0.0]])

    found = answers(Said(), (np.zeros((3, 1)), ["b", "a", "a"]), "rows")
    np.testing.assert_allclose(found.losses, [-np.log(0.3), 3e-17, np.inf])
    assert found.logits[0] == pytest.approx(np.log(0.3 / 0.7))
    assert np.isfinite(found.logits).all()
    assert found.accuracy == pytest.approx(1 / 3)


def test_answers_that_do_not_tell_all():
    """The likeliest class only, or rounded: what is said of the label counts, and not the rest."""

    class Said:
        classes_ = np.array(["a", "b", "c"])

        def predict_proba(self, x):
            return np.array([[0.4, 0, 0], [0, 0.4, 0], [0.3, 0.3, 0.3], [0.7, 0.2, 0.2]])

    found = answers(Said(), (np.zeros((4, 1)), ["a"] * 4), "rows")
    np.testing.assert_allclose(found.losses, [-np.log(0.4), np.inf, -np.log(0.3), -np.log(0.7)])
    odds = [0.4 / 0.6, 2.0**-30, 0.3 / 0.7, 0.7 / 0.3]
    np.testing.assert_allclose(found.logits, np.log(odds), atol=1e-6)


def test_single_precision_tells_all():
    class Said:
        classes_ = np.arange(100)

        def predict_proba(self, x):
            given = np.random.default_rng(0).dirichlet(np.full(100, 0.02), len(x))
            return given.astype(np.float32)

    found = answers(Said(), (np.zeros((200, 1)), np.arange(200) % 100), "rows")
    others = found.probabilities.copy()
    others[np.arange(200), found.truth] = 0
    np.testing.assert_array_equal(found.wrong, others.sum(axis=1))


# Bad input.


def test_models_without_probabilities():
    members, holdout, _ = noisy(6)
    with pytest.raises(ParameterError, match=r"SVC gives no probabilities.*CalibratedClassifierCV"):
        LossThreshold().scores(SVC().fit(*members), holdout)
    with pytest.raises(ParameterError, match=r"no classes_: it is not fitted"):
        LossThreshold().scores(DecisionTreeClassifier(random_state=0), holdout)


@each_case(
    "says, message",
    [
        (lambda n: np.full((n, 3), 1 / 3), r"shape \(150, 3\) for 150 rows and 2 classes"),
        (lambda n: np.full((n, 2), np.nan), "row 1 are not probabilities"),
        (lambda n: np.tile([1.5, -0.5], (n, 1)), "row 1 are not probabilities"),
    ],
)
def test_answers_that_are_no_probabilities(says, message):
    class Odd:
        classes_ = (0, 1)

        def predict_proba(self, x):
            return says(len(x))

    with pytest.raises(ParameterError, match=message):
        LossThreshold().scores(Odd(), noisy(0)[0])


def test_what_a_model_says_in_any_form_shows_no_cell():
    """No quotes, and brackets that close on another line."""

    class Outspoken:
        classes_ = (0, 1)

        def predict_proba(self, x):
            raise ValueError(f"7351 is odd, and so is [{x[0][0]}\n 1]")

    with pytest.raises(ParameterError, match="does not take these rows") as said:
        answers(Outspoken(), ([[7351]], [0]), "members")
    assert "7351" not in str(said.value)


def test_what_a_model_says_of_rows_it_does_not_take_shows_no_cell():
    encoded = make_pipeline(OneHotEncoder(), LogisticRegression())
    y = [0, 1] * 10
    for known, unknown in (("a", "Grimaldi"), (1, 7351)):
        model = encoded.fit([[known]] * 20, y)
        with pytest.raises(ParameterError, match="does not take these rows") as said:
            answers(model, ([[unknown]] * 20, y), "members")
        assert str(unknown) not in str(said.value)
    with pytest.raises(ParameterError, match="does not take these rows") as said:
        answers(
            LogisticRegression().fit([[1], [2]], [0, 1]),
            (np.array([["Grimaldi"]], object), [0]),
            "members",
        )
    assert "Grimaldi" not in str(said.value)


def test_rows_that_a_model_does_not_take():
    members, holdout, _ = noisy(7)
    model = DecisionTreeClassifier(random_state=0).fit(*members)
    x, y = holdout
    for rows, message in (
        ((x[:, :3], y), "the model does not take these rows"),
        ((x, y + 5), r"the label of row 1 \(and so of 150 of 150 rows\) among its 2"),
        ((x, y.astype(str)), "that numbers are"),
        ((x, y[:-1]), "150 rows need a label each"),
        ((x[:0], y[:0]), "the rows: has no rows"),
        (x, "give the features and the labels"),
    ):
        with pytest.raises(ParameterError, match=message):
            LossThreshold().scores(model, rows)


@each_case("shadows", [0, 2, 5, 4.0, True])
def test_numbers_of_shadows_that_cannot_be(shadows):
    members, holdout, pool = noisy(8)
    model = DecisionTreeClassifier(random_state=0).fit(*members)
    for attack in (
        LikelihoodRatio(DecisionTreeClassifier(random_state=0), shadows=shadows),
        ShadowModels(DecisionTreeClassifier(random_state=0), pool, shadows),
    ):
        with pytest.raises(ParameterError, match="an even number of"):
            attack.scores(model, holdout)


def test_attacks_that_cannot_be():
    members, holdout, pool = noisy(9)
    tree = DecisionTreeClassifier(random_state=0)
    model = DecisionTreeClassifier(random_state=0).fit(*members)
    one_class = pool[0], np.zeros_like(pool[1])
    for attack, message in (
        (LikelihoodRatio(tree, mode="offline"), "give one, or take mode"),
        (LikelihoodRatio(tree, mode="other"), "mode must"),
        (LikelihoodRatio(tree, variance="none"), "variance"),
        (LikelihoodRatio("tree"), "give the scikit-learn estimator that trained"),
        (LikelihoodRatio(tree, holdout, 4), "overlap: row 1 and row 1, .* and 145 more"),
        (ShadowModels(tree, holdout, 4), "the pool and the attacked rows overlap"),
        (ShadowModels(tree, one_class, 4), "shadow model 1 do not have all of the model's 2"),
        (LikelihoodRatio(tree, (pool[0][:, :3], pool[1]), 4), "do not fit together"),
        (LikelihoodRatio(tree, (pd.DataFrame(pool[0]), pool[1]), 4), "all be arrays, or all data"),
    ):
        with pytest.raises(ParameterError, match=message):
            attack.scores(model, holdout)
