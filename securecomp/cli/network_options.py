"""Options of the commands that connect to a relay."""

import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import click

from securecomp.show.console import printable

_PATH = click.Path(path_type=Path)

_OPTIONS = (
    click.option("--relay", "url", required=True, metavar="URL", help="Address of the relay."),
    click.option("--state", type=_PATH, metavar="FILE", help="State; by default beside STUDY."),
    click.option("--run", default="1", show_default=True, help="Name of the run."),
    click.option("--proxy", metavar="URL", help="HTTP proxy."),
    click.option("--ca", type=_PATH, metavar="FILE", help="Private certificate authority."),
)


def network(command: Any) -> Any:
    """Add the options of a connection to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def connection(given: dict[str, Any]) -> Any:
    """Return the connection that these options say."""
    from securecomp.net.programs import Connection

    authority = given["ca"]
    return Connection(
        given["url"],
        given["state"],
        given["run"],
        given["proxy"],
        None if authority is None else str(authority),
        given.get("ledger"),
    )


def heard(also: Callable[[str, Collection[str]], None] | None = None) -> dict[str, Any]:
    """Return who hears what is awaited, and why a request is tried again.

    Args:
        also: Hears what is awaited too.
    """
    watch = Watch()

    def both(step: str, awaited: Collection[str]) -> None:
        watch(step, awaited)
        if also is not None:
            also(step, awaited)

    return {"watch": both, "note": note}


class Watch:
    """Says what is awaited, whenever that changes and has lasted a while."""

    def __init__(self) -> None:
        self._last = ""

    def __call__(self, step: str, awaited: Collection[str]) -> None:
        """Hear of a step, and who is awaited."""
        names = list(awaited)
        more = f" and {len(names) - 4} more" if len(names) > 4 else ""
        text = f"{step}: waiting for {', '.join(names[:4])}{more}" if names else ""
        if text and text != self._last and sys.stderr.isatty():
            note(text)
        self._last = text


def note(text: str) -> None:
    """Say something that is not the result."""
    click.echo(printable(text), err=True)
