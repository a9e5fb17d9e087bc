"""The relay's queues, in SQLite: sealed messages wait here until their recipient took them.

What a recipient has taken is dropped with the next write, since nothing but room depends on it. The
row stays, with the message's digest, so that no second message can take its place. How much a party
may leave here is bounded, over all runs of a study: the bytes that wait, and the rows that stay. So
a party that floods fills its own share of the disk, and nobody else's.
"""

import contextlib
import hashlib
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from securecomp.errors import ParameterError, RemoteProtocolError
from securecomp.protocol import storage

MOST_WAITING = 4 << 30
"""Bytes of one sender that wait, over all runs of a study."""
MOST_ROWS = 4_000_000
"""Messages of one sender, over all runs of a study; a row is some 250 bytes."""

_TABLES = """
CREATE TABLE IF NOT EXISTS messages (
    number INTEGER PRIMARY KEY AUTOINCREMENT, study TEXT NOT NULL, recipient TEXT NOT NULL,
    sender TEXT NOT NULL, tag TEXT NOT NULL, digest BLOB NOT NULL, size INTEGER NOT NULL,
    body BLOB, UNIQUE (study, recipient, sender, tag));
CREATE INDEX IF NOT EXISTS queues ON messages (study, recipient, number) WHERE body IS NOT NULL;
"""


@dataclass(slots=True)
class _Left:
    """What a sender has left here."""

    rows: int = 0
    waiting: int = 0


class RelayStore:
    """Durable queues. Messages are on the disk when `put` returns."""

    def __init__(self, path: Path) -> None:
        """Open the file, or make one that only this user can read.

        Raises:
            ParameterError: It cannot be opened.
        """
        try:
            if not path.exists():
                storage.create_private(path.resolve())
            self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.executescript(_TABLES)
            self._left: defaultdict[tuple[str, str], _Left] = defaultdict(_Left)
            query = (
                "SELECT study, sender, count(*), total(size * (body IS NOT NULL)) FROM messages "
                "GROUP BY study, sender"
            )
            for queues, sender, rows, size in self._db.execute(query):
                left = self._left[_study(queues), sender]
                left.rows, left.waiting = left.rows + rows, left.waiting + int(size)
        except (OSError, sqlite3.Error) as error:
            raise ParameterError(f"{path}: cannot be opened: {error}") from None
        self._taken: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the file."""
        self._drop_now()
        with self._lock:
            self._db.close()

    def put(self, queues: str, sender: str, posts: list[tuple[str, str, bytes]]) -> None:
        """Commit messages. One that is there already is taken again in silence.

        Args:
            queues: The study, a slash and the run.
            sender: Who sends them.
            posts: Recipient, tag and body of each.

        Raises:
            RemoteProtocolError: One came before with other bytes.
            ParameterError: The sender's share or the disk is full; nothing was stored.
        """
        with self._transaction() as dropped:
            left = self._left[_study(queues), sender]
            new = [
                len(body)
                for recipient, tag, body in posts
                if self._put(queues, sender, recipient, tag, body)
            ]
            rows, waiting = left.rows + len(new), left.waiting + sum(new)
            waiting -= sum(size for whose, size in dropped if whose is left)
            if new and (rows > MOST_ROWS or waiting > MOST_WAITING):
                raise ParameterError(
                    f"{sender!r} has left as much here as a party may: let the recipients take "
                    "what waits, or begin another study"
                )
        left.rows, left.waiting = left.rows + len(new), left.waiting + sum(new)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[list[tuple[_Left, int]]]:
        """Do all or nothing, and drop what was taken, which is given out: whose, and bytes.

        Raises:
            ParameterError: The disk is full.
        """
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    dropped = [
                        size
                        for (queues, recipient), after in self._taken.items()
                        for size in self._drop(queues, recipient, after)
                    ]
                    yield dropped
                    self._db.execute("COMMIT")
                except BaseException:
                    if self._db.in_transaction:  # a full disk has rolled back by itself
                        self._db.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                raise ParameterError(
                    f"the relay's disk cannot be written: {error}; its operator has to make room"
                ) from None
            self._taken.clear()
            for left, size in dropped:
                left.waiting -= size

    def _put(self, queues: str, sender: str, recipient: str, tag: str, body: bytes) -> bool:
        """Insert a message; return whether it is new."""
        digest = hashlib.sha256(body).digest()
        query = "SELECT digest FROM messages WHERE study=? AND recipient=? AND sender=? AND tag=?"
        found = self._db.execute(query, (queues, recipient, sender, tag)).fetchone()
        if found is not None:
            if bytes(found[0]) != digest:
                raise RemoteProtocolError(sender, f"another message {tag!r} was sent before")
            return False
        self._db.execute(
            "INSERT INTO messages (study, recipient, sender, tag, digest, size, body) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (queues, recipient, sender, tag, digest, len(body), body),
        )
        return True

    def _drop(self, queues: str, recipient: str, after: int) -> list[tuple[_Left, int]]:
        """Drop the bodies of a queue up to a number; return whose bytes these were."""
        place = (queues, recipient, after)
        query = (
            "SELECT sender, total(size) FROM messages "
            "WHERE study=? AND recipient=? AND number <= ? AND body NOT NULL GROUP BY sender"
        )
        found = self._db.execute(query, place).fetchall()
        self._db.execute(
            "UPDATE messages SET body = NULL "
            "WHERE study=? AND recipient=? AND number <= ? AND body NOT NULL",
            place,
        )
        return [(self._left[_study(queues), sender], int(size)) for sender, size in found]

    def take(
        self, queues: str, recipient: str, after: int, most: int
    ) -> list[tuple[int, str, str, bytes]]:
        """Return what waits in a queue after a number: number, sender, tag, body.

        Args:
            queues: The study, a slash and the run.
            recipient: Whose queue.
            after: The recipient has everything up to here on its own disk; it will be dropped.
            most: Bytes to return at most, or one message.
        """
        found: list[tuple[int, str, str, bytes]] = []
        size = 0
        with self._lock:
            if after:
                self._taken[queues, recipient] = max(after, self._taken.get((queues, recipient), 0))
            rows = self._db.execute(
                "SELECT number, sender, tag, body, size FROM messages "
                "WHERE study=? AND recipient=? AND number > ? AND body NOT NULL ORDER BY number",
                (queues, recipient, after),
            )
            for number, sender, tag, body, length in rows:
                if found and size + length > most:
                    break
                found.append((number, sender, tag, bytes(body)))
                size += length
        return found

    def waiting(self, queues: str) -> dict[str, int]:
        """Return the bytes that wait for each party."""
        query = (
            "SELECT recipient, total(size) FROM messages WHERE study = ? AND body NOT NULL "
            "GROUP BY recipient"
        )
        self._drop_now()
        with self._lock:
            return {party: int(size) for party, size in self._db.execute(query, (queues,))}

    def queues(self, study: str) -> dict[str, dict[str, tuple[int, int]]]:
        """Return the messages that wait in a study, by run and recipient: number and bytes."""
        query = (
            "SELECT study, recipient, count(*), total(size) FROM messages "
            "WHERE study >= ? AND study < ? AND body NOT NULL GROUP BY study, recipient"
        )
        self._drop_now()
        found: dict[str, dict[str, tuple[int, int]]] = {}
        with self._lock:  # "0" is the character after "/"
            for queues, party, number, size in self._db.execute(query, (f"{study}/", f"{study}0")):
                run = queues.removeprefix(f"{study}/")
                found.setdefault(run, {})[party] = int(number), int(size)
        return found

    def counts(self) -> tuple[int, int]:
        """Return how many messages wait, and their bytes."""
        query = "SELECT count(*), total(size) FROM messages WHERE body NOT NULL"
        self._drop_now()
        with self._lock:
            number, size = self._db.execute(query).fetchone()
        return int(number), int(size)

    def _drop_now(self) -> None:
        """Drop what was taken, if there is room to note it."""
        if self._taken:
            with contextlib.suppress(ParameterError), self._transaction():
                pass


def _study(queues: str) -> str:
    """Return the study that queues belong to."""
    return queues.partition("/")[0]
