"""Files that outlive a crash: private folders, exclusive marks, locks, appended and replaced files.

The durable stores stand on these: the journal of spent marks, the log of answered requests, the
privacy ledger and the checkpoints of a training. So do the files of the command line: a secret is
never overwritten, and a result is never written over an input.
"""

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from securecomp.core import entropy
from securecomp.errors import BackendUnavailableError, ParameterError

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


def sync_folder(folder: Path) -> None:
    """Make a folder's entries reach the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def private_folder(path: str | os.PathLike[str]) -> Path:
    """Make a folder, and those above it, where they are missing; only this user can enter it.

    Returns:
        Its resolved path, which stays right if the process changes its working directory.

    Raises:
        OSError: It cannot be made.
    """
    folder = Path(path).resolve()
    new = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for place in new:
        sync_folder(place.parent)
    return folder


def create_private(path: Path) -> None:
    """Create an empty file that only this user can read; it and its name are on the disk then.

    Raises:
        FileExistsError: It is there already. Of several processes exactly one creates it.
        OSError: It cannot be created.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync_folder(path.parent)


def check_locks(store: str, instead: str) -> None:
    """Refuse a store that several processes share where files cannot be locked.

    Args:
        store: What needs the locks.
        instead: What to do.

    Raises:
        BackendUnavailableError: This system has no `fcntl`.
    """
    if fcntl is None:
        raise BackendUnavailableError(
            f"{store} locks its files with fcntl, which this system does not have; {instead}"
        )


@contextlib.contextmanager
def locked(path: Path) -> Iterator[BinaryIO]:
    """Open a private file for reading and writing while no other process has it open this way.

    A missing file is created. The lock is for processes, and for file handles within one; closing
    the file frees it.

    Raises:
        OSError: It cannot be opened or locked.
    """

    def private(name: str, _: int) -> int:
        return os.open(name, os.O_RDWR | os.O_CREAT, 0o600)

    with open(path, "r+b", opener=private) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def append(file: BinaryIO, end: int, data: bytes) -> None:
    """Write data at `end` of a file that is locked, over what a crash left there, durably.

    Raises:
        OSError: It does not reach the disk.
    """
    if not os.fstat(file.fileno()).st_size:
        # Another process may have created the file and not synced its name.
        sync_folder(Path(file.name).parent)
    file.seek(end)
    file.truncate()
    file.write(data)
    file.flush()
    os.fsync(file.fileno())


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
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)


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
        sync_folder(path.parent)
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
