"""The relay: an ASGI application that stores and forwards sealed messages.

Parties only make outgoing connections, to it. It learns who sends to whom, when, how many bytes,
and the steps' names; contents, layouts and agreed values are sealed between the parties. Requests
are signed by the parties' keys (`signed_requests`), so a proxy that ends TLS can do no harm.

    POST /v1/STUDY/messages       a batch of messages, stored when the answer comes
    GET  /v1/STUDY/messages       waits up to 25 seconds for messages after ?after=N
    GET  /v1/STUDY/status         when each party was last seen, and what waits for it
    GET  /health, /metrics        for those who run it
    GET  /page                    the same for people who know a token, if there is one

Each run (?run=NAME) has queues of its own: who still waits in one run takes nothing of another.

A request's signature is checked before its body is read; `request_limits` bounds what a party may
ask, and `relay_store` what it may leave behind. The bounds are of all its runs together.
"""

import asyncio
import contextlib
import math
import time
import urllib.parse
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from securecomp.errors import AuthenticationError, ParameterError, RemoteProtocolError
from securecomp.net import signed_requests
from securecomp.net.pages.relay_page import RelayNews, RelayPage
from securecomp.net.parties import Parties
from securecomp.net.relay_store import RelayStore
from securecomp.net.request_limits import RequestLimits

LONGEST_WAIT = 25.0
"""Seconds; proxies often cut a connection after 30."""
LARGEST_BODY = 64 << 20
"""Bytes of a request. A larger batch is sent in parts."""
LONGEST_STALL = 60.0
"""Seconds without a byte of a body."""
MOST_TAKEN = 16 << 20
_SMALL_BODY = 1 << 20  # of larger ones a party may send few at a time
_LONGEST_RUN = 200  # characters of a run's name

_Batch = list[tuple[str, str, bytes]]
_NOBODY = asyncio.Event()


class Relay:
    """Queues of some studies."""

    def __init__(
        self, studies: Sequence[Parties], store: Path, page_token: str | None = None
    ) -> None:
        """Serve these studies, and no other.

        Args:
            studies: Whose parties may send.
            store: The SQLite file.
            page_token: What a browser must know to see the page; None for no page.
        """
        self._studies = {study.id: study for study in studies}
        self._keys = {study.id: signed_requests.signing_keys(study.keys) for study in studies}
        self._store = RelayStore(store)
        # In memory: a request that is repeated after a restart does what it did before, once more.
        self._nonces: dict[str, float] = {}
        self._news = RelayNews()
        self._page = (
            None if page_token is None else RelayPage(studies, self._store, self._news, page_token)
        )
        self._limits = RequestLimits()
        # Of a party, in all its runs. An event is set once, and another takes its place.
        self._arrivals: defaultdict[tuple[str, str], asyncio.Event] = defaultdict(asyncio.Event)

    def app(self) -> Starlette:
        """Return the application."""
        return Starlette(
            routes=[
                Route("/v1/{study}/messages", self._post, methods=["POST"]),
                Route("/v1/{study}/messages", self._get, methods=["GET"]),
                Route("/v1/{study}/status", self._status, methods=["GET"]),
                Route("/health", self._health, methods=["GET"]),
                Route("/metrics", self._metrics, methods=["GET"]),
                *(() if self._page is None else self._page.routes()),
            ],
            exception_handlers={HTTPException: _refusal},
            lifespan=self._serving,
        )

    @contextlib.asynccontextmanager
    async def _serving(self, _: Starlette) -> AsyncIterator[None]:
        """Close the store when the server stops."""
        try:
            yield
        finally:
            await run_in_threadpool(self._store.close)

    async def _sender(self, request: Request) -> tuple[Parties, str, bytes]:
        """Return the study, who signed the request, and the body."""
        study = self._studies.get(request.path_params["study"])
        if study is None:
            raise HTTPException(
                404, "this relay does not serve the study; start it with this study file"
            )
        if request.headers.get("securecomp-version") != signed_requests.VERSION:
            raise HTTPException(
                426,
                f"this relay speaks version {signed_requests.VERSION}, and not "
                f"{request.headers.get('securecomp-version', '')[:20]!r}; install the same release "
                "on both sides",
            )
        if len(request.query_params.get("run", "")) > _LONGEST_RUN:
            raise HTTPException(400, f"a run's name has at most {_LONGEST_RUN} characters")
        try:
            name, nonce, content = signed_requests.verify(
                request.headers,
                self._keys[study.id],
                request.method,
                request.url.path,
                request.url.query,
                time.time(),
            )
        except AuthenticationError as error:
            raise HTTPException(401, str(error)) from None
        now = time.time()
        if nonce in self._nonces:
            raise HTTPException(401, "the request was sent before; a replay")
        self._nonces[nonce] = now
        while now - next(iter(self._nonces.values())) > 2 * signed_requests.WINDOW:
            del self._nonces[next(iter(self._nonces))]
        party = study.id, urllib.parse.unquote(name)
        self._news.seen[party] = now
        _put_off(self._limits.request(party))
        if _is_large(request):
            _put_off(self._limits.begin(party, body=True))
            try:
                body = await _body(request)
            finally:
                self._limits.end(party, body=True)
        else:
            body = await _body(request)
        self._limits.read(party, len(body))
        if signed_requests.digest(body) != content:
            raise HTTPException(401, "the body is not the one that was signed")
        return study, party[1], body

    async def _post(self, request: Request) -> Response:
        study, sender, body = await self._sender(request)
        try:
            batch = msgspec.msgpack.decode(body, type=_Batch)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise HTTPException(400, "not a batch of messages") from None
        for recipient, tag, _ in batch:
            if recipient not in study.keys:
                raise HTTPException(400, f"the study has no party {recipient!r}")
            if not 0 < len(tag) <= 200:
                raise HTTPException(400, "a tag has 1 to 200 characters")
        try:
            await run_in_threadpool(self._store.put, _queues(study, request), sender, batch)
        except RemoteProtocolError as error:
            raise HTTPException(409, str(error)) from None
        except ParameterError as error:
            raise HTTPException(507, str(error)) from None
        if batch:
            self._news.sent(study.id, request.query_params.get("run", ""), sender, batch[-1][1])
        for recipient in {recipient for recipient, _, _ in batch}:
            self._arrivals.pop((study.id, recipient), _NOBODY).set()
        return Response(status_code=204)

    async def _get(self, request: Request) -> Response:
        study, recipient, _ = await self._sender(request)
        try:
            after = int(request.query_params.get("after", "0"))
            wait = min(float(request.query_params.get("wait", "0")), LONGEST_WAIT)
            if not 0 <= after < 1 << 63 or not 0 <= wait < math.inf:
                raise ValueError
        except ValueError:
            raise HTTPException(400, "after and wait are numbers") from None
        place, party = (_queues(study, request), recipient), (study.id, recipient)
        end = time.monotonic() + wait
        _put_off(self._limits.begin(party, body=False))
        try:
            while True:
                news = self._arrivals[party]  # before looking: what comes later sets it
                found = await run_in_threadpool(self._store.take, *place, after, MOST_TAKEN)
                left = end - time.monotonic()
                if found or left <= 0:
                    return Response(msgspec.msgpack.encode(found), media_type="application/msgpack")
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(news.wait(), left)
        except asyncio.CancelledError:  # the relay is being stopped
            return PlainTextResponse("the relay is being stopped\n", 503)
        finally:
            self._limits.end(party, body=False)

    async def _status(self, request: Request) -> Response:
        study, _, _ = await self._sender(request)
        waiting = await run_in_threadpool(self._store.waiting, _queues(study, request))
        return JSONResponse(
            {
                name: {
                    "seen": self._news.seen.get((study.id, name), 0.0),
                    "waiting": waiting.get(name, 0),
                }
                for name in study.keys
            }
        )

    async def _health(self, _: Request) -> Response:
        await run_in_threadpool(self._store.counts)
        return PlainTextResponse("ok\n")

    async def _metrics(self, _: Request) -> Response:
        number, size = await run_in_threadpool(self._store.counts)
        return PlainTextResponse(
            f"securecomp_relay_messages_waiting {number}\nsecurecomp_relay_bytes_waiting {size}\n"
            f"securecomp_relay_requests_put_off {self._limits.refused()}\n"
        )


def _queues(study: Parties, request: Request) -> str:
    """Return the name under which the queues of a run are stored."""
    return f"{study.id}/{request.query_params.get('run', '')}"


def _put_off(seconds: float) -> None:
    """Refuse a request for some seconds, if there are any."""
    if seconds:
        raise HTTPException(
            429,
            "the party asks more than this relay serves at a time",
            {"Retry-After": str(math.ceil(seconds))},
        )


def _length(request: Request) -> int:
    """Return the length of a body, as far as the request says it."""
    said = request.headers.get("content-length", "")
    return int(said[:20]) if said.isdecimal() else 0


def _is_large(request: Request) -> bool:
    return _length(request) > _SMALL_BODY or "transfer-encoding" in request.headers


async def _body(request: Request) -> bytes:
    """Read a body of bounded length."""
    parts: list[bytes] = []
    size = 0
    if _length(request) > LARGEST_BODY:
        raise HTTPException(413, f"a request has at most {LARGEST_BODY >> 20} MiB")
    try:
        stream = aiter(request.stream())
        while True:
            async with asyncio.timeout(LONGEST_STALL):
                part = await anext(stream, None)
            if part is None:
                return b"".join(parts)
            size += len(part)
            if size > LARGEST_BODY:
                raise HTTPException(413, f"a request has at most {LARGEST_BODY >> 20} MiB")
            parts.append(part)
    # 408: whoever sent it, perhaps through a proxy, tries again.
    except ClientDisconnect:
        raise HTTPException(408, "the body is cut off") from None
    except TimeoutError:
        raise HTTPException(408, "the rest of the body did not come") from None


async def _refusal(_: Request, error: Any) -> Response:
    return PlainTextResponse(f"{error.detail}\n", error.status_code, error.headers)
