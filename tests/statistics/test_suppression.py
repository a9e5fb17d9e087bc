"""Small cells: what is suppressed, what an attacker makes of the rest, and what results show."""

import json
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from cases import each_case, examples
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import optimize
from scipy.optimize import linprog
from sites import NAMES, Compared, Spy, frame

from securecomp import Column
from securecomp.errors import ParameterError, ThresholdError
from securecomp.statistics import Count, CrossTable, Histogram, Mean, Sum, Variance
from securecomp.statistics.disclosure.attacker import Attacker, UnknownCounts, cell, within
from securecomp.statistics.disclosure.suppression import Counted, Rule, known, protect


def rows(counts, **more):
    """One column of levels with so many rows each, and other columns as long."""
    levels = [level for level, n in counts.items() for _ in range(n)]
    return pd.DataFrame({"g": levels} | {k: v[: len(levels)] for k, v in more.items()})


def study(*frames, **options):
    return Compared(dict(zip(NAMES, frames, strict=False)), **options)


def halves(data):
    """Two sites that have every second row."""
    return data.iloc[::2], data.iloc[1::2]


def table_rows(table, *names):
    """Rows with the counts of a table; levels are 0, 1, ..."""
    cells = [index for index, n in np.ndenumerate(table) for _ in range(n)]
    return pd.DataFrame(cells, columns=list(names))


def linear(counts, shape, marked, index, sign):
    """The attacker's program, written down again: the cells of a table and its known margins."""
    size = int(np.prod(shape))
    a_eq, b_eq, a_ub, b_ub = [], [], [], []
    for members, (low, high) in marked:
        line = np.zeros(size)
        line[members] = 1
        if low == high:
            a_eq.append(line)
            b_eq.append(low)
            continue
        a_ub.append(-line)
        b_ub.append(-low)
        if np.isfinite(high):
            a_ub.append(line)
            b_ub.append(high)
    line = np.zeros(size)
    line[index] = sign
    limit = int(counts.sum()) + 1000
    found = linprog(
        line,
        A_eq=np.array(a_eq) if a_eq else None,
        b_eq=b_eq or None,
        A_ub=np.array(a_ub) if a_ub else None,
        b_ub=b_ub or None,
        bounds=(0, limit),
        integrality=np.ones(size),
    )
    assert found.status == 0
    return round(found.x[index].sum())


def all_counts(table, shown):
    """A table's cells and margins as `protect` takes them, with their places in the table."""
    classes = {f"c{axis}": size for axis, size in enumerate(table.shape)}
    places = np.arange(table.size).reshape(table.shape)
    found = {}
    for size in range(table.ndim + 1):
        for over in combinations(range(table.ndim), size):
            for index in np.ndindex(*(1 if a in over else n for a, n in enumerate(table.shape))):
                where = {f"c{a}": frozenset([i]) for a, i in enumerate(index) if a not in over}
                chosen = tuple(slice(None) if a in over else i for a, i in enumerate(index))
                one = cell(where, classes)
                counted = Counted(one, int(table[chosen].sum()), size == 0 or shown)
                found.setdefault(one, (counted, np.reshape(places[chosen], -1)))
    space = UnknownCounts(classes, [list(classes)])
    return [c for c, _ in found.values()], [p for _, p in found.values()], space


@st.composite
def tables(draw):
    shape = draw(st.sampled_from([(1, 4), (2, 2), (3, 3), (2, 5), (4, 3), (2, 2, 2), (3, 2, 2)]))
    size = int(np.prod(shape))
    some = st.one_of(st.integers(0, 30), st.integers(0, 3), st.integers(9, 13))
    return np.reshape(draw(st.lists(some, min_size=size, max_size=size)), shape)


@examples(50)
@given(tables(), st.booleans(), st.sampled_from([5, 11]))
# Of these a complementary cell could once be worked out: it was hidden in vain.
@example(np.array([[13, 28, 10, 9, 12], [11, 13, 3, 3, 0]]), False, 11)
@example(np.array([[[9, 10], [0, 22]], [[12, 3], [8, 0]]]), False, 5)
@example(np.array([[[11, 12], [0, 3]], [[13, 0], [2, 21]], [[1, 25], [9, 16]]]), False, 11)
def test_an_attacker_cannot_narrow_a_small_cell(table, margins_shown, least):
    counted, places, space = all_counts(table, margins_shown)
    rule = Rule(least)
    pattern = protect(counted, space, rule)
    marks = pattern.marks
    ranges = known(counted, pattern, rule)
    for c, (low, high) in zip(counted, ranges, strict=True):
        assert low <= c.count <= high
        assert not (rule.small(c.count) and c.cell not in marks)
    if not marks or pattern.everything:
        return
    knows = list(zip(places, ranges, strict=True))
    for c, members in zip(counted, places, strict=True):
        if c.cell not in marks:
            continue
        low = linear(table, table.shape, knows, members, 1)
        high = linear(table, table.shape, knows, members, -1)
        assert low < high
        if rule.small(c.count):  # each count that its mark allows is possible
            assert low <= 1
            assert high >= least - 1


@examples(30)
@given(tables())
def test_no_combination_of_shown_cells_gives_a_small_one(table):
    """Linear algebra alone, whatever the sizes: means and sums follow from no others."""
    counted, places, space = all_counts(table, True)
    pattern = protect(counted, space, Rule())
    shown = [p for c, p in zip(counted, places, strict=True) if c.cell not in pattern.marks]
    empty = {int(i) for p in shown for i in p if table.reshape(-1)[p].sum() == 0}
    lines = np.zeros((len(shown), table.size))
    for line, members in zip(lines, shown, strict=True):
        line[members] = 1
    lines[:, sorted(empty)] = 0  # a zero says all about its parts
    rank = np.linalg.matrix_rank(lines) if shown else 0
    for c, members in zip(counted, places, strict=True):
        if Rule().small(c.count):
            line = np.zeros(table.size)
            line[members] = 1
            line[sorted(empty)] = 0
            assert np.linalg.matrix_rank(np.vstack([lines, line])) == rank + 1


RUNS = [
    Count(None, "g"),
    Sum("y", "g"),
    Mean("y"),
    CrossTable(None, None, "g", "y"),
    Histogram("x", None, (0, 1, 3)),
    Histogram("x", None, (0, 2, 3)),
    Histogram("x", "g", (0, 2, 3)),
    Count(),
]


def shown_cells(result):
    """What a result's rows say, as (groups, ys, xs) of the cell, its value and its mark."""
    s = result.statistic
    every = ((0, 1, 2), (0, 1), (0, 1, 2, 3))
    for place, row in enumerate(result.rows):
        gs = every[0] if s.by is None else (place,)
        marks = row.get("suppressed", {})
        if isinstance(s, CrossTable):
            for a, b in np.ndindex(3, 2):
                mark = marks.get("value", [["", ""]] * 3)[a][b]
                yield ((a,), (b,), every[2]), row["value"][a][b], mark
        elif isinstance(s, Histogram):
            cuts = [
                tuple(range(int(a), int(b))) for a, b in zip(s.edges, s.edges[1:], strict=False)
            ]
            cuts[-1] += (3,)  # the last bin is closed
            for i, xs in enumerate(cuts):
                yield (gs, every[1], xs), row["value"][i], marks.get("value", ["", ""])[i]
        elif isinstance(s, Mean):
            yield (gs, *every[1:]), row["n"], marks.get("n", "")
            shown = "value" not in marks or not marks["value"]
            ones = round((row["value"] or 0) * row["n"]) if shown else None
            yield (gs, (1,), every[2]), ones, marks.get("value", "")
        else:
            ys = (1,) if isinstance(s, Sum) else every[1]
            yield (gs, ys, every[2]), row["value"], marks.get("value", "")


@examples(60)
@given(
    st.lists(st.sampled_from([0, 0, 0, 1, 2, 5, 12, 40]), min_size=24, max_size=24),
    st.lists(st.sampled_from(RUNS), min_size=2, max_size=5, unique=True),
)
def test_all_results_of_a_run_together_give_no_small_cell_away(counts, asked):
    table = np.array(counts).reshape(3, 2, 4)
    levels = Column(levels=[0, 1, 2]), Column(levels=[0, 1], bound=1, decimals=0)
    data = table_rows(table, "g", "y", "x")
    found = study(*halves(data), columns=dict(zip("gy", levels, strict=True))).run(asked)
    places = np.arange(24).reshape(table.shape)
    knows, small = [], []
    for members, value, mark in (one for result in found for one in shown_cells(result)):
        at = places[np.ix_(*members)].reshape(-1)
        count = int(table.reshape(-1)[at].sum())
        ranges = {"": (value, value), "<11": (1, 10), "*": (0, np.inf)}
        knows.append((at, ranges[mark]))
        assert mark or value == count
        if 0 < count < 11:
            assert mark
            small.append(at)
    for group in ([0, 1, 2], [0], [1], [2]):  # the difference of two histograms
        between = places[group, :, 1].reshape(-1)
        if 0 < table.reshape(-1)[between].sum() < 11:
            small.append(between)
    for at in small:
        assert linear(table, table.shape, knows, at, 1) <= 1
        assert linear(table, table.shape, knows, at, -1) >= 10


def test_where_nothing_can_be_chosen_all_goes():
    """What marks and zeros say leaves the small cells of this table no room."""
    table = np.array([[10, 0, 9, 7], [0, 12, 0, 8], [3, 0, 0, 0]])
    counted, _, space = all_counts(table, True)
    pattern = protect(counted, space, Rule())
    assert pattern.everything
    assert set(pattern.marks.values()) == {"*"}
    assert set(known(counted, pattern, Rule())) == {(0, np.inf)}
    assert not protect(counted, space, Rule(1)).marks


def test_the_attackers_interval_is_that_of_an_example():
    """Two rows and two columns with their margins: one unknown."""
    table = np.array([[3, 20], [30, 40]])
    counted, _, space = all_counts(table, True)
    attacker = Attacker(space, [c.cell for c in counted])
    free = [(0, np.inf) if len(c.cell) == 2 else (c.count, c.count) for c in counted]
    assert attacker.interval(free, 0) == (0, 23)
    exact = [(c.count, c.count) for c in counted]
    assert attacker.interval(exact, 0) == (3, 3)
    with pytest.raises(ValueError, match="no counts"):
        attacker.interval([(1, 1), *exact[1:]], 0)


def lies(solve, kind):
    """An optimiser that says one of several wrong things, as its float tolerances might."""

    def answer(*arguments, **options):
        found = solve(*arguments, **options)
        if kind == "nothing found":
            found.x, found.status = None, 4
        elif found.x is not None and kind == "one row too many":
            found.x[0] += 1
        elif found.x is not None and kind == "less than no row":
            found.x[:2] += (-30, 30)
        elif found.x is not None and kind == "all rows anywhere":
            found.x = np.full_like(found.x, 7)
        elif found.x is not None and kind == "right within its tolerance":
            found.x = found.x + 1e-9
        return found

    return answer


def test_an_optimisers_answer_is_verified(monkeypatch):
    """What it says is a proof only if the counts are as all that is known says."""
    table = np.array([[3, 20, 15], [30, 40, 2], [12, 0, 11]])
    counted, _, space = all_counts(table, True)
    right = protect(counted, space, Rule())
    assert right.marks
    assert not right.everything
    least_seen = [c.cell for c in counted[:4]]
    differences = {c.cell: c for c in counted}
    solve = optimize.milp
    for kind in ("nothing found", "one row too many", "less than no row", "all rows anywhere"):
        monkeypatch.setattr(optimize, "milp", lies(solve, kind))
        assert protect(counted, space, Rule()).everything, kind
        # Whether a difference is given away is not known then either, and it counts as if it were.
        margins = [differences[c] for c in differences if c not in least_seen]
        plain = [c for c in margins if not Rule().small(c.count)]
        assert protect(plain, space, Rule(), least_seen).everything, kind
    monkeypatch.setattr(optimize, "milp", lies(solve, "less than no row"))
    whole = Attacker(UnknownCounts({"a": 2}, ["a"]), [()])
    assert whole.move([(5, 5)], 0, (5, 5)) is None
    monkeypatch.setattr(optimize, "milp", lies(solve, "right within its tolerance"))
    assert whole.move([(5, 5)], 0, (5, 5)).tolist() == [5]
    assert protect(counted, space, Rule()).marks == right.marks


def test_unknowns_are_tables_of_columns_that_belong_together():
    classes = {"a": 2, "b": 3, "c": 4, "d": 5}
    chain = UnknownCounts(classes, ["ab", "bc", "d"])
    assert sorted(chain.cliques) == [("a", "b"), ("b", "c"), ("d",)]
    assert chain.size == 6 + 12 + 5
    assert len(chain.ties()) == 3 + 1  # each level of b, and all rows
    # Pairwise margins of three columns say more together than pair by pair.
    assert UnknownCounts(classes, ["ab", "bc", "ca"]).cliques[0] == ("a", "b", "c")
    assert UnknownCounts({}, [""]).size == 1


def test_a_cell_within_another():
    classes = {"a": 3, "b": 2}
    all_rows = cell({"a": frozenset(range(3))}, classes)
    one = cell({"a": frozenset([1])}, classes)
    corner = cell({"a": frozenset([1]), "b": frozenset([0])}, classes)
    assert all_rows == ()
    assert within(corner, one)
    assert within(one, all_rows)
    assert not within(one, corner)


class TestRule:
    @each_case(
        "options, words",
        [
            ({"minimum_count": -1}, "minimum_count is a whole number from 0 on, not -1"),
            ({"minimum_count": 2.5}, "minimum_count is a whole number"),
            ({"minimum_count": True}, "minimum_count is a whole number"),
            ({"minimum_sites": 0}, "minimum_sites is a whole number from 1 on, not 0"),
        ],
    )
    def test_bad(self, options, words):
        with pytest.raises(ParameterError, match=words):
            study(rows({"a": 3}), rows({"a": 3}), **options)

    def test_more_sites_than_there_are(self):
        with pytest.raises(ThresholdError, match="minimum_sites"):
            study(rows({"a": 3}), rows({"a": 3}), minimum_sites=3)

    @each_case("protocol", ["sharing", "masking", "paillier"])
    def test_it_is_the_total_that_counts(self, protocol):
        sites = rows({"a": 3, "b": 40}), rows({"a": 9, "b": 2}), rows({"b": 7})
        assert study(*sites, protocol=protocol).count(by="g").value == {"a": 12, "b": 49}

    @each_case("count", [0, 1, 10, 11, 12])
    def test_the_default_is_that_of_cms(self, count):
        data = rows({"a": 50, "b": count, "c": 60})
        levels = pd.DataFrame({"g": ["a", "b", "c"] * 20, "h": ["x"] * 60})
        found = study(pd.concat([data]), levels.iloc[:0], levels.iloc[:0])
        assert found.rule.minimum_count == 11
        result = found.count(by="g")
        if count:
            shown = result.value["b"]
            assert shown == (None if count < 11 else count)
            assert (result.value["a"] is None) == (count < 11)
            assert result.value["c"] == 60

    def test_no_rule_opens_no_more(self):
        sites = halves(rows({"a": 3, "b": 2}, x=[1, 2, 3, 4, 5]))
        bare = study(*sites, minimum_count=0).sum("x", by="g")
        assert bare.value == {"a": 6, "b": 9}
        assert bare.run.opened == ("sum of x g=a", "sum of x g=b")
        assert "suppressed" not in bare.rows[0]
        assert study(*sites, minimum_count=1).sum("x", by="g").value == bare.value

    def test_a_sum_opens_the_rows_behind_it(self):
        data = rows({"a": 30, "b": 40}, x=list(range(70)))
        assert study(*halves(data)).sum("x", by="g").run.opened == (
            *("sum of x g=a", "sum of x g=b"),
            *("rows g=a", "rows g=b"),
        )


class TestStatistics:
    DATA = rows(
        {"a": 40, "b": 25, "c": 5, "d": 60}, x=[i * 7 % 50 for i in range(130)], flag=[0, 1] * 65
    )

    def test_groups(self):
        count, mean, variance, total = study(*halves(self.DATA)).run(
            [Count(None, "g"), Mean("x", "g"), Variance("x", "g"), Sum("x", "g")]
        )
        exact = self.DATA.groupby("g")["x"].mean()
        assert count.value == {"a": 40, "b": None, "c": None, "d": 60}
        assert mean.value == pytest.approx({"a": exact["a"], "b": None, "c": None, "d": exact["d"]})
        assert [row["n"] for row in mean.rows] == [40, None, None, 60]
        assert [row["sd"] is None for row in variance.rows] == [False, True, True, False]
        assert [v is None for v in total.value.values()] == [False, True, True, False]
        assert mean.rows[2]["suppressed"] == {"value": "*", "n": "<11"}
        assert variance.rows[1]["suppressed"] == {"value": "*", "sd": "*", "n": "*"}

    @each_case("question", [Count(None, "g"), Mean("x", "g"), Histogram("x", "g", (0, 25, 50))])
    def test_a_total_of_the_same_run_does_not_give_a_group_away(self, question):
        whole, groups = study(*halves(self.DATA)).run([Sum("x"), question])
        assert whole.value == self.DATA["x"].sum()
        shown = {row["group"]: "suppressed" not in row for row in groups.rows}
        assert not shown["c"]
        assert sum(not there for there in shown.values()) >= 2

    def test_ungrouped(self):
        few = halves(rows({"a": 7}, x=range(7)))
        asked = [Count(), Mean("x"), Variance("x"), Sum("x"), Histogram("x", None, (0, 3, 7))]
        for result in study(*few).run(asked):
            shown = json.dumps(result.to_json())
            assert '"value": null' in shown or '"value": [null, null]' in shown
            assert result.equal

    def test_sums_of_zeros_and_ones_are_counts(self):
        data = rows({"a": 40, "b": 40, "c": 40}, y=[1] * 3 + [0] * 37 + ([1] * 20 + [0] * 20) * 2)
        total, mean = study(*halves(data)).run([Sum("y", "g"), Mean("y", "g")])
        assert total.value["a"] is None
        assert total.rows[0]["suppressed"] == {"value": "<11"}
        assert mean.rows[0]["suppressed"] == {"value": "*", "n": ""}
        assert mean.rows[0]["n"] == 40
        assert sum(v is None for v in total.value.values()) == 2  # all deaths may be known

    def test_few_without_are_few_too(self):
        data = rows({"a": 40, "b": 40, "c": 40}, y=[1] * 37 + [0] * 3 + ([1] * 20 + [0] * 20) * 2)
        assert study(*halves(data)).mean("y", by="g").value["a"] is None

    def test_a_cross_table_and_sums_of_the_same_column(self):
        data = rows({"a": 40, "b": 40, "c": 40}, y=[1] * 3 + [0] * 37 + ([1] * 20 + [0] * 20) * 2)
        total, cross = study(*halves(data)).run([Sum("y", "g"), CrossTable(None, None, "g", "y")])
        by_sum = [v is None for v in total.value.values()]
        assert by_sum == [line[1] is None for line in cross.value]

    def test_values_that_are_not_flags(self):
        data = rows({"a": 40, "b": 40}, y=[-1, 1] * 40)
        assert study(*halves(data)).sum("y", by="g").value == {"a": 0, "b": 0}

    def test_a_small_groups_parts_are_not_shown_at_all(self):
        """That none of five died says it of each."""
        table = np.array([[5, 0], [40, 30], [60, 25]])
        found = study(*halves(table_rows(table, "g", "y"))).crosstab("g", "y")
        assert found.rows[0]["suppressed"]["value"][0] == ["*", "*"]

    def test_histogram_below_and_above(self):
        x = [-1] * 4 + [1] * 30 + [3] * 40 + [9] * 15
        found = study(*halves(rows({"a": len(x)}, x=x))).histogram("x", [0, 2, 4])
        (row,) = found.rows
        assert (row["below"], row["above"], row["value"]) == (None, 15, [None, 40])
        # 15 is too near to the minimum: that it is at least 11 would say that below are at most 8.
        assert row["suppressed"] == {"value": ["*", ""], "below": "<11", "above": ""}
        assert found.equal

    def test_two_histograms_whose_edges_differ(self):
        """Rows from 20 to 21 are the difference of two bins that are large."""
        x = list(range(60)) * 2
        data = rows({"a": 120}, x=x)
        asked = [Histogram("x", None, (0, 20, 60)), Histogram("x", None, (0, 21, 60))]
        one, two = study(*halves(data)).run(asked)
        assert None in [*one.value, *two.value]
        alone = study(*halves(data)).run(asked[:1])[0]
        assert alone.value == [40, 80]
        same = study(*halves(data)).run([asked[0], Histogram("x", None, (0, 40, 60))])
        assert [r.value for r in same] == [[40, 80], [80, 40]]

    @each_case("after", [14, 15, 16, 17])
    def test_a_difference_of_histograms_may_be_all_that_a_small_count_may_be(self, after):
        """Five rows from 20 to 21. With the second histogram hidden alone, there are at most so
        many as the rows from 20 on less 11, which the mark "*" says that the last bin has."""
        x = [1] * 40 + [20] * 5 + [30] * after
        table = np.array([40, 5, after])
        asked = [Histogram("x", None, (0, 20, 60)), Histogram("x", None, (0, 21, 60))]
        knows = [([0, 1, 2], (45 + after, 45 + after))]
        for result, cut in zip(
            study(*halves(rows({"a": len(x)}, x=x))).run(asked), (1, 2), strict=True
        ):
            for members, value in zip(
                ([0, 1, 2][:cut], [0, 1, 2][cut:]), result.value, strict=True
            ):
                knows.append((members, (11, np.inf) if value is None else (value, value)))
        assert linear(table, table.shape, knows, [1], 1) <= 1
        assert linear(table, table.shape, knows, [1], -1) >= 10

    def test_a_cell_of_the_minimum_itself_may_be_hidden_for_another(self):
        data = rows({"a": 10, "b": 11, "c": 60})
        assert study(*halves(data)).count(by="g").value == {"a": None, "b": None, "c": 60}

    def test_rows_without_a_value_are_a_difference(self):
        x = [float(i % 50) for i in range(97)] + [np.nan] * 3
        data = rows({"a": 100}, x=x)
        both = study(*halves(data), missing="drop").run([Count(), Mean("x")])
        assert None in [both[0].value, both[1].rows[0]["n"]]
        assert study(*halves(data), missing="drop").mean("x").rows[0]["n"] == 97

    def test_levels_and_bins_of_one_column(self):
        table = rows({"a": 3, "b": 50}, y=[1] * 3 + [1] * 20 + [2] * 30)
        bins, levels = study(*halves(table)).run(
            [Histogram("y", None, (1, 2, 3)), CrossTable(None, None, "g", "y")]
        )
        assert bins.value == [23, 30]
        assert levels.value[1] != [20, 30]

    def test_levels_that_are_text_and_a_number_column_without_parts(self):
        data = rows({"a": 40, "b": 40}, y=["1", "2"] * 40, x=[0] * 80)
        asked = [
            CrossTable(None, None, "g", "y"),
            Mean("x"),
            Sum("x", "y"),
            Histogram("x", None, (0, 1)),
        ]
        found = study(*halves(data)).run(asked)
        assert [r.value for r in found] == [[[20, 20], [20, 20]], 0.0, {"1": 0, "2": 0}, [80]]

    def test_one_column_twice(self):
        found = study(*halves(rows({"a": 40, "b": 3, "c": 20}))).crosstab("g", "g")
        assert found.value[0] == [40, 0, 0]
        assert found.value[1][1] is None

    def test_empty_sites_and_no_rows(self):
        data = rows({"a": 12, "b": 3})
        found = study(data, data.iloc[:0]).count(by="g")
        assert found.value == {"a": None, "b": None}
        assert "do not publish totals beside this" in str(found)
        assert study(data.iloc[:0], data.iloc[:0]).count().value == 0

    @each_case("library", ["pandas", "polars", "pyarrow"])
    def test_frames(self, library):
        part = {"g": ["a"] * 3 + ["b"] * 30 + ["c"] * 40}
        found = study(frame(library, **part), frame(library, g=["c"])).count(by="g")
        assert found.value == {"a": None, "b": None, "c": 41}


class TestSites:
    def test_a_cell_of_one_site(self):
        sites = rows({"a": 40, "b": 30, "c": 50}), rows({"a": 20, "c": 50}), rows({"c": 30})
        found = study(*sites, minimum_sites=2).count(by="g")
        assert found.value == {"a": None, "b": None, "c": 130}
        assert found.rows[1]["suppressed"] == {"value": "*"}
        assert found.run.opened == (
            *("rows g=a", "rows g=b", "rows g=c"),
            *("sites with rows g=a", "sites with rows g=b", "sites with rows g=c"),
        )
        assert "fewer than 2 sites" in str(found)
        assert study(*sites[:2], minimum_sites=2).count(by="g").value["a"] is None

    @each_case("beside, enough", [(21, False), (22, True)])
    def test_a_cell_of_one_site_may_be_a_minimum_larger_and_smaller(self, beside, enough):
        """Of 40 at least 11 up and down: a cell beside it that is still 11 must have these."""
        sites = (
            rows({"a": 40, "b": 10, "c": 500}),
            rows({"b": beside - 10, "c": 500}),
        )
        found = study(*sites, minimum_sites=2).count(by="g").value
        assert found == (
            {"a": None, "b": None, "c": 1000} if enough else {"a": None, "b": beside, "c": None}
        )

    def test_a_total_that_is_one_sites(self):
        empty = rows({"a": 1}).iloc[:0]
        found = study(rows({"a": 500}), empty, minimum_sites=2, minimum_count=0)
        assert found.count().value is None

    def test_flags_of_one_site(self):
        one = rows({"a": 60}, y=[1] * 30 + [0] * 30)
        two = rows({"a": 60}, y=[0] * 60)
        data = study(one, two, minimum_sites=2)
        assert data.sum("y").value is None
        assert data.mean("y").rows[0]["n"] == 120


@pytest.fixture(scope="module")
def results():
    data = rows({"a": 140, "b": 125, "c": 7}, y=["u", "v"] * 140)
    asked = [Count(None, "g"), CrossTable(None, None, "g", "y"), Count()]
    return study(*halves(data)).run(asked)


class TestShown:
    def test_text(self, results):
        lines = str(results[0]).splitlines()
        assert [line.split() for line in lines[2:5]] == [["a", "140"], ["b", "*"], ["c", "<11"]]
        assert max(map(len, lines)) <= 100
        html = results[0]._repr_html_()
        assert "<td>&lt;11</td>" in html

    def test_json(self, results):
        found = results[0].to_json()
        assert found[2] == {
            "statistic": "count",
            "column": None,
            "by": "g",
            "group": "c",
            "suppressed": {"value": "<11"},
            "value": None,
        }
        assert "suppressed" not in found[0]

    @each_case("library", ["pandas", "polars", "pyarrow"])
    def test_frames(self, results, library):
        found = results[0].to_frame(library)
        columns = getattr(found, "column_names", None) or list(found.columns)
        assert columns == ["g", "value", "suppressed"]
        assert [r["suppressed"] for r in results[0].records()] == ["", "*", "<11"]
        assert [r["count"] for r in results[1].records()].count(None) >= 2

    def test_plaintext_is_hidden_where_the_result_is(self, results):
        assert results[0].plaintext == (140, None, None)
        for result in results:
            assert result.equal
            values = [row["value"] for row in result.rows]
            assert list(result.plaintext) == values


def test_questions_that_tell_too_much_apart(monkeypatch):
    spy = Spy(monkeypatch)
    wide = pd.DataFrame({"g": range(300), "h": range(300), "x": [1.0] * 300})
    asked = [CrossTable(None, None, "g", "h"), Count()]
    with pytest.raises(ParameterError, match="one by one"):
        study(wide, wide).run(asked)
    assert not spy.made
    whole = study(wide, wide).crosstab("g", "h")
    assert all(v is None for line in whole.value for v in line)
    assert "all counts are suppressed" in str(whole)
