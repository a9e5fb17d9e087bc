"""An attribute is guessed better for members if a model memorises, and not if it cannot."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from cases import each_case
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from securecomp.audit.attack_result import Rate, compared, difference
from securecomp.audit.membership.restricted_model import RestrictedModel
from securecomp.audit.reconstruction.attributes import AttributeLeak, attribute_inference
from securecomp.errors import ParameterError


def drawn(n, seed):
    rng = np.random.default_rng(seed)
    secret = rng.integers(0, 2, n)
    rows = rng.normal(size=(n, 6))
    rows[:, 0] += 0.3 * secret
    rows[:, 5] = secret
    return rows, (rows[:, 0] + 0.8 * secret + rng.normal(size=n) > 0.5).astype(int)


MEMBERS, OTHERS = drawn(400, 1), drawn(2000, 2)


@pytest.fixture(scope="module")
def forest():
    """Remembers every row."""
    return RandomForestClassifier(30, random_state=0).fit(*MEMBERS)


@pytest.fixture(scope="module")
def linear():
    return LogisticRegression().fit(*MEMBERS)


def test_a_model_that_memorises_leaks_about_its_members(forest):
    leak = attribute_inference(forest, *MEMBERS, *OTHERS, 5)
    assert leak.leaks
    assert leak.members.value > 0.75 > leak.others.value
    assert leak.imputed[0].interval()[1] < leak.members.interval()[0]
    assert leak.advantage == leak.members.value - leak.others.value
    assert leak.interval[0] < leak.advantage < leak.interval[1]
    text = str(leak)
    assert "leak: members less others +" in text
    assert "the attacker knew: all other attributes" in text
    assert max(map(len, text.splitlines())) <= 100
    facts = json.loads(json.dumps(leak.to_json()))
    assert (facts["leaks"], facts["values"], facts["members"]["trials"]) == (True, 2, 400)


def test_members_and_holdout_that_are_swapped(forest):
    leak = attribute_inference(forest, *OTHERS, *MEMBERS, 5)
    assert leak.interval[1] < 0
    assert "either members and holdout are swapped, or they are not of" in " ".join(leak.remarks())
    honest = attribute_inference(forest, *MEMBERS, *OTHERS, 5)
    assert not any("swapped" in remark for remark in honest.remarks())


def test_a_model_of_few_weights_does_not(linear):
    leak = attribute_inference(linear, *MEMBERS, *OTHERS, 5)
    assert not leak.leaks
    assert "this shows no leak about members" in str(leak)
    # It finds the attribute better than the most frequent value does, in anybody.
    assert leak.others.interval()[0] > leak.frequent[1].value


def test_without_use_of_the_model_the_baselines_are_reached():
    """A model that says the same of everybody leaves the attacker the most frequent value."""
    blind = DummyClassifier().fit(*MEMBERS)
    leak = attribute_inference(blind, *MEMBERS, *OTHERS, 5)
    assert leak.members == leak.frequent[0]
    assert leak.others == leak.frequent[1]


def test_the_attack_is_bayes_rule_where_the_model_is_the_truth():
    """An independent computation, from the very probabilities."""
    rows, labels = drawn(300, 3)
    model = GaussianNB().fit(*drawn(5000, 4))
    leak = attribute_inference(model, rows, labels, *OTHERS, 5)
    share = OTHERS[0][::2, 5].mean()
    likely = []
    for value, prior in ((0, 1 - share), (1, share)):
        filled = rows.copy()
        filled[:, 5] = value
        likely.append(prior * model.predict_proba(filled)[np.arange(300), labels])
    right = (likely[1] > likely[0]) == rows[:, 5]
    assert abs(leak.members.hits - right.sum()) <= 2  # the attacker doubts scores near 0


def test_a_label_that_the_model_thinks_impossible_is_not():
    """Of a rare value and a model that is often wrong, the model's mistake is likelier."""
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=2000), rng.random(2000) < 0.05])
    labels = (rows[:, 1] != (rng.random(2000) < 0.2)).astype(int)

    class Sure:
        classes_ = (0, 1)

        def predict_proba(self, rows):
            return (np.asarray(rows)[:, [1]] == [0, 1]).astype(float)

    leak = attribute_inference(Sure(), rows[:500], labels[:500], rows[500:], labels[500:], 1)
    assert leak.members.value > 0.9


@each_case("known", ["label", "answer"])
def test_fewer_digits_give_less_away_and_labels_least(linear, known):
    forms = {
        "probabilities": RestrictedModel(linear),
        "rounded": RestrictedModel(linear, "rounded", decimals=1),
        "labels": RestrictedModel(linear, "labels"),
    }
    leaks = {
        name: attribute_inference(form, *MEMBERS, *OTHERS, 5, known=known)
        for name, form in forms.items()
    }
    rates = [leak.others.value for leak in leaks.values()]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] - rates[-1] > 0.05
    table = compared(list(leaks.items())).lines()
    assert table[0].split()[:3] == ["answers", "members", "others"]
    assert max(map(len, table)) <= 100


def test_a_published_answer_gives_the_attribute_away_of_anybody(linear):
    leak = attribute_inference(linear, *MEMBERS, *OTHERS, 5, known="answer")
    assert leak.members.value > 0.99
    assert leak.others.value > 0.99
    assert not leak.leaks
    assert "of everybody whose answer is seen" in " ".join(str(leak).split())


@each_case("library", [pd, pl])
def test_frames_and_names(forest, library):
    names = ["age", "b", "c", "d", "e", "carrier"]
    members, others = (
        library.DataFrame(dict(zip(names, rows.T, strict=True))) for rows in (MEMBERS[0], OTHERS[0])
    )
    model = RandomForestClassifier(30, random_state=0).fit(members, MEMBERS[1])
    named = attribute_inference(model, members, MEMBERS[1], others, OTHERS[1], "carrier")
    plain = attribute_inference(forest, *MEMBERS, *OTHERS, 5)
    assert named.members == plain.members
    assert "'carrier'" in named.title
    with pytest.raises(ParameterError, match="no attribute 'weight': age, b, c"):
        attribute_inference(model, members, MEMBERS[1], others, OTHERS[1], "weight")
    turned = others[names[::-1]]
    with pytest.raises(ParameterError, match="in the same order"):
        attribute_inference(model, members, MEMBERS[1], turned, OTHERS[1], "carrier")


def test_another_imputer_and_labels_that_are_words(forest):
    words = np.array(["healthy", "ill"])
    model = RandomForestClassifier(30, random_state=0).fit(MEMBERS[0], words[MEMBERS[1]])
    leak = attribute_inference(
        model,
        MEMBERS[0],
        words[MEMBERS[1]],
        OTHERS[0],
        words[OTHERS[1]],
        5,
        imputer=GaussianNB(),
    )
    assert leak.members == attribute_inference(forest, *MEMBERS, *OTHERS, 5).members
    assert leak.imputed[1].value > leak.frequent[1].value


def test_two_populations_are_remarked():
    rows, labels = drawn(400, 5)
    odd = rows.copy()
    odd[:, 1] = 4 * odd[:, 5]  # easy to impute, of members only
    other, other_labels = drawn(400, 6)
    other[:, 1] = 4 * other[:, 5]
    other[::4, 1] = 4 - other[::4, 1]
    model = LogisticRegression().fit(odd, labels)
    leak = attribute_inference(model, odd, labels, other, other_labels, 5)
    assert "not of one population" in " ".join(str(leak).split())


@each_case("rate", [0.5, 0.8])
def test_what_is_as_good_as_the_imputation_is_seldom_called_better(rate):
    """Two methods of one rate, on the same rows: an error in 40 cases at most."""
    rng = np.random.default_rng(0)
    same = (Rate(40, 80), Rate(40, 80))
    called = 0
    for one, other in rng.binomial(300, rate, (400, 2)).tolist():
        others, imputed = Rate(one, 300), (Rate(40, 80), Rate(other, 300))
        leak = AttributeLeak("a", "label", 2, others, others, imputed, same)
        called += "statistical inference" in str(leak)
    assert called <= 400 / 40


def test_a_holdout_in_which_kinds_take_turns():
    """A case and its control, one after the other: the halves are of both."""
    rows, labels = drawn(400, 7)
    other, other_labels = drawn(800, 8)
    turns = np.empty(800, int)
    order = np.argsort(other[:, 5], kind="stable")
    turns[::2], turns[1::2] = order[:400], order[400:]
    model = LogisticRegression().fit(rows, labels)
    usual = attribute_inference(model, rows, labels, other, other_labels, 5)
    found = attribute_inference(model, rows, labels, other[turns], other_labels[turns], 5)
    for one, same in ((found.others, usual.others), (found.imputed[1], usual.imputed[1])):
        assert one.value == pytest.approx(same.value, abs=0.1)


def test_a_small_difference_is_no_leak():
    """A rate is below another by chance in half of all cases."""
    few, more, half = Rate(50, 100), Rate(55, 100), (Rate(50, 100), Rate(50, 100))
    leak = AttributeLeak("a", "label", 2, more, few, half, half)
    assert leak.advantage > 0
    assert not leak.leaks
    assert "this shows no leak about members" in str(leak)


def test_the_imputation_knows_the_label():
    """Nothing else tells of the attribute, so that without it a guess is all."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(600, 3))
    rows[:, 2] = rng.integers(0, 2, 600)
    labels = rows[:, 2].astype(int)
    model = DummyClassifier().fit(rows, labels)
    leak = attribute_inference(model, rows[:200], labels[:200], rows[200:], labels[200:], 2)
    assert leak.imputed[1].value == 1
    assert leak.others.value < 0.7


def test_values_in_what_a_model_says_are_not_passed_on():
    rows = pd.DataFrame({"name": ["Ann", "Bob"] * 10})
    model = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(rows, [0, 1] * 10)
    with pytest.raises(ParameterError, match="does not take these rows") as refused:
        RestrictedModel(model).predict_proba(pd.DataFrame({"name": ["Cleopatra"]}))
    assert "Cleopatra" not in str(refused.value)


def frame(rows, names):
    return pd.DataFrame(rows, columns=list(names))


def changed(**how):
    usual = {"members": MEMBERS[0], "member_labels": MEMBERS[1]}
    return usual | {"holdout": OTHERS[0], "holdout_labels": OTHERS[1], "attribute": 5} | how


def with_column(rows, values):
    rows = rows.copy()
    rows[:, 5] = values
    return rows


@each_case(
    "how, message",
    [
        (changed(holdout=None), "no holdout"),
        (changed(holdout=OTHERS[0][:0], holdout_labels=[]), "no holdout"),
        (changed(attribute=6), "have no attribute 6; they have 6 columns"),
        (changed(attribute=-1), "no attribute -1"),
        (changed(attribute=2.5), "no attribute 2.5"),
        (changed(attribute=None), "no attribute None"),
        (changed(imputer=GaussianNB), "the imputer must be a scikit-learn classifier, not"),
        (
            changed(members=MEMBERS[0][:, 1:], holdout=OTHERS[0][:, 1:], attribute=4),
            r"the model does not take these rows \(ValueError\); give the columns",
        ),
        (changed(members=frame(MEMBERS[0], "abcdea")), "two columns .* have one name"),
        (
            changed(members=frame(MEMBERS[0], "abcdef"), holdout=frame(OTHERS[0], "abcedf")),
            "in the same order",
        ),
        (changed(attribute="carrier"), "the rows have no names; give its number"),
        (changed(holdout=with_column(OTHERS[0], 1)), "5 has a single value in the holdout"),
        (changed(attribute=0), "0 has 1000 values; take an attribute of at most 100"),
        (changed(members=with_column(MEMBERS[0], 2)), r"the value of row 1 \(and of 399 more\)"),
        (changed(members=with_column(MEMBERS[0], np.nan)), "members: element 1, 6 is NaN"),
        (changed(members=MEMBERS[0].astype(str)[:, :1]), "no attribute 5"),
        (changed(member_labels=MEMBERS[1][:9]), r"the labels have shape \(9,\)"),
        (changed(member_labels=MEMBERS[1] + 1), r"the label of row 1 \(and so of 217 of"),
        (changed(members=MEMBERS[0][:9], member_labels=MEMBERS[1][:9]), "at least 10"),
        (changed(holdout=np.hstack([OTHERS[0], OTHERS[0]])), "6 columns and the holdout 12"),
        (changed(known="everything"), 'known must be "label" or "answer"'),
    ],
)
def test_what_is_refused(linear, how, message):
    with pytest.raises(ParameterError, match=message):
        attribute_inference(linear, **how)


@each_case(
    "model, message",
    [
        (Perceptron().fit(*MEMBERS), "Perceptron gives no probabilities"),
        (LogisticRegression(), "no classes_: it is not fitted"),
        (DummyClassifier().fit(MEMBERS[0], np.ones(400)), "at least two different classes"),
    ],
)
def test_models_that_cannot_be_asked(model, message):
    with pytest.raises(ParameterError, match=message):
        attribute_inference(model, **changed())


def test_without_scikit_learn(linear, monkeypatch):
    import sys

    from securecomp.errors import BackendUnavailableError

    monkeypatch.setitem(sys.modules, "sklearn.pipeline", None)
    with pytest.raises(BackendUnavailableError, match=r"pip install 'securecomp\[federated\]'"):
        attribute_inference(linear, **changed())


# Rates.


@each_case(
    "hits, trials, low, high",
    [(0, 10, 0, 0.3085), (10, 10, 0.6915, 1), (4, 10, 0.1216, 0.7376), (1, 100, 0.0003, 0.0545)],
)
def test_exact_intervals(hits, trials, low, high):
    """Clopper and Pearson's, as published tables have them."""
    assert Rate(hits, trials).interval() == pytest.approx((low, high), abs=5e-5)


def test_the_interval_of_a_difference_is_of_both_at_half_the_risk():
    most = 1 - (0.025 / 2) ** (1 / 20)
    assert difference(Rate(0, 20), Rate(0, 20)) == pytest.approx((-most, most))


def test_the_interval_of_a_difference_covers():
    rng = np.random.default_rng(0)
    covered = 0
    for a, b in zip(rng.binomial(50, 0.6, 300), rng.binomial(80, 0.4, 300), strict=True):
        low, high = difference(Rate(int(a), 50), Rate(int(b), 80))
        covered += low <= 0.2 <= high
    assert covered >= 285


@each_case("hits, trials", [(1, 0), (-1, 5), (6, 5)])
def test_what_is_no_rate(hits, trials):
    with pytest.raises(ParameterError, match="is not a rate"):
        Rate(hits, trials)


# Answers.


def test_forms_of_answers():
    class Three:
        classes_ = np.array(["a", "b", "c"])

        def predict_proba(self, rows):
            return np.array([[0.123, 0.55, 0.327], [0.4, 0.4, 0.2]])

        def predict(self, rows):
            return self.classes_[self.predict_proba(rows).argmax(axis=1)]

    rows = np.zeros((2, 1))
    found = {
        "probabilities": RestrictedModel(Three()),
        "rounded": RestrictedModel(Three(), "rounded", decimals=1),
        "top": RestrictedModel(Three(), "top", k=2),
        "labels": RestrictedModel(Three(), "labels"),
    }
    said = {name: form.predict_proba(rows).tolist() for name, form in found.items()}
    assert said == {
        "probabilities": [[0.123, 0.55, 0.327], [0.4, 0.4, 0.2]],
        "rounded": [[0.1, 0.6, 0.3], [0.4, 0.4, 0.2]],
        "top": [[0, 0.55, 0.327], [0.4, 0.4, 0]],
        "labels": [[0, 1, 0], [1, 0, 0]],
    }
    assert {tuple(form.predict(rows)) for form in found.values()} == {("b", "a")}
    assert [str(form) for form in found.values()] == [
        "probabilities",
        "rounded to 1 decimals",
        "top 2 of 3",
        "labels",
    ]


@each_case(
    "form, numbers, message",
    [
        ("softened", {}, "form must be one of probabilities, rounded, top, labels"),
        ("rounded", {}, '"rounded" takes decimals'),
        ("labels", {"k": 1}, "no other form does"),
        ("rounded", {"decimals": 16}, "from 0 to 15"),
        ("rounded", {"decimals": 1.5}, "from 0 to 15"),
        ("top", {"k": 0}, "from 1 to the 2 classes"),
        ("top", {"k": 3}, "from 1 to the 2 classes"),
    ],
)
def test_forms_that_are_none(linear, form, numbers, message):
    with pytest.raises(ParameterError, match=message):
        RestrictedModel(linear, form, **numbers)


@each_case(
    "answer, message",
    [
        (np.full((400, 2), np.nan), "are not probabilities"),
        (np.ones((400, 3)), r"shape \(400, 3\)"),
    ],
)
def test_probabilities_that_are_none(linear, answer, message, monkeypatch):
    monkeypatch.setattr(linear, "predict_proba", lambda rows: answer)
    with pytest.raises(ParameterError, match=message):
        RestrictedModel(linear).predict_proba(MEMBERS[0])
