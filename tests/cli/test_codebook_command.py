"""`securecomp codebook`, and `securecomp stats` with one."""

import json
from pathlib import Path

import pytest
from cases import named

NORTH = "patient,los,sex\n" + "".join(f"n{i},{i % 30 + 1},{'fm'[i % 2]}\n" for i in range(40))
SOUTH = "patient,los,sex\n" + "".join(f"s{i},{i % 25 + 1},{'fm'[i % 2]}\n" for i in range(30))


@pytest.fixture
def book(run, write, folder):
    """Both sites' files, and a codebook that north drafted."""
    write("north.csv", NORTH)
    write("south.csv", SOUTH)
    assert (
        run("codebook", "draft", "north.csv", "-o", "book.json", "--name", "stays").exit_code == 0
    )
    return Path("book.json")


def test_draft_check_and_use(run, stats, book):
    drafted = json.loads(book.read_text())
    assert drafted["name"] == "stays"
    assert set(drafted["columns"]) == {"patient", "los", "sex"}
    for site in ("north.csv", "south.csv"):
        result = run("codebook", "check", "book.json", site)
        assert (result.exit_code, result.stderr) == (0, "")
        assert "follows the codebook" in result.stdout
    report = stats("north.csv", "south.csv", "--mean", "los", "--codebook", "book.json")
    assert report["taken_from_data"] == {}
    assert report["results"][0]["n"] == 70


def test_a_draft_on_the_screen(run, book):
    result = run("codebook", "draft", "south.csv")
    assert json.loads(result.stdout)["version"] == "0"


def test_a_draft_takes_no_file_s_place(run, book):
    result = run("codebook", "draft", "north.csv", "-o", "north.csv")
    assert result.exit_code == 2
    assert "exists already" in result.stderr
    assert Path("north.csv").read_text() == NORTH


def test_a_file_that_does_not_follow_it(run, write, book, made):
    write("south.csv", SOUTH.replace("s3,4,m", "s3,999,x").replace("s5,6,m", "s4,6,m"))
    result = run("codebook", "check", "book.json", "south.csv")
    assert result.exit_code == 1
    assert "error: " in result.stdout
    assert "errors, " in result.stdout
    assert "999" not in result.stdout
    facts = json.loads(run("codebook", "check", "book.json", "south.csv", "--json").stdout)
    assert {f["column"] for f in facts["findings"] if f["severity"] == "error"} >= {"los", "sex"}
    refused = run("stats", "north.csv", "south.csv", "--count", "--codebook", "book.json")
    assert refused.exit_code == 1
    assert refused.stderr.startswith("error: south")
    assert made == []


def test_what_is_no_codebook(run, book):
    for name in ["none.json", "north.csv"]:
        with named(name):
            result = run("codebook", "check", name, "south.csv")
            assert result.exit_code == 1
            assert result.stderr.startswith("error: ")


NUMBER = {"kind": "number", "lower": 0, "upper": 99}


def test_entries_that_would_hang_or_deceive(run, write, book):
    for entry, words in [
        ({**NUMBER, "missing": ["1e300000"]}, "a level or code is beyond any float"),
        ({**NUMBER, "missing": ["-1e-300000"]}, "a level or code is beyond any float"),
        ({**NUMBER, "missing": [10**400]}, "not finite, or beyond"),
        ({**NUMBER, "upper": 10**400}, "not finite, or beyond"),
        ({**NUMBER, "decimals": 23}, "decimals are a number from 0 to 22"),
        ({**NUMBER, "unit": "kg\x1b[2J"}, "text that prints"),
        ({"kind": "category", "levels": {"1e300000": "x", "b": "y"}}, "beyond any float"),
        ({"kind": "category", "levels": {"a\u202e": "x", "b": "y"}}, "text that prints"),
    ]:
        with named(entry, words):
            write("bomb.json", json.dumps({"name": "a", "version": "1", "columns": {"los": entry}}))
            result = run("codebook", "check", "bomb.json", "south.csv")
            assert result.exit_code == 1
            assert words in result.stderr
            assert "\x1b" not in result.stderr


def test_codes_of_missing_that_no_table_has_cost_nothing():
    import pandas as pd

    from securecomp.statistics.site_table import Table

    table = Table("north", pd.DataFrame({"t": [1, 2]}), missing={"t": ("1e300000", "1e-99999")})
    assert table.numbers("t").values.tolist() == [1, 2]


def test_analyses_with_levels_as_a_codebook_writes_them(run, stats, write, folder):
    rows = "drug,died\n" + "0,0\n0,1\n1,0\n1,1\n1,1\n" * 8
    write("north.csv", rows)
    write("south.csv", rows)
    assert run("codebook", "draft", "north.csv", "-o", "b.json").exit_code == 0
    drafted = json.loads(Path("b.json").read_text())
    levels = {"0": "no", "1": "yes"}
    for column in ("drug", "died"):
        drafted["columns"][column] = {"kind": "category", "levels": levels}
    drafted.pop("unique", None)
    Path("b.json").write_text(json.dumps(drafted))
    files = ["north.csv", "south.csv", "--codebook", "b.json"]
    plain = stats("north.csv", "south.csv", "--odds-ratio", "drug", "died")["analyses"][0]
    for options in ([], ["--exposed", "1", "--event", "1"]):
        found = stats(*files, "--odds-ratio", "drug", "died", *options)["analyses"][0]
        assert found["estimate"] == plain["estimate"] == 2
