"""The one exception tree.

A message says what was wrong, where (which column, which party, which row) and what to do.
No message carries a secret: not a share, not a key, not a patient's value.
"""


class SecureCompError(Exception):
    """Everything that this package raises on purpose."""


class ParameterError(SecureCompError, ValueError):
    """An argument cannot work: wrong type, wrong shape, an impossible combination."""


class RangeError(SecureCompError, ValueError):
    """A number is outside what was declared or what can be summed exactly."""


class DecodeError(SecureCompError, ValueError):
    """Bytes that are not a well-formed message. The only thing that decoding raises."""


class KeyMismatchError(SecureCompError, ValueError):
    """Material made under one key or agreement was used with another."""


class AuthenticationError(SecureCompError):
    """A message was not sealed by the party it names, or was changed on the way."""


class ProtocolError(SecureCompError):
    """A protocol cannot go on."""


class LocalProtocolError(ProtocolError):
    """This side called a role in the wrong order; nothing was sent."""


class RemoteProtocolError(ProtocolError):
    """Another party broke the protocol.

    Attributes:
        sender: Name of the party whose message was refused.
        authenticated: Whether the message was proved to be this party's. If not, anybody could
            have sent it in its name: blame nobody.
    """

    def __init__(self, sender: str, reason: str, authenticated: bool = True) -> None:
        # As given, so that the error can be copied and sent.
        super().__init__(sender, reason, authenticated)
        self.sender = sender
        self.authenticated = authenticated

    def __str__(self) -> str:
        return f"{self.args[0]}: {self.args[1]}"


class ThresholdError(ProtocolError):
    """Too few parties take part.

    Attributes:
        needed: How many are needed.
        got: How many there are.
    """

    def __init__(self, needed: int, got: int, reason: str) -> None:
        super().__init__(needed, got, reason)
        self.needed = needed
        self.got = got

    def __str__(self) -> str:
        return f"{self.args[2]} ({self.got} of at least {self.needed})"


class BudgetError(SecureCompError):
    """A privacy budget does not cover the request."""


class RefutedError(SecureCompError):
    """A privacy guarantee that was claimed, and that an attack has shown not to hold."""


class BackendUnavailableError(SecureCompError, ImportError):
    """An optional package is not installed; the message names the extra that brings it."""


class WrongResultError(SecureCompError):
    """A measured job computed something else than its plaintext side; it gets no time."""


def brief(text: str, most: int = 80) -> str:
    """Return a text as errors quote it: of a long one, its beginning and its end."""
    return text if len(text) <= most else f"{text[: most - 23]}...{text[-20:]}"
