"""Any small data over any sites: every statistic is the exact pooled one."""

import statistics
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from sites import study

from securecomp import Column
from securecomp.statistics import Count, CrossTable, Histogram, Mean, Sum, Variance

LEVELS = {"g": ["a", "b", "c"], "h": [3, 1]}
LIBRARIES = ("pandas", "polars", "pyarrow")

integers = st.one_of(st.integers(-9, 9), st.integers(-(10**6), 10**6), st.integers(-(2**62), 2**62))
places = st.integers(0, 4)


def numbers(kind, decimals):
    """Cells of one column: int, float or Decimal with so many decimals."""
    if kind == "int":
        return integers
    whole = st.integers(-(10**8), 10**8)
    if kind == "Decimal":
        return whole.map(lambda n: Decimal(n).scaleb(-decimals))
    return whole.map(lambda n: n / 10**decimals)


@st.composite
def worlds(draw):
    """Sites with rows (x, g, h), some cells empty, and a library for each site."""
    kind, decimals = draw(st.sampled_from(["int", "float", "Decimal"])), draw(places)
    cell = numbers(kind, decimals)
    row = st.tuples(
        st.one_of(cell, cell, cell, st.none()),
        st.one_of(st.sampled_from(LEVELS["g"]), st.sampled_from(["a", None])),
        st.sampled_from(LEVELS["h"]),
    )
    sites = draw(st.lists(st.lists(row, max_size=8), min_size=2, max_size=5))
    libraries = [draw(st.sampled_from(LIBRARIES)) for _ in sites]
    edges = sorted(draw(st.sets(st.integers(-1000, 1000), min_size=2, max_size=5)))
    return kind, sites, libraries, tuple(map(float, edges))


def table(library, kind, rows):
    """Rows as a frame with the types that such data have in that library."""
    x, g, h = map(list, zip(*rows, strict=True)) if rows else ([], [], [])
    if library == "pandas":
        dtype = {"int": "Int64", "float": "Float64", "Decimal": "object"}[kind]
        return pd.DataFrame(
            {"x": pd.array(x, dtype), "g": pd.array(g, "string"), "h": pd.array(h, "int64")}
        )
    if library == "polars":
        dtype = {"int": pl.Int64, "float": pl.Float64, "Decimal": pl.Decimal(20, 4)}[kind]
        return pl.DataFrame(
            {"x": x, "g": g, "h": h}, schema={"x": dtype, "g": pl.Categorical, "h": pl.Int8}
        )
    dtype = {"int": pa.int64(), "float": pa.float64(), "Decimal": pa.decimal128(20, 4)}[kind]
    return pa.table(
        {
            "x": pa.array(x, dtype),
            "g": pa.array(g, pa.string()).dictionary_encode(),
            "h": pa.array(h, pa.int32()),
        }
    )


def exactly(cell):
    return Fraction(repr(cell)) if isinstance(cell, float) else Fraction(cell)


def bins(cells, edges):
    """Counts in [a, b), the last one closed, by comparing exact numbers."""
    cells = [Fraction(float(cell)) for cell in cells]
    edges = list(map(Fraction, edges))
    return [sum(a <= c < b or (c == b == edges[-1]) for c in cells) for a, b in pairwise(edges)]


@examples(80)
@given(worlds())
def test_every_statistic_is_the_exact_pooled_one(world):
    check(world)


@pytest.mark.slow
@settings(max_examples=2000)
@given(worlds())
def test_every_statistic_is_the_exact_pooled_one_at_length(world):
    check(world)


def check(world):
    kind, sites, libraries, edges = world
    frames = [table(lib, kind, rows) for lib, rows in zip(libraries, sites, strict=True)]
    columns = {name: Column(levels=levels) for name, levels in LEVELS.items()}
    questions = [
        make(by)
        for by in (None, "g")
        for make in (
            lambda by: Count(None, by),
            lambda by: Sum("x", by),
            lambda by: Mean("x", by),
            lambda by: Variance("x", by),
            lambda by: Histogram("x", by, edges),
            lambda by: CrossTable(None, by, "h", "g"),
        )
    ]
    results = study(*frames, columns=columns, missing="drop", servers=2).run(questions)

    pooled = [row for rows in sites for row in rows]
    for result, question in zip(results, questions, strict=True):
        groups = [None] if question.by is None else LEVELS["g"]
        values = [result.value] if question.by is None else list(result.value.values())
        assert question.by is None or list(result.value) == groups
        for group, row, value in zip(groups, result.rows, values, strict=True):
            rows = [r for r in pooled if group is None or r[1] == group]
            x = [exactly(r[0]) for r in rows if r[0] is not None]
            raw = [r[0] for r in rows if r[0] is not None]
            if isinstance(question, Count):
                assert value == len(rows)
            elif isinstance(question, Sum):
                assert value == (sum(x) if kind == "int" else float(sum(x)))
            elif isinstance(question, Mean):
                assert value == (float(statistics.mean(x)) if x else None)
                assert row["n"] == len(x)
            elif isinstance(question, Variance):
                assert value == (float(statistics.variance(x)) if len(x) > 1 else None)
                assert row["n"] == len(x)
            elif isinstance(question, Histogram):
                assert value == bins(raw, edges)
                assert row["below"] == sum(float(cell) < edges[0] for cell in raw)
                assert row["above"] == sum(float(cell) > edges[-1] for cell in raw)
            else:
                assert value == [
                    [sum((r[2], r[1]) == (h, g) for r in rows) for g in LEVELS["g"]]
                    for h in LEVELS["h"]
                ]
        if kind == "int" and isinstance(question, Count | CrossTable | Histogram):
            assert result.equal


@examples(60)
@given(
    st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=6), min_size=2, max_size=4),
    st.randoms(use_true_random=False),
)
def test_where_a_row_is_does_not_matter(sites, random):
    """The same rows dealt to the sites in another way give the same, to the last bit."""
    values = [cell for rows in sites for cell in rows]
    dealt = [[] for _ in sites]
    for value in values:
        random.choice(dealt).append(value)
    answers = [
        [
            r.value
            for r in study(
                *(pl.DataFrame({"x": rows}, schema={"x": pl.Int64}) for rows in split)
            ).run([Sum("x"), Variance("x"), Count()])
        ]
        for split in (sites, dealt)
    ]
    assert answers[0] == answers[1]
    assert answers[0][0] == sum(values)
    if len(values) > 1:
        assert answers[0][1] == float(statistics.variance(map(Fraction, values)))
