"""Run cases and peers, each in processes of their own, and collect one report."""

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import machine, peers
from benchmarks.fits import fits
from benchmarks.job import Case

FORMAT = 1
ROOT = Path(__file__).resolve().parents[1]


def run(
    cases: Sequence[Case], *, quick: bool, with_peers: bool, interpreters: dict[str, str]
) -> dict[str, Any]:
    """Return the report: machine, versions, one row a case, fits, one row a peer's comparison.

    Args:
        cases: What to measure.
        quick: Small sizes and few rounds; targets are not judged.
        with_peers: Whether to run the peers too.
        interpreters: Peer name to the Python of its environment.
    """
    report: dict[str, Any] = {
        "format": FORMAT,
        "quick": quick,
        "machine": machine.describe(),
        "versions": machine.versions(),
    }
    rows = [_row(case, quick, f"{i}/{len(cases)}") for i, case in enumerate(cases, 1)]
    report["rows"] = rows
    report["fits"] = fits(rows)
    report["peers"] = []
    if with_peers:
        for peer in peers.PEERS:
            say(f"peer {peer.name} ... ")
            start = time.perf_counter()
            found = peers.compare(peer, interpreters.get(peer.name), rows, quick)
            report["peers"] += found
            say(f"{_outcome(found[0])} [{time.perf_counter() - start:.0f} s]\n")
    return report


def failures(report: dict[str, Any]) -> list[str]:
    """Return the names of the rows that have no result because it was wrong or broke."""
    return [row["case"] for row in (*report["rows"], *report["peers"]) if "failure" in row]


def say(text: str) -> None:
    """Report progress, apart from the results."""
    print(text, end="", file=sys.stderr, flush=True)


def _row(case: Case, quick: bool, position: str) -> dict[str, Any]:
    say(f"{position} {case.name} ... ")
    start = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.worker", case.name]
    done = subprocess.run(
        [*command, "--quick"] if quick else command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    row: dict[str, Any]
    if done.returncode:
        failure = f"its process ended with code {done.returncode}"
        row = {"case": case.name, "title": case.title, "series": case.series, "failure": failure}
    else:
        row = json.loads(done.stdout)
    say(f"{_outcome(row)} [{time.perf_counter() - start:.0f} s]\n")
    return row


def _outcome(row: dict[str, Any]) -> str:
    for reason in ("failure", "skipped"):
        if reason in row:
            return f"{reason}: {row[reason]}"
    if "ratio" in row:
        secure = row["secure"]["median"]
        return f"{row['ratio']['median']:.3g}x of plaintext, {secure * 1e3:.3g} ms"
    return f"{row['total']['median']:.3g} s"
