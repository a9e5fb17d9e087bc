"""How time and bytes of the private sum grow with the elements and with the parties."""

import numpy as np

from securecomp.overhead.data import integers
from securecomp.overhead.job import Case, Job
from securecomp.overhead.totals import BOUND, hospitals, pair
from securecomp.sharing.additive_sum import Sharing

SERVERS = 3
ELEMENTS = (100, 1_000, 10_000, 100_000, 1_000_000)
PARTIES = (3, 10, 54, 200)
_FEW = 100


def grown(parties: int, elements: int) -> Job:
    inputs = integers((parties, elements), BOUND)
    out = np.empty(elements, np.int64)
    return Job(
        sizes={
            "parties": parties,
            "elements": elements,
            "servers": SERVERS,
            "receivers": parties,
        },
        plain=lambda: np.add.reduce(inputs, axis=0, out=out),
        **pair(Sharing(SERVERS), inputs, hospitals(parties)),
    )


CASES = (
    *(
        Case(
            f"growth/elements/{n}",
            f"Private sum, 3 parties, {n:,} elements",
            lambda elements: grown(3, elements),
            size=n,
            quick=n,
            tiny=_FEW,
            series="elements",
        )
        for n in ELEMENTS
    ),
    *(
        Case(
            f"growth/parties/{n}",
            f"Private sum, {n} parties, {_FEW} elements",
            lambda parties: grown(parties, _FEW),
            size=n,
            quick=n,
            tiny=PARTIES[0],
            series="parties",
        )
        for n in PARTIES
    ),
)
