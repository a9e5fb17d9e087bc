"""`securecomp stats --epsilon`: noise, what it promises, and the budget that pays for it."""

import json

import pytest
from cases import named

ROWS = "patient,los,ward\n" + "".join(f"p{i},{i % 20},{'ab'[i % 2]}\n" for i in range(400))
OTHERS = "patient,los,ward\n" + "".join(f"q{i},{i % 30},{'ab'[i % 2]}\n" for i in range(300))
DECLARED = ["--bound", "los=60", "--decimals", "los=0", "--levels", "ward=a,b"]


@pytest.fixture
def files(write):
    return [write("north.csv", ROWS), write("south.csv", OTHERS)]


def test_an_answer_says_what_it_promises(run, stats, files):
    asked = ["--count", "--mean", "los", "--by", "ward", *DECLARED]
    private = ["--epsilon", "2", "--delta", "1e-6", "--clip", "los=0:60"]
    result = run("stats", *files, *asked, *private)
    assert (result.exit_code, result.stderr) == (0, "")
    for words in ("noised", "epsilon", "delta", "add/remove", "record"):
        assert words in result.stdout
    report = stats(*files, *asked, *private)
    row = report["results"][0]
    assert abs(row["value"] - 350) < 100
    assert row["privacy"]["epsilon"] <= 2
    assert report["taken_from_data"] == {}


def test_a_patient_needs_an_identifier(run, files):
    asked = [*files, "--count", "--epsilon", "1", "--delta", "1e-6", "--unit", "patient"]
    assert "identifier" in run("stats", *asked).stderr
    result = run("stats", *asked, "--identifier", "patient")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "patient" in result.stdout


def test_the_budget_pays_until_it_is_empty(run, files, made):
    made.clear()
    create = ["budget", "create", "b.sqlite", "--dataset", "stays", "--epsilon", "1.5"]
    assert run(*create, "--delta", "1e-5").exit_code == 0
    asked = ["--count", "--epsilon", "1", "--delta", "1e-6", "--ledger", "b.sqlite"]
    assert run("stats", *files, *asked).exit_code == 0
    refused = run("stats", *files, *asked)
    assert refused.exit_code == 1
    assert refused.stderr.startswith("error: ")
    shown = json.loads(run("budget", "show", "b.sqlite", "--json").stdout)
    assert "1" in json.dumps(shown)


def test_nothing_is_spent_on_a_question_that_is_refused(run, files, made):
    create = ["budget", "create", "b.sqlite", "--dataset", "stays", "--epsilon", "1.5"]
    run(*create, "--delta", "1e-5")
    before = run("budget", "show", "b.sqlite", "--json").stdout
    private = ["--epsilon", "1", "--delta", "1e-6", "--ledger", "b.sqlite"]
    for asked in (
        ["--count", "--median", "los"],
        ["--count", "--mean", "nothing"],
        ["--mean", "los"],
        ["--count", "--variance", "los"],
    ):
        assert run("stats", *files, *asked, *private).exit_code != 0
    assert run("budget", "show", "b.sqlite", "--json").stdout == before
    assert made == []


def test_terms_that_cannot_be(run, files, made):
    for arguments, words in [
        (["--clip", "los=0:60"], "--clip needs --epsilon"),
        (["--delta", "1e-6"], "--delta needs --epsilon"),
        (["--epsilon", "0", "--delta", "1e-6"], "epsilon must be above 0"),
        (["--epsilon", "-1"], "epsilon"),
        (["--epsilon", "nan"], "epsilon"),
        (["--epsilon", "1"], "delta"),
        (["--epsilon", "1", "--delta", "1e-6", "--clip", "los"], "column=lowest:highest"),
        (["--epsilon", "1", "--delta", "1e-6", "--ledger", "none.sqlite"], "none.sqlite"),
    ]:
        with named(arguments, words):
            result = run("stats", *files, "--count", *arguments)
            assert result.exit_code in (1, 2)
            assert words in result.stderr
            assert made == []
