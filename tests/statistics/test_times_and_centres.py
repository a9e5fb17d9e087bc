"""Times that floats write oddly, and covariates far from zero."""

import numpy as np
import pandas as pd
import pytest
from cases import each_case
from sites import study
from statsmodels.duration.hazard_regression import PHReg

from securecomp import Column
from securecomp.errors import RangeError

TIMES = [0.1, 0.2, 0.3, 0.4, 0.5]


def halves(rows):
    return rows.iloc[::2], rows.iloc[1::2]


def survivors(times):
    """Rows with these times, as they are written, and every other one an event."""
    return pd.DataFrame(
        {"t": times, "d": [1, 0] * (len(times) // 2), "g": list("ab") * (len(times) // 2)}
    )


def test_three_tenths_are_three_tenths_however_they_were_computed():
    """0.1 + 0.2 and 0.3 are one time; 0.7 - 0.2 and 0.5 too."""
    odd = [0.1 + 0.2, 0.3, 0.7 - 0.2, 0.5, 0.1, 0.4 + 1e-17, 0.2, 0.30000000000000004] * 4
    plain = [0.3, 0.3, 0.5, 0.5, 0.1, 0.4, 0.2, 0.3] * 4
    one, other = (
        study(*halves(survivors(t))).kaplan_meier("t", "d", times=TIMES) for t in (odd, plain)
    )
    assert one.to_json() == other.to_json()
    assert one.rounded == 0
    one, other = (
        study(*halves(survivors(t))).logrank("t", "d", "g", times=TIMES) for t in (odd, plain)
    )
    assert one.to_json() == other.to_json()


def test_a_time_between_two_of_the_grid_is_still_rounded_up():
    for time, rounded in ((0.31, 8), (0.3 * (1 + 2e-9), 8), (0.3 * (1 + 5e-10), 0)):
        found = study(*halves(survivors([time, 0.3] * 8))).kaplan_meier("t", "d", times=TIMES)
        assert found.rounded == rounded, time


def test_the_last_time_is_on_the_grid():
    """An event at the end of the grid, written a little beyond it, counts."""
    rows = survivors([0.1 + 0.2, 0.2] * 10)
    found = study(*halves(rows)).kaplan_meier("t", "d", times=[0.1, 0.2, 0.3])
    assert sum(curve.events.sum() for curve in found.curves.values()) == 10


def test_declared_decimals_are_enforced_on_a_given_grid():
    columns = {"t": Column(decimals=1)}
    rows = survivors([0.25, 0.3] * 8)
    with pytest.raises(RangeError, match="row 1"):
        study(*halves(rows), columns=columns).kaplan_meier("t", "d", times=TIMES)
    beyond = study(*halves(survivors([0.2, 9.0] * 8)), columns={"t": Column(bound=1, decimals=1)})
    with pytest.raises(RangeError, match="beyond the agreed bound"):
        beyond.kaplan_meier("t", "d", times=TIMES)


def patients():
    n = np.arange(240)
    return pd.DataFrame(
        {
            "days": 1 + n * 37 % 60,
            "died": (n * 7 % 11 < 6).astype(int),
            "year": 2005 + n * 13 % 17,
            "dose": n * 5 % 9,
        }
    )


def test_a_calendar_year_is_fitted_as_the_years_since_2005_are():
    rows = patients()
    far = study(*halves(rows)).cox("days", "died", ["year", "dose"])
    near = study(*halves(rows.assign(year=rows["year"] - 2005))).cox(
        "days", "died", ["year", "dose"]
    )
    assert far.params == pytest.approx(near.params, rel=1e-6)
    assert far.bse == pytest.approx(near.bse, rel=1e-6)
    truth = PHReg(rows["days"], rows[["year", "dose"]], status=rows["died"], ties="efron").fit()
    assert far.params == pytest.approx(truth.params, rel=1e-4)
    assert any("further than" in name for name in far.run.opened)
    assert not any("further than" in name for name in near.run.opened)


@each_case("shift", [1e5, 1e7])
def test_further_still(shift):
    rows = patients()
    far = study(*halves(rows.assign(year=rows["year"] + shift))).cox("days", "died", ["year"])
    near = study(*halves(rows.assign(year=rows["year"] - 2005))).cox("days", "died", ["year"])
    assert far.params == pytest.approx(near.params, rel=1e-6)


def test_a_constant_far_from_zero_is_named():
    with pytest.raises(RangeError, match="'year' is the same for all rows"):
        study(*halves(patients().assign(year=2015))).cox("days", "died", ["year"])
