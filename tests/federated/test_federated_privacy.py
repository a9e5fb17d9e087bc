"""Noise of a whole training: what a unit changes, where noise is, and what it adds up to."""

from collections import Counter

import dp_accounting
import numpy as np
import pandas as pd
import polars as pl
import pytest
from cases import each_case
from dp_accounting import dp_event
from dp_accounting.rdp import RdpAccountant
from federated.cohort import SIZES, Mortal, model, sites
from replaying import Replay

from securecomp import Column, Privacy, Study
from securecomp.errors import ParameterError, RangeError, ThresholdError
from securecomp.federated import FederatedLinearRegression, FederatedLogisticRegression
from securecomp.federated.config import TrainingTerms
from securecomp.federated.local_update import ScaledRows, unit_gradients
from securecomp.federated.losses import Loss
from securecomp.federated.protection import Protection
from securecomp.privacy import noise_distributions
from securecomp.privacy.distributed import NoisePlan
from securecomp.privacy.ledger import Ledger
from securecomp.privacy.sensitivity import Neighbours

NAMES = ("north", "south", "east", "west")
SGD = {"strategy": "sgd", "classes": [0, 1]}


def protection(privacy=None, length=5, **terms):
    given = {"strategy": "sgd", "rounds": 10, "examples": 100} | terms
    return Protection.of(
        privacy or Privacy(2, 1e-5), TrainingTerms(**given), NAMES, bytes(32), length
    )


@pytest.fixture
def silent(monkeypatch):
    """No noise, to see what is beneath."""
    monkeypatch.setattr(NoisePlan, "draw", lambda self, block, *_: [0] * self.changes[block].size)


# What one unit changes.


@pytest.mark.parametrize("clip", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6, 1e150])
def test_no_record_changes_the_integers_by_more_than_was_planned(silent, clip, size, replay):
    made = protection(clip=clip)
    limit = made.plan.changes[-1]
    rng = np.random.default_rng(5)
    for number, spread in enumerate((np.eye(5), rng.normal(size=(20, 5)), np.ones((1, 5)))):
        for row in spread * size:
            rows = ScaledRows(row[None], np.array([[1.0]]))
            gradients = unit_gradients(Loss("sigmoid"), rows, np.zeros((1, 5)))
            integers = made.integers(number, gradients, replay(number))
            assert sum(map(abs, integers)) <= limit.l1
            assert sum(i * i for i in integers) <= limit.l2**2 * (1 + 1e-12)
            assert max(map(abs, integers)) <= made.bound


def test_records_add_up_apart_from_each_other(silent, replay):
    """What is summed is the sum of what each record gives alone, up to rounding."""
    made = protection()
    rng = np.random.default_rng(6)
    rows = ScaledRows(rng.normal(0, 3, (30, 5)), rng.integers(0, 2, (30, 1)).astype(float))
    weights = rng.normal(size=(1, 5))
    whole = made.integers(3, unit_gradients(Loss("sigmoid"), rows, weights), replay(1))
    expected = np.zeros(5)
    for x, y in zip(rows.features, rows.targets, strict=True):
        gradient = x * (1 / (1 + np.exp(-x @ weights[0])) - y)
        expected += gradient * min(1, 1 / np.linalg.norm(gradient))
    assert np.allclose(made.decoded(3, whole), expected, atol=1e-4)


def test_a_patients_rows_are_one_unit(silent, replay):
    privacy = Privacy(2, 1e-5, unit="patient", identifier="id", records=9)
    made = protection(privacy)
    x = np.tile([3.0, 0, 0, 0, 0], (8, 1))
    rows = ScaledRows(x, np.ones((8, 1)), np.zeros(8, np.intp))
    gradients = list(unit_gradients(Loss("sigmoid"), rows, np.zeros((1, 5))))
    assert [g.shape for g in gradients] == [(1, 5)]
    assert gradients[0][0, 0] == -0.5 * 3 * 8
    integers = made.integers(1, iter(gradients), replay(1))
    assert np.linalg.norm(integers) <= made.plan.changes[-1].l2
    two = protection(Privacy(2, 1e-5, unit="patient", identifier="id", sites=2))
    assert two.plan.changes[-1].l2 == 2 * made.plan.changes[-1].l2
    assert two.plan.changes[-1].l1 == 2 * made.plan.changes[-1].l1
    counted = protection(
        Privacy(2, 1e-5, unit="patient", identifier="id", sites=3), examples=None
    ).plan.changes[0]
    assert (counted.l1, counted.l2) == (3, 3.0)  # one at each site


def test_a_site_moves_the_model_by_its_clipped_change_at_most(silent):
    how = {"privacy": Privacy(2, 1e-5, unit="site"), "rounds": 1, "clip": 0.25, "classes": [0, 1]}
    data = sites()
    before = model(learning_rate=5, **how).fit(data)
    data["north"] = (data["north"][0] * 0 - 4.0, 1 - data["north"][1])
    after = model(learning_rate=5, **how).fit(data)
    moved = np.append(after.coef_ - before.coef_, after.intercept_ - before.intercept_)
    assert 0 < np.linalg.norm(moved) <= 2 * 0.25 / 4 * (1 + 1e-4)


def test_a_change_that_is_not_finite_is_none_and_no_error(silent):
    """An error would tell of a site without noise."""
    data = {name: (x, x[:, 0] * 4) for name, (x, _) in sites().items()}
    how = {"rounds": 1, "local_epochs": 400, "learning_rate": 30, "scaling": "none", "bounds": 4}
    with pytest.raises(RangeError, match="not finite"):
        FederatedLinearRegression(**how).fit(data)
    found = FederatedLinearRegression(privacy=Privacy(2, 1e-5, unit="site"), **how).fit(data)
    assert not found.coef_.any()


# Where noise is.


@each_case("unit", ["record", "site"])
@each_case("kind", ["skellam", "discrete-gaussian", "laplace"])
def test_every_coordinate_of_every_round_has_noise_of_the_size_that_is_said(unit, kind):
    """All columns are 0, so that what is opened is the noise."""
    data = {name: (np.zeros((30, 60)), y[:30] if len(y) >= 30 else np.resize(y, 30))
            for name, (_, y) in sites().items()}  # fmt: skip
    protocol = Mortal()
    terms = Privacy(3, 0 if kind == "laplace" else 1e-5, unit=unit, noise=kind)
    how = SGD | {"rounds": 8, "examples": 120 if unit == "record" else None}
    found = model(protocol, privacy=terms, fit_intercept=False, entropy=Replay(kind), **how)
    found.fit(data)
    totals = np.array(protocol.totals)
    assert totals.shape == (8, 64)
    assert (totals != 0).mean() > 0.999
    scale = found.guarantee_.scale * (1 << 20)
    assert 0.85 < totals.std() / scale < 1.15
    assert np.abs(totals.mean(axis=0)).max() < 5 * scale / np.sqrt(8)
    assert np.abs(totals.mean(axis=1)).max() < 5 * scale / 8
    for one in range(7):  # fresh in each round
        assert abs(np.corrcoef(totals[one], totals[one + 1])[0, 1]) < 0.5


def test_each_sites_part_is_its_own(monkeypatch):
    parts, add = [], NoisePlan.add

    def spy(self, block, integers, entropy):
        parts.append((list(integers), add(self, block, integers, entropy)))
        return parts[-1][1]

    monkeypatch.setattr(NoisePlan, "add", spy)
    model(privacy=Privacy(2, 1e-5), rounds=3, examples=159, **SGD).fit(sites())
    assert len(parts) == 3 * 4
    drawn = [tuple(np.subtract(noised, bare).tolist()) for bare, noised in parts]
    assert len(set(drawn)) == 12
    assert all(0 not in d for d in drawn)


# What it adds up to.


@each_case("epsilon", [0.5, 2, 8])
@each_case("rounds", [1, 10, 200])
def test_the_promise_is_kept_over_all_rounds_by_an_independent_accountant(epsilon, rounds):
    made = protection(Privacy(epsilon, 1e-5), rounds=rounds)
    plan = made.plan
    assert len(plan.changes) == rounds
    assert (plan.parties, plan.honest, plan.needed) == (4, 3, 4)
    # At a resolution of 2^20 Skellam noise is the Gaussian's, but for a thousandth at most.
    multiplier = np.sqrt(3 * float(plan.parts[0])) / plan.changes[0].l2
    kept = dp_accounting.get_epsilon_gaussian(multiplier / np.sqrt(rounds), 1e-5)
    assert 0.999 < kept / epsilon <= 1
    # Renyi divergence knows no more than that, and less well.
    accountant = RdpAccountant([1 + x / 10 for x in range(1, 100)] + list(range(11, 512)))
    event = dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(multiplier), rounds)
    accountant.compose(event)
    assert 1.01 < accountant.get_epsilon(1e-5) / epsilon < 1.15


def test_the_count_of_units_is_one_more_block():
    made = protection(examples=None)
    assert made.counted
    assert len(made.plan.changes) == 11
    first = made.plan.changes[0]
    assert (first.size, first.l1, first.l2) == (1, 1, 1.0)
    total = [noise_distributions.skellam_rdp(c, 3 * float(p)) for c, p in
             zip(made.plan.changes, made.plan.parts, strict=True)]  # fmt: skip
    assert 0.9e-5 < noise_distributions.delta_of_rdp(np.sum(total, axis=0), 2) <= 1e-5
    assert not protection(Privacy(2, 1e-5, unit="site"), examples=None).counted


def test_a_fraction_is_no_protection_but_fewer_rounds():
    """A unit is in the rounds that its site is in, and who that is is known."""
    sometimes = protection(fraction=0.75, rounds=40)
    asked = Counter(
        name
        for number in range(1, 41)
        for name in TrainingTerms(fraction=0.75).participants(NAMES, bytes(32), number)
    )
    assert sometimes.exposures == max(asked.values()) < 40
    assert len(sometimes.plan.changes) == sometimes.exposures
    assert (sometimes.plan.parties, sometimes.plan.honest) == (3, 2)
    everywhere = Privacy(2, 1e-5, unit="patient", identifier="id", sites=2)
    assert protection(everywhere, fraction=0.75, rounds=40).exposures == 40


def test_replacing_is_twice_adding():
    one = protection().plan.changes[-1]
    two = protection(Privacy(2, 1e-5, relation="replace-one")).plan.changes[-1]
    assert (two.l1, two.l2) == (2 * one.l1, 2 * one.l2)


@pytest.mark.parametrize("unit", ["record", "patient", "site"])
def test_the_guarantee_says_what_holds(unit, tmp_path):
    identifier = "id" if unit == "patient" else None
    near = Neighbours(unit=unit)
    ledger = Ledger.create(tmp_path / unit, "hospitals", 4, "1e-4", near)
    terms = Privacy(4, 1e-5, unit=unit, identifier=identifier, ledger=ledger)
    data = {n: (x, y, np.arange(len(y)) // 2) for n, (x, y) in sites().items()}
    found = model("masking", privacy=terms, **SGD).fit(data)
    assert found.guarantee_.epsilon == 4
    assert 0.999999e-5 < found.guarantee_.delta <= 1e-5
    assert found.guarantee_.neighbours == near
    assert str(found.guarantee_.spent) == "epsilon 4, delta 0.00001"
    assert "in each of 4 rounds" in found.guarantee_.mechanism
    assert ("number of units" in found.guarantee_.mechanism) == (unit != "site")
    words = {"record": "one record", "patient": "one patient", "site": "one site with all"}
    assert words[unit] in found.guarantee_.explain()
    assert found.guarantee_.facts()["unit"] == unit
    assert ledger.state().spent.epsilon == 4
    assert not any("rows" in name for name in found.run_.opened)
    if unit == "patient":  # the first row of each
        assert 0.5 < found.history_[0].examples / 81 < 1.6


def test_noise_shrinks_the_more_is_allowed():
    def error(epsilon):
        found = model(privacy=Privacy(epsilon, 1e-5), rounds=10, examples=159, **SGD).fit(sites())
        clear = model(strategy="sgd", rounds=10).fit(sites())
        return np.linalg.norm(found.coef_ - clear.coef_)

    assert error(100) < 0.2 < error(0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strategy": "averaging"}, 'unit="record" clips the gradient of each record: take strat'),
        ({"batch_size": 5}, r"all rows \(batch_size=None\), or protect sites with unit"),
        ({"track_loss": True}, "track_loss opens one more total"),
        ({"dropouts": 1}, "dropouts=1, and privacy has dropouts=0"),
        ({"scaling": "moments"}, "opens means and variances without noise"),
        ({"classes": None}, "declare the labels, as classes"),
        ({"bounds": None}, "declare bounds"),
        ({"protocol": "clear"}, "protects nobody whose sum is in the clear"),
    ],
)
def test_terms_that_would_break_the_promise(arguments, message, tmp_path):
    ledger = Ledger.create(tmp_path / "ledger", "hospitals", 4, "1e-4")
    with pytest.raises(ParameterError, match=message):
        model(privacy=Privacy(1, 1e-5, ledger=ledger), **(SGD | arguments)).fit(sites())
    assert ledger.state().spent.epsilon == 0


def test_too_few_sites_for_noise_in_parts():
    with pytest.raises(ThresholdError, match="nobody would be left"):
        model(privacy=Privacy(1, 1e-5, colluding=4), **SGD).fit(sites())
    with pytest.raises(ParameterError, match="masking among 4 protects against 2"):
        model("masking", privacy=Privacy(1, 1e-5, colluding=3), **SGD).fit(sites())


def test_examples_are_for_units_that_are_no_sites():
    with pytest.raises(ParameterError, match="averaged over sites"):
        model(privacy=Privacy(1, 1e-5, unit="site"), examples=9, **SGD).fit(sites())


def test_a_count_that_is_lost_in_noise():
    with pytest.raises(ParameterError, match=r"is lost in its noise of .* give a public number"):
        model(privacy=Privacy("0.01", 1e-5), rounds=100, **SGD).fit(sites())


@each_case("unit", ["record", "patient", "site"])
def test_numbers_beyond_all_floats_are_not_told(unit):
    """An error would say, without noise, that they are there."""
    privacy = Privacy(2, 1e-5, unit=unit, identifier="id" if unit == "patient" else None)
    if unit == "patient":
        privacy = Privacy(2, 1e-5, unit=unit, identifier="id", records=5)
    data = {name: (x, y * 1.0, np.arange(len(y)) // 2) for name, (x, y) in sites().items()}
    for _, y, _ in data.values():
        y[:5] = 1.797e308
    fit = FederatedLinearRegression(
        privacy=privacy, strategy="sgd", rounds=2, bounds=4, scaling="none",
        examples=None if unit == "site" else 159,
    )  # fmt: skip
    assert np.isfinite(fit.fit(data).coef_).all()


def test_a_model_that_diverges_is_told_by_its_public_weights(silent):
    how = SGD | {"examples": 159, "learning_rate": 1e300, "l2": 1e10, "rounds": 9}
    with pytest.raises(RangeError, match="the weights after round 2 are not finite"):
        model(privacy=Privacy(2, 1e-5), **how).fit(sites())


@each_case("left", [0, 1])
@each_case(
    "unit, how",
    [
        ("record", {}),
        ("patient", {"examples": 130}),
        ("site", {"batch_size": 9, "strategy": "averaging"}),
        ("site", {"batch_size": 9}),
    ],
)
def test_that_a_site_has_no_rows_or_few_is_not_told(unit, how, left):
    """A data set and its neighbour without the site's only row are both trained on."""
    privacy = Privacy(2, 1e-5, unit=unit, identifier="id" if unit == "patient" else None)
    data = {name: (x, y, np.arange(len(y))) for name, (x, y) in sites().items()}
    data["south"] = tuple(part[:left] for part in data["south"])
    found = model(privacy=privacy, **(SGD | how)).fit(data)
    assert [len(done.sites) for done in found.history_] == [4] * 4
    assert np.isfinite(found.coef_).all()


@each_case("unit", ["record", "patient", "site"])
@each_case("make", [pd.DataFrame, pl.DataFrame])
def test_nor_in_a_study(unit, make):
    privacy = Privacy(2, 1e-5, unit=unit, identifier="id" if unit == "patient" else None)
    frames = {}
    for name, (x, y) in sites().items():
        n = 0 if name == "south" else len(y)
        frames[name] = make({"los": x[:n, 0], "died": y[:n], "id": np.arange(n)})
    columns = {"los": Column(bound=4, bits=20), "died": Column(bound=1, decimals=0)}
    study = Study(frames, columns=columns, privacy=privacy)
    found = FederatedLogisticRegression(strategy="sgd", rounds=2).fit(study, "died ~ los")
    assert [len(done.sites) for done in found.history_] == [4] * 2
    if unit == "patient":
        assert study.count().run.protocol == "sharing"


def test_changes_of_sites_are_averaged_over_those_in_the_sum(silent):
    data = sites()
    privacy = Privacy(2, 1e-5, unit="site", dropouts=1)
    late = {"absent": lambda *_: {"start": ["east"]}, "rounds": 1, "clip": 9}
    found = model(privacy=privacy, classes=[0, 1], **late).fit(data)
    # From weights of 0 the rate of .5 times the mean gradient.
    changes = [0.5 * x.T @ (y - 0.5) / len(y) for name, (x, y) in data.items() if name != "east"]
    assert np.allclose(found.coef_[0], np.mean(changes, axis=0), atol=1e-4)


def test_units_of_some_sites_stand_for_those_of_all(silent):
    how = SGD | {"fraction": 0.75, "rounds": 5, "privacy": Privacy(2, 1e-5)}
    found = model(**how).fit(sites())
    first = sum(SIZES[name] for name in found.history_[0].sites)
    assert len(found.history_[0].sites) == 3
    assert {done.examples for done in found.history_} == {first}


def test_each_round_is_rotated_anew_and_what_is_not_finite_is_none(silent, replay):
    made = protection()
    row = np.array([[0.5, 0.1, -0.2, 0.3, 0.1]])
    one, two = (made.integers(number, iter([row]), replay(1)) for number in (1, 2))
    assert np.allclose(made.decoded(1, one), row[0], atol=1e-4)
    assert not np.allclose(made.decoded(2, one), row[0], atol=0.1)
    assert np.allclose(made.decoded(2, two), row[0], atol=1e-4)
    bad = np.vstack([row, np.where(row > 0.2, np.inf, row), np.where(row > 0.2, np.nan, row)])
    both = made.integers(1, iter([bad]), replay(1))
    assert np.allclose(made.decoded(1, both), row[0], atol=1e-4)


def test_a_site_keeps_the_first_records_of_a_patient(silent):
    how = SGD | {"examples": 90, "rounds": 2}
    how["privacy"] = Privacy(2, 1e-5, unit="patient", identifier="id", records=2)
    data = {name: (x, y, np.arange(len(y)) // 3) for name, (x, y) in sites().items()}
    kept = {name: tuple(part[np.arange(len(part)) % 3 < 2] for part in own)
            for name, own in data.items()}  # fmt: skip
    assert model(**how).fit(data).coef_.tobytes() == model(**how).fit(kept).coef_.tobytes()
