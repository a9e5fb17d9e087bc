"""Files of the command line: secrets are never overwritten, results never written over inputs."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from securecomp.core import entropy
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
    if path.is_file() and not os.access(path, os.W_OK):
        raise ParameterError(f"{path}: cannot be written: Permission denied")
    if path.is_dir() or not os.access(_real(path).parent, os.W_OK):
        raise ParameterError(f"{path}: cannot be written: name a file in a folder that can be")


def write_output(path: Path, data: bytes, inputs: Sequence[Path]) -> None:
    """Write a result, whole or not at all, never over what it was made of.

    An earlier result of this name stays until the new one is on the disk.

    Raises:
        ParameterError: The file is one of the inputs, or cannot be written.
    """
    check_output(path, inputs)
    try:
        if path.exists() and not path.is_file():  # a pipe or a device, which nothing may replace
            path.write_bytes(data)
        else:
            _replace(_real(path), data)
    except OSError as error:
        raise ParameterError(f"{path}: cannot be written: {error.strerror}") from None


def _real(path: Path) -> Path:
    """Return where a path leads, so that a link stays one and what it names is replaced."""
    return Path(os.path.realpath(path))


def _replace(path: Path, data: bytes) -> None:
    part = path.with_name(f".{entropy.system(16).hex()}.part")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(descriptor, "wb") as file:
            if path.exists():  # who could not read the earlier result cannot read this one
                part.chmod(stat.S_IMODE(path.stat().st_mode))
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


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
