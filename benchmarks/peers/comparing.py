"""A peer: other software that does the same job, run beside ours in the same run.

A peer's script is executed by the Python of the peer's own environment, which lives outside this
repository. Where there is none, the peer is skipped with the command that makes it.
"""

import json
import os
import socket
import subprocess
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from securecomp.overhead.intervals import spread
from securecomp.overhead.job import Target
from securecomp.overhead.machine import Elsewhere

Row = dict[str, Any]
_TIMEOUT = 900.0
_HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Comparison:
    """One of our cases, and the phases of the peer that do the same job.

    Attributes:
        name: Of the row.
        title: One line.
        case: Our case.
        phases: The peer's phases that add up to the job.
        target: How many times faster we must be, at least.
        apart: Whether our set-up, a dealer's work, is left out of the comparison, and the ratio
            with it given beside.
    """

    name: str
    title: str
    case: str
    phases: tuple[str, ...]
    target: Target | None = None
    apart: bool = False


@dataclass(frozen=True, slots=True)
class Peer:
    """Other software in an environment of its own.

    Attributes:
        name: Of its environment, and of its rows.
        script: Its file in `peers`.
        parties: Processes, one for each party.
        packages: What pip installs.
        how: How it is used, for a reader of the table.
        comparisons: The rows that it gives.
        arguments: The script's first ones, before elements and runs.
        jobs: Whether the script gets `PHASE=ELEMENTS,...` instead of elements, and runs these
            phases alone.
    """

    name: str
    script: str
    parties: int
    packages: str
    how: str
    comparisons: tuple[Comparison, ...]
    arguments: tuple[str, ...] = ()
    jobs: bool = False

    @property
    def variable(self) -> str:
        """The environment variable that may name its interpreter."""
        return f"SECURECOMP_PEER_{self.name.upper()}"

    @property
    def advice(self) -> str:
        """The commands that make its environment and use it."""
        return (
            f"python3 -m venv ../{self.name} && ../{self.name}/bin/pip install {self.packages} && "
            f"python -m benchmarks {self.comparisons[0].case.split('/')[0]} "
            f"--peer-python {self.name}=../{self.name}/bin/python"
        )


def compare(peer: Peer, python: str | None, ours: list[Row], quick: bool) -> list[Row]:
    """Run a peer and return one row a comparison.

    Args:
        peer: The software.
        python: The interpreter of its environment; None takes the environment variable.
        ours: The rows of this run.
        quick: Few rounds; targets are not judged.
    """
    measured = {row["case"]: row for row in ours if "secure" in row}
    possible = [c for c in peer.comparisons if c.case in measured]
    python = python or os.environ.get(peer.variable)
    if python is None:
        return [_without(peer, "skipped", f"no environment was named; make one: {peer.advice}")]
    if not possible:
        wanted = " ".join(c.case for c in peer.comparisons)
        return [
            _without(peer, "skipped", f"compared with cases that are not in this run: {wanted}")
        ]
    sizes = {c: measured[c.case]["sizes"]["elements"] for c in possible}
    elements = str(sizes[possible[0]])
    if peer.jobs:
        jobs = {phase: size for c, size in sizes.items() for phase in c.phases}
        elements = ",".join(f"{phase}={size}" for phase, size in jobs.items())
    elsewhere = Elsewhere()
    try:
        found = _run(peer, python, elements, 2 if quick else 5)
    except (OSError, RuntimeError, ValueError, subprocess.TimeoutExpired) as error:
        return [_without(peer, "failure", f"{type(error).__name__}: {error}")]
    found["elsewhere"] = elsewhere.cores()
    return [_compared(peer, c, found, measured[c.case], quick) for c in possible]


def _without(peer: Peer, key: str, reason: str) -> Row:
    return {"peer": peer.name, "case": peer.name, "title": peer.name, key: reason}


def _compared(peer: Peer, c: Comparison, found: Row, ours: Row, quick: bool) -> Row:
    runs = found["runs"]

    def added(quantity: str) -> list[float]:
        return [sum(run[phase][quantity] for phase in c.phases) for run in runs]

    total = spread(added("seconds"))
    sent = np.array([[run[phase]["bytes_sent"] for phase in c.phases] for run in runs])
    mine = ours["online" if c.apart else "secure"]
    faster = total["median"] / mine["median"]
    row: Row = {
        "peer": peer.name,
        "case": c.name,
        "title": c.title,
        "how": peer.how,
        "versions": found["versions"],
        "sizes": {
            "parties": found.get("parties", peer.parties),
            "elements": runs[0][c.phases[0]].get("elements", found.get("elements")),
        },
        "runs": len(runs),
        "phases": {p: spread([run[p]["seconds"] for run in runs]) for p in c.phases},
        "total": total,
        "cpu": spread(added("cpu")),
        "bytes_per_party": int(sent.sum(axis=1).max()),
        "compared_with": c.case,
        "ours": mine,
        "times_faster": faster,
        "elsewhere": found["elsewhere"],
    }
    if c.apart and ours["setup"]:
        row["with_setup"] = total["median"] / ours["secure"]["median"]
    errors = [run[p]["error"] for run in runs for p in c.phases if "error" in run[p]]
    if errors:
        row["error"] = max(errors)
    if c.target is not None and not quick:
        row["targets"] = [{**asdict(c.target), "value": faster, "met": faster >= c.target.limit}]
    return row


def _run(peer: Peer, python: str, elements: str, runs: int) -> Row:
    """Start one process a party and return what the first one prints.

    Raises:
        RuntimeError: A party failed; what it wrote last is in the message.
    """
    # Not ours: the peer's interpreter must find the packages of its own environment.
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    command = [python, str(_HERE / peer.script), *peer.arguments, elements, str(runs)]
    options: list[str] = []
    if peer.parties > 1:
        options = [f"-M{peer.parties}", "-B", str(_free_ports(peer.parties)), "--no-log"]
    with ExitStack() as stack:
        started = []
        for index in range(peer.parties):
            process = subprocess.Popen(
                [*command, *options, *(["-I", str(index)] if options else [])],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            started.append(stack.enter_context(process))
            stack.callback(process.kill)  # whatever happens, no party outlives this
        output = [process.communicate(timeout=_TIMEOUT) for process in started]
    for index, process in enumerate(started):
        if process.returncode:
            last = (output[index][1].strip().splitlines() or ["no message"])[-1]
            raise RuntimeError(f"party {index} of {peer.name}: {last}")
    result: Row = json.loads(output[0][0].splitlines()[-1])
    return result


def _free_ports(number: int) -> int:
    """Return the first of so many consecutive ports that nobody uses on this machine."""
    return next(b for b in count(20_000, number) if all(map(_free, range(b, b + number))))


def _free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
