"""Rounds and bytes of each operation on shares, counted: `python -m benchmarks prices`.

They depend on shapes and bounds alone, so that one run with any values gives them, on any machine.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from securecomp.mpc import (
    Computation,
    SharedArray,
    argmax,
    divide,
    maximum,
    median,
    reciprocal,
    sigmoid,
    sort,
    sqrt,
    where,
)
from securecomp.protocol.local_carrier import LocalCarrier

ELEMENTS = 1024
PAGE = Path(__file__).resolve().parent / "results" / "prices.md"
_BOUND, _BITS = 64, 16
Operation = Callable[[SharedArray, SharedArray], Any]
Function = Callable[[SharedArray], Any]
OF_TWO: dict[str, Operation] = {
    "x + y, x * public, sum": lambda x, y: (x + y * 3).sum(),
    "x * y": lambda x, y: x * y,
    "x @ y, 32 by 32": lambda x, y: x.reshape(32, 32) @ y.reshape(32, 32),
    "x < y": lambda x, y: x < y,
    "x == y": lambda x, y: x == y,
    "where(x < y, x, y)": lambda x, y: where(x < y, x, y),
    "divide(x, y)": divide,
}
OF_ONE: dict[str, Function] = {
    "x.square()": lambda x: x.square(),
    "x.truncate(16)": lambda x: x.truncate(_BITS),
    "maximum(x)": maximum,
    "argmax(x)": argmax,
    "sort(x)": sort,
    "median(x)": median,
    "sigmoid(x)": sigmoid,
    "reciprocal(x)": reciprocal,
    "sqrt(x)": sqrt,
    "x.reveal()": lambda x: x.reveal(),
}


def _of_one(function: Function) -> Operation:
    return lambda x, _: function(x)


OPERATIONS = {**OF_TWO, **{name: _of_one(function) for name, function in OF_ONE.items()}}
ENGINES: dict[str, tuple[int, dict[str, Any]]] = {
    "2 parties, dealer": (2, {}),
    "3 parties, no dealer": (3, {"dealer": False}),
    "2 parties, dealer, MACs": (2, {"integrity": "mac"}),
}


@dataclass(frozen=True, slots=True)
class Price:
    """What an operation takes: rounds, and bytes an element of x."""

    rounds: int
    party: float
    dealer: float


def price(operation: Operation, parties: int, facts: dict[str, Any]) -> Price:
    """Count one operation on `ELEMENTS` elements; with MACs the check of what was opened too."""
    carrier = LocalCarrier()
    names = [f"party {i + 1}" for i in range(parties)]
    mpc = Computation(names, carrier, **facts)
    run: Any = mpc.engine.run  # type: ignore[attr-defined]
    values = np.linspace(1, 32, ELEMENTS)
    x = mpc.share(names[0], values, bound=_BOUND, bits=_BITS)
    y = mpc.share(names[1], values[::-1], bound=_BOUND, bits=_BITS)
    if hasattr(run, "check"):
        run.check()
    carrier.start()
    before = run.rounds
    operation(x, y)
    if hasattr(run, "check"):
        run.check()
    sent = carrier.transcript.sent
    return Price(
        run.rounds - before,
        max(sent[name] for name in names) / ELEMENTS,
        sent["dealer"] / ELEMENTS,
    )


def page() -> str:
    """Return the table in Markdown."""
    lines = [
        "# Rounds and bytes of each operation on shares",
        "",
        f"Counted by `python -m benchmarks prices`; do not edit. For {ELEMENTS:,} elements, "
        f"numbers up to {_BOUND} with {_BITS} binary digits: rounds, then bytes an element by the "
        "party that sends most, and by the dealer. Without a dealer the third party's messages to "
        "the others are in its own. With MACs the check of what was opened is in it: four rounds.",
        "",
        "| operation | "
        + " | ".join(f"{name}: rounds | party | dealer" for name in ENGINES)
        + " |",
        "| --- " + "| ---: | ---: | ---: " * len(ENGINES) + "|",
    ]
    for name, operation in OPERATIONS.items():
        cells = []
        for parties, facts in ENGINES.values():
            found = price(operation, parties, facts)
            cells += [str(found.rounds), f"{found.party:,.1f}", f"{found.dealer:,.1f}"]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
