"""The README's table: the rows that have a target, written from a run's JSON between two marks."""

from pathlib import Path
from typing import Any

BEGIN, END = "<!-- measured -->", "<!-- /measured -->"


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


def write(reports: list[dict[str, Any]], readme: Path) -> None:
    """Put the table into the README.

    Raises:
        ValueError: The README has no place for it.
    """
    text = readme.read_text()
    start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    readme.write_text(f"{text[:start]}\n{table(reports)}\n{text[end:]}")
