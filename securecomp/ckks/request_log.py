"""A server's log of answered requests: it refuses replays and counts each client's rows.

A request counts before its answer leaves. So a crash may cost a client rows that it did not get,
but never gives it more.
"""

import hashlib
import os
import threading
from pathlib import Path
from typing import BinaryIO, Protocol

from securecomp.errors import (
    BudgetError,
    LocalProtocolError,
    ParameterError,
    RemoteProtocolError,
)
from securecomp.protocol import storage


class RequestLog(Protocol):
    """A record of answered requests."""

    def check(self, client: str, request: bytes, rows: int, limit: int) -> None:
        """Refuse a request that `spend` would refuse, and record nothing."""

    def spend(self, client: str, request: bytes, rows: int, limit: int) -> None:
        """Record a request durably.

        Args:
            client: The client's name. All keys of a client share one account.
            request: The request's id.
            rows: Number of rows in it.
            limit: Total number of rows that the client may ask for; 0 for no limit.

        Raises:
            RemoteProtocolError: It was answered before.
            BudgetError: With earlier requests it has too many rows. Nothing is recorded.
        """


def _check(client: str, seen: bool, spent: int, rows: int, limit: int) -> None:
    if seen:
        raise RemoteProtocolError(client, "this request was answered before; it is a replay")
    if limit and spent + rows > limit:
        raise BudgetError(
            f"{client}: {rows} more rows after {spent} would pass the {limit} that this model "
            "answers for one client; ask for fewer rows"
        )


class MemoryRequestLog:
    """A log in memory, for a server that runs as one process and is never restarted."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, bytes]] = set()
        self._spent: dict[str, int] = {}
        self._lock = threading.Lock()

    def check(self, client: str, request: bytes, rows: int, limit: int) -> None:
        """Refuse what `spend` would refuse."""
        _check(client, (client, request) in self._seen, self._spent.get(client, 0), rows, limit)

    def spend(self, client: str, request: bytes, rows: int, limit: int) -> None:
        """Record a request."""
        with self._lock:
            self.check(client, request, rows, limit)
            self._seen.add((client, request))
            self._spent[client] = self._spent.get(client, 0) + rows


class FileRequestLog:
    """A folder with one file for each client, and one line for each request in it.

    Only the server writes there. Processes that share the folder take turns, and a line is on the
    disk before `spend` returns.
    """

    def __init__(self, folder: str | os.PathLike[str], *, create: bool = True) -> None:
        """Take a folder.

        Args:
            folder: Path of the folder.
            create: Make the folder if it is missing. Pass False where it must exist: without it
                no row would count as answered.

        Raises:
            ParameterError: The folder is missing, or cannot be made or read.
            BackendUnavailableError: This system cannot lock files.
        """
        storage.check_locks("a FileRequestLog", "keep the server running with a MemoryRequestLog")
        self._folder = Path(folder).resolve()
        try:
            if create:
                storage.private_folder(folder)
            else:
                os.scandir(self._folder).close()
        except OSError as error:
            raise ParameterError(
                f"{folder}: there is no log of answered rows here: {error.strerror}"
            ) from None
        self._accounts: dict[Path, _Account] = {}
        self._lock = threading.Lock()

    def check(self, client: str, request: bytes, rows: int, limit: int) -> None:
        """Refuse what `spend` would refuse."""
        self._visit(client, request, rows, limit, write=False)

    def spend(self, client: str, request: bytes, rows: int, limit: int) -> None:
        """Record a request."""
        self._visit(client, request, rows, limit, write=True)

    def _visit(self, client: str, request: bytes, rows: int, limit: int, write: bool) -> None:
        path = self._folder / hashlib.sha256(client.encode()).hexdigest()
        try:
            with self._lock, storage.locked(path) as file:
                account = self._accounts.setdefault(path, _Account())
                account.read(file, client)
                _check(client, request.hex() in account.seen, account.spent, rows, limit)
                if write:
                    storage.append(file, account.end, f"{request.hex()} {rows}\n".encode())
        except OSError as error:
            raise LocalProtocolError(
                f"{path}: the rows of {client} cannot be counted, so no request is answered: "
                f"{error.strerror}"
            ) from None


class _Account:
    """A client's file, as far as it was read."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.spent = 0
        self.end = 0

    def read(self, file: BinaryIO, client: str) -> None:
        """Read the new lines.

        Raises:
            LocalProtocolError: The file is damaged, or shorter than it was.
        """
        file.seek(0, os.SEEK_END)
        damaged = file.tell() < self.end
        file.seek(self.end)
        text = file.read()
        # A crash interrupted a line without its end; its request was not answered.
        whole = text[: text.rfind(b"\n") + 1]
        try:
            lines = [line.split() for line in whole.decode("ascii").splitlines()]
            counts = [(known, int(count)) for known, count in lines]
        except ValueError:
            damaged = True
        if damaged or any(count < 1 for _, count in counts):
            raise LocalProtocolError(
                f"{file.name}: is damaged, so it is unknown how many rows {client} has had"
            )
        self.seen.update(known for known, _ in counts)
        self.spent += sum(count for _, count in counts)
        self.end += len(whole)
