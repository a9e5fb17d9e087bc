"""Draw how a series of a run grows: time and bytes against size, on logarithmic axes."""

import json
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

_WHO = {
    "clients": "one masking client, 10,000 elements, sparse graph",
    "parties": "private sum, 100 elements, all roles together",
    "rows": "encrypted inference, 30 features, client and server",
    "features": "encrypted inference, 1,000 rows, client and server",
    "compared": "comparisons on shares, 2 parties and a dealer",
    "elements": "private sum, 3 parties, all roles together",
}
_BYTES = {"clients": "bytes by a party"}


def curves(report: dict[str, Any], series: str) -> dict[str, Any]:
    """Return what the picture of a series shows: sizes, and each panel's label, values and title.

    Raises:
        ValueError: The run has fewer than two rows of it.
    """
    rows = [r for r in report["rows"] if r["series"] == series and "failure" not in r]
    if len(rows) < 2:
        raise ValueError(f"the run has fewer than two rows of the series {series!r}")
    quantity = _BYTES.get(series, "bytes by all")
    key = "bytes_per_party" if series in _BYTES else "bytes_total"
    fits = {f["quantity"]: f for f in report["fits"] if f["series"] == series}
    panels = (
        ("time, ms", [1e3 * row["secure"]["median"] for row in rows], fits["seconds"]),
        (quantity.replace("bytes", "kB sent"), [row[key] / 1e3 for row in rows], fits[quantity]),
    )
    return {
        "sizes": [row["sizes"][series] for row in rows],
        "panels": [
            [label, values, f"order {fit['exponent']:.2f}, last step {fit['last']:.2f}"]
            for label, values, fit in panels
        ],
    }


def draw(report: dict[str, Any], series: str, file: Path) -> None:
    """Write the picture of a series; its numbers are in the file's description too.

    Raises:
        ValueError: The run has fewer than two rows of it.
    """
    data = curves(report, series)
    sizes = data["sizes"]
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots(1, 2)
    figure.suptitle(f"Growth: {_WHO.get(series, series)}")
    for axis, (label, values, title) in zip(axes, data["panels"], strict=True):
        axis.loglog(sizes, values, marker="o")
        axis.set_title(title, fontsize=10)
        axis.set_xlabel(series)
        axis.set_ylabel(label)
        axis.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axis.xaxis.set_minor_locator(NullLocator())
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        if max(values) < 30 * min(values):  # few decades, and room to name what is between
            axis.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        else:
            axis.yaxis.set_minor_formatter(NullFormatter())
        axis.tick_params(axis="y", which="minor", labelsize=7)
        axis.grid(alpha=0.3)
    with rc_context({"svg.hashsalt": "securecomp"}):  # the same run draws the same file
        figure.savefig(file, metadata={"Date": None, "Description": json.dumps(data)})
