"""Marks that outlive a crash: what was spent once is never spent again.

A role writes a mark before the message that it stands for leaves. Whoever restarts the role from
saved state finds the mark and cannot send a second message under the same one-time secrets.
"""

import hashlib
import os
from pathlib import Path
from typing import Protocol

from securecomp.errors import LocalProtocolError


class Journal(Protocol):
    """Where marks are kept."""

    def spend(self, mark: str) -> None:
        """Record a mark durably.

        Raises:
            LocalProtocolError: It is there already.
        """

    def has(self, mark: str) -> bool:
        """Return whether a mark is there."""


def _spent(mark: str) -> LocalProtocolError:
    return LocalProtocolError(
        f"{mark}: was done before, perhaps by a process that was killed; start a new session"
    )


class MemoryJournal:
    """Marks of this process only: enough where saved state is never used again."""

    def __init__(self) -> None:
        self._marks: set[str] = set()

    def spend(self, mark: str) -> None:
        """Record a mark."""
        if mark in self._marks:
            raise _spent(mark)
        self._marks.add(mark)

    def has(self, mark: str) -> bool:
        """Return whether a mark is there."""
        return mark in self._marks


class FileJournal:
    """One empty file a mark, in a folder that only this party writes.

    The file is created exclusively and reaches the disk, and so does the folder's entry, before
    `spend` returns.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder).resolve()  # stays where it is if the process moves
        new = [path for path in (self._folder, *self._folder.parents) if not path.exists()]
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in new:
            sync(path.parent)

    def spend(self, mark: str) -> None:
        """Record a mark."""
        try:
            file = os.open(self._path(mark), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise _spent(mark) from None
        try:
            os.fsync(file)
        finally:
            os.close(file)
        sync(self._folder)

    def has(self, mark: str) -> bool:
        """Return whether a mark is there."""
        return self._path(mark).exists()

    def _path(self, mark: str) -> Path:
        return self._folder / hashlib.sha256(mark.encode()).hexdigest()


def sync(folder: Path) -> None:
    """Make a folder's entries reach the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
