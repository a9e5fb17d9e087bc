"""The private sum of three vectors against numpy's sum of them."""

import os
from collections.abc import Sequence
from functools import partial
from typing import Literal

import numpy as np

from benchmarks import aes
from securecomp.overhead.data import integers
from securecomp.overhead.job import Case, Job, Target
from securecomp.overhead.totals import BOUND, hospitals, pair
from securecomp.sharing.additive_sum import Sharing

ELEMENTS = 1_000_000


def three(servers: int | Literal["all"], receivers: Sequence[str], elements: int) -> Job:
    inputs = integers((3, elements), BOUND)
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
        **pair(Sharing(servers), inputs, receivers),
    )


_RECEIVERS = hospitals(3)

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
