"""A study that answers with noise: what it says, how far off it is, what it gives not away."""

import math
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction

import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pytest
from cases import each_case, some_or_all
from replaying import Replay
from scipy import stats

from securecomp import Column, Privacy, Study
from securecomp.errors import BudgetError, ParameterError, RangeError, ThresholdError
from securecomp.privacy import samplers
from securecomp.privacy.ledger import Ledger
from securecomp.privacy.policy import from_options
from securecomp.statistics import Codebook, Count, CrossTable, Histogram, Mean, Sum, Variance
from securecomp.statistics.adder import Adder

COLUMNS = {
    "los": Column(bound=365, decimals=0),
    "temp": Column(bound=45, decimals=1),
    "ward": Column(levels=["a", "b"]),
    "died": Column(bound=1, decimals=0, levels=[0, 1]),
}
BOUNDS = {"los": (0, 60), "temp": (34.1, 42.7)}
SIZES = (40, 55, 70, 35)


def frames(seed=1):
    rng = np.random.default_rng(seed)
    return {
        f"site {i}": pd.DataFrame(
            {
                "los": rng.integers(0, 50, n),
                "temp": rng.integers(350, 420, n) / 10,
                "ward": rng.choice(["a", "b"], n),
                "died": rng.integers(0, 2, n),
                "pid": [f"p{i}-{k % 30}" for k in range(n)],
            }
        )
        for i, n in enumerate(SIZES)
    }


def private(data=None, *, columns=COLUMNS, protocol="sharing", minimum_count=0, seed=0, **terms):
    """A study of the frames above, or others, under terms that a test changes; replayed."""
    terms = {"epsilon": 1.0, "delta": 1e-6, "bounds": BOUNDS, **terms}
    data = frames() if data is None else data
    there = {name for frame in data.values() for name in frame.columns}
    if terms["bounds"] is BOUNDS:
        terms["bounds"] = {name: ends for name, ends in BOUNDS.items() if name in there}
    study = Study(
        data,
        columns={name: column for name, column in columns.items() if name in there},
        protocol=protocol,
        minimum_count=minimum_count,
        privacy=Privacy(**terms),
    )
    study.carrier.entropy = Replay(seed)
    return study


QUESTIONS = (
    Count(),
    Count(by="ward"),
    Sum("los"),
    Mean("temp", "ward"),
    Histogram("los", edges=(0.0, 10.0, 60.0)),
    CrossTable(row="ward", col="died"),
)


@pytest.fixture
def no_noise(monkeypatch):
    """Noise of nothing, so that what is around it shows."""
    for name in ("skellam", "discrete_gaussian", "discrete_laplace"):
        zeros = lambda parameter, size, entropy: np.zeros(size, np.int64)  # noqa: E731
        monkeypatch.setattr(samplers, name, zeros)


@pytest.fixture
def opened(monkeypatch):
    """All totals that are opened, by label."""
    seen = {}
    add = Adder.add

    def spy(self, *blocks, **options):
        totals = add(self, *blocks, **options)
        for block, values in zip(blocks, totals, strict=True):
            seen.update(zip(block.labels, values, strict=True))
        return totals

    monkeypatch.setattr(Adder, "add", spy)
    return seen


@each_case("protocol", ["sharing", "masking", "paillier"])
@each_case("noise", ["skellam", "discrete-gaussian", "laplace"])
def test_answers_are_near_the_truth_and_say_what_they_promise(protocol, noise):
    all_rows = pd.concat(frames().values())
    study = private(protocol=protocol, noise=noise, epsilon=8.0)
    result = study.mean("los", by="ward")
    for row in result.rows:
        rows = all_rows[all_rows["ward"] == row["group"]]
        assert abs(row["value"] - rows["los"].mean()) < 4 * row["error"]
        assert isinstance(row["n"], int)
    promise = result.guarantee
    assert (promise.epsilon, promise.delta) == (8.0, 0.0 if noise == "laplace" else 1e-6)
    assert str(promise.neighbours) == "add/remove of one record"
    assert noise in promise.mechanism
    assert "3 of 4 sites' enough" in promise.mechanism
    assert promise.spent is None
    text = " ".join(str(result).split())
    assert "noised, epsilon 8" in text
    assert "within" in text
    assert "plaintext" not in text and "numpy" not in text  # noqa: PT018
    assert result.to_json()[0]["privacy"]["epsilon"] == 8.0


def test_without_noise_the_answers_would_be_the_plain_ones(no_noise):
    """Clipping, limits and means of distances change nothing where nothing is beyond bounds."""
    plain = Study(frames(), columns=COLUMNS, minimum_count=0)
    for question in QUESTIONS:
        ours, theirs = private().run([question])[0], plain.run([question])[0]
        if isinstance(question, Mean):
            assert {k: round(v, 9) for k, v in ours.value.items()} == {
                k: round(v, 9) for k, v in theirs.value.items()
            }
        else:
            assert ours.value == theirs.value


@some_or_all("runs", 70, 300)
def test_each_answers_error_bar_holds(runs):
    """95 % of runs at least; a study with too little noise, or too small a bar, fails."""
    truth = pd.concat(frames().values())
    study = private()
    found = {"count": [], "los": [], "mean": []}
    for _ in range(runs):
        count, los, mean = study.run([Count(), Sum("los"), Mean("los")])
        pairs = (
            ("count", count, len(truth)),
            ("los", los, truth["los"].sum()),
            ("mean", mean, truth["los"].mean()),
        )
        for key, result, true in pairs:
            found[key].append((result.value - true) / result.rows[0]["error"])
    for errors in found.values():
        z = np.array(errors) * 1.96
        assert stats.binomtest(int((np.abs(z) <= 1.97).sum()), runs, 0.95).pvalue > 1e-5
        # chi-square bounds on the variance: neither too small nor too large
        low, high = stats.chi2.ppf([1e-6, 1 - 1e-6], runs) / runs
        assert low * 0.9 < (z**2).mean() < high


def test_each_total_that_is_opened_is_noised(opened, monkeypatch):
    """None is exact: with much noise every opened total differs from the exact one."""
    study = private(epsilon=0.001, delta=1e-9)
    study.run(list(QUESTIONS))
    noised = dict(opened)
    opened.clear()
    for name in ("skellam", "discrete_gaussian", "discrete_laplace"):
        zeros = lambda parameter, size, entropy: np.zeros(size, np.int64)  # noqa: E731
        monkeypatch.setattr(samplers, name, zeros)
    study.run(list(QUESTIONS))
    assert len(noised) == len(opened) == 1 + 2 + 1 + 4 + 4 + 4
    same = [label for label, value in noised.items() if value == opened[label]]
    assert same == []


def test_a_sites_part_is_noised_before_it_leaves_the_site(monkeypatch):
    """What each site puts into the sum is never its own exact count, and each has its own noise."""
    sent = []
    add = Adder.add

    def spy(self, *blocks, **options):
        sent.extend(blocks)
        return add(self, *blocks, **options)

    monkeypatch.setattr(Adder, "add", spy)
    study = private(epsilon=0.01)
    study.count()
    study.count()
    for block in sent:
        off = [block.parts[f"site {i}"][0] - n for i, n in enumerate(SIZES)]
        assert len(set(off)) > 1
        assert max(map(abs, off)) < block.bound - (1 << 31) + 1
    assert sent[0].parts != sent[1].parts


def test_a_mean_never_shows_the_number_of_rows(opened):
    """The denominator is noised; neither value times n nor any total gives the exact one away."""
    result = private(epsilon=0.3).mean("los")
    assert result.rows[0]["n"] != sum(SIZES)
    assert result.rows[0]["n"] == opened["rows with los"]
    distances = next(v for k, v in opened.items() if "from the middle" in k)
    assert math.isclose(result.value, 30 + distances / opened["rows with los"])
    assert sum(SIZES) not in opened.values()


def test_noised_results_are_compared_with_nothing():
    noised = private()
    with pytest.raises(ParameterError, match="are not those of the pooled rows"):
        noised.compare([noised.count()])
    with pytest.raises(ParameterError, match="are not those of the pooled rows"):
        noised.compare([Count()])


@pytest.mark.parametrize("library", ["pandas", "polars", "decimals", "wide"])
def test_values_are_moved_into_the_bounds(library, no_noise):
    cells = [-400, -1, 0, 5, 60, 61, 10_000]
    if library == "polars":
        one = pl.DataFrame({"los": cells})
    elif library == "decimals":
        one = pd.DataFrame({"los": [Decimal(c) for c in cells]})
    elif library == "wide":
        one = pd.DataFrame({"los": np.array([0, 0, 0, 5, 60, 1 << 63, 1 << 62], np.uint64)})
    else:
        one = pd.DataFrame({"los": [float(c) for c in cells[:-1]] + [math.inf]})
    other = pd.DataFrame({"los": [1]})
    result = private({"a": one, "b": other}).sum("los")
    assert result.value == 0 + 0 + 0 + 5 + 60 + 60 + 60 + 1
    assert "moved" not in str(result) and "clipped" not in str(result)  # noqa: PT018


def test_bounds_of_decimals_are_what_they_print_as(no_noise):
    """0.1 is a tenth, though its double is more: nothing off the grid comes of it."""
    one, other = pd.DataFrame({"temp": [12.0, 99.9, 36.6]}), pd.DataFrame({"temp": [34.2]})
    result = private({"a": one, "b": other}).sum("temp")
    assert result.value == pytest.approx(34.1 + 42.7 + 36.6 + 34.2, abs=1e-12)
    with pytest.raises(ParameterError, match="more decimals than were declared"):
        private({"a": one, "b": other}, bounds={"temp": (34.15, 42)}).sum("temp")


def test_bits_round_bounds_outwards(no_noise):
    columns = {"x": Column(bound=2, bits=2)}
    one, other = pd.DataFrame({"x": [1.9, 0.1]}), pd.DataFrame({"x": [0.5]})
    result = private({"a": one, "b": other}, columns=columns, bounds={"x": (0, 1.1)}).sum("x")
    assert result.value == pytest.approx(1.0 + 0 + 0.5)


def test_a_patient_has_no_more_rows_than_agreed(no_noise):
    one = pd.DataFrame({"los": [1, 2, 3, 4, 5], "pid": ["x", "x", "y", "x", "y"]})
    other = pd.DataFrame({"los": [10, 20], "pid": ["z", "z"]})
    terms = {"unit": "patient", "identifier": "pid"}
    result = private({"a": one, "b": other}, records=1, **terms).sum("los")
    assert result.value == 1 + 3 + 10
    assert private({"a": one, "b": other}, records=2, **terms).count().value == 6
    text = " ".join(str(result).split())
    assert "one patient with at most 1 record" in text
    assert "at no more than 1 site, of which each site took the first 1" in text


@each_case(
    "column, cell, ask, words",
    [
        ("los", "text", lambda s: s.sum("los"), "column 'los': row 4 is text and not a number"),
        (
            "los",
            None,
            lambda s: s.sum("los"),
            "column 'los': 1 empty or NaN cell, the first in row 4",
        ),
        (
            "ward",
            "z",
            lambda s: s.count(by="ward"),
            "column 'ward': row 4 has a value that is not one",
        ),
        ("ward", None, lambda s: s.count(by="ward"), "column 'ward': 1 empty or NaN cell.* row 4"),
    ],
)
def test_rows_are_numbered_as_the_site_has_them(column, cell, ask, words):
    """Row 2 is left out, since its patient has more than was agreed."""
    cells = {"los": [1, 2, 3, 4], "ward": ["a", "a", "b", "b"], "pid": ["x", "x", "y", "z"]}
    cells[column][3] = cell
    other = pd.DataFrame({"los": [10], "ward": ["a"], "pid": ["z"]})
    study = private(
        {"a": pd.DataFrame(cells), "b": other},
        columns={"los": Column(bound=365, decimals=0), "ward": Column(levels=["a", "b"])},
        unit="patient",
        identifier="pid",
    )
    with pytest.raises((ParameterError, RangeError), match=words):
        ask(study)


def test_rows_that_say_not_whose_they_are():
    one = pd.DataFrame({"los": [1, 2], "pid": ["x", None]})
    other = pd.DataFrame({"los": [10], "pid": ["z"]})
    study = private({"a": one, "b": other}, unit="patient", identifier="pid")
    with pytest.raises(RangeError, match="column 'pid': row 2 says not whose it is"):
        study.count()
    study = Study(
        {"a": one, "b": other},
        missing="drop",
        privacy=Privacy(20.0, 1e-3, unit="patient", identifier="pid"),
    )
    assert abs(study.count().guarantee.epsilon - 20) < 1e-9


def deviation(question, **terms):
    return private(**terms).run([question])[0].guarantee.scale


def test_noise_grows_with_what_a_unit_can_change():
    """Laplace noise is proportional to it, so that ratios are the sensitivities'."""
    laplace = {"noise": "laplace", "epsilon": 0.001}
    one = deviation(Count(), **laplace)
    per_site = math.sqrt(4 * 2) * 1000  # four sites, each with the whole noise of scale 1 / epsilon
    assert one == pytest.approx(per_site, rel=1e-3)

    def ratio(question, **terms):
        return deviation(question, **laplace, **terms) / one

    patient = {"unit": "patient", "identifier": "pid"}
    assert ratio(Count(), **patient, records=3) == pytest.approx(3, rel=1e-3)
    assert ratio(Count(), **patient, records=3, sites=2) == pytest.approx(6, rel=1e-3)
    assert ratio(Count(by="ward")) == pytest.approx(1, rel=1e-3)
    assert ratio(Count(by="ward"), relation="replace-one") == pytest.approx(2, rel=1e-3)
    assert ratio(Count(), relation="replace-one") == pytest.approx(1, rel=1e-3)
    assert ratio(Sum("los")) == pytest.approx(60, rel=1e-3)
    assert ratio(Sum("los"), bounds={}) == pytest.approx(365, rel=1e-3)
    assert ratio(Sum("los"), bounds={"los": (-100, 60)}) == pytest.approx(100, rel=1e-3)
    assert ratio(Sum("los"), bounds={"los": (-100, 60)}, relation="replace-one") == pytest.approx(
        160, rel=1e-3
    )
    assert ratio(Sum("los"), bounds={"los": (20, 60)}, relation="replace-one") == pytest.approx(
        40, rel=1e-3
    )
    assert ratio(
        Sum("los", "ward"), bounds={"los": (20, 60)}, relation="replace-one"
    ) == pytest.approx(120, rel=1e-3)
    # A mean: half of epsilon for distances of at most 30 from the middle.
    assert ratio(Mean("los")) == pytest.approx(2 * 30, rel=1e-3)


@pytest.mark.parametrize(
    ("relation", "by", "low", "high", "records"),
    [
        ("add/remove", None, -3, 5, 1),
        ("add/remove", "ward", -3, 5, 2),
        ("replace-one", None, -3, 5, 2),
        ("replace-one", "ward", -3, 5, 2),
        ("replace-one", "ward", 2, 5, 1),
    ],
)
def test_no_neighbours_differ_by_more_than_the_noise_is_for(
    relation, by, low, high, records, monkeypatch
):
    """All patients of up to `records` rows at the ends of the bounds, against what was planned."""
    from securecomp.privacy import distributed

    planned = []
    plan = distributed.plan

    def spy(kind, changes, *rest, **options):
        planned.extend(changes)
        return plan(kind, changes, *rest, **options)

    monkeypatch.setattr(distributed, "plan", spy)
    unit = {"unit": "patient", "identifier": "pid", "records": records}
    private(relation=relation, bounds={"los": (low, high)}, **unit).sum("los", by=by)
    (change,) = planned
    cells = 1 if by is None else 2
    row = [np.eye(cells)[c] * v for c in range(cells) for v in (low, high)]
    patients = [np.zeros(cells), *row]
    for _ in range(records - 1):
        patients = [p + r for p in patients for r in (np.zeros(cells), *row)]
    pairs = (
        [(a, b) for a in patients for b in patients]
        if relation == "replace-one"
        else [(a, np.zeros(cells)) for a in patients]
    )
    assert max(np.abs(a - b).sum() for a, b in pairs) <= change.l1
    assert max(np.linalg.norm(a - b) for a, b in pairs) <= change.l2 * (1 + 1e-12)
    assert change.one is False or max(np.count_nonzero(a - b) for a, b in pairs) == 1


class Budget:
    """A ledger in memory."""

    def __init__(self, left):
        self.left, self.entries = left, []

    @contextmanager
    def spending(self, what, cost, neighbours):
        if cost.epsilon > self.left:
            raise BudgetError("the budget does not cover it; nothing was spent")
        self.left -= cost.epsilon
        self.entries.append([what, cost, neighbours, "reserved"])
        yield
        self.entries[-1][3] = "settled"


def test_the_ledger_is_asked_before_anything_runs_and_told_after(opened):
    ledger = Budget(Fraction(25, 10))
    study = private(ledger=ledger, epsilon="1")
    results = study.run([Count(by="ward"), CrossTable(row="ward", col="died")])
    (what, cost, near, state), *_ = ledger.entries
    assert what == "count of rows by ward; crosstab of ward by died"
    assert (cost.epsilon, float(cost.delta), state) == (1, 1e-6, "settled")
    assert str(near) == "add/remove of one record"
    assert results[0].guarantee.spent == cost
    assert "of the 2 answers of this run together" in " ".join(str(results[0]).split())
    study.count()
    opened.clear()
    with pytest.raises(BudgetError):
        study.count()
    assert opened == {}


def test_a_ledger_on_disk_runs_out(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.sqlite", "stays", "0.3", "1e-5")
    study = private(ledger=ledger, epsilon=0.1)
    for _ in range(3):
        study.count()  # three times 0.1 is 0.3
    with pytest.raises(BudgetError, match="there is left epsilon 0, delta"):
        study.count()
    patients = private(ledger=ledger, unit="patient", identifier="pid", epsilon=0.1)
    with pytest.raises(ParameterError, match="this budget protects"):
        patients.count()
    terms = from_options("0.1", "1e-6", ledger=str(tmp_path / "budget.sqlite"))
    with pytest.raises(BudgetError):
        Study(frames(), privacy=terms).count()


def test_a_codebook_declares_what_is_needed():
    sites = {name: frame.drop(columns="pid") for name, frame in frames().items()}
    codebook = Codebook.draft(pd.concat(sites.values()), name="stays")
    study = Study(sites, codebook=codebook, privacy=Privacy(5.0, 1e-6, bounds={"los": (0, 40)}))
    result = study.mean("los")
    assert abs(result.value - 25) < 5
    assert result.run.from_data == {}


def test_a_codebooks_range_is_what_values_are_clipped_to():
    """A narrower range than from minus the bound to it: less noise, which is what is asserted."""
    sites = {name: frame.drop(columns="pid") for name, frame in frames().items()}
    drafted = Codebook.draft(pd.concat(sites.values()), name="stays")
    entry = msgspec.structs.replace(drafted.columns["temp"], lower=30, upper=46, typical=None)
    codebook = msgspec.structs.replace(drafted, columns={**drafted.columns, "temp": entry})

    def scale(**bounds):
        study = Study(sites, codebook=codebook, privacy=Privacy(5.0, 1e-6, bounds=bounds))
        return study.mean("temp").guarantee.scale

    assert scale() == pytest.approx(scale(temp=(30, 46)), rel=0.1)
    assert scale(temp=(30, 46)) < 0.5 * scale(temp=(-46, 46))
    assert scale(temp=(35, 36)) < 0.5 * scale()


@each_case(
    "question, error",
    [
        (Variance("los"), ParameterError),
        (Sum("pid"), ParameterError),
        (Count(by="pid"), ParameterError),
        (Sum("missing"), ParameterError),
    ],
)
def test_a_refused_question_spends_nothing(question, error):
    ledger = Budget(10)
    columns = {**COLUMNS, "pid": Column(bound=3, decimals=0)}
    with pytest.raises(error):
        private(columns=columns, ledger=ledger).run([question])
    assert ledger.entries == []


def test_bad_data_spend_nothing():
    ledger = Budget(10)
    sites = frames()
    sites["site 2"].loc[3, "los"] = math.nan
    with pytest.raises(RangeError, match=r"site 2.*empty or NaN"):
        private(sites, ledger=ledger).sum("los")
    with pytest.raises(ThresholdError, match="masking: too few clients"):
        private(dict(list(frames().items())[:2]), protocol="masking", ledger=ledger).count()
    with pytest.raises(ThresholdError, match="nobody would be left"):
        private(ledger=ledger, colluding=4).count()
    assert ledger.entries == []


def test_an_error_while_running_is_spent(monkeypatch):
    ledger = Budget(10)

    def fail(self, *blocks, **options):
        raise RangeError("broken")

    monkeypatch.setattr(Adder, "add", fail)
    with pytest.raises(RangeError):
        private(ledger=ledger).count()
    assert [entry[3] for entry in ledger.entries] == ["reserved"]


def test_nothing_is_taken_from_the_data():
    for column, question in (
        (Column(), Sum("los")),
        (Column(bound=365), Sum("los")),
        (Column(decimals=0), Mean("los")),
    ):
        with pytest.raises(ParameterError, match="'los': with privacy nothing is taken"):
            private(columns={**COLUMNS, "los": column}).run([question])
    with pytest.raises(
        ParameterError, match=r"'ward': with privacy nothing is taken.*declare its levels"
    ):
        private(columns={"los": COLUMNS["los"]}).count(by="ward")
    with pytest.raises(ParameterError, match="beyond its declared bound 365"):
        private(bounds={"los": (0, 400)}).sum("los")


def test_other_analyses_are_refused():
    study = private()
    for ask in (
        lambda: study.variance("los"),
        lambda: study.median("los"),
        lambda: study.t_test("los", by="ward"),
        lambda: study.chi_square("ward", "died"),
    ):
        with pytest.raises(ParameterError, match="with noise"):
            ask()
    with pytest.raises(ParameterError, match="minimum_sites"):
        Study(frames(), columns=COLUMNS, minimum_sites=2, privacy=Privacy(1.0, 1e-6)).count()


def test_negative_counts_are_reported_or_clamped():
    empty = {name: frame[:0] for name, frame in frames().items()}
    study = private(empty, epsilon=0.1)
    values = [v for _ in range(8) for row in study.crosstab("ward", "died").value for v in row]
    assert min(values) < 0 < max(values)
    assert max(map(abs, values)) < 1000
    study = private(empty, epsilon=0.1, clamp=True)
    values = [v for _ in range(8) for row in study.crosstab("ward", "died").value for v in row]
    assert min(values) == 0


def test_means_of_lost_counts_are_none_and_clamped_ones_within_bounds():
    empty = {name: frame[:0] for name, frame in frames().items()}

    def rows_of(**terms):
        studies = [private(empty, epsilon=0.1, seed=seed, **terms) for seed in range(12)]
        return [study.mean("los").rows[0] for study in studies]

    rows = rows_of()
    lost = [row for row in rows if row["n"] <= 0]
    assert 2 < len(lost) < 10
    assert all(row["value"] is None and row["error"] is None for row in lost)
    assert sum(row["error"] is None for row in rows) >= 11
    rows = rows_of(clamp=True)
    assert all(row["value"] is None or 0 <= row["value"] <= 60 for row in rows)
    assert all(row["n"] >= 0 for row in rows)


def test_suppression_looks_at_noised_counts():
    """Marks follow from the noised counts alone; sums stand, as their counts are not opened."""
    sites = frames()
    sites["site 0"] = sites["site 0"].assign(ward="a")
    study = private({n: f[f["ward"] == "a"][:2] for n, f in sites.items()}, minimum_count=100)
    result = study.count(by="ward")
    assert result.value == {"a": None, "b": None}
    assert [row["suppressed"]["value"] for row in result.rows] == ["<100", "<100"]
    text = " ".join(str(result).split())
    assert "<100: a noised count below 100, which may be negative" in text
    assert study.crosstab("ward", "died").value == [[None, None], [None, None]]
    mean = study.mean("los")
    assert (mean.value, mean.rows[0]["n"], mean.rows[0]["error"]) == (None, None, None)
    assert mean.records()[0]["suppressed"] == "<100"
    assert isinstance(study.sum("los").value, int)


def test_the_largest_noised_count_below_the_minimum_is_hidden(no_noise):
    """Without noise the counts are known: 10 is suppressed and 11 is shown, as without privacy."""
    counts = {"a": 9, "b": 10, "c": 11, "d": 12}
    wards = [ward for ward, count in counts.items() for _ in range(count)]
    frame = pd.DataFrame({"ward": wards, "los": range(len(wards)), "died": 0})
    columns = {**COLUMNS, "ward": Column(levels=list(counts))}
    sites = {f"site {i}": frame[i::3] for i in range(3)}
    shown = {"a": None, "b": None, "c": 11, "d": 12}
    study = private(sites, columns=columns, minimum_count=11)
    count, mean = study.count(by="ward"), study.mean("los", by="ward")
    assert count.value == shown
    assert [row.get("suppressed", {}).get("value", "") for row in count.rows] == ["<11"] * 2 + [
        ""
    ] * 2
    assert [row["n"] for row in mean.rows] == [None, None, 11, 12]
    # The value goes with its count: a mean over 10 rows is not shown either.
    assert [row["value"] is None for row in mean.rows] == [True, True, False, False]
    table = study.crosstab("ward", "died").value
    assert [row[0] for row in table] == list(shown.values())
    los = study.histogram("los", [0, 10, 21, 60])
    assert los.value[:2] == [None, 11]
    for minimum in (2, 10, 12):
        study = private(sites, columns=columns, minimum_count=minimum)
        expected = {ward: n if n >= minimum else None for ward, n in counts.items()}
        assert study.count(by="ward").value == expected


def test_a_delta_that_is_no_less_than_one_over_the_persons_is_remarked(no_noise):
    """Counts are known with noise only, but that is enough to see that a promise is worth less."""
    there = sum(SIZES)
    for question in (Count(), Mean("los"), Histogram("los", edges=(0.0, 60.0))):
        said = private(delta=Fraction(1, there)).run([question])[0]
        text = " ".join(str(said).split())
        assert f"is not below 1/{there}, and there are about {there} persons" in text
        assert "take a delta of 5e-05 or less" in text
    for terms in ({"delta": Fraction(1, there + 1)}, {"delta": 0.01, "noise": "laplace"}):
        assert "persons" not in str(private(**terms).count())
    patients = {"unit": "patient", "identifier": "pid", "records": 2}
    assert "persons" not in str(private(delta=Fraction(1, there), **patients).count())


def test_histograms_and_frames(no_noise):
    result = private(minimum_count=5).histogram("los", [0, 10, 60])
    assert [r["count"] for r in result.records()][:2] == result.value
    assert len(result.to_frame("pandas")) == 4


def test_the_minimum_of_masking_is_the_plans(monkeypatch):
    seen = []
    from securecomp.secagg.masked_sum import Masking

    session = Masking.session

    def spy(self, *arguments, **options):
        seen.append(session(self, *arguments, **options).terms["minimum"])
        return session(self, *arguments, **options)

    monkeypatch.setattr(Masking, "session", spy)
    private(protocol="masking").count()
    private(protocol="masking", dropouts=1).count()
    assert list(dict.fromkeys(seen)) == [4, 3]


@each_case(
    "terms, message",
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"delta": 0}, "delta 0"),
        ({"delta": 1}, "delta is"),
        ({"noise": "gaussian"}, "noise is one of"),
        ({"unit": "patient"}, "identifier"),
        ({"identifier": "pid"}, "identifier"),
        ({"unit": "ward"}, "identifier|unit"),
        ({"records": 2}, "record"),
        ({"sites": 2}, "a record is at one site"),
        (
            {"sites": 0, "unit": "patient", "identifier": "pid"},
            "sites of a patient must be at least 1",
        ),
        ({"relation": "none"}, "relation"),
        ({"bounds": {"los": 5}}, "a lowest and a highest"),
        ({"bounds": {"los": (5, 1)}}, "crossed"),
        ({"bounds": {"los": (0, math.inf)}}, "finite"),
    ],
)
def test_bad_terms(terms, message):
    with pytest.raises(ParameterError, match=message):
        Privacy(**{"epsilon": 1.0, "delta": 1e-6, **terms})


def test_a_study_takes_terms_and_nothing_else():
    with pytest.raises(ParameterError, match="privacy is a Privacy"):
        Study(frames(), privacy=1.0)


def test_terms_of_a_command_line():
    terms = from_options(
        "1", "1e-6", clip=["los=0:365", "a=b=-1.5:2"], unit="patient", identifier="pid", records=2
    )
    assert terms.bounds == {"los": (0, 365), "a=b": (-1.5, 2)}
    assert (terms.cost.epsilon, terms.neighbours.records) == (1, 2)
    for bad in ("los", "los=1", "los=a:b", "=0:1"):
        with pytest.raises(ParameterError, match="say column=lowest:highest"):
            from_options(1, 1e-6, clip=[bad])


def test_laplace_costs_no_delta():
    assert Privacy(1.0, 1e-6, noise="laplace").cost.delta == 0


@each_case("ordered", [True, False])
def test_a_frames_own_categories_are_no_declaration(ordered):
    """pandas' categories are what some row once had: a group of them would tell of it."""
    data = frames()
    for frame in data.values():
        frame["ward"] = pd.Categorical(frame["ward"], ordered=ordered)
    columns = {name: column for name, column in COLUMNS.items() if name != "ward"}
    with pytest.raises(ParameterError, match="column 'ward': with privacy nothing is taken"):
        private(data, columns=columns).count(by="ward")
    with pytest.raises(ParameterError, match="declare its levels"):
        private(data, columns=columns).crosstab("ward", "died")


def test_more_colluding_sites_than_masking_protects_against_are_refused():
    data = {f"site {i}": frame for i in range(10) for frame in [frames()["site 0"]]}
    private(data, protocol="masking", colluding=5).count()
    with pytest.raises(ParameterError, match="protects against 5 that collude with the server"):
        private(data, protocol="masking", colluding=6).count()
    private(data, protocol="sharing", colluding=6).count()


@each_case(
    "name, protocol", [("server 1", "sharing"), ("server", "masking"), ("aggregator", "paillier")]
)
def test_a_sites_name_is_refused_before_anything_is_spent(name, protocol):
    data = frames()
    data[name] = data.pop("site 0")
    budget = Budget(10)
    with pytest.raises(ParameterError, match="rename the site"):
        private(data, protocol=protocol, ledger=budget).count()
    assert budget.entries == []


def test_a_question_that_cannot_be_paid_reads_no_row(tmp_path):
    ledger = Ledger.create(tmp_path / "b.sqlite", "stays", "0.5", "1e-5")
    columns = {**COLUMNS, "ward": Column(levels=["a"])}
    with pytest.raises(BudgetError):
        private(columns=columns, ledger=ledger).count(by="ward")
    with pytest.raises(RangeError, match="not one of the agreed levels"):
        private(columns=columns, ledger=ledger, epsilon=0.25).count(by="ward")


@each_case(
    "terms, message",
    [
        ({"epsilon": 1000}, "epsilon of a run is from 1e-09 to 100"),
        ({"epsilon": "1e309"}, "epsilon of a run is from"),
        ({"epsilon": "1e-300"}, "epsilon of a run is from"),
        ({"ledger": "file.sqlite"}, "ledger is a Ledger"),
        ({"bounds": None}, "bounds are a mapping"),
        ({"delta": 0}, "take Laplace noise"),
    ],
)
def test_more_bad_terms(terms, message):
    with pytest.raises(ParameterError, match=message):
        Privacy(**{"epsilon": 1, "delta": 1e-6, **terms})


def test_bounds_of_columns_that_are_none():
    with pytest.raises(ParameterError, match="privacy: there is no column 'LOS' at any site"):
        private(bounds={"LOS": (0, 60)})
    with pytest.raises(ParameterError, match="'los' is given twice"):
        from_options(1, 1e-6, clip=["los=0:60", "los=0:300"])


@each_case("epsilon", ["1e-9", "1e-6", "0.5", "60"])
def test_laplace_at_every_epsilon(epsilon):
    found = private(noise="laplace", delta=0, epsilon=epsilon).count()
    b = 1 / float(epsilon)
    want = math.sqrt(4 * (2 * b * b if b > 1e4 else 0.5 / math.sinh(1 / (2 * b)) ** 2))
    assert found.guarantee.scale == pytest.approx(want, rel=1e-6)
