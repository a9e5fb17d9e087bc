"""The growth of cost: the exponent of a power law, fitted to the rows of a series."""

from collections.abc import Callable
from typing import Any

import numpy as np

Row = dict[str, Any]
_QUANTITIES: dict[str, Callable[[Row], float | None]] = {
    "seconds": lambda row: row["secure"]["median"],
    "bytes by all": lambda row: row.get("bytes_total"),
    "bytes by a party": lambda row: row.get("bytes_per_party"),
}


def fits(rows: list[Row]) -> list[dict[str, Any]]:
    """Return the exponents of every series of a scheme that has at least two sizes.

    `exponent` is the slope of the least-squares line through all points of the logarithms;
    `last` is the slope between the two largest sizes, where fixed costs weigh least.
    """
    found = []
    good = [row for row in rows if "failure" not in row and row["series"] in row["sizes"]]
    for scheme, series in dict.fromkeys((row.get("scheme", ""), row["series"]) for row in good):
        # Of two rows of one size, which quick runs may have, the last one counts.
        points = {
            row["sizes"][series]: row
            for row in good
            if (row.get("scheme", ""), row["series"]) == (scheme, series)
        }
        counts = sorted(points)
        if len(counts) < 2:
            continue
        sizes = np.log(counts)
        for quantity, read in _QUANTITIES.items():
            values = [read(points[count]) for count in counts]
            if not all(values):  # not counted, or nothing was sent
                continue
            costs = np.log(np.array(values, np.float64))
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
