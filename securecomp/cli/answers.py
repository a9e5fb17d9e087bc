"""Answers of a consortium, as its commands show them: questions with their results."""

from collections.abc import Sequence
from typing import Any

import click

from securecomp.show.console import console, show

Answers = Sequence[tuple[Any, Any]]
"""Questions and results; a result is None where others alone hear the total."""


def as_json(found: Answers) -> list[dict[str, Any]]:
    """Return answers as JSON can hold them."""
    return [
        {"ask": str(question), "result": None if result is None else result.to_json()}
        for question, result in found
    ]


def print_answers(found: Answers, site: str) -> None:
    """Print answers as a site has them."""
    for question, result in found:
        if result is None:
            click.echo(f"{question}: {site} did its part; the total goes to others alone")
        else:
            show(console(), result)
