"""What lets a person see a page: a token, once, and then a cookie of that browser.

The token never stands in an address that is sent: whoever opens the page types it, or follows a
link with the token after a #, which the browser keeps to itself. Every answer carries a strict
Content-Security-Policy: nothing from elsewhere is loaded, no script within the page runs, no other
page shows this one in a frame. What changes something is a POST of the page's own form, with a
cookie that browsers send with no other site's requests.
"""

import asyncio
import contextlib
import hashlib
import hmac
import os
import urllib.parse
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path

from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from securecomp.core import entropy
from securecomp.errors import ParameterError
from securecomp.protocol import storage
from securecomp.show.pages import render

LEAST_TOKEN = 20
"""Characters."""
LOOK = 5.0
"""Seconds after which a page that is open looks again."""
_COOKIE = "securecomp_page"
_MOST_SESSIONS = 200
_LARGEST_FORM = 8 << 10
_SLOW = 0.5  # seconds that a wrong token takes
STRICT = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
DOCUMENT = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""Of a page that is one file, without a script."""

Page = Callable[[Request], Awaitable[Response]]


def new_token() -> str:
    """Draw a token."""
    return entropy.system(20).hex()


def token_file(path: Path) -> str:
    """Return the token of a file; draw one, and write the file, if there is none.

    Raises:
        ParameterError: Others can read the file, or the token is too short.
    """
    if not path.exists():
        storage.write_new(path, new_token(), 0o600)
    elif os.name == "posix" and path.stat().st_mode & 0o077:
        raise ParameterError(f"{path}: other users can read this token; run: chmod 600 {path}")
    token = storage.read_text(path).strip()
    if len(token) < LEAST_TOKEN or not token.isascii():
        raise ParameterError(
            f"{path}: a token has at least {LEAST_TOKEN} characters of ASCII; delete the file, and "
            "one is drawn"
        )
    return token


def answer(text: str, status: int = 200, policy: str = STRICT, kind: str = "text/html") -> Response:
    """Return an answer that no cache keeps, and that loads nothing from elsewhere."""
    return Response(
        text,
        status,
        {
            "Content-Security-Policy": policy,
            "Cache-Control": "no-store",
            # Not "no-referrer": browsers would then not say where a form comes from.
            "Referrer-Policy": "same-origin",
            "X-Content-Type-Options": "nosniff",
            "Cross-Origin-Resource-Policy": "same-origin",
        },
        kind,
    )


class PageGuard:
    """Serves pages below a path to browsers that have shown the token."""

    def __init__(self, where: str, title: str, token: str, hosts: Collection[str] = ()) -> None:
        """Take what is guarded.

        Args:
            where: The path, such as "/page".
            title: Of the page that asks for the token.
            token: The token.
            hosts: Names under which the page may be reached; by default any. A page on loopback
                names its own, so that another site's name that is made to mean this machine
                reaches nothing.
        """
        self.where, self._title, self._hosts = where, title, frozenset(hosts)
        self._token = hashlib.sha256(token.encode()).digest()
        self._sessions: dict[bytes, None] = {}

    def routes(self, page: Page, **posts: Page) -> list[Route]:
        """Return the routes of the page, its style and script, and its forms.

        Args:
            page: Makes the page.
            **posts: What answers the forms, by the last part of their path.
        """
        found = [
            Route(self.where, self.shown(page), methods=["GET"]),
            Route(f"{self.where}/login", self._login, methods=["POST"]),
            Route(f"{self.where}/style.css", self._style, methods=["GET"]),
            Route(f"{self.where}/live.js", self._script, methods=["GET"]),
        ]
        for name, form in posts.items():
            found.append(Route(f"{self.where}/{name}", self.shown(form), methods=["POST"]))
        return found

    def shown(self, page: Page) -> Page:
        """Return a page that asks for the token first."""

        async def guarded(request: Request) -> Response:
            self._check_host(request)
            if not self._is_known(request):
                return self._ask() if request.method == "GET" else self._ask("Sign in first.", 401)
            if request.method == "POST" and not _is_own(request):
                return answer("another site's form is not taken\n", 403, kind="text/plain")
            return await page(request)

        return guarded

    def _check_host(self, request: Request) -> None:
        if self._hosts and request.headers.get("host", "") not in self._hosts:
            raise _Elsewhere

    def _is_known(self, request: Request) -> bool:
        given = request.cookies.get(_COOKIE, "")
        return hashlib.sha256(given.encode()).digest() in self._sessions

    def _ask(self, wrong: str = "", status: int = 200) -> Response:
        page = render("login.html", where=self.where, title=self._title, wrong=wrong)
        return answer(page, status)

    async def _login(self, request: Request) -> Response:
        self._check_host(request)
        if not _is_own(request):
            return answer("another site's form is not taken\n", 403, kind="text/plain")
        given = (await form(request)).get("token", "").strip()
        if not hmac.compare_digest(hashlib.sha256(given.encode()).digest(), self._token):
            await asyncio.sleep(_SLOW)
            return self._ask("This is not the token.", 401)
        session = entropy.system(32).hex()
        while len(self._sessions) >= _MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[hashlib.sha256(session.encode()).digest()] = None
        found = RedirectResponse(self.where, 303)
        found.set_cookie(
            _COOKIE,
            session,
            path=self.where,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )
        return found

    async def _style(self, request: Request) -> Response:
        self._check_host(request)
        return answer(render("live.css"), kind="text/css")

    async def _script(self, request: Request) -> Response:
        self._check_host(request)
        return answer(render("live.js"), kind="text/javascript")


class _Elsewhere(Exception):  # noqa: N818
    """The page was asked for under another name than its own."""


async def elsewhere(_: Request, __: Exception) -> Response:
    """Answer who asks under another name."""
    return answer("this page has another address\n", 421, kind="text/plain")


HANDLERS = {_Elsewhere: elsewhere}
"""For the application that has the routes."""


def _is_own(request: Request) -> bool:
    """Whether a form is this page's own, as far as the browser says where it comes from."""
    origin = request.headers.get("origin")
    if origin is None:
        return request.headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")
    return urllib.parse.urlsplit(origin).netloc == request.headers.get("host", "")


async def form(request: Request) -> dict[str, str]:
    """Return the fields of a short form; those of a longer one are not read."""
    body = b""
    with contextlib.suppress(ClientDisconnect):
        async for part in request.stream():
            body += part
            if len(body) > _LARGEST_FORM:
                return {}
    fields = urllib.parse.parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
    return {name: values[-1] for name, values in fields.items()}
