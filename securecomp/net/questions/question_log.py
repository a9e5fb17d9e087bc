"""A site's log of questions: who asked, what this site answered, and what was opened to whom.

Each entry is a line of JSON, signed by the site, with the hash of the line before. So nobody
without the site's key can change, drop or insert one; who has the key, or cuts off the end, can.
Keep a copy of the last line's hash elsewhere.
"""

import hashlib
import json
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from securecomp.core.secret import Secret
from securecomp.errors import AuthenticationError, LocalProtocolError, ParameterError
from securecomp.protocol import identity as identity_
from securecomp.protocol import storage
from securecomp.protocol.identity import Identity

_PURPOSE = "question log"
Entry = Mapping[str, Any]


class QuestionLog(Secret):
    """The log of one site in one study, open for writing."""

    def __init__(self, path: Path, site: str, identity: Identity) -> None:
        """Read and verify what is there.

        Args:
            path: The file; made at the first entry.
            site: Whose log it is.
            identity: The site's keys.

        Raises:
            AuthenticationError: A line is not as this site wrote it.
            ParameterError: It cannot be read.
        """
        self.path, self._site, self._identity = path, site, identity
        whole = _whole_lines(path)
        entries, self._head = verified(whole, site, identity.public, path)
        self._there = {(e["part"], e["event"]) for e in entries}
        self._end = sum(len(line) + 1 for line in whole)
        self._lock = threading.Lock()

    def add(self, part: int, event: str, **facts: Any) -> None:
        """Write an entry, unless a program that was started again has written it before.

        Args:
            part: Part of the run.
            event: What happened; once in a part.
            facts: What JSON can hold, and no value of a row.

        Raises:
            LocalProtocolError: It does not reach the disk.
        """
        with self._lock:
            if (part, event) in self._there:
                return
            entry = {
                "time": datetime.now(UTC).isoformat(timespec="seconds"),
                "part": part,
                "event": event,
                **facts,
            }
            text = json.dumps(entry, sort_keys=True, ensure_ascii=True, allow_nan=False)
            signature = self._identity.sign(_PURPOSE, self._site, self._head, text)
            line = json.dumps([self._head, text, signature.hex()]).encode()
            try:
                with storage.locked(self.path) as file:
                    storage.append(file, self._end, line + b"\n")
            except OSError as error:
                raise LocalProtocolError(
                    f"{self.path}: cannot be written: {error.strerror}; make room, start again"
                ) from None
            self._end += len(line) + 1
            self._head = hashlib.sha256(line).hexdigest()
            self._there.add((part, event))


def read(path: Path, site: str, public: bytes) -> list[Entry]:
    """Read a log, and verify every line of it.

    Args:
        path: The file.
        site: Whose log it is.
        public: The site's public key.

    Raises:
        AuthenticationError: A line is not as this site wrote it, or not in its place.
        ParameterError: It cannot be read.
    """
    if not path.exists():
        raise ParameterError(f"{path}: there is no log; join --serve writes one beside its state")
    return verified(_whole_lines(path), site, public, path)[0]


def _whole_lines(path: Path) -> list[bytes]:
    """Return the whole lines of a file; a crash can leave a part of one behind them."""
    return storage.read_bytes(path).split(b"\n")[:-1] if path.exists() else []


def verified(lines: list[bytes], site: str, public: bytes, path: Path) -> tuple[list[Entry], str]:
    """Return the entries of a log's lines, and the hash of the last line.

    Raises:
        AuthenticationError: As `read`.
    """
    entries: list[Entry] = []
    head = ""
    for number, line in enumerate(lines, start=1):
        try:
            before, text, signature = json.loads(line)
            identity_.verify(public, bytes.fromhex(signature), site, _PURPOSE, site, head, text)
            if before != head:
                raise ValueError
            entries.append(json.loads(text))
        except (ValueError, TypeError, AuthenticationError):
            raise AuthenticationError(
                f"{path}: line {number} is not as {site} wrote it after line {number - 1}; the "
                "log was changed"
            ) from None
        head = hashlib.sha256(line).hexdigest()
    return entries, head
