"""An audit from rows to verdict: claims that are refuted, units, bad input, what is shown."""

import json
import math
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from cases import each_case
from hypothesis import example, given
from hypothesis import strategies as st
from replaying import Replay
from scipy import special
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from securecomp.audit.membership.attacks import LikelihoodRatio
from securecomp.audit.membership.claims import Claim, above, below
from securecomp.audit.membership.membership_audit import (
    membership_from_scores,
    membership_inference,
)
from securecomp.audit.membership.strength import Strength
from securecomp.audit.membership.trials import Trials, retrained
from securecomp.cli.report_page import exhibition
from securecomp.errors import ParameterError, RefutedError, ThresholdError
from securecomp.privacy.sensitivity import Neighbours
from securecomp.show.figures import svg

RECORD = {"delta": 1e-5, "unit": "record"}
SIDES = slice(0, 1000), slice(1000, 2000)


@pytest.fixture(scope="module")
def rows():
    """1200 members and 1200 others, whose labels are half noise."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2400, 20))
    y = (x[:, 0] + rng.normal(size=2400) > 0).astype(int)
    return (x[:1200], y[:1200]), (x[1200:], y[1200:])


@pytest.fixture(scope="module")
def tree(rows):
    """A model that knows its members by heart."""
    return DecisionTreeClassifier(random_state=0).fit(*rows[0])


@pytest.fixture(scope="module")
def found(tree, rows):
    return membership_inference(tree, *rows)


def test_a_claim_that_cannot_be_true_is_an_error(found):
    with pytest.raises(RefutedError) as refused:
        found.check(Claim(0.5, **RECORD))
    text = str(refused.value)
    assert "epsilon 0.5, delta 1e-05 (add/remove of one record) does not hold" in text
    assert "Epsilon is at least 1." in text
    assert "drawn at random" in text


def test_a_claim_that_may_be_true_stands(found):
    verdict = found.check(Claim(50, **RECORD))
    assert not verdict.exceeded
    assert verdict.pvalue > 0.05
    assert "That does not prove the claim" in str(verdict)


def test_the_bound_is_where_claims_begin_to_stand(found):
    for relation in ("add/remove", "replace-one"):
        bound = found.against(Claim(1, 1e-5, "record", relation)).bound()
        with pytest.raises(RefutedError):
            found.check(Claim(bound - 0.01, 1e-5, "record", relation))
        found.check(Claim(bound + 0.01, 1e-5, "record", relation))
    # To replace one is twice to add or remove one.
    assert found.bound() == pytest.approx(
        2 * found.against(Claim(1, 0, "record")).bound(), abs=1e-4
    )


def test_members_that_were_not_drawn_refute_nothing(tree, rows):
    """Members and others of different times differ, whatever was learned."""
    found = membership_inference(tree, *rows, chosen="otherwise")
    verdict = found.check(Claim(0.5, **RECORD))
    assert verdict.exceeded
    assert not verdict.refuted
    assert "refutes nothing" in str(verdict)
    shown = found.against(Claim(0.5, **RECORD))
    assert "exceeded" in str(shown)
    assert shown.to_json()["claim"]["refuted"] is False
    assert shown.to_json()["epsilon_at_least"]["valid"] is False


def test_a_shift_between_members_and_holdout_looks_like_leakage(rows):
    """Why `chosen` must be said: this model never saw any of the rows."""
    (x, y), (other, z) = rows
    rng = np.random.default_rng(1)
    model = LogisticRegression().fit(rng.normal(size=(500, 20)) + y[:500, None], y[:500])
    shifted = membership_inference(model, (x + 2 * y[:, None], y), (other, z), chosen="otherwise")
    assert shifted.bound() > 0.5
    assert not shifted.check(Claim(0.1, **RECORD)).refuted
    honest = membership_inference(model, (x, y), (other, z))
    assert not honest.check(Claim(0.1, **RECORD)).exceeded


def test_coins_refute_too(rows):
    (x, y), (other, z) = rows
    x, y = np.concatenate([x, other]), np.concatenate([y, z])
    coins = np.random.default_rng(2).random(len(y)) < 0.5
    model = DecisionTreeClassifier(random_state=0).fit(x[coins], y[coins])
    found = membership_inference(
        model, (x[coins], y[coins]), (x[~coins], y[~coins]), chosen="coins"
    )
    with pytest.raises(RefutedError, match="each row was a member by a fair coin of its own"):
        found.check(Claim(0.5, **RECORD))
    with pytest.raises(RefutedError, match="replace-one"):
        found.check(Claim(0.5, relation="replace-one", **RECORD))


def test_the_order_of_rows_does_not_count(tree, rows, found):
    rng = np.random.default_rng(3)
    shuffled = []
    for x, y in rows:
        order = rng.permutation(len(y))
        shuffled.append((x[order], y[order]))
    assert membership_inference(tree, *shuffled).to_json() == found.to_json()


@each_case("epsilon", [0.5, 2.0])
def test_a_private_model_is_not_refuted(epsilon):
    """Randomised response on labels, which a model learns by heart.

    A member's label was told so; of the others another label was told, drawn afresh. Whose label
    was told, of two, differs by a ratio of e^epsilon at most.
    """
    refuted = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(400, 5))
        y = rng.integers(0, 2, 400)
        told = np.where(rng.random(400) < special.expit(epsilon), y, 1 - y)
        fresh = rng.integers(0, 2, 200)
        model = DecisionTreeClassifier(random_state=0).fit(x, told)
        members = x[:200], y[:200]
        holdout = x[200:], fresh
        audit = membership_inference(model, members, holdout, confidence=0.9)
        refuted += audit.verdict(Claim(epsilon, 0, "record", "replace-one")).exceeded
    assert refuted <= 5


# Claims.


def test_a_claim_says_delta_and_unit():
    with pytest.raises(ParameterError, match="without a delta promises"):
        Claim(1)
    with pytest.raises(ParameterError, match="epsilon 1"):
        Claim(1, 0)
    for wrong in (
        {"epsilon": 0},
        {"epsilon": -1},
        {"epsilon": math.inf},
        {"delta": 1},
        {"delta": -0.1},
        {"unit": "person"},
        {"relation": "swap"},
        {"records": 2},
        {"records": 0},
    ):
        with pytest.raises(ParameterError):
            Claim(**{"epsilon": 1, **RECORD, **wrong})
    assert str(Claim("1/2", 0, "patient", records=3)) == (
        "epsilon 0.5, delta 0 (add/remove of one patient with at most 3 records)"
    )


@given(st.floats(1e-11, 1), st.floats(0, 300))
@example(1.0, math.nextafter(1.15, 0))
def test_bounds_are_rounded_to_the_safe_side(pvalue, epsilon):
    assert pvalue <= float(above(pvalue)) <= pvalue * 1.11
    assert epsilon - 0.0101 <= float(below(epsilon)) <= epsilon


def test_a_claim_about_another_unit(found):
    with pytest.raises(ParameterError, match="claim is about a patient, and the audit"):
        found.check(Claim(1, 0, "patient"))
    with pytest.raises(ParameterError, match=r"a Claim\(epsilon"):
        found.check("epsilon 1")


@each_case("epsilon", [1e-6, 600, 1e5, "1e300"])
def test_claims_of_any_size(found, epsilon):
    verdict = found.verdict(Claim(epsilon, **RECORD))
    assert 0 <= verdict.pvalue <= 1
    assert json.dumps(found.against(verdict.claim).to_json(), allow_nan=False)


# Persons.


def persons():
    return np.repeat(np.arange(400), 3), np.repeat(np.arange(400, 800), 3)


def test_persons_are_units(tree, rows):
    found = membership_inference(tree, *rows, identifiers=persons())
    assert (found.roc.members, found.units.records) == (400, 3)
    with pytest.raises(RefutedError, match="one patient with at most 3 records"):
        found.check(Claim(0.2, 1e-5, "patient", records=3))
    with pytest.raises(ParameterError, match="at most 2 records, and one here has 3"):
        found.check(Claim(0.2, 1e-5, "patient", records=2))
    with pytest.raises(ParameterError, match="leave out identifiers"):
        found.check(Claim(0.2, **RECORD))
    assert "persons" in str(found)


def test_a_persons_score_is_the_mean_of_the_rows(rows):
    members, holdout = rows
    model = LogisticRegression().fit(*members)
    ours = np.repeat(np.arange(300), [1, 3, 4, 4, 3, 6] * 50)[:1200]
    ours = np.r_[ours, np.full(1200 - len(ours), 299)]
    others = np.arange(1000, 2200)
    found = membership_inference(model, members, holdout, identifiers=(ours, others))
    losses = -np.log(model.predict_proba(members[0])[np.arange(1200), members[1]])
    means = sorted(-losses[ours == person].mean() for person in set(ours.tolist()))
    np.testing.assert_allclose(found.roc.scores[0], means)


def test_persons_that_are_in_both(tree, rows):
    ours, others = persons()
    others = others.copy()
    others[5] = 7
    with pytest.raises(ParameterError, match=r"members and holdout overlap: row 22 and row 6 are"):
        membership_inference(tree, *rows, identifiers=(ours, others))


def test_the_most_records_of_a_person_of_either_side_count(tree, rows):
    few, many = list(range(1200)), [-1, -1, -1, *range(-1199, -2)]
    for ours, others in ((few, many[:1200]), (many[:1200], few)):
        found = membership_inference(tree, *rows, identifiers=(ours, others))
        assert found.units.records == 3
        with pytest.raises(ParameterError, match="one here has 3"):
            found.verdict(Claim(1, 0, "patient", records=2))


def test_a_person_in_both_is_left_out_of_both(tree, rows):
    ours, others = persons()
    others = others.copy()
    others[5] = 7
    with pytest.raises(ParameterError, match="leave all rows of such persons out of both"):
        membership_inference(tree, *rows, identifiers=(ours, others))


def test_identifiers_that_are_not_there(tree, rows):
    ours, others = persons()
    with pytest.raises(ParameterError, match="holdout: 1,200 rows have 3 identifiers"):
        membership_inference(tree, *rows, identifiers=(ours, others[:3]))
    with pytest.raises(ParameterError, match="members: row 3 has no identifier; fill it in"):
        membership_inference(tree, *rows, identifiers=(["a", "b", None] * 400, others))
    for hole in (np.nan, pd.NA, pd.NaT):
        with pytest.raises(ParameterError, match="members: row 2 has no identifier; fill it in"):
            membership_inference(tree, *rows, identifiers=([1.0, hole, *range(2, 1200)], others))


# Bad input.


def test_members_and_holdout_that_overlap(tree, rows):
    members, (x, y) = rows
    x, y = x.copy(), y.copy()
    x[[3, 9]], y[[3, 9]] = members[0][[0, 5]], members[1][[0, 5]]
    with pytest.raises(ParameterError) as refused:
        membership_inference(tree, members, (x, y))
    text = str(refused.value)
    assert "row 1 and row 4, row 6 and row 10 are the same in all columns" in text
    assert str(x[3, 0])[:6] not in text
    assert membership_inference(tree, members, (x, y), alike="keep").roc.holdout == 1200


@each_case(
    "written",
    [
        lambda x, y: (x.astype(np.float32), y),
        lambda x, y: (x.astype(object), y.astype(object)),
        lambda x, y: (np.asfortranarray(x), y > 0),
        lambda x, y: (x.tolist(), y.tolist()),
    ],
)
def test_rows_that_overlap_in_another_form(tree, rows, written):
    (x, y), (others, marks) = rows
    with pytest.raises(ParameterError, match="row 1 and row 1, row 2 and row 2"):
        membership_inference(tree, (x, y), written(x[:300], y[:300]))
    assert membership_inference(tree, (x, y), written(others, marks)).roc.holdout == 1200


@each_case("library", [pd.DataFrame, pl.DataFrame])
def test_columns_in_another_order(library):
    rng = np.random.default_rng(2)
    columns = {name: rng.normal(size=400) for name in "abc"}
    frame, y = pd.DataFrame(columns), columns["a"] > 0

    class Named:
        classes_ = np.array([False, True])

        def predict_proba(self, x):
            chance = 1 / (1 + np.exp(-np.asarray(x["a"])))
            return np.column_stack([1 - chance, chance])

    first, turned = library(frame[:200]), library(frame[["c", "b", "a"]][200:])
    straight = library(frame[200:])
    found = membership_inference(Named(), (first, y[:200]), (turned, y[200:]))
    assert found.area == membership_inference(Named(), (first, y[:200]), (straight, y[200:])).area
    with pytest.raises(ParameterError, match="row 1 and row 1"):
        membership_inference(Named(), (straight, y[200:]), (turned, y[200:]))
    with pytest.raises(ParameterError, match="do not fit together"):
        membership_inference(Named(), (first, y[:200]), (turned[["a", "b"]], y[200:]))


def test_two_columns_of_one_name(tree, rows):
    (x, y), holdout = rows
    with pytest.raises(ParameterError, match="several columns of one name"):
        membership_inference(tree, (pd.DataFrame(x, columns=["a"] * 20), y), holdout)


def test_rows_that_look_alike_are_left_out_of_both():
    """As the error says; left out of one file, common rows would be members, and rare ones not."""
    rng = np.random.default_rng(1)
    x = (rng.random((3000, 12)) < 0.15).astype(float)
    y = (x.sum(axis=1) + rng.normal(size=3000) > 1.8).astype(int)
    never_saw_them = LogisticRegression().fit(x[2000:], y[2000:])
    known = [{(*row, label) for row, label in zip(x[s], y[s], strict=True)} for s in SIDES]
    kept = [
        np.array([(*row, label) not in other for row, label in zip(x[s], y[s], strict=True)])
        for s, other in zip(SIDES, known[::-1], strict=True)
    ]
    sides = [(x[s], y[s]) for s in SIDES]
    with pytest.raises(ParameterError, match=r"leave it out of both"):
        membership_inference(never_saw_them, *sides)
    both = [(a[keep], b[keep]) for (a, b), keep in zip(sides, kept, strict=True)]
    area = membership_inference(never_saw_them, *both).area
    assert area.low < 0.5 < area.high
    one = membership_inference(never_saw_them, both[0], sides[1])
    assert one.bound() > 0.1


def test_one_class_only(tree, rows):
    (x, y), holdout = rows
    with pytest.raises(ParameterError, match="members: all rows are of one of the model's 2"):
        membership_inference(tree, (x[y == 1], y[y == 1]), holdout)


class Short:
    """An attack that forgets a row."""

    name = "one less"

    def scores(self, model, rows):
        return np.zeros(len(rows[1]) - 1)


def test_arguments_that_cannot_be(tree, rows):
    for wrong, message in (
        ({"chosen": "randomly"}, "chosen tells how"),
        ({"alike": "drop"}, "alike must"),
        ({"confidence": 95}, "confidence"),
        ({"delta": 1}, "delta"),
        ({"false_alarms": [0]}, "between 0 and 1"),
        ({"false_alarms": ["x"]}, "between 0 and 1"),
        ({"false_alarms": 0.1}, r"give \[0.1\]"),
        ({"identifiers": 3}, "identifiers are two columns"),
        ({"attack": "loss"}, "attack is an attack of"),
        ({"attack": Short()}, "one less: 2,399 scores for 2,400 rows"),
        ({"false_alarms": [1e-4]}, "0.01 % needs at least 10,000 rows.*there are 1,200"),
    ):
        with pytest.raises(ParameterError, match=message):
            membership_inference(tree, *rows, **wrong)


def test_nothing_is_trained_for_arguments_that_cannot_be(tree, rows):
    class Untrained:
        name = "never"

        def scores(self, model, rows):
            raise AssertionError

    for wrong in ({"confidence": 2}, {"delta": -1}, {"false_alarms": [1e-9]}):
        with pytest.raises(ParameterError):
            membership_inference(tree, *rows, attack=Untrained(), **wrong)


def test_scores_from_elsewhere():
    rng = np.random.default_rng(4)
    found = membership_from_scores(
        rng.normal(3, 1, 2000), rng.normal(0, 1, 2000), attack="canaries"
    )
    assert [one.false_alarms for one in found.detections] == [0.001, 0.01]
    assert found.fit is None
    assert "canaries" in found.title
    for wrong in ([], [np.nan], [[1.0]]):
        with pytest.raises(ParameterError, match="holdout"):
            membership_from_scores([1.0], wrong, attack="canaries")


# What is shown.


def test_the_tables(found):
    text = str(found.against(Claim(0.5, **RECORD)))
    for part in (
        "Membership inference by loss threshold",
        "area under the ROC curve",
        "found at 1 % false alarms",
        "gap",
        "add/remove of one record",
        "refuted",
        "members were drawn at random",
    ):
        assert part in text
    assert max(map(len, text.splitlines())) <= 100


def test_rates_for_which_there_are_too_few_rows(tree, rows):
    (x, y), (other, z) = rows
    found = membership_inference(tree, (x, y), (other[:300], z[:300]))
    assert found.too_small == (0.001,)
    assert "needs 1,000 rows of holdout, and there are 300" in str(found)
    assert found.to_json()["needs_rows"] == {"0.001": 1000}


def test_the_strength_in_words():
    members, holdout = np.r_[np.ones(90), np.zeros(910)], np.r_[np.ones(10), np.zeros(990)]
    found = membership_from_scores(members, holdout, attack="a")
    assert "of 1,000 people that the attack names at 1 % false alarms 900 are" in found.words()
    assert "It finds 90 of 1,000 members" in found.words()
    few = membership_from_scores(members[::10], holdout[::10], attack="a")
    assert "It finds 90 of 1,000 members, which may be chance" in few.words()
    tied = membership_from_scores(np.ones(200), np.zeros(20), attack="a")
    assert "right 1,000 times in 1,000" in tied.words()


def test_an_audit_the_wrong_way_round_says_so(tree, rows):
    """The fault: with members and holdout swapped (AUC .23) it said that this may be chance."""
    members, holdout = rows
    swapped = membership_inference(tree, holdout, members)
    assert swapped.area.high < 0.5
    rng = np.random.default_rng(6)
    scores = rng.normal(1, 1, 300), rng.normal(0, 1, 300)
    turned = membership_from_scores(-scores[0], -scores[1], attack="a")
    assert 0.2 < turned.area.value < 0.3
    for found in (swapped, turned):
        assert found.reversed
        said = found.words()
        assert said.startswith(
            "Members score lower than others: the area under the ROC curve is 0."
        )
        assert "Either members and holdout are swapped, or lower scores speak for" in said
        assert "chance." not in said.replace("0.5 is chance.", "")
        assert found.to_json()["words"] == said
        assert said in str(Strength({"one": found})).replace("\n", " ")
    right = membership_from_scores(*scores, attack="a")
    same = membership_from_scores(rng.normal(size=300), rng.normal(size=300), attack="a")
    assert not right.reversed
    assert not same.reversed
    assert "The difference may be chance" in same.words()


def test_all_is_json_and_the_page_stands_alone(tree, rows):
    lira = LikelihoodRatio(DecisionTreeClassifier(), shadows=8, entropy=Replay(0))
    found = membership_inference(tree, *rows, attack=lira).against(Claim(0.5, **RECORD))
    facts = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert facts["analysis"] == found.title
    assert facts["loss"]["holdout"] is None  # infinite
    assert facts["claim"]["refuted"] is True
    page = exhibition([found], "An audit", "of a tree")
    assert "<svg" in page
    assert not re.search(r"(src|href)=.?https?:", page)
    assert "default-src 'none'" in page


def test_the_curve_on_logarithmic_axes(found):
    (plot,) = found.against(Claim(0.5, **RECORD)).plots()
    assert plot.logarithmic
    ours, others, allowed = plot.series.values()
    for columns in plot.series.values():
        assert min(columns["x"]) > 0
        assert min(columns["y"]) > 0
        assert (np.diff(columns["y"]) >= 0).all()
    for end in (ours, others):
        assert all(a <= b <= c for a, b, c in zip(end["low"], end["y"], end["high"], strict=True))
    # The tree has no doubt of any member, so that only others are recognised surely.
    assert max(np.divide(others["y"], others["x"])) > 10 > max(np.divide(ours["y"], ours["x"]))
    # What replacing one allows: twice epsilon, and delta of both steps.
    x = np.array(allowed["x"])
    beyond = 1e-5 * (1 + math.exp(0.5))
    first = math.exp(1) * x + beyond
    second = 1 - math.exp(-1) * (1 - beyond - x)
    np.testing.assert_allclose(allowed["y"], np.minimum(np.minimum(first, second), 1))
    assert svg(plot).startswith("<svg")


def test_a_figure_of_few_scores():
    for members, holdout in (([0.0], [0.0]), ([1.0], [0.0]), ([0.0], [1.0]), ([0.0, 1], [0.0, 1])):
        found = membership_from_scores(members, holdout, attack="a")
        assert svg(found.plots()[0]).startswith("<svg")
        assert str(found)


def test_several_models_together(found, rows):
    small = DecisionTreeClassifier(random_state=0, max_depth=2).fit(*rows[0])
    strength = Strength({"no noise": found, "depth 2": membership_inference(small, *rows)})
    text = str(strength)
    assert "no noise" in text
    assert "epsilon at least" in text
    areas, curves = strength.plots()
    assert set(areas.series) == set(curves.series) == {"no noise", "depth 2"}
    assert areas.series["no noise"]["low"][0] > areas.series["depth 2"]["high"][0]
    assert json.dumps(strength.to_json(), allow_nan=False)
    assert all(svg(plot).startswith("<svg") for plot in strength.plots())
    assert "The bounds on epsilon hold at delta 0 (replace-one of one record)." in text
    with pytest.raises(ParameterError, match="no audits"):
        Strength({})


def test_bounds_side_by_side_say_what_they_are_about(found):
    scores = found.roc.scores
    audits = {
        "drawn": found,
        "claimed": found.against(Claim(8, **RECORD)),
        "last year": membership_from_scores(*scores, attack="a", chosen="otherwise"),
    }
    strength = Strength(audits)
    (grid,) = strength.grids()
    assert float(grid.rows[0][-1]) > float(grid.rows[1][-1]) > 0
    assert grid.rows[2][-1] == ""  # no bound follows
    said = [remark for remark in strength.remarks() if "epsilon" in remark]
    assert said == [
        "The bounds on epsilon of drawn hold at delta 0 (replace-one of one record).",
        "The bounds on epsilon of claimed hold at delta 1e-05 (add/remove of one record).",
    ]


# Trials.


class Noisy:
    """A mean with Laplace noise, as a classifier: epsilon 1 for each record of 0 or 1."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def get_params(self, deep=True):
        return {"random_state": self.random_state}

    def set_params(self, **params):
        self.__dict__.update(params)
        return self

    def fit(self, x, y):
        self.classes_ = np.unique(y)
        noise = np.random.default_rng(self.random_state).laplace()
        self.total_ = x.sum() + noise
        return self

    def predict_proba(self, x):
        one = np.full(len(x), special.expit(self.total_))
        return np.column_stack([1 - one, one])


def trials(runs):
    rows = np.zeros((2, 1)), np.array([0, 1])
    return retrained(Noisy(), rows, (np.ones((1, 1)), np.array([1])), runs, entropy=Replay(0))


def test_many_runs_come_near_the_truth():
    made = trials(600)
    bound = made.bound().epsilon
    assert 0.4 < bound <= 1
    assert made.check(Claim(1, 0, "record")).epsilon == bound
    with pytest.raises(RefutedError, match="600 runs with the unit"):
        made.check(Claim(bound / 2, 0, "record"))
    # One record more or less, twice, puts one in another's place.
    swapped = Trials(*(made._with, made._without), Neighbours("replace-one"))
    assert swapped.check(Claim(0.51, 0, "record"))


def test_runs_are_fresh_and_replayable():
    first, again = trials(10), trials(10)
    assert len(set(first._with.tolist())) == 10
    assert first._with.tolist() == again._with.tolist()


def test_trials_that_cannot_be():
    with pytest.raises(ThresholdError, match="runs on each side"):
        Trials([1, 2, 3], [0] * 10)
    with pytest.raises(ThresholdError, match="runs on each side"):
        trials(3)
    made = Trials(np.arange(10.0), np.arange(10.0))
    with pytest.raises(ParameterError, match='choice must be "all" or "half"'):
        made.bound(choice="best")
    with pytest.raises(ParameterError, match="replace-one"):
        made.check(Claim(1, 0, "record", "replace-one"))
    with pytest.raises(ParameterError, match="claim is about a patient"):
        made.check(Claim(1, 0, "patient"))
    rows = np.zeros((2, 1)), np.array([0, 1])
    with pytest.raises(ParameterError, match="canary: give one row, not 2"):
        retrained(Noisy(), rows, rows, 10)
    one = rows[0][:1], rows[1][:1]
    for runs in (10.0, "10", True):
        with pytest.raises(ParameterError, match="a whole number"):
            retrained(Noisy(), rows, one, runs)
