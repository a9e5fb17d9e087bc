"""The private sum of three vectors against numpy's sum of them."""

import os
from collections.abc import Sequence
from functools import partial
from typing import Literal

import numpy as np

from benchmarks import aes
from benchmarks.job import Case, Cost, Job, Target, WrongResultError
from securecomp.local import LocalCarrier
from securecomp.session import Layout
from securecomp.sums import Sharing

BOUND = 1 << 40
ELEMENTS = 1_000_000


def contributors(parties: int) -> tuple[str, ...]:
    return tuple(f"hospital {i + 1}" for i in range(parties))


def vectors(parties: int, elements: int) -> np.ndarray:
    """Return one row a party."""
    return np.random.default_rng(0).integers(-BOUND, BOUND + 1, (parties, elements))


def cost(carrier: LocalCarrier, _) -> Cost:
    transcript = carrier.transcript
    return Cost(
        max(transcript.sent.values()),
        transcript.bytes_sent,
        transcript.rounds,
        transcript.messages,
    )


def check(plain, secure) -> float:
    if secure.dtype != np.int64 or not np.array_equal(plain, secure):
        raise WrongResultError("the secure total is not the plaintext total")
    return 0.0


def pair(
    inputs: np.ndarray, servers: int | Literal["all"], receivers: Sequence[str]
) -> dict[str, object]:
    """Return set-up, secure side, check and cost of a job that sums the rows of `inputs`."""
    parties, elements = inputs.shape
    names = contributors(parties)
    scheme = Sharing(servers)
    layout = Layout(elements, BOUND)
    readers = {name: partial(lambda row: row, row) for name, row in zip(names, inputs, strict=True)}
    machines = () if servers == "all" else tuple(f"server {i + 1}" for i in range(servers))

    def setup() -> LocalCarrier:
        carrier = LocalCarrier()
        for name in dict.fromkeys((*names, *machines, *receivers)):
            carrier.identity(name)
        return carrier

    return {
        "setup": setup,
        "secure": lambda carrier: scheme.run(carrier, layout, readers, tuple(receivers)),
        "check": check,
        "cost": cost,
    }


def three(servers: int | Literal["all"], receivers: Sequence[str], elements: int) -> Job:
    inputs = vectors(3, elements)
    a, b, c = inputs
    out = np.empty_like(a)

    def plain() -> np.ndarray:
        np.add(a, b, out=out)
        return np.add(out, c, out=out)

    threads = min(3, os.cpu_count() or 1)
    return Job(
        sizes={"parties": 3, "elements": elements, "servers": 3, "receivers": len(receivers)},
        plain=plain,
        # Three contributors expand two seeds each, and three servers the six that they get.
        floors=aes.floors(12, 8 * elements, threads),
        note=f"Up to {threads} threads, in the floors too. Set-up draws the long-term keys.",
        **pair(inputs, servers, receivers),
    )


_RECEIVERS = contributors(3)

CASES = (
    Case(
        "sum/one-receiver",
        "Private sum, 3 servers, an analyst receives",
        partial(three, 3, ("analyst",)),
        size=ELEMENTS,
        quick=100_000,
        tiny=100,
        target=Target("at most 30x of numpy's sum of the three vectors", 30),
    ),
    Case(
        "sum/three-receivers",
        "Private sum, 3 servers, every contributor receives",
        partial(three, 3, _RECEIVERS),
        size=ELEMENTS,
        quick=100_000,
        tiny=100,
    ),
    Case(
        "sum/all-servers",
        "Private sum, every contributor is a server and receives",
        partial(three, "all", _RECEIVERS),
        size=ELEMENTS,
        quick=100_000,
        tiny=100,
    ),
)
