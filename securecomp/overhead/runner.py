"""Runner: cases in their own processes, and one report of all."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from securecomp.overhead import machine
from securecomp.overhead.fits import fits
from securecomp.overhead.job import Case
from securecomp.overhead.measurement import Row, described
from securecomp.overhead.published_claims import CLAIMS

FORMAT = 1
_BLAS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


@dataclass(frozen=True, slots=True)
class Suite:
    """Cases that a worker process can find again.

    Attributes:
        module: Module with a function `listed` that returns them.
        sizes: Arguments of that function.
        folder: Where the process runs; None for the current folder.
    """

    module: str
    sizes: dict[str, int] = field(default_factory=dict)
    folder: Path | None = None


Told = Callable[[Case, Row | None], None]
"""Called with None before each case, and with its row after it."""


def run(suite: Suite, cases: Sequence[Case], *, quick: bool, told: Told) -> dict[str, Any]:
    """Return the report: machine, versions, a row for each case, fits, and skipped cases.

    Args:
        suite: Where the worker finds the cases.
        cases: The cases to measure.
        quick: Small sizes and few rounds; targets are not judged.
        told: Is called with the progress.
    """
    possible = [case for case in cases if not _missing(case)]
    facts = {"machine": machine.describe(), "versions": machine.versions()}
    rows = {
        row["case"]: row for batch in _batches(possible) for row in _rows(suite, batch, quick, told)
    }
    ordered = [rows[case.name] for case in possible]
    return report(ordered, quick=quick, **facts) | {
        "skipped": [
            {
                "case": case.name,
                "title": case.title,
                "reason": f"needs {', '.join(_missing(case))}: {case.install}",
            }
            for case in cases
            if _missing(case)
        ]
    }


def report(rows: Sequence[Row], *, quick: bool = False, **facts: Any) -> dict[str, Any]:
    """Return the report of some rows, with this machine's facts unless others are given."""
    return {
        "format": FORMAT,
        "quick": quick,
        "machine": facts.get("machine") or machine.describe(),
        "versions": facts.get("versions") or machine.versions(),
        "rows": list(rows),
        "fits": fits(list(rows)),
        "peers": [],
        "skipped": [],
        "claims": [claim.facts() for claim in CLAIMS],
    }


def failures(report: dict[str, Any]) -> list[str]:
    """Return the names of the rows that failed: their result was wrong, or the work broke."""
    return [row["case"] for row in (*report["rows"], *report["peers"]) if "failure" in row]


def _missing(case: Case) -> list[str]:
    return [module for module in case.needs if find_spec(module) is None]


def _batches(cases: Sequence[Case]) -> list[list[Case]]:
    """Return the cases of one batch together, all others alone."""
    found: dict[str, list[Case]] = {}
    for case in cases:
        found.setdefault(case.batch or case.name, []).append(case)
    return list(found.values())


def _rows(suite: Suite, batch: Sequence[Case], quick: bool, told: Told) -> Iterator[Row]:
    """Measure a batch in a process. Cases that it does not answer have failed."""
    command = [sys.executable, "-m", "securecomp.overhead.worker", suite.module]
    command += [case.name for case in batch]
    command += [*(["--quick"] if quick else []), "--sizes", json.dumps(suite.sizes)]
    threads = batch[0].blas_threads
    limits = dict.fromkeys(_BLAS, str(threads)) if threads else {}
    told(batch[0], None)
    with subprocess.Popen(  # noqa: S603 - our own interpreter, on our own module
        command,
        cwd=suite.folder,
        env=os.environ | limits,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            left = list(batch)
            for line in process.stdout or ():
                row = json.loads(line)
                case = left.pop(0)
                told(case, row)
                yield row
                if left:
                    told(left[0], None)
        finally:
            if process.poll() is None and left:
                process.kill()
    for case in left:
        row = described(case) | {"failure": f"its process ended with code {process.returncode}"}
        told(case, row)
        yield row
