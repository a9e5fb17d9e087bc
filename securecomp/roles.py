"""What every protocol role has in common: states, one table of transitions, secrets dropped.

A role takes messages and returns messages. It opens no socket, reads no clock and starts no
thread. What it may do in which state is one literal table; everything else is refused.
"""

from enum import Enum
from typing import ClassVar, NoReturn

from securecomp.errors import LocalProtocolError


class State(Enum):
    """Where a role is. A role uses the states that its table names."""

    READY = "ready"
    COLLECTING = "collecting"
    DONE = "done"
    ABORTED = "aborted"


class Role:
    """A state machine without I/O that holds one-time secrets.

    Subclasses give `TRANSITIONS`: (state, event) -> next state, an event being the name of a
    public method. Copying and pickling are refused: a one-time secret exists once.
    """

    TRANSITIONS: ClassVar[dict[tuple[State, str], State]]

    def __init__(self, name: str, start: State) -> None:
        self.name = name
        self.state = start

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

    def abort(self) -> None:
        """Drop the secrets and stop. Allowed in every state."""
        self._drop()
        self.state = State.ABORTED

    def _drop(self) -> None:
        """Forget what is secret."""

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} holds one-time secrets and cannot be copied")

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = _refuse

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.state.value})"
