"""The console of all commands: errors in one line, tables, and progress on a terminal."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from securecomp.errors import SecureCompError

if TYPE_CHECKING:
    from rich.console import Console

    from securecomp.show.exhibit import Exhibit


def printable(text: str) -> str:
    """Return text without characters that a terminal takes for commands or other directions."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


@contextlib.contextmanager
def plain_errors() -> Iterator[None]:
    """Print an error in one line and exit with status 1."""
    try:
        yield
    except SecureCompError as error:
        click.echo(printable(f"error: {error}"), err=True)
        sys.exit(1)


@contextlib.contextmanager
def plain_warnings() -> Iterator[None]:
    """Print each warning in one line, and go on; deprecations are not for users."""
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        finally:
            for warning in caught:
                if issubclass(warning.category, DeprecationWarning):
                    continue
                click.echo(printable(f"warning: {warning.message}"), err=True)


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


@contextlib.contextmanager
def progress_bar(text: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on a terminal, once the work has taken two seconds."""
    from rich.console import Console
    from rich.progress import Progress

    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(text, total=None, visible=False)
        start = time.monotonic()

        def update(done: int, total: int) -> None:
            late = time.monotonic() - start > 2
            bar.update(task, completed=done, total=total, visible=late)

        yield update


def shades(screen: "Console") -> bool:
    """Whether a console can show shades of grey in half blocks."""
    if not screen.is_terminal or screen.no_color:
        return False
    if screen.color_system not in ("256", "truecolor"):
        return False
    return screen.encoding.lower().replace("-", "") == "utf8"


def console() -> "Console":
    """Return the console for tables."""
    from rich.console import Console

    # A pipe has no width, and a table should not be folded there.
    return Console(highlight=False, width=None if sys.stdout.isatty() else 100)


def show(screen: "Console", exhibit: "Exhibit") -> None:
    """Print a result's tables and its notes."""
    for grid in exhibit.grids():
        title = f"{exhibit.title}: {grid.title}" if grid.title else exhibit.title
        table(screen, title, grid.header, grid.rows, named=True)
    for note in exhibit.notes():
        say(screen, note)


def say(screen: "Console", text: str) -> None:
    """Print a sentence."""
    screen.print(printable(text), soft_wrap=True, markup=False)


def table(
    screen: "Console",
    title: str,
    header: Sequence[str],
    cells: Sequence[Sequence[str]],
    named: bool = False,
) -> None:
    """Print a table. With `named`, the first column has names and is not cut."""
    from rich.table import Table
    from rich.text import Text

    # Data are text and not rich's markup. A title is not folded to its table's width.
    screen.print(Text(printable(title), style="bold"), soft_wrap=True)
    drawn = Table()
    for place, name in enumerate(header):
        # An analysis names its rows in the first column.
        left = named and place == 0
        drawn.add_column(
            Text(printable(name)),
            justify="left" if left else "right",
            overflow="fold" if left else "ellipsis",  # names that begin alike stay apart
        )
    for row in cells:
        drawn.add_row(*(Text(printable(cell)) for cell in row))
    screen.print(drawn)
