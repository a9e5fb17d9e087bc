"""Seconds for each unit of work of the sum protocols, fitted to the rows of a run.

Two kinds of rows are used: sums whose roles were clocked apart (`parts`), and rows with known units
of one role or of all roles together.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.optimize import nnls

from securecomp.secagg import Parameters

Row = Mapping[str, Any]
Point = tuple[tuple[float, ...], float]
"""Units of work, and the seconds that they took together."""
Rates = dict[str, float]

BOUND = 1 << 40
"""Largest absolute value of an element in the jobs that are measured and compared."""
SERVERS = 3
MESSAGE = "a message"


def fitted(points: Sequence[Point], names: Sequence[str]) -> Rates | None:
    """Return the seconds of each unit, by least squares of relative errors, at least 0.

    Returns None if the points cannot tell the units apart.
    """
    work = np.array([units for units, _ in points], np.float64).reshape(len(points), len(names))
    took = np.array([seconds for _, seconds in points], np.float64)
    if np.linalg.matrix_rank(work / np.maximum(work.max(0, initial=0.0), 1.0)) < len(names):
        return None
    rates, _ = nnls(work / took[:, None], np.ones(len(points)))
    return dict(zip(names, rates.tolist(), strict=True))


def path(sites: int, values: int) -> tuple[int, int]:
    """Return the messages, and the values in them, on the critical path of a shared sum.

    A site deals to every server; a server reads one message a site and answers each; a site reads
    the answers.
    """
    handled = 2 * (SERVERS + sites)
    return handled, handled * values


def sharing(rows: Sequence[Row]) -> Rates | None:
    """Return the rates of sums by sharing."""
    points: list[Point] = []
    for row in rows:
        sizes = row["sizes"]
        if {"parties", "elements", "servers", "receivers"} <= sizes.keys():
            # All roles together: every message is made once and read once.
            handled = 2 * row["messages"]
            points.append(((handled, handled * sizes["elements"]), row["online"]["median"]))
        elif _in_parts(row, "sharing"):
            together = sum(p["median"] for p in (*row["parts"].values(), row["decode"]))
            points.append((path(sizes["parties"], sizes["elements"]), together))
    return fitted(points, (MESSAGE, "a value in a message"))


def masking(rows: Sequence[Row]) -> Rates | None:
    """Return the rates of a masking site and of the server."""
    site: list[Point] = []
    server: list[Point] = []
    for row in rows:
        sizes = row["sizes"]
        seconds = row["online"]["median"]
        if _in_parts(row, "masking"):
            n, d = sizes["parties"], sizes["elements"]
            degree = Parameters.choose(n, BOUND).degree
            site.append(((degree, (degree + 1) * d), row["parts"]["hospital"]["median"]))
            server.append(((n * degree, n * d), row["parts"]["server"]["median"]))
        elif row["case"].startswith(("masking/mask/", "masking/client", "growth/clients/")):
            degree = sizes["neighbours"]
            site.append(((degree, (degree + 1) * sizes["elements"]), seconds))
        elif row["case"].startswith("masking/server"):
            degree, gone = sizes["neighbours"], sizes["dropped"]
            masks = sizes["clients"] - gone + gone * degree
            units = (sizes["clients"] * degree, masks * sizes["elements"])
            server.append((units, seconds))
    mine = fitted(site, ("a site, a neighbour", "a site, a mask of a value"))
    theirs = fitted(server, ("the server, a pair of neighbours", "the server, a mask of a value"))
    return None if mine is None or theirs is None else {**mine, **theirs}


def paillier(rows: Sequence[Row], bits: int, whole: Callable[[int, int], int]) -> Rates | None:
    """Return the rates of encrypting, adding and decrypting a value.

    Args:
        rows: Of a run.
        bits: Of the key.
        whole: Returns values rounded up to full ciphertexts, from sites and values.
    """
    points: dict[str, list[Point]] = {"encrypt": [], "add": [], "decrypt": []}
    roles = {"encrypt": "hospital", "add": "aggregator", "decrypt": "key holder"}
    for row in rows:
        sizes = row["sizes"]
        if sizes.get("bits") != bits:
            continue
        first, _, rest = row["case"].partition("/")
        if first == "paillier" and rest.partition("/")[0] in points:
            points[rest.partition("/")[0]].append(((0, sizes["elements"]), row["online"]["median"]))
        elif _in_parts(row, "paillier"):
            n, full = sizes["parties"], whole(sizes["parties"], sizes["elements"])
            units = {"encrypt": (1, full), "add": (n + 1, full * n), "decrypt": (n + 1, full)}
            for step, name in roles.items():
                points[step].append((units[step], row["parts"][name]["median"]))
    found: Rates = {}
    for step, some in points.items():
        name = f"{step} a value"
        # A role spends a part of its time on messages; a step alone does not.
        both = fitted(some, (MESSAGE, name))
        rate = both or fitted([(units[1:], took) for units, took in some], (name,))
        if rate is None:
            return None
        found[name] = rate[name]
    return found


def _in_parts(row: Row, scheme: str) -> bool:
    """Whether it is a sum over parties whose roles were clocked apart."""
    return (
        row["case"].startswith(("sum/", "growth/"))
        and row.get("scheme") == scheme
        and bool(row.get("parts"))
        and {"parties", "elements"} <= row["sizes"].keys()
    )
