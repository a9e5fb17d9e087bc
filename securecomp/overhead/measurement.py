"""Measurement of a job: check it, time it, and write the findings into a row."""

import time
from dataclasses import asdict
from typing import Any

from securecomp.errors import ParameterError, WrongResultError
from securecomp.overhead import timing
from securecomp.overhead.intervals import ratio, spread
from securecomp.overhead.job import DECODE, Case, Job, Target
from securecomp.overhead.machine import Elsewhere, peak

Row = dict[str, Any]


def measure(
    job: Job, title: str = "job", *, quick: bool = False, clock: timing.Clock = time.perf_counter
) -> Row:
    """Measure a job in this process. A wrong result gives a row with `failure` and no times.

    Both results are compared before anything is timed, and again afterwards.

    Args:
        job: The same work in plaintext and under encryption.
        title: Its name in reports.
        quick: A third of a second instead of four, and at least 7 rounds instead of 15.
        clock: Seconds that pass.

    Returns:
        A row as in the JSON of a run; `securecomp.overhead` describes it.
    """
    case = Case(title, title, lambda _: job, size=0, quick=0, tiny=0)
    return measure_case(case, quick, clock)


def measure_case(case: Case, quick: bool, clock: timing.Clock = time.perf_counter) -> Row:
    """Check a case, then time it. A wrong result gives a row with `failure` and no times."""
    row = described(case)
    try:
        # A first job loads and compiles the code, so that the memory measured next is data.
        warm = case.build(case.tiny)
        warm.secure(warm.prepare())
        del warm
        job = case.build(case.quick if quick else case.size)
        row |= {"sizes": dict(job.sizes), "note": job.note}
        elsewhere = Elsewhere()
        if case.rounds:
            samples = timing.measure_long(job, case.rounds, clock)
        else:
            row |= _checked(job)
            elsewhere = Elsewhere()
            samples = timing.interleave(job, timing.QUICK if quick else timing.FULL, clock)
        # A job's own processes are not other work.
        busy = elsewhere.cores() if job.sizes.get("cores", 1) == 1 else None
        if not case.rounds:
            row["error"] = max(row["error"], _checked(job)["error"])
        row |= samples.checked
    except WrongResultError as error:
        return described(case) | {"failure": f"wrong result: {error}"}
    except Exception as error:  # the other cases go on
        return described(case) | {"failure": f"{type(error).__name__}: {error}"}
    row |= _timed(samples) | {"elsewhere": busy}
    if not quick:
        row["targets"] = [_judged(row, target) for target in case.targets]
    return row


def described(case: Case) -> Row:
    """Return the facts about its case that every row has."""
    row = {"case": case.name, "title": case.title, "series": case.series}
    facts = {"scheme": case.scheme, "family": case.family}
    return row | {name: fact for name, fact in facts.items() if fact}


def _checked(job: Job) -> Row:
    state = job.prepare()
    result, memory = peak(lambda: job.secure(state))
    error = job.check(job.plain(), result)
    cost = asdict(job.cost(state, result)) if job.cost else {}
    return {"error": error, "peak_memory": memory, **cost}


def _timed(samples: timing.Samples) -> Row:
    secure = samples.secure
    parts = {name: spread(seconds) for name, seconds in samples.parts.items()}
    return {
        "runs": len(samples.plain),
        "plain": spread(samples.plain),
        "setup": spread(samples.setup) if any(samples.setup) else None,
        "online": spread(samples.online),
        "secure": spread(secure),
        "parts": {name: found for name, found in parts.items() if name != DECODE},
        "decode": parts.get(DECODE),
        "ratio": ratio(secure, samples.plain),
        "floors": [
            {"name": name, "seconds": spread(times), "ratio": ratio(secure, times)}
            for name, times in samples.floors.items()
        ],
        "samples": {
            "plain": _rounded(samples.plain),
            "setup": _rounded(samples.setup),
            "online": _rounded(samples.online),
        },
    }


def _rounded(seconds: list[float]) -> list[float]:
    """Return the samples without digits beyond a clock's precision."""
    return [float(f"{value:.4g}") for value in seconds]


def _judged(row: Row, target: Target) -> Row:
    """Return a target, its value in this row, and whether it is met.

    Raises:
        ParameterError: The target's unit is unknown.
    """
    if target.unit == "x":
        found = row["ratio"]
        if target.floor:
            found = next(f["ratio"] for f in row["floors"] if f["name"] == target.floor)
        value = found["median"]
    else:
        each = row["sizes"].get("elements", 1)
        read = {
            "us": lambda: row["secure"]["median"] * 1e6 / each,
            "bytes there": lambda: row["bytes_per_party"] / each,
            "bytes back": lambda: (row["bytes_total"] - row["bytes_per_party"]) / each,
            "error": lambda: row["error"],
        }
        if target.unit not in read:
            raise ParameterError(f"target {target.text!r}: the unit {target.unit!r} is unknown")
        value = read[target.unit]()
    return {**asdict(target), "value": value, "met": value <= target.limit}
