"""No two neighbouring data sets differ by more than the noise is planned for: tried out at random.

Cells may be missing, rows dropped, values clipped, groups empty, patients at several sites.
"""

import math
import random

import numpy as np
import pandas as pd
from cases import each_case, some_or_all

from securecomp import Column, Privacy
from securecomp.protocol import sum_protocols as sums
from securecomp.statistics import Count, CrossTable, Histogram, Mean, Sum
from securecomp.statistics.disclosure.suppression import Rule
from securecomp.statistics.schema import Schema
from securecomp.statistics.site_table import Table
from securecomp.statistics.summaries.private_summaries import Noised

COLUMNS = {
    "x": Column(bound=2000, decimals=2),
    "ward": Column(levels=["a", "b"]),
    "one": Column(levels=["u"]),
    "code": Column(levels=[1, 2, 3]),
}
ENDS = [-100, -7, 0, 3, 10, 99.5, 1000, 1001]
VALUES = [-50, -7.25, 0, 3.5, 10, 99, 1e9, 1000, 1001, 1000.5]
PATIENTS = ["p1", "p2", "p3", "p4"]


def row(rng, patient, holes):
    def cell(choices):
        return None if holes and rng.random() < 0.3 else rng.choice(choices)

    return {
        "patient": patient,
        "x": cell(VALUES),
        "ward": cell(["a", "b"]),
        "one": cell(["u"]),
        "code": cell([1, 2, 3]),
    }


def frame(rows):
    names = ("patient", "x", "ward", "one", "code")
    kinds = {name: "float64" if name == "x" else object for name in names}
    return pd.DataFrame({n: pd.Series([r[n] for r in rows], dtype=kinds[n]) for n in names})


def neighbours(rng, unit, relation, sites, holes):
    """Two data sets of two sites that one record, or one patient, is the difference of."""
    start = [
        [row(rng, rng.choice(PATIENTS), holes) for _ in range(rng.randint(1, 6))] for _ in "ab"
    ]
    pair = [[list(rows) for rows in start] for _ in "12"]
    changed = pair[1:] if relation == "add/remove" else pair
    if unit == "record":
        site, place = rng.randint(0, 1), rng.randint(0, 1)
        for data in changed:
            data[site].insert(place, row(rng, "new", holes))
        return pair
    for data in changed:
        for site in rng.sample([0, 1], sites):
            for _ in range(rng.randint(0, 5)):
                place = rng.randint(0, len(data[site]))
                data[site].insert(place, row(rng, "new", holes))
    return pair


def totals(data, terms, question, missing):
    """Each opened block's exact totals, and what the noise is planned for."""
    tables = [Table(f"site {i}", frame(rows)) for i, rows in enumerate(data)]
    names = [table.site for table in tables]
    adds = sums.protocol("sharing")
    noised = Noised(terms, tables, COLUMNS, missing, Rule(0, 1), adds, names, "")
    used = [question.column] if question.column else []
    clipped = [noised._clipping.table(table, used) for table in tables]
    schema = Schema(clipped, noised._clipping.columns)
    measures = list(noised._measures(question, schema))
    found = [
        np.sum([np.array(m.part(t, schema, missing), object) for t in clipped], axis=0)
        for m in measures
    ]
    return found, [noised._change(measure, schema) for measure in measures]


@each_case("missing", ["error", "drop"])
@each_case("relation", ["add/remove", "replace-one"])
@each_case("unit", ["record", "patient"])
@some_or_all("pairs", 24, 240)
def test_no_unit_changes_more_than_is_planned_for(unit, relation, missing, pairs):
    rng = random.Random(f"{unit} {relation} {missing}")  # noqa: S311
    questions = [
        lambda by: Count(None, by),
        lambda by: Sum("x", by),
        lambda by: Mean("x", by),
        lambda by: Histogram("x", by, (0.0, 5.0, 50.0)),
        lambda by: CrossTable(None, by, "ward", "code"),
    ]
    for _ in range(pairs):
        patient = unit == "patient"
        low, high = sorted(rng.sample(ENDS, 2))
        sites = rng.choice([1, 2]) if patient else 1
        terms = Privacy(
            epsilon=1,
            delta=1e-6,
            unit=unit,
            identifier="patient" if patient else None,
            records=rng.choice([1, 2, 3]) if patient else 1,
            sites=sites,
            relation=relation,
            bounds={"x": (low, high)},
        )
        question = rng.choice(questions)(rng.choice([None, "ward", "one", "code"]))
        pair = neighbours(rng, unit, relation, sites, missing == "drop")
        (one, planned), (two, _) = (totals(data, terms, question, missing) for data in pair)
        for before, after, change in zip(one, two, planned, strict=True):
            moved = [abs(int(a) - int(b)) for a, b in zip(before, after, strict=True)]
            assert sum(moved) <= change.l1, question
            assert math.sqrt(sum(m * m for m in moved)) <= change.l2 * (1 + 1e-12), question
            assert not change.one or sum(m > 0 for m in moved) <= 1, question


def test_a_record_may_be_replaced_by_one_that_is_dropped():
    """Values from 1000 to 1001: replaced by another a sum moves by 1, by a missing one by 1001."""
    terms = Privacy(epsilon=1, delta=1e-6, relation="replace-one", bounds={"x": (1000, 1001)})
    data = [[{"patient": "p", "x": 1000, "ward": "a", "one": "u", "code": 1}]] * 2
    _, (change,) = totals(data, terms, Sum("x"), "drop")
    assert change.l1 == 100100
    _, (change,) = totals(data, terms, Sum("x"), "error")
    assert change.l1 == 100
