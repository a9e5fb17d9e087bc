"""Measure one case in this process and print its row.

Every case has a process of its own: memory and warm caches of one do not reach the next.
"""

import argparse
import json
from dataclasses import asdict
from typing import Any

from benchmarks import cases, timing
from benchmarks.job import Case, Job, Target, WrongResultError
from benchmarks.machine import Elsewhere, peak

Row = dict[str, Any]


def measure(case: Case, quick: bool) -> Row:
    """Check a case, then time it; a wrong result gives a row with `failure` and no times."""
    row: Row = {"case": case.name, "title": case.title, "series": case.series}
    try:
        # A first job loads and compiles the code, so that the memory measured next is data.
        warm = case.build(case.tiny)
        warm.secure(warm.prepare())
        del warm
        job = case.build(case.quick if quick else case.size)
        row |= {"sizes": dict(job.sizes), "note": job.note}
        elsewhere = Elsewhere()
        if case.rounds:
            samples = timing.plainly(job, case.rounds)
        else:
            row |= _checked(job)
            elsewhere = Elsewhere()
            samples = timing.interleave(job, timing.QUICK if quick else timing.FULL)
        row |= samples.checked
    except WrongResultError as error:
        return row | {"failure": f"wrong result: {error}"}
    except Exception as error:  # the other cases go on
        return row | {"failure": f"{type(error).__name__}: {error}"}
    # A job of several processes is no noise of other work.
    busy = elsewhere.cores() if job.sizes.get("cores", 1) == 1 else None
    row |= _timed(samples) | {"elsewhere": busy}
    if not quick:
        row["targets"] = [_judged(row, t) for t in (case.target, *case.more) if t is not None]
    return row


def _checked(job: Job) -> Row:
    state = job.prepare()
    result, memory = peak(lambda: job.secure(state))
    error = job.check(job.plain(), result)
    cost = asdict(job.cost(state, result)) if job.cost else {}
    return {"error": error, "peak_memory": memory, **cost}


def _timed(samples: timing.Samples) -> Row:
    ratio = timing.ratio(samples.secure, samples.plain)
    floors = [
        {
            "name": name,
            "seconds": timing.spread(times),
            "ratio": timing.ratio(samples.secure, times),
        }
        for name, times in samples.floors.items()
    ]
    row: Row = {
        "runs": len(samples.plain),
        "plain": timing.spread(samples.plain),
        "setup": timing.spread(samples.setup) if any(samples.setup) else None,
        "online": timing.spread(samples.online),
        "secure": timing.spread(samples.secure),
        "ratio": ratio,
        "floors": floors,
    }
    return row


def _judged(row: Row, target: Target) -> Row:
    """Return a target, its value in this row, and whether it is met."""
    if target.unit == "x":
        ratio = row["ratio"]
        if target.floor:
            ratio = next(f["ratio"] for f in row["floors"] if f["name"] == target.floor)
        value = ratio["median"]
    else:
        each = row["sizes"]["elements"]
        value = {
            "us": lambda: row["secure"]["median"] * 1e6 / each,
            "bytes there": lambda: row["bytes_per_party"] / each,
            "bytes back": lambda: (row["bytes_total"] - row["bytes_per_party"]) / each,
            "error": lambda: row["error"],
        }[target.unit]()
    return {**asdict(target), "value": value, "met": value <= target.limit}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.worker", description=__doc__)
    parser.add_argument("case", choices=[case.name for case in cases.CASES])
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    case = next(case for case in cases.CASES if case.name == arguments.case)
    print(json.dumps(measure(case, arguments.quick)))


if __name__ == "__main__":
    main()
