"""Models that have no answer and formulas that must not run: one error, and nothing is sent."""

import builtins
import sys

import numpy as np
import pandas as pd
import pytest
from cases import each_case, named, some_or_all
from scipy import optimize
from sites import Spy, study

from securecomp import Column, Study
from securecomp.errors import (
    BackendUnavailableError,
    ParameterError,
    RangeError,
    SecureCompError,
)
from securecomp.sharing.additive_sum import Sharing

draw = np.random.default_rng(0)
ROWS = pd.DataFrame(
    {
        "x": np.round(draw.normal(0, 1, 600), 2),
        "z": draw.integers(0, 5, 600),
        "g": draw.choice(list("abc"), 600),
    }
)
ROWS["y"] = (draw.random(600) < 1 / (1 + np.exp(-ROWS["x"]))).astype(int)
ROWS["count"] = draw.poisson(np.exp(0.5 + 0.3 * ROWS["x"]))
ROWS["one"], ROWS["zero"], ROWS["minus"] = 1, 0, -ROWS["z"]
ROWS["sum"] = 2 * ROWS["x"] + 3 * ROWS["z"]
for level in "abc":
    ROWS[f"is {level}"] = (ROWS["g"] == level).astype(int)


def three(rows, **options):
    return study(rows[:200], rows[200:450], rows[450:], **options)


@pytest.fixture
def spy(monkeypatch):
    return Spy(monkeypatch)


def refused(rows, formula, family="logistic", columns=None, **options):
    with pytest.raises(SecureCompError) as caught:
        three(rows, columns=columns).glm(formula, family, **options)
    return caught.value


NO_MODEL = {
    "a column twice": ("y ~ x + I(x * 1)", "I(x * 1) is a combination of x up to a constant"),
    "a sum of others": ("y ~ sum + x + z", "z is a combination of sum, x up to a constant"),
    "the dummy trap": (
        "y ~ `is a` + `is b` + `is c`",
        "is c is a combination of is a, is b up to a constant, so that no coefficients are best; "
        "leave one of them out",
    ),
    "without an intercept": ("y ~ 0 + x + I(2 * x)", "I(2 * x) is a combination of x, so"),
    "a constant": ("y ~ x + one", "one is the same in every row of all sites, as the intercept is"),
    "zeros": ("y ~ x + zero", "zero is 0 in every row of all sites; leave it out"),
    "the same response": ("one ~ x", "one is 1 in every row: there is nothing to explain"),
    "never": ("zero ~ x", "zero is 0 in every row: there is nothing to explain"),
}


@each_case("name", NO_MODEL)
def test_no_model(name):
    formula, text = NO_MODEL[name]
    error = refused(ROWS, formula)
    assert type(error) is ParameterError
    assert text in str(error)


@each_case("family", ["logistic", "poisson", "linear"])
def test_no_rows(family):
    """Of no rows the number of columns is no fault."""
    columns = {"x": Column(bound=5), "y": Column(bound=1, decimals=0)}
    with pytest.raises(ParameterError, match="no site has a row to fit a model to; check the fi"):
        three(ROWS[:0], columns=columns).glm("y ~ x", family)
    gone = ROWS.assign(x=np.nan)
    with pytest.raises(ParameterError, match="whether each row lacks one of the columns"):
        three(gone, columns=columns, missing="drop").glm("y ~ x", family)


def test_no_linear_or_poisson_model():
    assert "one is the same in every row" in str(refused(ROWS, "one ~ x", "linear"))
    assert "zero is 0 in every row" in str(refused(ROWS, "zero ~ x", "poisson"))
    assert "is a combination of x" in str(refused(ROWS, "z ~ x + I(x * 3)", "linear"))


@each_case("rows, family", [(3, "logistic"), (4, "linear")])
def test_fewer_rows_than_columns(rows, family):
    with pytest.raises(ParameterError, match=f"{rows} rows do not determine 4 coefficients"):
        study(ROWS[:2], ROWS[2:rows]).glm("y ~ x + z + count", family)


SEPARATED = {
    "a level without the event": (
        lambda r: r["y"].where(r["g"] != "c", 0),
        "s ~ g + x",
        "separation: s is 0 in every row with g[T.c], so that its coefficient has no finite "
        "value; leave it out, or join levels",
    ),
    "the reference level": (
        lambda r: r["y"].where(r["g"] != "a", 1),
        "s ~ g + x",
        "separation: s is 1 in every row with g[a]",
    ),
    "zeros of an indicator": (
        lambda r: r["y"].where(r["is b"] != 0, 0),
        "s ~ `is b` + x",
        "separation: s is 0 in every row with is b = 0",
    ),
    "an interaction": (
        lambda r: r["y"].where((r["g"] != "c") | (r["z"] != 4), 1),
        "s ~ C(z) * g",
        "separation: s is 1 in every row with C(z)[T.4]:g[T.c]",
    ),
    "a threshold": (lambda r: (r["x"] > 0.3) * 1, "s ~ z + x", "separation: x tells s apart"),
    "a line": (
        lambda r: (r["x"] + 0.37 * r["z"] > 1) * 1,
        "s ~ x + z",
        "separation: x, z tell s apart for some rows without a mistake",
    ),
    "only beyond a threshold": (
        lambda r: r["y"].where(r["z"] < 3, 1),
        "s ~ x + I((z - 2) * (z > 2)) + I(z > 3)",
        "separation: ",
    ),
}


@each_case("name", SEPARATED)
def test_separation(name):
    make, formula, text = SEPARATED[name]
    error = refused(ROWS.assign(s=make(ROWS).astype(int)), formula)
    assert type(error) is ParameterError
    assert text in str(error)


@some_or_all("seeds", range(20), range(200))
def test_separation_is_found_where_it_is_and_nowhere_else(seeds):
    for seed in seeds:
        with named(seed):
            separated(seed)


def separated(seed):
    """A linear program decides: Albert and Anderson, Biometrika 71 (1984) 1-10."""
    draw = np.random.default_rng(seed)
    size, width = draw.integers(12, 60), draw.integers(1, 4)
    x = np.round(draw.normal(size=(size, width)), 2)
    risk = 1 / (1 + np.exp(-x @ draw.normal(0, draw.choice([0.5, 2, 6]), width)))
    y = (draw.random(size) < risk).astype(int)
    y[:2] = 0, 1
    signed = (2 * y - 1)[:, None] * np.column_stack([np.ones(size), x])
    box = [(-1, 1)] * (width + 1)
    found = optimize.linprog(-signed.sum(0), A_ub=-signed, b_ub=np.zeros(size), bounds=box)
    names = [f"x{i}" for i in range(width)]
    rows = pd.DataFrame(x, columns=names).assign(y=y)
    formula = "y ~ " + " + ".join(names)
    if -found.fun > 1e-7:
        with pytest.raises(ParameterError, match="separation"):
            study(rows[:5], rows[5:]).glm(formula)
    else:
        fitted = study(rows[:5], rows[5:]).glm(formula)
        rest = y - fitted.predict(rows)
        assert np.abs(x.T @ rest).max() < 1e-6


def test_separation_of_counts():
    rows = ROWS.assign(s=ROWS["count"].where(ROWS["g"] != "c", 0))
    assert "s is 0 in every row with g[T.c]" in str(refused(rows, "s ~ g + x", "poisson"))


def test_rare_events_are_no_separation():
    rare = np.zeros(600, int)
    rare[[5, 100, 130, 220, 301, 450, 599]] = 1
    rows = ROWS.assign(s=rare)
    result = three(rows).glm("s ~ x + z")
    assert result.history[-1].decrement < 1e-8


def test_no_convergence_says_what_to_do():
    error = refused(ROWS, "y ~ x", iterations=1)
    assert str(error).startswith("no maximum after 1 iterations: a step still moves a coefficient")
    assert "allow more iterations" in str(error)


def test_a_step_that_overshoots_is_halved():
    draws = np.random.default_rng(2)
    x = np.r_[np.zeros(300), 60]
    rows = pd.DataFrame({"x": x, "n": np.r_[draws.poisson(0.1, 300), 2]})
    result = study(rows[:100], rows[100:]).glm("n ~ x", "poisson")
    rate = rows["n"][:300].mean()
    assert result.params[0] == pytest.approx(np.log(rate), rel=1e-9)
    assert result.params[1] == pytest.approx((np.log(2) - np.log(rate)) / 60, rel=1e-9)


BAD_ROWS = {
    "not 0 or 1": ("count ~ x", "logistic", {}, "north: response count: row 3 (and 91"),
    "counts by the default family": (
        "count ~ x",
        "logistic",
        {},
        'is not 0 or 1, as logistic regression needs; correct it, choose family="poisson" for '
        'counts, or "linear" for any number, or write I(count == ...) for one value',
    ),
    "decimals as counts": (
        "half ~ z",
        "poisson",
        {},
        'is not a whole number, as counts are; correct it, or choose family="linear"',
    ),
    "negative": ("minus ~ x", "poisson", {}, "north: response minus: row"),
    "no whole number": ("half ~ z", "poisson", {}, "north: response half: row"),
    "negative weights": ("y ~ x", "logistic", {"weights": "minus"}, "north: weights minus: row"),
    "a weight of 0": ("y ~ x", "linear", {"weights": "z"}, "is not above 0; correct it"),
    "no logarithm": ("y ~ log(z)", "logistic", {}, "north: log(z): row"),
    "no root": ("y ~ sqrt(x)", "logistic", {}, "north: sqrt(x): row"),
    "no quotient": ("y ~ I(1 / z)", "logistic", {}, "divides by 0; correct it"),
    "beyond an agreed bound": ("y ~ exp(x)", "logistic", {"bounds": {"exp(x)": 2}}, "bound 2;"),
    "empty": ("y ~ gap", "logistic", {}, "south: column 'gap': 1 empty or NaN cell"),
    "empty weights": ("y ~ x", "logistic", {"weights": "gap"}, "south: column 'gap'"),
    "empty offset": ("y ~ x", "logistic", {"offset": "gap"}, "south: column 'gap'"),
    "empty category": ("y ~ hole", "logistic", {}, "south: column 'hole'"),
    "not a level": ("y ~ level", "logistic", {}, "column 'level': row 3 has a value that is not"),
    "beyond a column's bound": ("y ~ small", "logistic", {}, "is beyond the agreed bound 1"),
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_bad_rows_name_the_site_and_nothing_is_sent(name, spy):
    formula, family, options, text = BAD_ROWS[name]
    gap = ROWS["x"].where(ROWS.index != 300)
    rows = ROWS.assign(
        gap=gap + 10,
        half=ROWS["z"] / 2,
        hole=ROWS["g"].where(ROWS.index != 300),
        level=ROWS["g"],
        small=ROWS["x"],
    )
    columns = {"level": Column(levels=["a", "b"]), "small": Column(bound=1)}
    error = refused(rows.replace({"level": {"a": "q"}}), formula, family, columns, **options)
    assert type(error) is RangeError
    assert text in str(error)
    assert any(str(error).startswith(site) for site in ("north", "south", "east"))
    assert spy.made == spy.carried == []


BAD_REQUESTS = {
    "family": ({"family": "probit"}, 'family is one of "logistic", "poisson", "linear"'),
    "confidence": ({"confidence": 95}, "confidence is between 0 and 1"),
    "tolerance": ({"tolerance": 0}, "tolerance is between 0 and 1"),
    "iterations": ({"iterations": 0}, "iterations are at least 1"),
    "weights": ({"weights": "nowhere"}, "north: there is no column 'nowhere'"),
    "bounds of nothing": ({"bounds": {"q": 1}}, "bounds: there is no 'q' in the formula"),
    "bounds": ({"bounds": {"x": -1}}, "bounds: 'x' must be a positive number"),
    "no bounds": ({"bounds": [1]}, "bounds map a formula's factors to numbers"),
}


@pytest.mark.parametrize("name", BAD_REQUESTS)
def test_bad_requests(name, spy):
    options, text = BAD_REQUESTS[name]
    error = refused(ROWS, "y ~ x", **options)
    assert type(error) is ParameterError
    assert text in str(error)
    assert spy.made == []


FORMULAS = {
    "y": "it has one ~, with the response before it",
    "~ x": "it has one ~",
    "": "a formula is text such as",
    "y ~ x +": "Operator",
    "y + z ~ x": "one response is before ~",
    "y ~ 0": "nothing explains the response",
    "y ~ nowhere": "north: there is no column 'nowhere'; it has: x, z, g, y",
    "y ~ center(x)": "depends on all rows of a site, and each site would compute other mean",
    "y ~ scale(x)": "use agreed numbers, as in I((age - 60) / 10)",
    "y ~ standardize(x)": "depends on all rows",
    "y ~ bs(x, 3)": "other knots",
    "y ~ cr(x, 3)": "other knots",
    "y ~ cc(x, 3)": "other knots",
    "y ~ poly(x, 2)": "other polynomials",
    "y ~ lag(x)": "other row before",
    "y ~ I(x - center(x))": "depends on all rows",
    "y ~ C(g, Sum)": "treatment coding",
    "y ~ C(g, contr.poly)": "treatment coding",
    "y ~ C(g, Treatment('q'))": "'q' is not one of the levels of 'g': 'a', 'b', 'c'",
    "y ~ C(x + 1)": "C() takes a column's name",
    "y ~ I(g == 'q')": "'q' is not one of the levels",
    "y ~ I(g < 'b')": "text is compared by == or !=",
    "y ~ I(g + 1)": "column 'g' holds text; compare it with a level",
    "g ~ x": "the response has 3 levels, not 2; write I(g == 'level') for one of them",
    "y ~ 2:x": "scales a term",
    "y ~ (x + z + g + count)**50": "more than 2000 terms",
    "y ~ x ** z": "must be a positive integer",
    "y ~ I(x ** z)": "has no meaning in a formula",
    "y ~ I(x ** 99)": "exponents are from -64 to 64",
    "y ~ I(9 ** 9 ** 9)": "is a number; write it out",
    "y ~ exp(exp(exp(z)))": "has no bound",
    "y ~ log(minus - 100)": "exists for no row|has an argument",
    "y ~ Intercept": "two columns of the design are named 'Intercept'",
    "y ~ 0 + Intercept": "two columns of the design are named 'Intercept'",
    "y ~ C(number) + x": "cannot be a category|which is no grouping",
}


@pytest.mark.parametrize("formula", FORMULAS)
def test_formulas_that_are_refused(formula, spy):
    error = refused(ROWS.assign(number=ROWS["x"] / 3, Intercept=ROWS["z"]), formula)
    assert isinstance(error, ParameterError | RangeError)
    assert any(text in str(error) for text in FORMULAS[formula].split("|")), str(error)
    assert spy.made == []


ATTACKS = [
    "__import__('os').system('true')",
    "os.system('true')",
    "x.__class__",
    "I(x.__class__.__mro__)",
    "I((lambda: 1)())",
    "I([1 for _ in range(9)])",
    "I({1: 2})",
    "{x[0]}",
    "{open('/etc/passwd').read()}",
    "{exec('1')}",
    "I(eval('1'))",
    "I(getattr(x, 'shape'))",
    "I(f'{x}')",
    "I((y := x))",
    "I(x if y else z)",
    "I(np.os.system('true'))",
    "np.load('x')",
    "log(x, out=y)",
    "log(*x)",
    "C(g, __import__('os'))",
    "C(g, Treatment(open('x')))",
    "I(x and y)",
    "I(not x)",
    "I(x @ y)",
    "I('a' * 9)",
    "I(1j * x)",
    "I(" + "(" * 300 + "x" + ")" * 300 + ")",
    "I(" + "-" * 5000 + "x)",
]


@pytest.mark.parametrize("factor", ATTACKS)
def test_a_formula_runs_nothing(factor, spy, monkeypatch):
    def forbidden(*_args, **_options):
        raise AssertionError("a formula ran something")

    study_ = three(ROWS)
    study_.glm("y ~ x + C(g)")  # what must be imported is imported
    spy.made.clear()
    for name in ("eval", "exec", "open"):
        monkeypatch.setattr(builtins, name, forbidden)
    try:
        with pytest.raises(ParameterError):
            study_.glm(f"y ~ {factor}")
    finally:
        monkeypatch.undo()
    assert spy.made == []


def test_without_formulaic(monkeypatch):
    monkeypatch.setitem(sys.modules, "formulaic", None)
    with pytest.raises(BackendUnavailableError, match=r"pip install 'securecomp\[models\]'"):
        three(ROWS).glm("y ~ x")


def test_a_site_beyond_what_the_totals_allow_is_named(monkeypatch):
    """A part that no honest site can have is refused before it is sent."""
    from securecomp.statistics.regression import fitting

    own = fitting.Likelihood._own

    def larger(self, part, coordinates, triangle):
        total, gradient, information = own(self, part, coordinates, triangle)
        return total, gradient * 1e9, information

    monkeypatch.setattr(fitting.Likelihood, "_own", larger)
    with pytest.raises(RangeError, match="north: what it computed is not finite, or beyond"):
        Study({"north": ROWS[:300], "south": ROWS[300:]}, protocol=Sharing()).glm("y ~ x")
