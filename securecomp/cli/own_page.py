"""The page that `securecomp join --page` shows while it runs, and until it is told to end."""

import contextlib
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from securecomp.cli import network_options as net

if TYPE_CHECKING:
    from securecomp.net.pages.site_page import SitePage


def options(command: Any) -> Any:
    """Add the page's options to a command."""
    command = click.option(
        "--page-port", default=0, metavar="PORT", help="The page's port; by default any."
    )(command)
    return click.option(
        "--page", is_flag=True, help="Show progress and results in a browser on this machine."
    )(command)


def check(given: Mapping[str, Any]) -> None:
    """Refuse a page for which a package is missing, before anything is computed.

    Raises:
        click.UsageError: One is.
    """
    from importlib.util import find_spec

    absent = [name for name in ("jinja2", "matplotlib") if find_spec(name) is None]
    if given["page"] and absent:
        raise click.UsageError(
            f"--page needs {' and '.join(absent)}: pip install 'securecomp[report]'"
        )


@contextlib.contextmanager
def showing(
    given: Mapping[str, Any], site: str, study: str, state: Path
) -> Iterator["SitePage | None"]:
    """Show a page for a block, and after it until the program is interrupted, if one is asked for.

    Raises:
        ParameterError: Another program listens on the port.
    """
    if not given["page"]:
        yield None
        return
    from securecomp.cli.report_page import page
    from securecomp.net.pages.site_page import SitePage

    shown = SitePage(
        site, study, state, lambda found: page([result for _, result in found]), given["page_port"]
    )
    try:
        net.note(f"page: {shown.address}")
        yield shown
        shown.end("The run is done. The results stay here until the program is ended.")
        net.note("done; the page stays until you press Ctrl-C")
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()
    finally:
        shown.close()
