"""Marks that outlive a crash: what was spent once is never spent again.

A role writes a mark before the message that it stands for leaves. Whoever restarts the role from
saved state finds the mark and cannot send a second message under the same one-time secrets.
"""

import hashlib
import os
import threading
from pathlib import Path
from typing import Protocol

from securecomp.errors import LocalProtocolError
from securecomp.protocol.storage import create_private, private_folder


class Journal(Protocol):
    """Store of marks."""

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
        self._lock = threading.Lock()

    def spend(self, mark: str) -> None:
        """Record a mark."""
        with self._lock:
            if mark in self._marks:
                raise _spent(mark)
            self._marks.add(mark)

    def has(self, mark: str) -> bool:
        """Return whether a mark is there."""
        return mark in self._marks


class FileJournal:
    """One empty file a mark, in a folder that only this party writes.

    The file is created exclusively. It and its name are on the disk before `spend` returns.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = private_folder(folder)

    def spend(self, mark: str) -> None:
        """Record a mark."""
        try:
            create_private(self._path(mark))
        except FileExistsError:
            raise _spent(mark) from None

    def has(self, mark: str) -> bool:
        """Return whether a mark is there."""
        return self._path(mark).exists()

    def _path(self, mark: str) -> Path:
        return self._folder / hashlib.sha256(mark.encode()).hexdigest()
