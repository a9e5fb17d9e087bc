"""A party's connection to the relay: signed requests, and retries until the relay answers."""

import ssl
import time
import urllib.parse
from collections.abc import Callable

import msgspec

from securecomp.core.secret import Secret
from securecomp.errors import BackendUnavailableError, ParameterError, RemoteProtocolError
from securecomp.net import signed_requests
from securecomp.protocol.identity import Identity

try:
    import httpx2
    import truststore
except ImportError as error:  # pragma: no cover - depends on what is installed
    raise BackendUnavailableError("a network needs the extra: pip install 'securecomp[net]'") from (
        error
    )

_WAIT = 25
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 30.0


class RelayError(RemoteProtocolError):
    """The relay refuses, or does not answer. What it says is proved by nothing."""

    def __init__(self, reason: str) -> None:
        super().__init__("relay", reason, False)


Note = Callable[[str], None]


class RelayClient(Secret):
    """Sends and takes messages of one party. Not for several threads at once."""

    def __init__(
        self,
        url: str,
        study: str,
        name: str,
        identity: Identity,
        run: str = "",
        *,
        proxy: str | None = None,
        authority: str | None = None,
        note: Note = lambda _: None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """Take the address and the keys; nothing is sent.

        Args:
            url: Of the relay, such as "https://relay.example.org".
            study: Its id at the relay.
            name: The party.
            identity: The party's keys.
            run: Whose messages are sent and taken.
            proxy: URL of an HTTP proxy; by default what the environment says.
            authority: File of a private certificate authority; by default the system's.
            note: Hears why a request is tried again.
            stopped: Whether to give up trying.

        Raises:
            ParameterError: Not an address, or not a file of certificates.
        """
        self._client = httpx2.Client(
            base_url=_address(url),
            proxy=None if proxy is None else _address(proxy),
            verify=_certificates(authority),
            timeout=httpx2.Timeout(30.0, read=_WAIT + 35.0),
        )
        self._study, self._identity, self._run = study, identity, run
        self._name = urllib.parse.quote(name, safe="")
        self._note, self._stopped = note, stopped

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def post(self, batch: list[tuple[str, str, bytes]]) -> None:
        """Have messages stored: recipient, tag, body.

        Raises:
            RelayError: The relay refuses; its words are in the error.
        """
        self._ask("POST", "messages", {}, msgspec.msgpack.encode(batch))

    def take(self, after: int, wait: float = _WAIT) -> list[tuple[int, str, str, bytes]]:
        """Return messages after a number: number, sender, tag, body. None may have come."""
        query = {"after": str(after), "wait": str(wait)}
        answer = self._ask("GET", "messages", query, b"")
        try:
            return msgspec.msgpack.decode(answer, type=list[tuple[int, str, str, bytes]])
        except msgspec.DecodeError:
            raise RelayError("its answer is malformed") from None

    def status(self, *, once: bool = False) -> dict[str, dict[str, float]]:
        """Return what the relay knows of each party.

        Args:
            once: Whether to give up after one try.

        Raises:
            RelayError: The relay refuses, or did not answer the one try.
        """
        answer = self._ask("GET", "status", {}, b"", once=once)
        return msgspec.json.decode(answer, type=dict[str, dict[str, float]])

    def _ask(
        self, method: str, what: str, query: dict[str, str], body: bytes, once: bool = False
    ) -> bytes:
        """Make a request, again and again while the relay cannot be reached."""
        path = f"/v1/{self._study}/{what}"
        text = urllib.parse.urlencode({"run": self._run, **query})
        pause = _FIRST_PAUSE
        # Proxies cut requests that wait: the first time is no news.
        quiet = "wait" in query
        while True:
            # Signed anew each time: a nonce is good once.
            headers = signed_requests.sign(self._identity, self._name, method, path, text, body)
            try:
                answer = self._client.request(
                    method, f"{path}?{text}", content=body, headers=headers
                )
            except httpx2.TransportError as error:
                _refuse_lasting(error)
                why = f"the relay cannot be reached ({type(error).__name__}: {str(error)[:200]})"
            else:
                if answer.status_code < 300:
                    return answer.content
                why = answer.text.strip()[:300] or f"status {answer.status_code}"
                if answer.status_code < 500 and answer.status_code not in (408, 429):
                    raise RelayError(why)
                pause = max(pause, _put_off(answer.headers.get("retry-after", "")))
            if once or self._stopped():
                raise RelayError(f"{why}; given up")
            if not quiet:
                self._note(f"{why}; next try in {pause:.1f} s")
            quiet = False
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def _put_off(said: str) -> float:
    """Return the seconds of a header Retry-After, as far as somebody would wait."""
    return min(float(said[:9]), _LONGEST_PAUSE) if said.isdecimal() else 0.0


def _refuse_lasting(error: BaseException) -> None:
    """End the tries where another try meets the same.

    Raises:
        RelayError: The relay's certificate is not accepted here, or the proxy lets nobody through
            without a password.
    """
    if isinstance(error, httpx2.ProxyError) and str(error).startswith("407"):
        raise RelayError(
            "the proxy on the way wants a password; name it as --proxy http://USER:PASSWORD@HOST:PORT"
        ) from None
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            remedy = _REMEDIES.get(cause.verify_code, _OF_NO_AUTHORITY)
            raise RelayError(
                f"its certificate is not accepted ({cause.verify_message}); {remedy}"
            ) from None
        cause = cause.__cause__ or cause.__context__


_OF_NO_AUTHORITY = "name the file of its certificate authority (--ca)"
_BY_NAME = "reach it by a name or address that is in the certificate (--relay)"
_REMEDIES = {
    9: "set the clock here",
    10: "its operator has to renew it",
    62: _BY_NAME,
    64: _BY_NAME,
}
"""By OpenSSL's X509_V_ERR: not yet valid, expired, another host name, another address."""


def _address(url: str) -> str:
    """Return a URL without a slash at its end; refuse what no request can go to."""
    try:
        found = httpx2.URL(url.rstrip("/"))
    except httpx2.InvalidURL as error:
        raise ParameterError(f"{url}: not an address: {error}") from None
    if found.scheme not in ("http", "https") or not found.host:
        raise ParameterError(f"{url}: not an address; one is https://relay.example.org")
    return str(found)


def _certificates(authority: str | None) -> ssl.SSLContext:
    """Return what a relay's certificate is checked with: a private authority, or the system's."""
    if authority is None:
        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        return ssl.create_default_context(cafile=authority)
    except (OSError, ssl.SSLError) as error:
        raise ParameterError(f"{authority}: not certificates: {error}") from None
