"""How cost grows: the exponent of a power law, fitted to the rows of a series."""

from collections.abc import Callable
from typing import Any

import numpy as np

Row = dict[str, Any]
_QUANTITIES: dict[str, Callable[[Row], float]] = {
    "seconds": lambda row: row["secure"]["median"],
    "bytes by all": lambda row: row["bytes_total"],
    "bytes by a party": lambda row: row["bytes_per_party"],
}


def fits(rows: list[Row]) -> list[dict[str, Any]]:
    """Return the exponents of every series of a scheme that has at least two rows.

    `exponent` is the slope of the least-squares line through all points of the logarithms;
    `last` is the slope between the two largest sizes, where fixed costs weigh least.
    """
    found = []
    named = [(row.get("scheme", ""), row["series"]) for row in rows if row["series"]]
    for scheme, series in dict.fromkeys(named):
        points = [
            row
            for row in rows
            if (row.get("scheme", ""), row["series"]) == (scheme, series) and "failure" not in row
        ]
        counts = [row["sizes"][series] for row in points]
        if len(set(counts)) < 2:
            continue
        sizes = np.log(counts)
        for quantity, read in _QUANTITIES.items():
            costs = np.log([read(row) for row in points])
            found.append(
                {
                    **({"scheme": scheme} if scheme else {}),
                    "series": series,
                    "quantity": quantity,
                    "sizes": counts,
                    "exponent": float(np.polyfit(sizes, costs, 1)[0]),
                    "last": float((costs[-1] - costs[-2]) / (sizes[-1] - sizes[-2])),
                }
            )
    return found
