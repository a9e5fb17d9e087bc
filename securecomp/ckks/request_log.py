"""Which requests a server answered, and how many rows each client got: also after a crash.

A request counts before its answer leaves, so a crash may cost a client rows that it did not get,
and never gives it more.
"""

import hashlib
import os
import threading
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from securecomp.errors import (
    BackendUnavailableError,
    BudgetError,
    LocalProtocolError,
    ParameterError,
    RemoteProtocolError,
)
from securecomp.protocol.journal import sync

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None


class RequestLog(Protocol):
    """Where answered requests are kept."""

    def check(self, client: str, request: bytes, rows: int, limit: int) -> None:
        """Refuse what `spend` would refuse, and record nothing."""

    def spend(self, client: str, request: bytes, rows: int, limit: int) -> None:
        """Record a request durably.

        Args:
            client: Who asks. All keys of a client share one account.
            request: Its id.
            rows: How many rows it has.
            limit: Rows that the client may ask for in all; 0 for no limit.

        Raises:
            RemoteProtocolError: It was answered before.
            BudgetError: Together with earlier ones it has too many rows. Nothing is recorded.
        """


def _check(client: str, seen: bool, spent: int, rows: int, limit: int) -> None:
    if seen:
        raise RemoteProtocolError(client, "this request was answered before; a replay")
    if limit and spent + rows > limit:
        raise BudgetError(
            f"{client}: {rows} more rows after {spent} would pass the {limit} that this model "
            "answers for one client"
        )


class MemoryRequestLog:
    """For a server that runs as one process and never comes back."""

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
    """A file a client in a folder that only the server writes: a line for each request.

    Processes that share the folder take turns; a line is on the disk before `spend` returns.
    """

    def __init__(self, folder: str | os.PathLike[str], *, create: bool = True) -> None:
        """Take a folder.

        Args:
            folder: Where the files are.
            create: Make the folder if it is missing. Where one must exist, because without it all
                rows would count as not asked yet, pass False.

        Raises:
            ParameterError: It is missing, or cannot be made or read.
            BackendUnavailableError: This system cannot lock files.
        """
        if fcntl is None:
            raise BackendUnavailableError(
                "a file ledger locks its files by fcntl, which this system has not; keep the "
                "server running with a MemoryRequestLog"
            )
        self._folder = Path(folder).resolve()
        try:
            if create:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                sync(self._folder.parent)
            else:
                os.scandir(self._folder).close()
        except OSError as error:
            raise ParameterError(
                f"{folder}: no ledger of answered rows is kept there: {error.strerror}"
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
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            with self._lock, os.fdopen(descriptor, "r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                account = self._accounts.setdefault(path, _Account())
                account.read(file, client)
                _check(client, request.hex() in account.seen, account.spent, rows, limit)
                if write:
                    self._write(file, account, f"{request.hex()} {rows}\n".encode())
        except OSError as error:
            raise LocalProtocolError(
                f"{path}: the rows of {client} cannot be counted, so nothing is answered: "
                f"{error.strerror}"
            ) from None

    def _write(self, file: BinaryIO, account: "_Account", line: bytes) -> None:
        if not os.fstat(file.fileno()).st_size:
            # Whoever made the file, perhaps another process, has not synced its name for sure.
            sync(self._folder)
        file.seek(account.end)
        file.truncate()
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


class _Account:
    """What a client's file says, as far as it was read."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.spent = 0
        self.end = 0

    def read(self, file: BinaryIO, client: str) -> None:
        """Read what is new.

        Raises:
            LocalProtocolError: The file is damaged, or shorter than it was.
        """
        file.seek(0, os.SEEK_END)
        damaged = file.tell() < self.end
        file.seek(self.end)
        text = file.read()
        # A line without its end was being written in a crash, and its request not answered.
        whole = text[: text.rfind(b"\n") + 1]
        try:
            lines = [line.split() for line in whole.decode("ascii").splitlines()]
            counts = [(known, int(count)) for known, count in lines]
        except ValueError:
            damaged = True
        if damaged or any(count < 1 for _, count in counts):
            raise LocalProtocolError(
                f"{file.name}: is damaged, and how many rows {client} has had is unknown"
            )
        self.seen.update(known for known, _ in counts)
        self.spent += sum(count for _, count in counts)
        self.end += len(whole)
