"""Protocol roles: states, one table of transitions, steps that happen once, sealed messages.

A role takes messages and returns messages. It opens no socket, reads no clock and starts no
thread. One literal table says what it may do in which state; everything else is refused.

A step claims the role before it works: a second thread waits, and then finds the state that the
first one left. So what may happen once happens once, whoever calls.
"""

import contextlib
import functools
import threading
from collections.abc import Callable, Collection, Iterator
from enum import Enum
from typing import Any, ClassVar

from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.core.secret import Secret
from securecomp.errors import (
    DecodeError,
    KeyMismatchError,
    LocalProtocolError,
    ParameterError,
    RemoteProtocolError,
)
from securecomp.protocol import identity as identity_
from securecomp.protocol import wire
from securecomp.protocol.identity import Identity
from securecomp.protocol.session import Session


class State(Enum):
    """State of a role. A role uses the states that its table names."""

    READY = "ready"
    ADVERTISED = "keys advertised"
    SHARED = "keys shared"
    MASKED = "vector sent"
    CONSENTED = "survivors signed"
    COLLECTING = "collecting"
    COLLECTING_KEYS = "collecting keys"
    COLLECTING_SHARES = "collecting key shares"
    COLLECTING_VECTORS = "collecting masked vectors"
    COLLECTING_CONSENTS = "collecting consents"
    COLLECTING_UNMASKS = "collecting unmasking shares"
    SEED_COMMITTED = "committed to a seed"
    SEED_OPENED = "seed opened"
    SIGMA_COMMITTED = "committed to its part of the check"
    SIGMA_OPENED = "part of the check opened"
    DONE = "done"
    ABORTED = "aborted"


def step(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of a role that claims the role before it works."""

    @functools.wraps(method)
    def claimed(self: "Role", *args: Any, **kwargs: Any) -> Any:
        with self._claim(method.__name__):
            return method(self, *args, **kwargs)

    claimed.__dict__["is_step"] = True
    return claimed


class Role(Secret):
    """A state machine without I/O that holds one-time secrets.

    Subclasses give `TRANSITIONS`: (state, event) -> next state, an event being the name of a
    public method. These methods claim the role while they work.
    """

    TRANSITIONS: ClassVar[dict[tuple[State, str], State]]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for event in {event for _, event in getattr(cls, "TRANSITIONS", ())}:
            method = getattr(cls, event, None)
            if method is not None and not hasattr(method, "is_step"):
                setattr(cls, event, step(method))

    def __init__(self, name: str, start: State) -> None:
        self.name = name
        self.state = start
        self._lock = threading.RLock()
        self._running: set[str] = set()

    @contextlib.contextmanager
    def _claim(self, event: str) -> Iterator[None]:
        """Keep other threads out of the role until this step is done.

        Raises:
            LocalProtocolError: The step was called from within itself, say through an argument that
                runs code when it is read.
        """
        with self._lock:
            if event in self._running:
                raise LocalProtocolError(
                    f"{type(self).__name__} {self.name!r}: {event}() was called while it is running"
                )
            self._running.add(event)
            try:
                yield
            finally:
                self._running.remove(event)

    def _next(self, event: str) -> State:
        """Return the state after `event`.

        Raises:
            LocalProtocolError: The table does not allow it here.
        """
        try:
            return self.TRANSITIONS[self.state, event]
        except KeyError:
            raise LocalProtocolError(
                f"{type(self).__name__} {self.name!r}: {event}() is not allowed when "
                f"{self.state.value}"
            ) from None

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Abort if something breaks while secrets are taken out: no second call may go on."""
        try:
            yield
        except BaseException:
            self.abort()
            raise

    def abort(self) -> None:
        """Drop the secrets and stop. Allowed in every state."""
        with self._lock:
            self._drop()
            self.state = State.ABORTED

    def _drop(self) -> None:
        """Forget what is secret."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.state.value})"


class SessionRole(Role):
    """A role in a session: it seals what it sends and opens what was sealed for it."""

    def __init__(
        self,
        session: Session,
        name: str,
        identity: Identity,
        among: Collection[str],
        start: State,
        entropy: Entropy = entropy_.system,
    ) -> None:
        super().__init__(name, start)
        session = session.checked()
        if name not in among:
            raise ParameterError(f"{name!r} is not a {type(self).__name__} of this session")
        if session.keys[name] != identity.public:
            raise KeyMismatchError(f"this identity is not {name!r} of the session; use its own")
        self._identity = identity
        self._entropy = entropy
        self._join(session)

    def _join(self, session: Session) -> None:
        self._session = session
        self._agreement = session.agreement

    def _largest(self) -> int:
        """Return the bytes of the largest message that this role can get."""
        return self._session.largest_message

    def _seal(self, kind: int, body: wire.Bytes, recipient: str) -> wire.Buffer:
        header = self._session.header(kind, self.name, recipient, self._agreement)
        return identity_.seal(self._identity, self._session, header, body, self._entropy)

    def _open(
        self,
        data: wire.Buffer,
        kind: type[wire.M],
        expected: Collection[str],
        seen: Collection[str] = (),
    ) -> tuple[str, wire.M, memoryview]:
        """Verify, then parse; a message that fails leaves the role as it was.

        Args:
            data: The sealed message.
            kind: What is awaited.
            expected: Who may send it.
            seen: Who did already.

        Returns:
            Sender, message and payload.

        Raises:
            DecodeError, AuthenticationError: Not a message of the party it names.
            RemoteProtocolError: Not this party's to send here, sent before, or malformed.
        """
        header, body = identity_.open_sealed(
            self._identity, self._session, self._agreement, data, self.name, self._largest()
        )
        if header.kind != kind.KIND or header.sender not in expected:
            raise RemoteProtocolError(
                header.sender, f"sent message kind {header.kind}, which is not its to send here"
            )
        if header.sender in seen:
            raise RemoteProtocolError(
                header.sender, "this message was received before; a duplicate or a replay"
            )
        try:
            return header.sender, *wire.decode_body(body, kind)
        except DecodeError as error:
            raise RemoteProtocolError(header.sender, str(error)) from None
