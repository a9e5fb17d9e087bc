"""Tables and plots, written from the JSON in `results`: for README, pages and runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.table import assumptions, markdown
from benchmarks.targets import measured, targets
from securecomp.overhead import runs

BEGIN, END = "<!-- measured -->", "<!-- /measured -->"
ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
RUNS = (
    *("sharing-masking", "paillier", "ckks", "computing", "analyses", "privacy"),
    *("training", "audits"),
)
FEATURED = (
    "Private sum, 3 servers, an analyst receives",
    "Client masking, 52 neighbours",
    "MPyC, one party receives",
    "Flower, a client's key shares and masking",
    "phe decrypts, 3072 bits",
    "phe adds, 3072 bits",
    "Encrypted inference, server predicts, cores: 1",
    "TenSEAL server predicts",
    "SPU SEMI2K, 2 parties: comparisons",
    "On shares, matrix product, 2 parties and a dealer",
)
"""Titles of the rows in the README: one target of each."""
PAGES = {"README.md": FEATURED, "docs/measurements.md": None}
"""Pages with a table, and the rows in it; None for all."""
PLOTS = {"clients": "sharing-masking", "rows": "ckks"}
"""Series, which names the picture, and the run that it is of."""


def table(reports: list[dict[str, Any]], featured: Sequence[str] | None = None) -> str:
    """Return the Markdown table of the rows with a target, of one or several runs.

    Args:
        reports: The runs.
        featured: Titles of rows of which the first target is shown; by default all of all rows.
    """
    machine = reports[0]["machine"]
    lines = [
        f"Written from a run on {machine['cpu']}, {machine['cores']} cores. "
        "A ratio is the median over samples that took turns.",
        "",
        "| job | measured | promised |",
        "| --- | --- | --- |",
    ]
    rows = [row for r in reports for row in (*r["rows"], *r["peers"])]
    rows = [row for row in rows if featured is None or row["title"] in featured]
    for row in rows:
        for target in targets(row)[: None if featured is None else 1]:
            met = "met" if target["met"] else "**not met**"
            found = measured(target)
            if "with_setup" in row:
                found += f" ({row['with_setup']:.3g}x with the dealer)"
            lines.append(f"| {row['title']} | {found} | {target['text']}: {met} |")
    return "\n".join([*lines, *(f"\n{text}" for text in assumptions(rows))])


def filled(text: str, reports: list[dict[str, Any]], featured: Sequence[str] | None = None) -> str:
    """Return a page's text with the table of these runs.

    Raises:
        ValueError: The page has no place for it.
    """
    start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    return f"{text[:start]}\n{table(reports, featured)}\n{text[end:]}"


def kept() -> dict[str, dict[str, Any]]:
    """Return the runs in `results`, by name, in the README's order."""
    return {name: runs.read(RESULTS / f"{name}.json") for name in RUNS}


def write() -> None:
    """Write all that comes from the runs in `results`."""
    from benchmarks.plot import draw  # matplotlib is needed here alone

    found = kept()
    for page, featured in PAGES.items():
        path = ROOT / page
        path.write_text(filled(path.read_text(), list(found.values()), featured))
    for name, report in found.items():
        (RESULTS / f"{name}.md").write_text(markdown(report))
    for series, name in PLOTS.items():
        draw(found[name], series, RESULTS / f"{series}.svg")
