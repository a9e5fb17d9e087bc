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
        target = row.get("target")
        if target is None:
            continue
        met = "met" if target["met"] else "**not met**"
        lines.append(f"| {row['title']} | {target['value']:.3g}x | {target['text']}: {met} |")
    return "\n".join(lines)


def write(reports: list[dict[str, Any]], readme: Path) -> None:
    """Put the table into the README.

    Raises:
        ValueError: The README has no place for it.
    """
    text = readme.read_text()
    start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    readme.write_text(f"{text[:start]}\n{table(reports)}\n{text[end:]}")
