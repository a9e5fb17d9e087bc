"""What is written from the JSON in `results`: the README's table, the runs' tables, the plots."""

from pathlib import Path
from typing import Any

from securecomp.overhead import runs

BEGIN, END = "<!-- measured -->", "<!-- /measured -->"
ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
RUNS = (
    *("sharing-masking", "paillier", "ckks", "computing", "analyses", "privacy"),
    *("training", "audits"),
)
PLOTS = {"clients": "sharing-masking", "rows": "ckks"}
"""Series, which names the picture, and the run that it is of."""


def table(reports: list[dict[str, Any]]) -> str:
    """Return the Markdown table of the rows with a target, of one or several runs."""
    machine = reports[0]["machine"]
    lines = [
        f"Written from a run on {machine['cpu']}, {machine['cores']} cores. "
        "A ratio is the median over samples that took turns.",
        "",
        "| job | measured | promised |",
        "| --- | --- | --- |",
    ]
    for row in (row for r in reports for row in (*r["rows"], *r["peers"])):
        for target in targets(row):
            met = "met" if target["met"] else "**not met**"
            found = measured(target)
            if "with_setup" in row:
                found += f" ({row['with_setup']:.3g}x with the dealer)"
            lines.append(f"| {row['title']} | {found} | {target['text']}: {met} |")
    return "\n".join(lines)


def targets(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a row's targets; earlier runs had at most one."""
    return row.get("targets", [row["target"]] if "target" in row else [])


def measured(target: dict[str, Any]) -> str:
    """Return what a target's number is, with its unit."""
    unit = target.get("unit", "x")
    number = f"{target['value']:.3g}"
    return f"{number}x" if unit == "x" else number if unit == "error" else f"{number} {unit}"


def readme(text: str, reports: list[dict[str, Any]]) -> str:
    """Return the README's text with the table of these runs.

    Raises:
        ValueError: The README has no place for it.
    """
    start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    return f"{text[:start]}\n{table(reports)}\n{text[end:]}"


def kept() -> dict[str, dict[str, Any]]:
    """Return the runs in `results`, by name, in the README's order."""
    return {name: runs.read(RESULTS / f"{name}.json") for name in RUNS}


def write() -> None:
    """Write all that comes from the runs in `results`."""
    from benchmarks.plot import draw  # matplotlib is needed here alone
    from benchmarks.table import markdown  # which shows targets as they are shown here

    found = kept()
    page = ROOT / "README.md"
    page.write_text(readme(page.read_text(), list(found.values())))
    for name, report in found.items():
        (RESULTS / f"{name}.md").write_text(markdown(report))
    for series, name in PLOTS.items():
        draw(found[name], series, RESULTS / f"{series}.svg")
