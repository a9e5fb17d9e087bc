"""The site with the most: its name, and nothing else."""

import pytest
from cases import each_case
from sites import NAMES, Spy, frame, study

from securecomp import Column
from securecomp.errors import ParameterError, RangeError

TABLES = [
    frame("pandas", x=[1.5, 2.5, 9.0]),
    frame("polars", x=[-4.0, 7.5]),
    frame("pyarrow", x=[]),
    frame("polars", x=[4.5]),
    frame("pandas", x=[0.5] * 5),
]
ENGINES = ["replicated", "dealer", "mac"]


@each_case("engine", ENGINES)
def test_the_largest_and_the_smallest(engine):
    sites = study(*TABLES)
    assert sites.winner("x", engine=engine).value == "west"
    assert sites.winner("x", smallest=True, engine=engine).value == "centre"
    assert sites.winner("x", of="sum", engine=engine).value == "north"
    assert sites.winner("x", of="sum", smallest=True, engine=engine).value == "east"
    assert sites.winner(None, of="count", engine=engine).value == "centre"


def test_of_equal_ones_the_first():
    same = [frame("polars", x=[3, 5]), frame("polars", x=[4]), frame("polars", x=[4, 4])]
    for smallest in (False, True):
        assert study(*same).winner("x", smallest=smallest).value == "north"
    assert study(*same).winner("x", of="sum").value == "north"


def test_means_that_differ_by_little():
    """Above the stated grid they differ; a mean of thirds is rounded to nearest."""
    near = [frame("polars", x=[0] * 2), frame("polars", x=[1] + [0] * 999), TABLES[2]]
    assert study(*near).winner("x").value == "south"
    assert study(*near).winner("x", smallest=True).value == "north"
    negative = [frame("polars", x=[-1, 0, 0]), frame("polars", x=[-1, -1, 0])]
    assert study(*negative).winner("x").value == "north"


def test_nobody_has_rows():
    empty = [frame("polars", x=[]), frame("polars", x=[])]
    assert study(*empty, columns={"x": Column(5, 0)}).winner("x").value is None
    assert study(*empty, columns={"x": Column(5, 0)}).winner("x", of="sum").value == "north"


@each_case("sign", [1, -1])
def test_at_the_bound(sign):
    sites = study(
        frame("polars", x=[sign * 5]), frame("polars", x=[sign * 4]), columns={"x": Column(5, 0)}
    )
    assert sites.winner("x").value == ("north" if sign > 0 else "south")
    assert sites.winner("x", smallest=True).value == ("south" if sign > 0 else "north")


def test_only_the_name_is_opened():
    found = study(*TABLES).winner("x")
    assert (found.run.opened, found.run.sums) == ((), 0)
    assert "nothing but the name was opened" in str(found)
    assert found.to_json()["site"] == found.site in NAMES


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda s: s.winner("x", of="median"), ParameterError, '"mean", "sum" or "count"'),
        (lambda s: s.winner(None), ParameterError, "name a column"),
        (lambda s: s.winner("x", of="count"), ParameterError, "None for a count"),
        (lambda s: s.winner("z"), ParameterError, "there is no column 'z'"),
    ],
)
def test_bad_questions(monkeypatch, ask, error, words):
    spy = Spy(monkeypatch)
    with pytest.raises(error, match=words):
        ask(study(*TABLES))
    assert not spy.carried


def test_no_room():
    wide = study(*TABLES, columns={"x": Column(2**50, 1)})
    with pytest.raises(RangeError, match="its mean is too wide"):
        wide.winner("x")
