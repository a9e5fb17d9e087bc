"""What the classical analyses share: every protocol, bad sites, what is opened, how they print."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cases import each_case
from sites import NAMES, Spy, frame, study

from securecomp import Study
from securecomp.errors import ParameterError, RangeError, SecureCompError
from securecomp.paillier.encrypted_sum import Paillier
from securecomp.secagg.masked_sum import Masking
from securecomp.sharing.additive_sum import Sharing

RNG = np.random.default_rng(20)
SIZES = (7, 0, 12, 1)


def site(rows):
    group = RNG.integers(0, 2, rows)
    return {
        "age": RNG.integers(20, 90, rows).tolist(),
        "bmi": RNG.normal(25, 4, rows).round(1).tolist(),
        "risk": RNG.random(rows).round(3).tolist(),
        "drug": group.tolist(),
        "died": np.where(RNG.random(rows) < 0.3 + 0.3 * group, 1, 0).tolist(),
        "ward": RNG.choice(["east", "north", "west"], rows).tolist(),
    }


def tables():
    """Frames of three libraries, columns in different orders, one site empty, one of one row."""
    plain = [site(rows) for rows in SIZES]
    kinds = ("pandas", "polars", "pyarrow", "polars")
    return [
        frame(kind, **dict(sorted(columns.items(), reverse=i % 2 == 1)))
        for i, (kind, columns) in enumerate(zip(kinds, plain, strict=True))
    ]


TABLES = tables()

# name: question, its column that is numbers, its column that is categories
QUESTIONS = {
    "covariance": (lambda s: s.covariance(["age", "bmi"]), "age", None),
    "correlation": (lambda s: s.correlation(["age", "bmi", "risk"]), "risk", None),
    "standardisation": (lambda s: s.standardisation(["bmi", "age"]), "bmi", None),
    "Welch": (lambda s: s.t_test("bmi", by="drug"), "bmi", "drug"),
    "Student": (lambda s: s.t_test("bmi", by="drug", equal_variance=True), "bmi", "drug"),
    "one sample": (lambda s: s.t_test("age", mu=50), "age", None),
    "paired": (lambda s: s.t_test("age", paired="bmi"), "bmi", None),
    "anova": (lambda s: s.anova("age", "ward"), "age", "ward"),
    "Welch's anova": (lambda s: s.anova("age", "ward", equal_variance=False), "age", "ward"),
    "chi-square": (lambda s: s.chi_square("ward", "died"), None, "ward"),
    "Fisher": (lambda s: s.fisher("drug", "died"), None, "died"),
    "odds ratio": (lambda s: s.odds_ratio("drug", "died", haldane=True), None, "drug"),
    "relative risk": (lambda s: s.relative_risk("drug", "died", haldane=True), None, "died"),
    "risk difference": (lambda s: s.risk_difference("drug", "died"), None, "died"),
    "Mantel-Haenszel": (
        lambda s: s.mantel_haenszel("drug", "died", homogeneity=True),
        None,
        "died",
    ),
    "Mantel-Haenszel risk": (
        lambda s: s.mantel_haenszel("drug", "died", effect="relative risk"),
        None,
        "drug",
    ),
    "strata": (lambda s: s.mantel_haenszel("drug", "died", "ward"), None, "ward"),
    "roc": (lambda s: s.roc_auc("risk", "died", bins=8), "risk", "died"),
}
SUMS_OF_BINS = 4
PROTOCOLS = [
    Sharing("all"),
    Masking("active"),
    Paillier(bits=512, insecure_for_tests=True),
]


def facts(found):
    """All numbers, without how they were come by."""
    return json.dumps(found.facts())


@pytest.fixture(scope="module")
def answers():
    return {name: ask(study(*TABLES)) for name, (ask, *_) in QUESTIONS.items()}


@each_case("name", QUESTIONS)
@each_case("protocol", PROTOCOLS)
def test_every_protocol_gives_the_same_numbers(protocol, name, answers):
    found = QUESTIONS[name][0](study(*TABLES, protocol=protocol))
    assert facts(found) == facts(answers[name])
    assert found.run.opened == answers[name].run.opened
    assert found.run.sums == answers[name].run.sums
    assert found.run.protocol == protocol.name


@each_case("protocol", PROTOCOLS)
def test_distinct_by_every_protocol(protocol):
    rows = [frame("polars", id=list(range(i, i + 20))) for i in (0, 10, 15)]
    found = study(*rows, protocol=protocol).distinct("id", expected=100, error=0.1)
    assert found.per_site == 60
    assert abs(found.estimate - 35) < 6 * max(found.bse, 1)


@pytest.mark.parametrize("name", QUESTIONS)
def test_how_the_rows_lie_at_sites_does_not_matter(name, answers):
    if name in ("Mantel-Haenszel", "Mantel-Haenszel risk"):
        pytest.skip("the sites are the strata")
    pooled = pd.concat([pl.DataFrame(t).to_pandas() for t in TABLES])
    assert facts(QUESTIONS[name][0](study(pooled[3:], pooled[:3]))) == facts(answers[name])


@each_case("name", QUESTIONS)
def test_what_people_and_machines_read(name, answers):
    found = answers[name]
    text = str(found)
    assert max(map(len, text.splitlines())) <= 100
    assert text.startswith(found.title)
    assert "sharing, 4 sites, 3 servers" in text
    assert json.loads(json.dumps(found.to_json(), allow_nan=False))["analysis"] == found.title
    assert found._repr_html_().count("<table>") == len(found.grids())
    for grid in found.grids():
        assert {len(row) for row in grid.rows} == {len(grid.header)}
    assert found.run.transcript.messages > 0


@each_case("name", QUESTIONS)
def test_messages_are_those_of_its_sums(name, answers):
    """12 shares and 12 sums back for each sum: nothing else is sent."""
    run = answers[name].run
    assert run.transcript.messages == 24 * run.sums
    assert run.transcript.rounds == 2 * run.sums
    assert run.sums == {"Mantel-Haenszel": 2, "roc": SUMS_OF_BINS}.get(name, 1)
    assert len(set(run.opened)) == len(run.opened)


def spoilt(column, cell):
    """A site's rows with one cell that cannot be used, in its second row."""
    rows = pl.DataFrame(TABLES[0]).to_pandas()
    return pa.Table.from_pandas(
        rows.assign(**{column: [rows[column][0], cell, *rows[column][2:]]}), preserve_index=False
    )


NUMBERS = [name for name, (_, number, _) in QUESTIONS.items() if number]
LEVELS = [name for name, (*_, level) in QUESTIONS.items() if level]


def refused(name, bad, monkeypatch):
    spy = Spy(monkeypatch)
    rows = [*TABLES[1:], bad]
    with pytest.raises(SecureCompError) as caught:
        QUESTIONS[name][0](Study(dict(zip(NAMES, rows, strict=False))))
    assert (spy.made, spy.carried) == ([], [])
    return caught.value


@pytest.mark.parametrize("name", NUMBERS)
def test_an_infinite_number(name, monkeypatch):
    error = refused(name, spoilt(QUESTIONS[name][1], float("inf")), monkeypatch)
    assert type(error) is RangeError
    assert f"west: column '{QUESTIONS[name][1]}': row 2 is NaN or infinite; correct it" in str(
        error
    )


@pytest.mark.parametrize("name", NUMBERS)
def test_an_empty_number(name, monkeypatch):
    error = refused(name, spoilt(QUESTIONS[name][1], None), monkeypatch)
    assert type(error) is RangeError
    assert f"west: column '{QUESTIONS[name][1]}': 1 empty or NaN cell" in str(error)
    assert 'missing="drop"' in str(error)


@pytest.mark.parametrize("name", LEVELS)
def test_an_empty_level(name, monkeypatch):
    error = refused(name, spoilt(QUESTIONS[name][2], None), monkeypatch)
    assert type(error) is RangeError
    assert f"west: column '{QUESTIONS[name][2]}': 1 empty or NaN cell" in str(error)


@pytest.mark.parametrize("name", QUESTIONS)
def test_no_such_column(name, monkeypatch):
    _, number, level = QUESTIONS[name]
    bad = pl.DataFrame(TABLES[0]).drop(number or level)
    error = refused(name, bad, monkeypatch)
    assert type(error) is ParameterError
    assert f"west: there is no column '{number or level}'; it has" in str(error)


@pytest.mark.parametrize("name", NUMBERS)
def test_text_among_numbers(name, monkeypatch):
    rows = pl.DataFrame(TABLES[0]).with_columns(pl.lit("patient 987654").alias(QUESTIONS[name][1]))
    error = refused(name, rows, monkeypatch)
    assert "row 1 is text and not a number; correct it" in str(error)
    assert "987654" not in str(error)


@pytest.mark.parametrize("name", QUESTIONS)
def test_rows_with_empty_cells_are_dropped_alike(name):
    """As if a site had removed them itself, for analyses that use all of the columns."""
    _, number, level = QUESTIONS[name]
    if name == "standardisation":
        pytest.skip("each column has rows of its own")
    whole = pl.DataFrame(TABLES[2])
    gaps = pl.Series([i % 3 == 0 for i in range(len(whole))])
    column = number or level
    holes = whole.with_columns(
        pl.when(pl.Series(gaps)).then(None).otherwise(pl.col(column)).alias(column)
    )
    rest = [TABLES[0], pl.DataFrame(TABLES[0])]
    one = QUESTIONS[name][0](study(*rest, holes, missing="drop"))
    other = QUESTIONS[name][0](study(*rest, whole.filter(~gaps), missing="drop"))
    assert facts(one) == facts(other)
