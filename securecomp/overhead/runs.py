"""The JSON of a run, in a file: one line a row, so that a changed figure is one changed line."""

import json
from pathlib import Path
from typing import Any

from securecomp.errors import DecodeError
from securecomp.overhead.runner import FORMAT
from securecomp.protocol.storage import read_text, write_output

_NEEDED = {"machine": dict, "versions": dict, "rows": list, "fits": list, "peers": list}


def text(report: dict[str, Any]) -> str:
    """Return a report as JSON."""
    parts = []
    for name, value in report.items():
        written = json.dumps(value)
        if isinstance(value, list) and value:
            written = "[\n" + ",\n".join(json.dumps(item) for item in value) + "\n]"
        parts.append(f"{json.dumps(name)}: {written}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def write(report: dict[str, Any], file: Path) -> None:
    """Write a report to a file.

    Raises:
        ParameterError: It cannot be written.
    """
    write_output(file, text(report).encode(), [])


def read(file: Path) -> dict[str, Any]:
    """Return the report in a file.

    Raises:
        ParameterError: It cannot be read.
        DecodeError: It is not the JSON of a run.
    """
    try:
        report = json.loads(read_text(file))
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError):
            raise DecodeError(f"{file}: is not JSON: {error}") from None
        raise
    if not isinstance(report, dict) or report.get("format") != FORMAT:
        raise DecodeError(f"{file}: is not a run of `securecomp bench --json` in format {FORMAT}")
    for name, kind in _NEEDED.items():
        if not isinstance(report.get(name), kind):
            raise DecodeError(f"{file}: is not the JSON of a run: it has no {name!r}")
    for row in report["rows"]:
        if not isinstance(row, dict) or not ("failure" in row or "secure" in row):
            raise DecodeError(f"{file}: a row has neither a time nor a failure")
    return report
