"""`securecomp codebook`, and `securecomp stats` with one."""

import json
from pathlib import Path

import pytest

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
    assert "is there already" in result.stderr
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


@pytest.mark.parametrize("name", ["none.json", "north.csv"])
def test_what_is_no_codebook(run, book, name):
    result = run("codebook", "check", name, "south.csv")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: ")
