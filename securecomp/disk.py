"""Files of the command line: secrets are never overwritten, results never written over inputs."""

import os
from collections.abc import Sequence
from pathlib import Path

from securecomp.errors import ParameterError


def write_new(path: Path, text: str, mode: int) -> None:
    """Write a file with these permissions; an existing one is never overwritten.

    Raises:
        ParameterError: The file exists, or cannot be written.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except OSError as error:
        raise ParameterError(f"{path}: cannot be written: {error.strerror}") from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text + "\n")


def check_output(path: Path, inputs: Sequence[Path]) -> None:
    """Refuse a place for a result before anything is done for it.

    Raises:
        ParameterError: The file is one of the inputs, or its folder cannot be written.
    """
    if any(path.exists() and path.samefile(i) for i in inputs if i.exists()):
        raise ParameterError(f"{path}: is an input; name another output")
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise ParameterError(f"{path}: cannot be written: name a file in a folder that can be")


def write_output(path: Path, data: bytes, inputs: Sequence[Path]) -> None:
    """Write a result, never over what it was made of.

    Raises:
        ParameterError: The file is one of the inputs, or cannot be written.
    """
    check_output(path, inputs)
    try:
        path.write_bytes(data)
    except OSError as error:
        raise ParameterError(f"{path}: cannot be written: {error.strerror}") from None


def read_bytes(path: Path) -> bytes:
    """Read a file.

    Raises:
        ParameterError: It cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise ParameterError(f"{path}: cannot be read: {error.strerror}") from None


def read_text(path: Path) -> str:
    """Read a text file.

    Raises:
        ParameterError: It cannot be read, or is no text.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ParameterError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ParameterError(f"{path}: cannot be read: it is not text") from None
