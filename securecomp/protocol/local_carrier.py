"""All roles in one process: a carrier that hands over the sealed bytes, and counts them.

The messages between the roles are the ones that would cross a network.
"""

import os
import threading
from collections.abc import Callable, Collection, Iterable

import numpy as np
import numpy.typing as npt

from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.core.parallel import Threads
from securecomp.core.secret import Secret
from securecomp.errors import LocalProtocolError
from securecomp.protocol import wire
from securecomp.protocol.carrier import K, Posts, T, Transcript, Vector
from securecomp.protocol.identity import Identity
from securecomp.protocol.session import Session

_WORTH_A_THREAD = 1 << 16  # elements; the kernels release the GIL


class LocalCarrier(Secret):
    """Brings messages from role to role within this process, and counts them."""

    def __init__(self, entropy: Entropy = entropy_.system) -> None:
        self.entropy = self.session_ids = entropy
        self.receivers: tuple[str, ...] | None = None
        self.transcript = Transcript()
        self._identities: dict[str, Identity] = {}
        self._lock = threading.Lock()
        self._threads = Threads()  # kept: a protocol of many rounds would start thousands

    def start(self) -> None:
        """Begin a new computation: count from zero. The parties keep their keys."""
        self.transcript = Transcript()

    def identity(self, name: str) -> Identity:
        """Return a party's key, drawn at the first call."""
        if name not in self._identities:
            self._identities[name] = Identity.generate(self.entropy)
        return self._identities[name]

    def here(self, name: str) -> bool:
        """Return True: all parties run here."""
        del name
        return True

    def public(self, name: str) -> bytes:
        """Return a party's public key."""
        return self.identity(name).public

    def sites_key(self) -> bytes:
        """Return 32 random bytes."""
        return self.entropy(32)

    def randomness(self, session: Session, name: str, role: str) -> Entropy:
        """Return the one source of all parties."""
        del session, name, role
        return self.entropy

    def deliver(
        self,
        session: Session,
        step: str,
        posts: Posts,
        senders: Collection[str],
        recipients: Collection[str],
        *,
        instead: str | None = None,
        patient: bool = True,
    ) -> dict[str, dict[str, wire.Buffer]]:
        """Hand over the messages of a step, and count them."""
        del session, step, instead, patient
        return {
            recipient: {
                sender: self.send(sender, recipient, posts[sender][recipient])
                for sender in senders
                if recipient in posts.get(sender, ())
            }
            for recipient in recipients
        }

    def opened(self, session: Session, play: Callable[[], Vector | None]) -> Vector:
        """Return the total of a session. Nothing is remembered in memory."""
        del session
        total = play()
        if total is None:
            raise LocalProtocolError("a session without receivers has no total")
        return total

    def counted(self, session: Session, names: Collection[str]) -> None:
        """Do nothing: in memory a caller gets the survivors with the total."""

    def agree(self, what: str, values: npt.ArrayLike, tolerance: float) -> npt.NDArray[np.float64]:
        """Return the values: one process computes them for all sites."""
        del what, tolerance
        return np.asarray(values, np.float64)

    def send(self, sender: str, recipient: str, data: wire.Buffer) -> wire.Buffer:
        """Count a message and return it. What a party keeps to itself is not counted."""
        if sender != recipient:
            with self._lock:
                self.transcript.count(sender, recipient, len(data))
        return data

    def next_round(self) -> None:
        """Count a round."""
        self.transcript.rounds += 1

    def each(self, work: Callable[[K], T], names: Iterable[K], elements: int) -> dict[K, T]:
        """Do the work of several parties, side by side where the vectors are worth a thread."""
        names = list(names)
        workers = 1 if elements < _WORTH_A_THREAD else os.cpu_count() or 1
        return dict(zip(names, self._threads.each(work, names, workers), strict=True))
