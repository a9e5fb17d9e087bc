"""State of one party in one study, in one SQLite file: what was sent, heard and opened.

Every message is committed here before it is sent, and every message that was heard before anybody
acts on it. A program that is killed runs again from its start, draws the same random numbers from
the seed that is kept here, and finds what it sent and heard; so it sends nothing with other bytes,
and no one-time secret serves twice. A message that would differ from the one that was sent is
refused: the site's data or software has changed since.

The file holds secrets: the seed of the one-time secrets of the running computation.
"""

import json
import os
import sqlite3
import threading
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from securecomp.core import entropy
from securecomp.core.secret import Secret
from securecomp.errors import LocalProtocolError, ParameterError, RemoteProtocolError
from securecomp.protocol import storage

SEED_BYTES = 32
Post = tuple[str, str, bytes]
"""Recipient (or sender), tag, message."""

SESSION = "/session/"
"""Tags of announcements begin so, and none of a run: a run's name has no slash."""

_TABLES = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS outbox (
    number INTEGER PRIMARY KEY, recipient TEXT NOT NULL, tag TEXT NOT NULL, body BLOB NOT NULL,
    sent INTEGER NOT NULL DEFAULT 0, UNIQUE (recipient, tag));
CREATE TABLE IF NOT EXISTS inbox (
    sender TEXT NOT NULL, tag TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (tag, sender));
CREATE TABLE IF NOT EXISTS totals (
    number INTEGER PRIMARY KEY, session BLOB NOT NULL, total BLOB NOT NULL);
"""


class SiteState(Secret):
    """The durable state of a party."""

    def __init__(self, path: Path, study: bytes, party: str) -> None:
        """Open the file, or make one that only this user can read.

        Args:
            path: The file.
            study: SHA-256 of the study file.
            party: Whose state it is.

        Raises:
            ParameterError: The file is of another study or party, in use, or cannot be written.
        """
        try:
            storage.private_folder(path.parent)
            if not path.exists():
                storage.create_private(path)
            self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._db.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.execute("PRAGMA secure_delete=ON")
            self._db.executescript(_TABLES)
        except (OSError, sqlite3.Error) as error:
            raise ParameterError(f"{path}: the state cannot be opened: {error}") from None
        self._lock = threading.RLock()
        self._path = path
        if self.fact("study", study) != study or self.fact("party", party.encode()) != (
            party.encode()
        ):
            self._db.close()
            raise ParameterError(
                f"{path}: the state of another study, or of another party; name another file"
            )
        self.seed = self.fact("seed", entropy.system(SEED_BYTES))

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    def fact(self, name: str, value: bytes) -> bytes:
        """Return a fact that is kept; the first value that is given is the one."""
        with self._lock:
            found = self.known(name)
            if found is None:
                self._write([("INSERT INTO facts VALUES (?, ?)", (name, value))])
                found = value
        return found

    def known(self, name: str) -> bytes | None:
        """Return a fact if there is one."""
        with self._lock:
            found = self._db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if found is None else bytes(found[0])

    def put(self, posts: Sequence[Post]) -> None:
        """Commit messages that are to be sent: recipient, tag and message.

        Raises:
            LocalProtocolError: One was put before with other bytes.
        """
        with self._lock:
            new: list[Command] = []
            for recipient, tag, body in posts:
                query = "SELECT body FROM outbox WHERE recipient = ? AND tag = ?"
                found = self._db.execute(query, (recipient, tag)).fetchone()
                if found is None:
                    new.append(
                        (
                            "INSERT INTO outbox (recipient, tag, body) VALUES (?, ?, ?)",
                            (recipient, tag, body),
                        )
                    )
                elif bytes(found[0]) != body:
                    raise LocalProtocolError(
                        f"the message to {recipient} would differ from the one that was sent "
                        "before the restart: the data or the software has changed; go on with the "
                        "old ones, or begin a new run at all parties (--run)"
                    )
            self._write(new)

    def unsent(self, most: int) -> list[tuple[int, str, str, bytes]]:
        """Return messages that are not known to have arrived, oldest first, of so many bytes."""
        found: list[tuple[int, str, str, bytes]] = []
        size = 0
        with self._lock:
            rows = self._db.execute(
                "SELECT number, recipient, tag, body FROM outbox WHERE sent = 0 ORDER BY number"
            )
            for number, recipient, tag, body in rows:
                if found and size + len(body) > most:
                    break
                found.append((number, recipient, tag, bytes(body)))
                size += len(body)
        return found

    def sent(self, numbers: Iterable[int]) -> None:
        """Note that messages have arrived at the relay."""
        with self._lock:
            self._write([("UPDATE outbox SET sent = 1 WHERE number = ?", (n,)) for n in numbers])

    def heard(self, posts: Iterable[Post], last: int) -> None:
        """Commit messages that came in, and up to where the relay's queue was read.

        Raises:
            RemoteProtocolError: A party has sent two different messages of one tag.
        """
        with self._lock:
            new: list[Command] = []
            for sender, tag, body in posts:
                found = self._heard(sender, tag)
                if found is not None and found != body:
                    raise RemoteProtocolError(
                        sender, "two different messages came for one step", authenticated=False
                    )
                new.append(("INSERT OR IGNORE INTO inbox VALUES (?, ?, ?)", (sender, tag, body)))
            new.append(("INSERT OR REPLACE INTO facts VALUES ('read', ?)", (str(last).encode(),)))
            self._write(new)

    @property
    def read(self) -> int:
        """Up to where the relay's queue was read."""
        return int(self.known("read") or b"0")

    def message(self, sender: str, tag: str) -> bytes:
        """Return a message that was heard.

        Raises:
            LocalProtocolError: It was not.
        """
        found = self._heard(sender, tag)
        if found is None:
            raise LocalProtocolError(f"no message of {sender} was heard for {tag!r}")
        return found

    def _heard(self, sender: str, tag: str) -> bytes | None:
        query = "SELECT body FROM inbox WHERE sender = ? AND tag = ?"
        with self._lock:
            found = self._db.execute(query, (sender, tag)).fetchone()
        return None if found is None else bytes(found[0])

    def senders(self, tag: str) -> set[str]:
        """Return whose messages of a tag were heard."""
        with self._lock:
            rows = self._db.execute("SELECT sender FROM inbox WHERE tag = ?", (tag,)).fetchall()
        return {sender for (sender,) in rows}

    def tagged(self, prefix: str) -> list[tuple[str, str]]:
        """Return senders and tags of the messages whose tags begin so, as they were heard."""
        query = "SELECT sender, tag FROM inbox WHERE tag >= ? AND tag < ? ORDER BY rowid"
        with self._lock:
            return list(self._db.execute(query, _range(prefix)))

    def closed(self, tag: str, senders: Collection[str]) -> list[str]:
        """Return whose messages count in a step; the first list that is given is the one."""
        return list(json.loads(self.fact(f"closed {tag}", json.dumps(list(senders)).encode())))

    def total(self, number: int) -> tuple[bytes, bytes] | None:
        """Return a sum's session and total, if it was opened."""
        query = "SELECT session, total FROM totals WHERE number = ?"
        with self._lock:
            found = self._db.execute(query, (number,)).fetchone()
        return None if found is None else (bytes(found[0]), bytes(found[1]))

    def posted(self, recipient: str, tag: str) -> bool:
        """Return whether a message was put, and not dropped since."""
        query = "SELECT 1 FROM outbox WHERE recipient = ? AND tag = ?"
        with self._lock:
            return self._db.execute(query, (recipient, tag)).fetchone() is not None

    def remember(self, number: int, session: bytes, total: bytes, spent: bytes) -> None:
        """Commit a total, and that its session is spent, as `spend` does.

        Args:
            number: Of the sum in the run.
            session: SHA-256 of the session.
            total: The total.
            spent: Id of the session.
        """
        known = ("INSERT OR IGNORE INTO totals VALUES (?, ?, ?)", (number, session, total))
        with self._lock:
            self._write([known, *_spending(spent)])

    def spend(self, session: bytes) -> None:
        """Commit that a session is over: its messages are dropped, once they were sent.

        A role of it must not be played again: without these messages its randomness would serve
        for others.
        """
        with self._lock:
            self._write(_spending(session))

    def spent(self, session: bytes) -> bool:
        """Return whether a session is over."""
        return self.known(f"spent {session.hex()}") is not None

    def finish(self) -> None:
        """Forget the seed: the run is done at this party. The totals stay, and say so again."""
        with self._lock:
            self._write([("UPDATE facts SET value = zeroblob(0) WHERE name = 'seed'", ())])
            self.seed = b""

    def _write(self, commands: Iterable["Command"]) -> None:
        """Run commands in one transaction; on the disk when this returns."""
        commands = list(commands)
        if not commands:
            return
        try:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                for command, values in commands:
                    self._db.execute(command, values)
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # a full disk has rolled back by itself
                    self._db.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise StateError(
                f"{self._path}: the state cannot be written: {error}; make room, and start again"
            ) from None

    def __repr__(self) -> str:
        return f"SiteState({os.fspath(self._path)!r})"


class StateError(LocalProtocolError):
    """The state cannot be written. The program is started again when it can."""


Command = tuple[str, tuple[object, ...]]


def _spending(session: bytes) -> list[Command]:
    """Return the commands by which a session is over."""
    steps = _range(f"{session.hex()}/")
    return [
        ("INSERT OR IGNORE INTO facts VALUES (?, x'01')", (f"spent {session.hex()}",)),
        ("DELETE FROM inbox WHERE tag >= ? AND tag < ?", steps),
        ("DELETE FROM inbox WHERE tag = ?", (f"{SESSION}{session.hex()}",)),
        ("DELETE FROM outbox WHERE sent = 1 AND tag >= ? AND tag < ?", steps),
    ]


def _range(prefix: str) -> tuple[str, str]:
    """Return the ends between which the tags lie that begin so."""
    return prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)
