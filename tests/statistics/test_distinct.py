"""Distinct patients over sites: registries of known overlap, errors over seeds, what is seen."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from cases import each_case, some_or_all
from replaying import Replay
from scipy import stats
from sites import Spy, frame, study

from securecomp import Study
from securecomp.core.limbs import HIDING_BITS
from securecomp.errors import ParameterError, RangeError
from securecomp.protocol.local_carrier import LocalCarrier
from securecomp.statistics.adder import Adder
from securecomp.statistics.comparisons import distinct


def registries(*ranges):
    """Sites whose patients have the numbers of a range, some twice."""
    return [
        pd.DataFrame({"patient": [f"NHS {i:06d}" for i in numbers] + [f"NHS {numbers[0]:06d}"]})
        for numbers in ranges
    ]


def seeded(asked, seed):
    asked.carrier = LocalCarrier(Replay(seed))
    return asked


OVERLAPPING = [range(1000), range(800, 1500), range(900, 1100)]


@each_case("protocol", ["sharing", "masking"])
def test_registries_of_known_overlap(protocol):
    asked = seeded(study(*registries(*OVERLAPPING), protocol=protocol), "overlap")
    found = asked.distinct("patient", expected=3000)
    assert found.per_site == 1900  # exact, though some are there twice
    assert abs(found.estimate - 1500) < 4 * found.bse
    assert found.bse < 0.01 * found.estimate
    assert found.overlap == found.per_site - found.estimate


def test_the_error_is_as_stated():
    """Over seeds, of all that happens after hashing: bias, standard deviation and coverage."""
    rng = np.random.default_rng(11)
    cells, width, patients = distinct.bitmap_cells(2000, 0.02), 9, 2000
    entropy, found = Replay("error"), []
    for _ in range(400):
        drawn = np.bincount(rng.integers(0, cells, patients), minlength=cells) > 0
        total = np.zeros(cells, object)
        for bits in (drawn & (rng.random(cells) < 0.7), drawn):  # two sites, one has them all
            total += np.array(distinct.masked(bits, width, entropy), object)
        empty = sum(int(v) % (1 << width) == 0 for v in total)
        found.append(distinct.counted(empty, cells, width))
    estimates, errors = np.array(found).T
    assert abs(estimates.mean() - patients) < 4 * errors.mean() / 20 + 1
    assert estimates.std() == pytest.approx(errors.mean(), rel=0.12)
    assert errors.mean() < 0.021 * patients
    inside = (np.abs(estimates - patients) < 1.96 * errors).mean()
    assert 0.91 < inside < 0.98


def test_over_seeds_through_the_protocol():
    away = []
    for seed in range(25):
        asked = seeded(study(*registries(range(300), range(200, 500))), seed)
        found = asked.distinct("patient", expected=600, error=0.05)
        away.append((found.estimate - 500) / found.bse)
    assert abs(np.mean(away)) < 4 / 5
    assert 0.5 < np.std(away) < 1.6


@each_case("error", [0.3, 0.05, 0.01])
@each_case(
    "ranges",
    [
        (range(300), range(300, 600)),  # nobody at both
        (range(500), range(500), range(500)),  # everybody at all
        (range(400), range(400), range(10)),
        (range(1), range(1, 2)),
    ],
)
@some_or_all("seeds", 4, 24)
def test_an_estimate_is_within_what_is_certain(error, ranges, seeds):
    """No more patients than the sites have, no fewer than one has: no overlap below 0."""
    true = len(set().union(*ranges))
    total, raised, lowered, covered = sum(map(len, ranges)), 0, 0, 0
    for seed in range(seeds):
        found = seeded(study(*registries(*ranges)), f"{seed} {error}").distinct(
            "patient", expected=1500, error=error
        )
        assert total / len(ranges) <= found.low <= found.estimate <= found.high <= total
        assert 0 <= found.overlap_low <= found.overlap <= found.overlap_high
        ends = found.overlap_low + found.high, found.overlap + found.estimate
        assert ends == (total, total)
        assert found.estimate == min(max(found.counted, -(-total // len(ranges))), total)
        raised += found.estimate > found.counted
        lowered += found.estimate < found.counted
        covered += found.low <= true <= found.high
        assert "-" not in str(found).splitlines()[2]
    assert covered >= seeds * 3 / 4
    if true == total > 2:
        assert lowered
    if true == len(ranges[0]) == len(ranges[-1]):
        assert raised


def test_what_was_estimated_is_said():
    asked = study(*registries(range(300), range(300, 600)))
    for seed in range(20):
        found = seeded(asked, seed).distinct("patient", expected=1000, error=0.1)
        if found.counted > found.estimate:
            break
    text = " ".join(str(found).split())
    assert "600.0 are the most that the sites' own numbers allow" in text
    assert "an estimate, not a count, by linear counting" in text
    assert "distinct, about" in text
    assert (found.estimate, found.overlap) == (600, 0)
    assert found.overlap_high > 0


def test_the_same_rows_give_other_bitmaps():
    """The key is drawn for each inquiry."""
    asked = study(*registries(range(100), range(50, 150)))
    assert len({asked.distinct("patient", expected=150).empty for _ in range(5)}) > 1


@each_case("sites", [1, 2, 5])
def test_a_marked_cell_does_not_show_how_many_marked_it(sites):
    cells, width = 20_000, 12
    entropy, bits = Replay(f"{sites} sites"), np.ones(20_000, bool)
    nobody = np.zeros(cells, bool)
    sent = [distinct.masked(bits, width, entropy) for _ in range(sites)]
    sent += [distinct.masked(nobody, width, entropy) for _ in range(5 - sites)]
    total = np.array(sent, object).sum(axis=0)
    counts = np.bincount([int(v) % (1 << width) >> 6 for v in total], minlength=64)
    assert stats.chisquare(counts).pvalue > 1e-4
    # What is above is five random numbers, in marked and in empty cells.
    above = np.array([int(v) >> width for v in total], float) / 2.0**HIDING_BITS
    assert above.mean() == pytest.approx(2.5, abs=0.03)
    assert above.std() == pytest.approx(math.sqrt(5 / 12), rel=0.03)


def test_an_empty_cell_is_empty():
    sent = distinct.masked(np.zeros(1000, bool), 10, Replay("empty"))
    assert all(v % 1024 == 0 for v in sent)
    assert max(sent) < 1 << (10 + HIDING_BITS)


def test_only_the_analyst_hears_the_bitmap(monkeypatch):
    spy = Spy(monkeypatch)
    heard = []
    add = Adder.add

    def spied(adder, *blocks, **options):
        heard.append(options)
        return add(adder, *blocks, **options)

    monkeypatch.setattr(Adder, "add", spied)
    found = study(*registries(*OVERLAPPING)).distinct("patient", expected=3000)
    assert heard == [{"receivers": ("analyst",)}]
    assert {recipient for _, recipient in spy.carried if "server" not in recipient} == {"analyst"}
    assert found.run.sums == 1
    assert len(found.run.opened) == found.cells + 1
    assert found.run.opened[0] == "whether any site marked cell 1"
    assert found.run.opened[-1] == "sum of each site's distinct patient"
    learned = found.run.learned
    assert learned["hospital"].startswith("what is reported here")
    assert "marked by any site" in learned["analyst"]
    text = str(found)
    assert "NHS" not in text
    assert max(map(len, text.splitlines())) <= 100


def test_who_else_hears_it_is_said():
    found = study(*registries(*OVERLAPPING), protocol="masking").distinct("patient", expected=3000)
    assert found.run.learned["server"].startswith("as the analyst: the result")


def test_all_sites_may_compute():
    found = study(*registries(*OVERLAPPING), servers="all").distinct("patient", expected=3000)
    assert abs(found.estimate - 1500) < 6 * found.bse


def test_several_columns_and_kinds():
    north = frame("pandas", name=["Ann", "ann", "Ann "], born=[1950, 1950, None])
    south = frame("polars", born=[1950, 1951, 1950], name=["Ann", "Ann", "ann"])
    asked = seeded(study(north, south, missing="drop"), "kinds")
    found = asked.distinct(["name", "born"], expected=10)
    assert found.per_site == 5
    assert round(found.estimate) == 3  # Ann 1950, ann 1950, Ann 1951
    # Where one column ends and the next begins is part of it.
    north, south = frame("polars", a=["ab"], b=["c"]), frame("polars", a=["a"], b=["bc"])
    assert round(study(north, south).distinct(["a", "b"], expected=10).estimate) == 2


def test_integers_with_a_gap_are_integers():
    north, south = pd.DataFrame({"id": [1.0, None, 7.0]}), pd.DataFrame({"id": [7, 8]})
    found = study(north, south, missing="drop").distinct("id", expected=10)
    assert round(found.estimate) == 3
    assert found.run.from_data == {"kind of id": "integers"}


def test_kinds_that_differ_are_refused(monkeypatch):
    spy = Spy(monkeypatch)
    north, south = frame("polars", id=["007", "8"]), frame("polars", id=[7, 8])
    with pytest.raises(ParameterError, match="'id' identifies patients by different kinds") as e:
        study(north, south).distinct("id", expected=10)
    assert "(text in north, integers in south); write them all as text" in str(e.value)
    assert spy.made == []


def test_empty_sites():
    empty = frame("polars", id=[])
    found = study(empty, empty).distinct("id", expected=10)
    assert (found.estimate, found.per_site, found.low) == (0, 0, 0)
    assert found.run.from_data == {"kind of id": "none"}
    assert found.empty == found.cells
    assert round(study(empty, frame("polars", id=[1, 2])).distinct("id", expected=10).estimate) == 2


def test_a_full_bitmap_is_refused_with_a_remedy():
    with pytest.raises(RangeError, match="more patients than expected: ask again with a larger"):
        study(*registries(*OVERLAPPING)).distinct("patient", expected=50, error=0.2)


@each_case(
    "options, text",
    [
        ({"expected": 0}, "expected is the agreed largest number of patients, not 0"),
        ({"expected": 1e6}, "expected is the agreed largest number"),
        ({"expected": True}, "expected is the agreed largest number"),
        ({"expected": 10, "error": 0}, "error is between 0 and 1"),
        ({"expected": 10, "error": "1%"}, "error is between 0 and 1"),
        ({"expected": 10**9}, "take more than 4194304 cells; allow a larger error"),
        ({"expected": 10, "confidence": 2}, "confidence is between 0 and 1"),
    ],
)
def test_what_cannot_be_asked(options, text):
    with pytest.raises(ParameterError, match=text):
        study(*registries(range(3), range(2))).distinct("patient", **options)


def test_a_site_that_is_named_analyst():
    north, south = registries(range(3), range(2))
    with pytest.raises(ParameterError, match="a site is named 'analyst', as who hears the bitmap"):
        Study({"north": north, "analyst": south}).distinct("patient", expected=5)


def test_columns_that_are_none():
    asked = study(*registries(range(3), range(2)))
    with pytest.raises(ParameterError, match="distinct: column 'patient' is named twice"):
        asked.distinct(["patient", "patient"], expected=5)
    with pytest.raises(ParameterError, match="distinct: name at least 1 column"):
        asked.distinct([], expected=5)
    with pytest.raises(ParameterError, match="north: there is no column 'nhs'"):
        asked.distinct("nhs", expected=5)


@each_case("expected", [1, 50, 1000, 10**5, 10**6])
@each_case("error", [0.01, 0.05, 0.3])
def test_cells_are_as_few_as_the_error_allows(expected, error):
    cells = distinct.bitmap_cells(expected, error)
    load = expected / cells
    assert math.sqrt(cells * (math.exp(load) - load - 1)) <= error * expected * (1 + 1e-6)
    assert distinct._suffices(cells, expected, error)
    assert cells == 1 or not distinct._suffices(cells - 1, expected, error)


@each_case(
    "expected, cells",
    [
        (100, 5034),
        (1000, 5329),
        (10**4, 7960),
        (10**5, 26_729),
        (10**6, 154_171),
        (10**7, 1_096_582),
    ],
)
def test_whangs_table(expected, cells):
    """Whang et al. 1990, table II: cells for an error of 1 %."""
    assert distinct.bitmap_cells(expected, 0.01) == cells


def test_facts():
    found = study(*registries(*OVERLAPPING)).distinct("patient", expected=3000)
    facts = json.loads(json.dumps(found.to_json()))
    assert facts["columns"] == ["patient"]
    assert facts["cells"] == found.cells
    assert found.conf_int() == (found.low, found.high)


def test_more_sites_than_a_mask_has_room_for(monkeypatch):
    monkeypatch.setattr(distinct, "_LEAST_WIDTH", 20)
    spy = Spy(monkeypatch)
    with pytest.raises(RangeError, match="with 2 sites a cell's total has no room for a mask"):
        study(*registries(range(3), range(2))).distinct("patient", expected=5)
    assert spy.made == []
