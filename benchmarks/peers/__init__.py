"""Other software that does the same job, run beside ours in the same run.

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

from benchmarks.cases import computing, training
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
    """A peer: its script, how to install it, how it is used, and what it is compared with."""

    name: str
    script: str
    parties: int
    packages: str
    how: str
    comparisons: tuple[Comparison, ...]
    arguments: tuple[str, ...] = ()  # before elements and runs; a single process if not MPyC's
    jobs: bool = False  # gets, instead of elements, `PHASE=ELEMENTS,...`, and runs these alone

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


_CKKS = {
    "encrypt": ("client encrypts", ("encrypt", "save")),
    "predict": ("server predicts", ("load", "predict", "reply")),
    "decrypt": ("client decrypts", ("open", "decrypt")),
}
_COMPUTING = {case.name for case in computing.CASES}
_SPU = {
    "semi2k": (
        2,
        "semi-honest, additive shares modulo 2^64, correlations made within the time by the first "
        "party, which SPU trusts (beaver_type TrustedFirstParty, its default)",
        "2",
    ),
    "aby3": (3, "semi-honest, honest majority, replicated shares modulo 2^64, no dealer", "3"),
}
_JOBS = {  # our job: its title, the peer's phase, how many times faster we must be
    "products": ("products", "products", Target("at least 5x faster than SPU", 5)),
    "truncated": (
        "fixed-point products, its probabilistic truncation",
        "truncated",
        Target("at least as fast as SPU", 1),
    ),
    "matmul": ("integer matrix product", "matmul", Target("at least 2x faster than SPU", 2)),
    "matmul-truncated": (
        "fixed-point matrix product, its probabilistic truncation",
        "matmul_truncated",
        Target("at least 2x faster than SPU", 2),
    ),
    "compare": ("comparisons", "compare", Target("at least 4x faster than SPU", 4)),
    "sigmoid": ("sigmoids", "sigmoid", Target("at least 3x faster than SPU", 3)),
}
_MPYC = Target("at least 100x faster than MPyC", 100)
_HELAYERS = Target("at least 1.5x faster than HElayers", 1.5)
_TENSEAL = Target("at least 5,000x faster than TenSEAL's dot", 5000)

PEERS = (
    Peer(
        name="mpyc",
        script="mpyc_sum.py",
        parties=3,
        packages="mpyc==0.11 numpy gmpy2 uvloop",
        how=(
            "3 processes on this machine over loopback TCP without TLS; Shamir sharing with "
            "threshold 1 in the same field, mpc.SecFld(2**61-1) arrays on numpy, its fastest way: "
            "of int64 vectors secfld.array, mpc.input by every party, the sum of the arrays, "
            "mpc.output. A phase ends with the slowest party. Ours: all roles in one process, "
            "sealed messages, no network."
        ),
        comparisons=(
            Comparison(
                "mpyc/one-receiver",
                "MPyC, one party receives",
                "sum/one-receiver",
                ("encode", "input", "output_one", "decode"),
                Target("at least 300x faster than MPyC", 300),
            ),
            Comparison(
                "mpyc/three-receivers",
                "MPyC, every party receives",
                "sum/all-servers",
                ("encode", "input", "output_all", "decode"),
            ),
        ),
    ),
    Peer(
        name="flwr",
        script="flower_secagg.py",
        parties=1,
        packages="flwr==1.42.0",
        arguments=("20",),
        how=(
            "SecAgg+ of Flower's installed package: its clients' own functions, and the loop of "
            "its server's unmask stage over them, without messaging; 20 clients, complete graph, "
            "threshold 11, modulus 2^32."
        ),
        comparisons=(
            Comparison(
                "flwr/client",
                "Flower, a client's key shares and masking",
                "masking/client",
                ("client_share", "client_mask"),
                Target("at least 15x faster than Flower", 15),
            ),
            Comparison(
                "flwr/server",
                "Flower, server unmasking, nobody dropped",
                "masking/server",
                ("server",),
                Target("at least 40x faster than Flower", 40),
            ),
            Comparison(
                "flwr/server-drop",
                "Flower, server unmasking, 10 % dropped",
                "masking/server-drop",
                ("server_drop",),
                Target("at least 40x faster than Flower", 40),
            ),
        ),
    ),
    *(
        Peer(
            name=f"phe{bits}",
            script="phe_values.py",
            parties=1,
            packages="phe==1.5.0 gmpy2",
            arguments=(str(bits),),
            how=f"One value a ciphertext, {bits} bits, on gmpy2; 20 values, scaled.",
            comparisons=(
                Comparison(
                    f"phe/encrypt/{bits}",
                    f"phe encrypts, {bits} bits",
                    f"paillier/encrypt/{bits}",
                    ("encrypt",),
                    Target(f"at least {faster}x faster than phe", faster),
                ),
                Comparison(
                    f"phe/add/{bits}",
                    f"phe adds, {bits} bits",
                    f"paillier/add/{bits}",
                    ("add",),
                    Target("at least 50x faster than phe", 50),
                ),
                Comparison(
                    f"phe/decrypt/{bits}",
                    f"phe decrypts, {bits} bits",
                    f"paillier/decrypt/{bits}",
                    ("decrypt",),
                    Target("at least 25x faster than phe", 25),
                ),
            ),
        )
        for bits, faster in ((2048, 500), (3072, 800))
    ),
    Peer(
        name="lightphe",
        script="lightphe_values.py",
        parties=1,
        packages="lightphe",
        arguments=("2048",),
        how="One value a ciphertext, 2048 bits; 5 values, scaled.",
        comparisons=(
            Comparison(
                "lightphe/encrypt/2048",
                "LightPHE encrypts, 2048 bits",
                "paillier/encrypt/2048",
                ("encrypt",),
            ),
        ),
    ),
    *(
        Peer(
            name=f"helayers{threads}",
            script="helayers_logit.py",
            parties=1,
            packages="pyhelayers==1.5.5.4 numpy",
            arguments=(str(threads),),
            how=(
                "30 encrypted features, plain model, logits; "
                f"{threads} process{'es' * (threads > 1)} of one thread, a full batch each, "
                "scaled; SEAL underneath, 4,096 slots, 128 bits of security. "
                "Its logistic regression: parameters by its optimiser for that batch, activation "
                "NONE, one row a slot. Its tiles: a ciphertext a feature, two rows a slot (real "
                "and imaginary part), one prime of 60 bits, weights as integers, no rescaling. "
                "Times from bytes to bytes, as ours. Community edition, for non-commercial use."
            ),
            comparisons=tuple(
                Comparison(
                    f"helayers/{way}-{phase}/{threads}",
                    f"HElayers, {title}: {does}, cores: {threads}",
                    f"ckks/{phase}/{threads}",
                    tuple(f"{way}_{part}" for part in parts),
                    _HELAYERS if phase != "decrypt" else None,
                )
                for way, title in (("model", "its logistic regression"), ("tiles", "its tiles"))
                for phase, (does, parts) in _CKKS.items()
            ),
        )
        for threads in (1, 2)
    ),
    Peer(
        name="tenseal",
        script="tenseal_rows.py",
        parties=1,
        packages="tenseal==0.3.18 numpy",
        how=(
            "30 encrypted features, plain model, logits; one encrypted vector a row, ring 8,192, "
            "primes of 60, 40, 40 and 60 bits, scale 2^40, `dot` with Galois keys; 64 rows, "
            "scaled. Times from bytes to bytes, as ours."
        ),
        comparisons=tuple(
            Comparison(
                f"tenseal/{phase}",
                f"TenSEAL {does}",
                f"ckks/{phase}/1",
                parts,
                _TENSEAL if phase == "predict" else None,
            )
            for phase, (does, parts) in _CKKS.items()
        ),
    ),
    Peer(
        name="opendp",
        script="opendp_noise.py",
        parties=1,
        packages="opendp==0.16.0 numpy",
        how=(
            "Its discrete Laplace and discrete Gaussian measurements on a vector of 20,000 i64, "
            "scaled; one call, of scale and sigma 10."
        ),
        comparisons=tuple(
            Comparison(
                f"opendp/{name}",
                f"OpenDP, discrete {name.capitalize()}",
                f"privacy/draws/{name}",
                (name,),
            )
            for name in ("laplace", "gaussian")
        ),
    ),
    Peer(
        name="opacus",
        script="opacus_steps.py",
        parties=1,
        packages="opacus==1.6.0 torch",
        jobs=True,
        how=(
            "One linear layer, SGD, PrivacyEngine with Poisson samples, per-sample gradients by "
            "hooks, one thread, 100 steps, scaled; floats of 32 bits, PyTorch's noise, which is "
            "neither exact nor cryptographic; without its accountant. Ours: floats of 64 bits that "
            "are exact integers, exact noise from AES-256."
        ),
        comparisons=tuple(
            Comparison(
                f"opacus/{name}",
                f"Opacus, DP-SGD steps, {problem.title}",
                f"training/dp-sgd/{name}",
                (name,),
                Target("at least 3x faster than Opacus", 3),
            )
            for name, problem in training.PROBLEMS.items()
        ),
    ),
    *(
        Peer(
            name=f"spu_{protocol}",
            script="spu_arithmetic.py",
            parties=1,
            packages="spu==0.9.5",
            arguments=(protocol, str(parties)),
            jobs=True,
            how=(
                f"{protocol.upper()}, {parties} parties, FM64, 16 fractional bits; {trust}. "
                "A thread a party in one process, links in memory, not encrypted, as its simulator "
                "sets them up; the runtimes stay, so that a time is the program's run alone, from "
                "shares to shares. Its truncation is off by one unit at times, ours is exact. "
                "Ours: the dealer's time apart, and in brackets with it; sealed messages."
            ),
            comparisons=tuple(
                Comparison(
                    f"spu/{protocol}-{job}/{ours}",
                    f"SPU {protocol.upper()}, {parties} parties: {title}",
                    f"computing/{job}/{ours}",
                    (phase,),
                    # Of different trust, a comparison promises nothing.
                    target if ours == same else None,
                    apart=True,
                )
                for ours in dict.fromkeys(("2", same))
                for job, (title, phase, target) in _JOBS.items()
                if f"computing/{job}/{ours}" in _COMPUTING
            ),
        )
        for protocol, (parties, trust, same) in _SPU.items()
    ),
    Peer(
        name="mpyc_products",
        script="mpyc_products.py",
        parties=3,
        packages="mpyc==0.11 numpy gmpy2 uvloop",
        jobs=True,
        how=(
            "3 processes on this machine over loopback TCP without TLS, Shamir sharing with "
            "threshold 1, from shares to shares: products of mpc.SecFld(2**61-1) arrays, "
            "comparisons of mpc.SecInt(32) arrays (ours: of 41 bits), 1,000 of them, scaled. Ours: "
            "all parties in one process, the dealer's time apart (in brackets with it), sealed "
            "messages, no network."
        ),
        comparisons=tuple(
            Comparison(
                f"mpyc/{job}/{ours}",
                f"MPyC, 3 parties: {title}",
                f"computing/{job}/{ours}",
                (job,),
                _MPYC if job == "products" else None,
                apart=True,
            )
            for ours in ("2", "3")
            for job, title in (("products", "products"), ("compare", "comparisons"))
            if f"computing/{job}/{ours}" in _COMPUTING
        ),
    ),
)


def compare(peer: Peer, python: str | None, ours: list[Row], quick: bool) -> list[Row]:
    """Run a peer and return one row a comparison.

    Args:
        peer: Whom.
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
