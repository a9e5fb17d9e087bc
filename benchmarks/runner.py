"""Run cases and peers, each in processes of their own, and collect one report."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.comparing import compare
from benchmarks.peers.software import PEERS
from securecomp.overhead import runner
from securecomp.overhead.job import Case

SUITE = runner.Suite("benchmarks.targets", folder=Path(__file__).resolve().parents[1])


def run(
    cases: Sequence[Case], *, quick: bool, with_peers: bool, interpreters: dict[str, str]
) -> dict[str, Any]:
    """Return the report of the cases, with one row a peer's comparison.

    Args:
        cases: What to measure.
        quick: Small sizes and few rounds; targets are not judged.
        with_peers: Whether to run the peers too.
        interpreters: Peer name to the Python of its environment.
    """
    numbers = {case.name: f"{i}/{len(cases)}" for i, case in enumerate(cases, 1)}
    start = 0.0

    def told(case: Case, row: dict[str, Any] | None) -> None:
        nonlocal start
        if row is None:
            say(f"{numbers[case.name]} {case.name} ... ")
            start = time.perf_counter()
        else:
            say(f"{_outcome(row)} [{time.perf_counter() - start:.0f} s]\n")

    report = runner.run(SUITE, cases, quick=quick, told=told)
    if with_peers:
        for peer in PEERS:
            say(f"peer {peer.name} ... ")
            start = time.perf_counter()
            found = compare(peer, interpreters.get(peer.name), report["rows"], quick)
            report["peers"] += found
            say(f"{_outcome(found[0])} [{time.perf_counter() - start:.0f} s]\n")
    return report


def say(text: str) -> None:
    """Report progress, apart from the results."""
    print(text, end="", file=sys.stderr, flush=True)


def _outcome(row: dict[str, Any]) -> str:
    for reason in ("failure", "skipped"):
        if reason in row:
            return f"{reason}: {row[reason]}"
    if "ratio" in row:
        secure = row["secure"]["median"]
        return f"{row['ratio']['median']:.3g}x of plaintext, {secure * 1e3:.3g} ms"
    return f"{row['total']['median']:.3g} s"
