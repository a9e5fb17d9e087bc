"""Sending and hearing of one party: durable first, then over the relay, in the background."""

import contextlib
import threading
import time
from collections.abc import Callable, Sequence

from securecomp.core.secret import Secret
from securecomp.errors import LocalProtocolError, SecureCompError
from securecomp.net.relay_client import RelayClient
from securecomp.net.site_state import Post, SiteState

_BATCH = 32 << 20  # bytes; half of what a relay takes
_LOOK = 1.0  # seconds after which waiting looks around, if nothing wakes it


class PostOffice(Secret):
    """Puts messages into the state and sends them; keeps taking what comes in."""

    def __init__(self, state: SiteState, connect: Callable[[], RelayClient]) -> None:
        """Begin to listen.

        Args:
            state: What was sent and heard.
            connect: Makes a connection; one is for sending, one for listening.
        """
        self.state = state
        self._sending, self._listening = connect(), connect()
        self._news = threading.Condition()
        self._failed: SecureCompError | None = None
        self._stopped = False
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def put(self, posts: Sequence[Post]) -> None:
        """Commit messages, then send everything that was not sent."""
        self.state.put(posts)
        self.send()

    def send(self) -> None:
        """Send everything that was committed and not sent."""
        while batch := self.state.unsent(_BATCH):
            self._sending.post([(to, tag, body) for _, to, tag, body in batch])
            self.state.sent(number for number, _, _, _ in batch)

    def once(self, posts: Sequence[Post]) -> None:
        """Send messages that no restart sends again."""
        self._sending.post(list(posts))

    def seen(self) -> dict[str, float]:
        """Return when the relay last heard of each party, by its clock; nothing if it is silent."""
        try:
            return {name: known["seen"] for name, known in self._sending.status(once=True).items()}
        except (SecureCompError, LookupError):
            return {}

    def wait(self, ready: Callable[[], bool], until: float) -> bool:
        """Wait until something is ready; return False when the time (monotonic) has come.

        Raises:
            SecureCompError: Listening has failed.
        """
        with self._news:
            while not ready():
                if self._failed is not None:
                    raise self._failed
                left = until - time.monotonic()
                if left <= 0:
                    return False
                self._news.wait(min(left, _LOOK))
        return True

    def close(self) -> None:
        """Stop listening."""
        self._stopped = True
        self._listening.close()
        self._thread.join(0.05)
        self._sending.close()

    def _listen(self) -> None:
        while not self._stopped:
            try:
                found = self._listening.take(self.state.read)
                if found:
                    self.state.heard(
                        [(sender, tag, body) for _, sender, tag, body in found], found[-1][0]
                    )
            except SecureCompError as error:
                self._failed = error
            except Exception as error:  # whatever it is: who waits must hear of it
                self._failed = LocalProtocolError(
                    f"listening has failed: {type(error).__name__}: {error}; start it again"
                )
            with contextlib.suppress(RuntimeError), self._news:
                self._news.notify_all()
            if self._failed is not None:
                return
