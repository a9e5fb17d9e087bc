"""Cox regressions equal statsmodels' on the pooled rows, with Efron's ties and with Breslow's."""

import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
import textbook
from cases import each_case, named, some_or_all
from scipy import stats
from sites import Spy, by_site, cut, frame, study
from statsmodels.duration.hazard_regression import PHReg
from statsmodels.duration.survfunc import survdiff

from securecomp import Column, Study
from securecomp.errors import ParameterError, RangeError
from securecomp.statistics.adder import Adder


def reference(rows, time, event, columns, strata=None, ties="efron"):
    """statsmodels' fit; indicators of text columns as pandas makes them."""
    x = pd.get_dummies(rows[columns], drop_first=True, dtype=float).astype(float)
    groups = None if strata is None else rows[strata].to_numpy()
    model = PHReg(
        rows[time].to_numpy(), x.to_numpy(), rows[event].to_numpy(), strata=groups, ties=ties
    )
    return model, model.fit(disp=0)


def same(result, model, fit):
    np.testing.assert_allclose(result.params, fit.params, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(result.bse, fit.bse, rtol=1e-7)
    np.testing.assert_allclose(result.tvalues, fit.tvalues, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(result.pvalues, fit.pvalues, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(result.conf_int(), fit.conf_int(), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(result.cov_params(), fit.cov_params(), rtol=1e-6, atol=1e-12)
    assert result.llf == pytest.approx(fit.llf, rel=1e-10)
    zero = np.zeros(len(fit.params))
    null, score, information = model.loglike(zero), model.score(zero), -model.hessian(zero)
    assert result.llnull == pytest.approx(null, rel=1e-10)
    tests = {
        "likelihood_ratio": 2 * (fit.llf - null),
        "score": score @ np.linalg.solve(information, score),
        "wald": fit.params @ np.linalg.solve(fit.cov_params(), fit.params),
    }
    for name, statistic in tests.items():
        found = getattr(result, name)
        assert found.statistic == pytest.approx(statistic, rel=1e-6)
        assert found.df == len(fit.params)
        assert found.pvalue == pytest.approx(stats.chi2.sf(statistic, found.df), rel=1e-5)


MODELS = [
    ["z1"],
    ["z1", "z2", "z3"],
    ["z7", "z10", "z8", "z1"],
    ["z1", "z2", "z3", "z4", "z5", "z6", "z7", "z8", "z10"],
]


@pytest.mark.parametrize("columns", MODELS, ids=len)
@pytest.mark.parametrize("strata", [None, "group"])
@pytest.mark.parametrize(("time", "event"), [("t2", "d3"), ("t1", "d1")])
@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_four_hospitals_equal_statsmodels(marrow, columns, strata, time, event, ties):
    result = by_site(marrow, "z9").cox(
        time, event, columns, strata=strata, times=sorted(set(marrow[time])), ties=ties
    )
    same(result, *reference(marrow, time, event, columns, strata, ties))
    assert (result.rows, result.events) == (137, marrow[event].sum())
    assert len(result.run.parties) == 4


@pytest.mark.parametrize("strata", [None, "hos.cat", "inherit"])
def test_centres_and_categories(granules, strata):
    columns = ["age", "height", "weight", "treat", "sex", "propylac"]
    result = by_site(granules, "center").cox("tstop", "status", columns, strata=strata)
    order = ["age", "height", "weight", "propylac", "treat", "sex"]  # as get_dummies has them
    model, fit = reference(granules, "tstop", "status", order, strata)
    assert result.names == ("age", "height", "weight", "treat=rIFN-g", "sex=male", "propylac")
    again = by_site(granules, "center").cox("tstop", "status", order, strata=strata)
    same(again, model, fit)
    np.testing.assert_allclose(np.sort(again.params), np.sort(result.params), rtol=1e-9)
    assert result.covariates.references == {"treat": "placebo", "sex": "female"}


def test_levels_are_declared_or_named(marrow):
    dummies = marrow.assign(b=(marrow["group"] == 2) * 1, c=(marrow["group"] == 3) * 1)
    model, fit = reference(dummies, "t2", "d3", ["b", "c"])
    times = sorted(set(marrow["t2"]))
    named = by_site(marrow, "z9").cox("t2", "d3", ["group"], categorical=["group"], times=times)
    same(named, model, fit)
    declared = Study(
        {str(k): part for k, part in marrow.groupby("z9")},
        columns={"group": Column(levels=[1, 2, 3])},
    ).cox("t2", "d3", ["group"], times=times)
    same(declared, model, fit)
    assert named.names == declared.names == ("group=2", "group=3")
    # As a number it is one coefficient.
    assert len(by_site(marrow, "z9").cox("t2", "d3", ["group"], times=times).params) == 1


@each_case(
    "ties, figures",
    [
        # Cox and Oakes 1984: 1.509 (0.410); R: coxph(ties="breslow").
        ("breslow", (1.5092, 0.4096, 4.52)),
        # R: coxph(Surv(time, cens) ~ treat, data = gehan), its default.
        ("efron", (1.5721, 0.4124, 4.82)),
    ],
)
def test_published_figures(remissions, ties, figures):
    result = study(*cut(remissions)).cox("time", "cens", ["treat"], ties=ties)
    assert result.names == ("treat=control",)
    found = (result.params[0], result.bse[0], result.hazard_ratios[0])
    assert tuple(round(float(v), k) for v, k in zip(found, (4, 4, 2), strict=True)) == figures
    assert result.to_json()["ties"] == ties


def test_efrons_ties_are_the_default(remissions):
    sites = study(*cut(remissions))
    plain, named = (sites.cox("time", "cens", ["treat"], **o) for o in ({}, {"ties": "efron"}))
    assert plain.params.tolist() == named.params.tolist()
    with pytest.raises(ParameterError, match='ties are "efron" or "breslow", not \'exact\''):
        sites.cox("time", "cens", ["treat"], ties="exact")


def test_without_ties_both_are_the_same(granules):
    rows = granules.drop_duplicates("tstop")
    one, other = (
        study(*cut(rows)).cox("tstop", "status", ["age", "treat"], ties=ties)
        for ties in ("efron", "breslow")
    )
    assert one.params.tolist() == other.params.tolist()
    assert one.run.opened == other.run.opened  # and nothing more is opened


def efron(x, times, events, b):
    """Efron's log likelihood, as it is written, and the cumulative hazard at 0."""
    w = np.exp(x @ b)
    value, hazard = [], {}
    for t in sorted(set(times[events == 1])):
        tied = (times == t) & (events == 1)
        at_risk, dying, d = w[times >= t].sum(), w[tied].sum(), int(tied.sum())
        left = [at_risk - k / d * dying for k in range(d)]
        value += [(x[tied] @ b).sum(), *(-math.log(v) for v in left)]
        hazard[t] = sum(1 / v for v in left)
    return math.fsum(value), hazard


@each_case("seed", range(4))
def test_efrons_likelihood_as_it_is_written(seed):
    """At the estimate it has the value, the slope and the curvature that are said."""
    random = np.random.default_rng(seed)
    n = 60
    rows = pd.DataFrame({"x": random.normal(0, 2, n).round(2), "z": random.integers(0, 5, n)})
    rows["t"] = random.integers(1, 6, n)  # a dozen events at each time
    rows["e"] = random.integers(0, 2, n)
    result = study(*cut(rows)).cox("t", "e", ["x", "z"])
    x, t, e = rows[["x", "z"]].to_numpy(float), rows["t"].to_numpy(), rows["e"].to_numpy()
    value, hazard = efron(x, t, e, result.params)
    assert result.llf == pytest.approx(value, rel=1e-12)
    assert result.llnull == pytest.approx(efron(x, t, e, np.zeros(2))[0], rel=1e-12)
    h = 1e-4 * result.bse
    for j in range(2):
        step = h * (np.arange(2) == j)
        above, below = (efron(x, t, e, result.params + s * step)[0] for s in (1, -1))
        assert abs(above - below) < 1e-9  # the slope is 0
        curvature = (above - 2 * value + below) / h[j] ** 2
        information = np.linalg.inv(result.cov_params())[j, j]
        assert -curvature == pytest.approx(information, rel=1e-4)
    at, found = result.baseline_cumulative_hazard()
    assert at.tolist() == list(hazard)
    np.testing.assert_allclose(found, np.cumsum(list(hazard.values())), rtol=1e-9)


def test_all_who_are_at_risk_die_together():
    rows = pd.DataFrame({"t": [1, 1, 2, 3, 3, 3], "e": [1, 1, 0, 1, 1, 1], "x": [2, 5, 1, 3, 4, 0]})
    same(study(*cut(rows)).cox("t", "e", ["x"]), *reference(rows, "t", "e", ["x"]))


def test_on_a_coarse_grid_efrons_ties_are_nearer_to_the_fit_without_ties(marrow):
    fine = by_site(marrow, "z9").cox("t2", "d3", ["z1", "z10"], times=sorted(set(marrow["t2"])))
    away = {
        ties: by_site(marrow, "z9").cox(
            "t2", "d3", ["z1", "z10"], times=range(0, 2701, 180), ties=ties
        )
        for ties in ("efron", "breslow")
    }
    apart = {k: np.abs((v.params - fine.params) / fine.bse) for k, v in away.items()}
    assert (apart["efron"] < apart["breslow"]).all()


@pytest.mark.parametrize(
    ("protocol", "library"),
    [("sharing", "pandas"), ("sharing", "polars"), ("masking", "pandas"), ("paillier", "polars")],
)
def test_protocols_and_frames(remissions, protocol, library):
    columns = ["time", "cens", "treat"]
    sites = [
        frame(library, **{c: part[c].tolist() for c in order})
        for part, order in zip(cut(remissions), (columns, columns[::-1], columns), strict=True)
    ]
    result = study(*sites, protocol=protocol).cox("time", "cens", ["treat"])
    same(result, *reference(remissions, "time", "cens", ["treat"]))


@pytest.mark.parametrize("strata", [None, "sex"])
def test_baseline_and_prediction(granules, strata):
    columns = ["age", "treat"]
    result = by_site(granules, "center").cox(
        "tstop", "status", columns, strata=strata, ties="breslow"
    )
    model, fit = reference(granules, "tstop", "status", columns, strata, "breslow")
    names = [""] if strata is None else ["female", "male"]
    for name, (times, hazard, _) in zip(
        names, model.baseline_cumulative_hazard(fit.params), strict=True
    ):
        mine_at, mine = result.baseline_cumulative_hazard(name)
        # statsmodels gives the hazard just before a time.
        after = np.searchsorted(times, mine_at, "right")
        there = after < len(times)
        np.testing.assert_allclose(mine[there], np.asarray(hazard)[after[there]], rtol=1e-6)
        x = {"age": 12, "treat": "rIFN-g"}
        at = np.concatenate([[0.0], mine_at, mine_at + 0.5])
        expected = np.exp(
            -np.concatenate([[0.0], mine, mine]) * np.exp(12 * result.params[0] + result.params[1])
        )
        np.testing.assert_allclose(result.survival(x, at, name), expected, rtol=1e-9)


def test_prediction(granules):
    result = by_site(granules, "center").cox("tstop", "status", ["age", "weight"], ties="breslow")
    rows = granules[["age", "weight"]].to_numpy()
    at, hazard = textbook.breslow(rows, result.params, granules["tstop"], granules["status"])
    mine_at, mine = result.baseline_cumulative_hazard()
    assert mine_at.tolist() == at.tolist()
    np.testing.assert_allclose(mine, hazard, rtol=1e-9)
    x = {"age": 10, "weight": 40.0}
    expected = np.exp(-hazard * np.exp([10, 40] @ result.params))
    np.testing.assert_allclose(result.survival(x, at), expected, rtol=1e-9)
    for row in ({}, {"age": 3}, {**x, "sex": 1}, {**x, "age": "old"}, {**x, "age": np.nan}):
        with pytest.raises(ParameterError):
            result.survival(row, [1])


def test_what_cannot_be_predicted(remissions):
    result = study(*cut(remissions)).cox("time", "cens", ["treat"])
    with pytest.raises(ParameterError, match="'treat' is one of 6-MP, control; not 'x'"):
        result.survival({"treat": "x"}, [1])
    with pytest.raises(ParameterError, match="there is no stratum 'y'"):
        result.survival({"treat": "control"}, [1], "y")


def test_the_score_test_is_the_logrank_test_without_ties(granules):
    rows = granules.drop_duplicates("tstop")
    sites = study(*cut(rows))
    score = sites.cox("tstop", "status", ["treat"]).score
    statistic, _ = survdiff(*(rows[c].to_numpy() for c in ("tstop", "status", "treat")))
    assert score.statistic == pytest.approx(statistic, rel=1e-9)
    assert sites.logrank("tstop", "status", "treat").statistic == pytest.approx(score.statistic)


@each_case("seed", range(6))
def test_any_numbers(seed):
    """Many ties, strata, far means, decimals, uneven sites; one of them empty."""
    random = np.random.default_rng(seed)
    n = 150
    rows = pd.DataFrame(
        {
            "year": random.integers(1990, 2020, n),
            "x": random.normal(0, 3, n),
            "dose": random.integers(0, 50, n) / 10,
            "g": random.choice(list("abc"), n),
            "s": random.integers(0, 2, n),
        }
    )
    hazard = np.exp(0.3 * rows["x"] - 0.05 * (rows["year"] - 2000) + (rows["g"] == "b"))
    rows["t"] = np.minimum(np.ceil(random.exponential(8 / hazard)), 15).astype(int)
    rows["e"] = (random.random(n) < 0.7).astype(int)
    sites = [rows[:3], rows[3:3], rows[3:50], rows[50:]]
    columns = ["year", "x", "dose", "g"]
    strata = "s" if seed % 2 else None
    # The year itself counts from 0, whereas the agreed bound is what exp must have room for.
    moved = [part.assign(year=part["year"] - 2000) for part in sites]
    result = study(*moved).cox("t", "e", columns, strata=strata)
    same(result, *reference(rows.assign(year=rows["year"] - 2000), "t", "e", columns, strata))
    assert all(step.halvings >= 0 for step in result.history)


def heavy_tails(seed):
    """Few rows with values over several orders of magnitude; Newton's full step overshoots."""
    random = np.random.default_rng(seed)
    n = random.integers(6, 20)
    x = np.round(np.exp(random.normal(0, 2.5, n)), 1)
    y = random.normal(0, 1, n).round(1)
    t, e = random.integers(1, 10, n), random.integers(0, 2, n)
    return pd.DataFrame({"t": t, "e": e, "x": x, "y": y})


WIDE = [(263, "sharing"), (263, "masking"), (263, "paillier"), (80, "sharing")]


@some_or_all(
    "cases",
    [(263, "sharing", "efron"), (263, "masking", "breslow"), (80, "sharing", "efron")],
    [(*case, ties) for case in WIDE for ties in ("efron", "breslow")],
)
def test_a_step_is_halved_and_sums_are_wide(cases):
    for seed, protocol, ties in cases:
        with named(seed, protocol, ties):
            halves(seed, protocol, ties)


def halves(seed, protocol, ties):
    rows = heavy_tails(seed)
    result = study(*cut(rows), protocol=protocol).cox("t", "e", ["x", "y"], ties=ties)
    assert max(step.halvings for step in result.history) > 0
    # By the bounds exp(x'b) could be beyond all sums; rows are agreed to be within less.
    assert any("with |x'b| beyond 100" in name for name in result.run.opened) == (seed == 263)
    x = rows[["x", "y"]].to_numpy()
    model = PHReg(rows["t"], x, status=rows["e"], ties=ties)
    assert np.abs(model.score(result.params) * result.bse).max() < 1e-7
    assert result.llf == pytest.approx(model.loglike(result.params), rel=1e-10)
    variance = np.linalg.inv(-model.hessian(result.params))
    np.testing.assert_allclose(result.cov_params(), variance, rtol=1e-6)
    values = [step.llf for step in result.history]
    assert values == pytest.approx(sorted(values))


def test_a_coarse_grid_is_the_fit_of_rounded_times(marrow):
    times = range(0, 2701, 90)
    result = by_site(marrow, "z9").cox("t2", "d3", ["z1", "z10"], times=times)
    up = marrow.assign(t2=np.ceil(marrow["t2"] / 90) * 90)
    same(result, *reference(up, "t2", "d3", ["z1", "z10"]))
    assert "between times of the grid, rounded up" in str(result)


def test_follow_up_ends_with_the_grid(marrow):
    result = by_site(marrow, "z9").cox("t2", "d3", ["z1", "z10"], times=range(366))
    early = marrow.assign(d3=marrow["d3"] * (marrow["t2"] <= 365), t2=marrow["t2"].clip(upper=366))
    same(result, *reference(early, "t2", "d3", ["z1", "z10"]))


def test_missing_rows_are_dropped(granules):
    rows = granules[["tstop", "status", "age", "treat"]].astype({"age": float})
    rows.loc[[3, 60], "age"] = np.nan
    rows.loc[7, "treat"] = None
    result = study(*cut(rows), missing="drop").cox("tstop", "status", ["age", "treat"])
    same(result, *reference(rows.dropna(), "tstop", "status", ["age", "treat"]))
    assert result.rows == len(rows) - 3


@each_case("ties", ["efron", "breslow"])
def test_what_is_opened(remissions, ties):
    totals = []
    add = Adder.add

    def spied(adder, *blocks):
        found = add(adder, *blocks)
        totals.extend(
            pair
            for block, values in zip(blocks, found, strict=True)
            for pair in zip(block.labels, values, strict=True)
        )
        return found

    rows = remissions.assign(x=range(42))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Adder, "add", spied)
        result = study(*cut(rows)).cox(
            "time", "cens", ["treat", "x"], times=[2, 5, 7, 10, 20, 40], ties=ties
        )
    grid = np.array([2, 5, 7, 10, 20, 40])
    at = [f"time={t}" for t in grid]
    every = "in every step: sum of exp(x'b)"
    names = ["treat=control", "x"]
    up = grid[np.searchsorted(grid, rows["time"])]
    events = rows["cens"].to_numpy() == 1
    happened = [int(events[up == t].sum()) for t in grid]
    cells = [t for t, n in zip(at, happened, strict=True) if n]
    tied = [t for t, n in zip(at, happened, strict=True) if n > 1 and ties == "efron"]
    assert len(cells) >= 5
    assert bool(tied) == (ties == "efron")
    pairs = [(0, 0), (1, 0), (1, 1)]
    less = ", less shares of tied events" if tied else ""
    assert result.run.opened == (
        *(f"events at {t}" for t in at),
        "rows with treat=control",
        "rows",
        "rows with time between times of the grid",
        "number of treat=control over events",
        "sum of x over events",
        *(f"{every}{name} over rows at risk at {t}" for name in ("", *PAIR) for t in cells),
        *(f"{every}{name} over events at {t}" for name in ("", *PAIR) for t in tied),
        *(
            f"{every} {names[i]} {names[j]} over rows at risk{less}, times events / sum of "
            "exp(x'b), over all times"
            for i, j in pairs
        ),
    )
    assert result.run.sums == 1 + 2 * len(result.history)
    # And these are the figures: of the pooled rows, at the last step's coefficients.
    opened = dict(totals)
    x = np.column_stack([rows["treat"] == "control", rows["x"]]).astype(float)
    u = (x - x[events].mean(axis=0)) / [1, 41]
    w = np.exp(u @ (result.params * [1, 41]))
    fold = np.zeros((2, 2))
    for t, label, d in zip(grid, at, happened, strict=True):
        if label not in cells:
            continue
        risk, own = up >= t, (up == t) & events
        for rows_, who, there in ((risk, "rows at risk", cells), (own, "events", tied)):
            if label in there:
                s0 = opened[f"{every} over {who} at {label}"]
                assert s0 == pytest.approx(w[rows_].sum(), rel=1e-9)
                for j, name in enumerate(names):
                    found = opened[f"{every} {name} over {who} at {label}"]
                    assert found == pytest.approx((w * u[:, j])[rows_].sum(), rel=1e-9, abs=1e-12)
        for part in np.arange(d) / d if label in tied else np.zeros(d):
            weight = w * (risk - part * own)
            fold += (u.T * weight) @ u / weight.sum()
    assert [opened[label] for label in result.run.opened[-3:]] == pytest.approx(
        [fold[i, j] for i, j in pairs], rel=1e-9
    )
    said = "with two or more events the same sums over these events became known" in str(
        result
    ).replace("\n", " ")
    assert said == (ties == "efron")


PAIR = (" treat=control", " x")


def test_it_prints_and_converts(granules):
    result = by_site(granules, "center").cox(
        "tstop", "status", ["age", "treat", "inherit"], strata="hos.cat"
    )
    text = str(result)
    assert max(map(len, text.split("\n"))) <= 100
    assert text.startswith(
        "Cox regression of tstop until status, stratified by hos.cat\n128 rows, 44"
    )
    assert "treat: against placebo." in text
    assert "of the counts that became known are between 1 and 10" in text
    assert "if one row did, its covariates can be computed" in text.replace("\n", " ")
    json.dumps(result.to_json(), allow_nan=False)
    assert [r["name"] for r in result.records()] == ["age", "treat=rIFN-g", "inherit=X-linked"] or (
        result.records()[2]["name"].startswith("inherit=")
    )
    forest, steps = result.plots()
    assert (forest.kind, forest.reference, forest.logarithmic) == ("forest", 1.0, True)
    assert list(forest.series) == list(result.names)
    assert len(steps.series) == len(result.baselines)
    assert "<table>" in result._repr_html_()


class TestRefused:
    """One error that names the column and says what to do."""

    ROWS = pl.DataFrame(
        {
            "t": [1, 2, 3, 4, 5, 6, 7, 8],
            "e": [1, 1, 0, 1, 1, 0, 1, 1],
            "x": [3, 1, 4, 1, 5, 9, 2, 6],
            "z": [1, 0, 0, 1, 0, 1, 1, 0],
            "g": list("aabbabab"),
        }
    )

    def refused(self, error, text, covariates, *, rows=None, **options):
        rows = self.ROWS if rows is None else rows
        with pytest.raises(error) as caught:
            study(rows[::2], rows[1::2], columns=options.pop("columns", None)).cox(
                "t", "e", covariates, **options
            )
        assert text in str(caught.value)

    def test_nothing_is_wrong(self):
        result = study(self.ROWS[::2], self.ROWS[1::2]).cox("t", "e", ["x", "z", "g"])
        assert result.names == ("x", "z", "g=b")

    @pytest.mark.parametrize(
        ("covariates", "text"),
        [
            ([], "name at least one covariate"),
            (5, "covariates are a list of columns' names, or a formula such as '~ age + C(ward)'"),
            (["x", "x"], "covariate 'x' is there twice; name it once"),
            (["y"], "north: there is no column 'y'; it has: t, e, x, z, g"),
        ],
    )
    def test_covariates(self, covariates, text, monkeypatch):
        spy = Spy(monkeypatch)
        self.refused(ParameterError, text, covariates)
        assert spy.made == []

    def test_categorical(self):
        self.refused(
            ParameterError,
            "categorical: 'z' is not one of the covariates",
            ["x"],
            categorical=["z"],
        )
        one = self.ROWS.with_columns(g=pl.lit("a"))
        self.refused(ParameterError, "column 'g' has one level, a, which explains", ["g"], rows=one)

    def test_text_at_one_site_only(self):
        with pytest.raises(
            ParameterError, match=r"^south: column 'x': row 1 is text and not a num"
        ):
            study(self.ROWS, self.ROWS.with_columns(x=pl.lit("?"))).cox("t", "e", ["x"])

    def test_no_events(self):
        none = self.ROWS.with_columns(e=pl.lit(0))
        self.refused(RangeError, "column 'e': no site has an event up to", ["x"], rows=none)

    def test_a_level_without_events(self):
        text = "level {} has no events, so that its hazard ratio is 0 or not known; merge it"
        rows = self.ROWS.with_columns(g=pl.when(pl.col("e") == 0).then(pl.lit("c")).otherwise("g"))
        self.refused(RangeError, "column 'g': " + text.format("c"), ["x", "g"], rows=rows)
        first = self.ROWS.with_columns(e=pl.when(pl.col("g") == "a").then(0).otherwise("e"))
        self.refused(RangeError, "column 'g': " + text.format("a"), ["x", "g"], rows=first)

    @each_case("constant", [0.1, 7, -123456.789])
    def test_a_constant(self, constant):
        rows = self.ROWS.with_columns(k=pl.lit(constant))
        text = "covariate 'k' is the same for all rows that are at risk at an event"
        self.refused(RangeError, text, ["x", "k", "z"], rows=rows)

    def test_always_zero(self):
        rows = self.ROWS.with_columns(k=pl.lit(0))
        self.refused(ParameterError, "column 'k': its agreed bound is 0", ["k"], rows=rows)

    def test_constant_in_each_stratum(self):
        rows = self.ROWS.with_columns(k=(pl.col("g") == "a").cast(int) * 5 + 2)
        text = "covariate 'k' is the same for all rows that are at risk at an event"
        self.refused(RangeError, text, ["x", "k"], rows=rows, strata="g")

    def test_a_combination(self):
        rows = self.ROWS.with_columns(k=2 * pl.col("x") - pl.col("z") + 3)
        text = "covariate 'k' is a combination of those before it, x, z; leave one out"
        self.refused(RangeError, text, ["x", "z", "k"], rows=rows)

    def test_monotone_likelihood(self):
        # The event is always the largest of those at risk.
        rows = self.ROWS.with_columns(k=-pl.col("t"))
        self.refused(
            RangeError, "covariate 'k': its coefficient grows beyond", ["z", "k"], rows=rows
        )
        first = self.ROWS.with_columns(k=(pl.col("t") < 3).cast(int), e=pl.lit(1))
        self.refused(RangeError, "covariate 'k': its coefficient grows beyond", ["k"], rows=first)


@each_case("bound", [10**4, 10**9])
def test_a_bound_far_beyond_the_values(marrow, bound):
    """Sites agree on how far values are from their mean, where the bound does not say."""
    sites = Study(
        {str(k): part for k, part in marrow.groupby("z9")}, columns={"z1": Column(bound=bound)}
    )
    result = sites.cox("t2", "d3", ["z1", "z10"], times=sorted(set(marrow["t2"])))
    same(result, *reference(marrow, "t2", "d3", ["z1", "z10"]))
    further = [name for name in result.run.opened if "further than" in name]
    assert bool(further) == (bound > 10**5)
