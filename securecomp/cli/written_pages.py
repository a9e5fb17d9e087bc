"""Pages that commands write: refused before anything is computed, written whole or not at all."""

from pathlib import Path

import click

_PAGE = b"<!doctype html"
"""The beginning of our pages."""


def check_page(path: Path) -> None:
    """Refuse a page that could not be written, before anything is computed.

    Raises:
        click.UsageError: The folder is missing, the file exists and is no page (it may be the
            data), or a package is not installed.
        ParameterError: The file cannot be written.
    """
    from importlib.util import find_spec

    from securecomp.errors import ParameterError
    from securecomp.protocol.storage import check_output

    if not path.parent.is_dir():
        raise click.BadParameter(f"there is no folder {path.parent}", param_hint="--html")
    if path.is_file() and path.stat().st_size:
        try:
            with path.open("rb") as file:
                begin = file.read(len(_PAGE)).lower()
        except OSError as error:
            raise ParameterError(f"{path}: cannot be written: {error.strerror}") from None
        if begin != _PAGE:
            raise click.BadParameter(
                f"{path} exists and is not a page; writing would lose it. Give another name",
                param_hint="--html",
            )
    check_output(path, [])
    absent = [name for name in ("jinja2", "matplotlib") if find_spec(name) is None]
    if absent:
        raise click.UsageError(
            f"--html needs {' and '.join(absent)}: pip install 'securecomp[report]'"
        )


def write_page(path: Path, text: str) -> None:
    """Write a page.

    Raises:
        ParameterError: It cannot be written.
    """
    from securecomp.protocol.storage import write_output

    write_output(path, text.encode(), [])
