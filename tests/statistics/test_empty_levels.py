"""Levels that no row has: left out of a regression, and said."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from cases import each_case
from sites import study

from securecomp import Column
from securecomp.errors import RangeError

LEVELS = {"g": Column(levels=["a", "b", "c", "d"]), "h": Column(levels=["x", "y"])}


def rows(levels="abc"):
    n = np.arange(120)
    return pd.DataFrame(
        {
            "y": (n * 7 % 11 + n % 3).astype(float),
            "died": (n * 5 % 7 < 3).astype(int),
            "x": n % 13,
            "g": np.array(list(levels))[n % len(levels)],
            "h": np.where(n // 4 % 2, "x", "y"),
        }
    )


def fit(data, formula, family="linear"):
    return study(data.iloc[::2], data.iloc[1::2], columns=LEVELS).glm(formula, family)


def truth(data, formula):
    return smf.ols(formula, data).fit()


def test_a_level_without_rows_is_left_out_as_statsmodels_does():
    data = rows()
    found, wanted = fit(data, "y ~ x + C(g)"), truth(data, "y ~ x + C(g)")
    assert set(found.names) == set(wanted.params.index)
    assert found.params == pytest.approx(wanted.params[list(found.names)].to_numpy())
    assert found.bse == pytest.approx(wanted.bse[list(found.names)].to_numpy())
    assert "left out, because no row has them: C(g)[T.d]" in found.remarks()
    assert found.predict(data.head()) == pytest.approx(wanted.predict(data.head()).to_numpy())
    with pytest.raises(RangeError, match="row 2 has a level that no row of the fit had"):
        found.predict(data.head().assign(g=["a", "d", "a", "b", "c"]))


def test_a_reference_without_rows_gives_way():
    data = rows("bcd")
    found = fit(data, "y ~ x + C(g)")
    wanted = truth(data, "y ~ x + C(g)")  # whose reference is the first level that occurs
    assert found.params == pytest.approx(wanted.params[list(found.names)].to_numpy())
    assert "C(g)[a] has no rows: C(g)[T.b] is the reference instead" in found.remarks()
    assert found.predict(data.head()) == pytest.approx(wanted.predict(data.head()).to_numpy())
    with pytest.raises(RangeError, match="row 1 has a level that no row of the fit had"):
        found.predict(data.head().assign(g="a"))


def test_an_empty_cell_of_an_interaction():
    data = rows()
    data = data[~((data["g"] == "c") & (data["h"] == "y"))]
    found = fit(data, "y ~ C(g) * C(h) + x")
    assert any("C(g)[T.d]:C(h)" in remark for remark in found.remarks())
    linear = np.linalg.lstsq(
        pd.get_dummies(data["g"] + data["h"]).assign(x=data["x"]).to_numpy(float),
        data["y"].to_numpy(),
        rcond=None,
    )
    assert found.deviance == pytest.approx(float(linear[1][0]))


CROSSED = [
    "y ~ C(g) * C(h) + x",
    "y ~ C(h) / C(g) + x",
    "y ~ C(g) * x",
    "y ~ C(g) * C(h) * x",
    "y ~ C(h) + C(g) * x - 1",
    "y ~ C(g, Treatment('b')) * C(h)",
    "y ~ C(g) : C(h) - 1",
]


@pytest.mark.filterwarnings("ignore:The design matrix is rank-deficient")
@each_case("formula", CROSSED)
@each_case("empty", ["ax", "ay", "cx", "axcy", "axaycx", "bxby"])
def test_empty_cells_of_a_cross_table_wherever_they_are(formula, empty):
    """A reference's cell has no column of its own, and makes one a combination of others."""
    data = rows()
    cells = [empty[i : i + 2] for i in range(0, len(empty), 2)]
    if "Treatment" in formula and "bxby" in empty:
        return  # statsmodels knows no reference without rows
    data = data[~(data["g"] + data["h"]).isin(cells)]
    found, wanted = fit(data, formula), truth(data, formula)
    assert found.deviance == pytest.approx(wanted.ssr, rel=1e-9)
    assert len(found.params) == np.linalg.matrix_rank(wanted.model.exog)
    assert found.predict(data) == pytest.approx(wanted.predict(data).to_numpy())


@each_case("empty", ["ay", "cx", "axaycx"])
def test_what_was_never_seen_is_not_predicted(empty):
    data = rows()
    cells = [empty[i : i + 2] for i in range(0, len(empty), 2)]
    found = fit(data[~(data["g"] + data["h"]).isin(cells)], "y ~ C(g) * C(h) + x")
    for cell in (g + h for g in "abcd" for h in "xy"):
        row = data.head(1).assign(g=cell[0], h=cell[1])
        if cell in cells or "d" in cell:
            with pytest.raises(RangeError, match="row 1 has a level that no row of the fit had"):
                found.predict(row)
        else:
            assert np.isfinite(found.predict(row)).all()


def test_a_level_whose_rows_are_all_incomplete():
    data = rows("abcd")
    data.loc[data["g"] == "d", "x"] = np.nan
    asked = study(data.iloc[::2], data.iloc[1::2], columns=LEVELS, missing="drop")
    found = asked.glm("y ~ x + C(g)", "linear")
    wanted = truth(data.dropna(), "y ~ x + C(g)")
    assert found.params == pytest.approx(wanted.params[list(found.names)].to_numpy())


def test_logistic_too():
    data = rows()
    found = fit(data, "died ~ x + C(g)", "logistic")
    wanted = smf.logit("died ~ x + C(g)", data).fit(disp=0)
    assert found.params == pytest.approx(wanted.params[list(found.names)].to_numpy(), rel=1e-5)
