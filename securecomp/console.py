"""What all commands share: errors in one line, and a sign of work for people who look."""

import contextlib
import sys
from collections.abc import Iterator

import click

from securecomp.errors import SecureCompError


@contextlib.contextmanager
def plain_errors() -> Iterator[None]:
    """Print what is wrong in one line and exit with status 1."""
    try:
        yield
    except SecureCompError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(1)


@contextlib.contextmanager
def status(text: str) -> Iterator[None]:
    """Show that work is going on, on a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(text):
        yield
