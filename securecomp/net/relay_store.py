"""The relay's queues, in SQLite: sealed messages wait here until their recipient took them."""

import contextlib
import hashlib
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

from securecomp.errors import ParameterError, RemoteProtocolError
from securecomp.protocol import storage

MOST_QUEUED = 4 << 30
"""Bytes that wait for one recipient."""

_TABLES = """
CREATE TABLE IF NOT EXISTS messages (
    number INTEGER PRIMARY KEY AUTOINCREMENT, study TEXT NOT NULL, recipient TEXT NOT NULL,
    sender TEXT NOT NULL, tag TEXT NOT NULL, digest BLOB NOT NULL, size INTEGER NOT NULL,
    body BLOB, UNIQUE (study, recipient, sender, tag));
CREATE INDEX IF NOT EXISTS queues ON messages (study, recipient, number) WHERE body IS NOT NULL;
"""


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
        except (OSError, sqlite3.Error) as error:
            raise ParameterError(f"{path}: cannot be opened: {error}") from None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    def put(self, study: str, sender: str, posts: list[tuple[str, str, bytes]]) -> None:
        """Commit messages. One that is there already is taken again in silence.

        Raises:
            RemoteProtocolError: One came before with other bytes.
            ParameterError: A queue or the disk is full; nothing was stored.
        """
        with self._written():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                for recipient, tag, body in posts:
                    self._put(study, sender, recipient, tag, body)
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # a full disk has rolled back by itself
                    self._db.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def _written(self) -> Iterator[None]:
        """Hold the lock while the file is written; say what to do if it cannot be."""
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                raise ParameterError(
                    f"the relay's disk cannot be written: {error}; its operator has to make room"
                ) from None

    def _put(self, study: str, sender: str, recipient: str, tag: str, body: bytes) -> None:
        digest = hashlib.sha256(body).digest()
        query = "SELECT digest FROM messages WHERE study=? AND recipient=? AND sender=? AND tag=?"
        found = self._db.execute(query, (study, recipient, sender, tag)).fetchone()
        if found is not None:
            if bytes(found[0]) != digest:
                raise RemoteProtocolError(sender, f"another message {tag!r} was sent before")
            return
        # Over all runs of the study: "0" is the character after "/".
        query = (
            "SELECT total(size) FROM messages "
            "WHERE study >= ? AND study < ? AND recipient=? AND body NOT NULL"
        )
        whole = study.partition("/")[0]
        queued = self._db.execute(query, (f"{whole}/", f"{whole}0", recipient)).fetchone()[0]
        if queued + len(body) > MOST_QUEUED:
            raise ParameterError(f"the queue of {recipient!r} is full; it takes nothing out")
        self._db.execute(
            "INSERT INTO messages (study, recipient, sender, tag, digest, size, body) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (study, recipient, sender, tag, digest, len(body), body),
        )

    def take(
        self, study: str, recipient: str, after: int, most: int
    ) -> list[tuple[int, str, str, bytes]]:
        """Drop a queue up to a number, and return what comes next: number, sender, tag, body.

        Args:
            study: Which study.
            recipient: Whose queue.
            after: The recipient has everything up to here on its own disk.
            most: Bytes to return at most, or one message.

        Raises:
            ParameterError: The disk is full; the queue is as it was.
        """
        found: list[tuple[int, str, str, bytes]] = []
        size = 0
        with self._written():
            # The digest stays, so that no second message can take its place.
            self._db.execute(
                "UPDATE messages SET body = NULL "
                "WHERE study=? AND recipient=? AND number <= ? AND body NOT NULL",
                (study, recipient, after),
            )
            rows = self._db.execute(
                "SELECT number, sender, tag, body, size FROM messages "
                "WHERE study=? AND recipient=? AND number > ? AND body NOT NULL ORDER BY number",
                (study, recipient, after),
            )
            for number, sender, tag, body, length in rows:
                if found and size + length > most:
                    break
                found.append((number, sender, tag, bytes(body)))
                size += length
        return found

    def waiting(self, study: str) -> dict[str, int]:
        """Return the bytes that wait for each party."""
        query = (
            "SELECT recipient, total(size) FROM messages WHERE study = ? AND body NOT NULL "
            "GROUP BY recipient"
        )
        with self._lock:
            return {party: int(size) for party, size in self._db.execute(query, (study,))}

    def counts(self) -> tuple[int, int]:
        """Return how many messages wait, and their bytes."""
        with self._lock:
            query = "SELECT count(*), total(size) FROM messages WHERE body NOT NULL"
            number, size = self._db.execute(query).fetchone()
        return int(number), int(size)
