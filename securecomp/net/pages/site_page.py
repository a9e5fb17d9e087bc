"""A site's own page: how its run goes, the results, and the questions that wait for a person.

It listens on this machine alone, and only under this machine's own names, so that no other site's
page can reach it. It shows what this site hears: the results, and nothing of another site.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from securecomp.errors import ParameterError
from securecomp.net.pages import page_guard
from securecomp.net.pages.page_guard import (
    DOCUMENT,
    HANDLERS,
    PageGuard,
    answer,
    form,
    new_token,
)
from securecomp.net.questions import consent_files
from securecomp.show.pages import render

PATH = "/page"
_LONGEST_REASON = 500  # characters
Results = Sequence[tuple[Any, Any]]


class SitePage:
    """The page, in a thread of the program that takes part.

    Attributes:
        address: Of the page, with the token after its #.
    """

    def __init__(
        self, site: str, study: str, state: Path, show: Callable[[Results], str], port: int = 0
    ) -> None:
        """Begin to listen.

        Args:
            site: Whose page it is.
            study: The study's name.
            state: The state file, beside which questions wait for a person.
            show: Makes a page of results, one file without a script.
            port: Where to listen; 0 for any that is free.

        Raises:
            ParameterError: Another program listens there.
        """
        self._site, self._study, self._state, self._show = site, study, state, show
        self._lock = threading.Lock()
        self._step, self._awaited, self._ended = "connecting", list[str](), ""
        self._results: list[tuple[Any, Any]] = []
        try:
            self._socket = socket.create_server(("127.0.0.1", port))
        except OSError:
            raise ParameterError(
                f"--page-port: another program listens on port {port}; choose another, or 0"
            ) from None
        found = self._socket.getsockname()[1]
        hosts = (f"127.0.0.1:{found}", f"localhost:{found}")
        token = new_token()
        self._guard = PageGuard(PATH, f"{site}: {study}", token, hosts)
        self.address = f"http://127.0.0.1:{found}{PATH}#{token}"
        config = uvicorn.Config(
            self._app(), log_level="error", timeout_graceful_shutdown=1, lifespan="off"
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        # Signals are for the program, not for its page.
        asyncio.run(self._server.serve([self._socket]))

    def _app(self) -> Starlette:
        routes = self._guard.routes(self._page, consent=self._consent)
        routes.append(
            Route(f"{PATH}/results", self._guard.shown(self._whole_results), methods=["GET"])
        )
        return Starlette(routes=routes, exception_handlers=HANDLERS)

    def close(self) -> None:
        """Stop listening."""
        self._server.should_exit = True
        self._thread.join(5)
        self._socket.close()

    def watch(self, step: str, awaited: Collection[str]) -> None:
        """Hear of a step, and who is awaited."""
        with self._lock:
            self._step, self._awaited = step, list(awaited)

    def heard(self, question: Any, result: Any) -> None:
        """Hear an answer; None if it is for others."""
        with self._lock:
            self._results.append((question, result))

    def end(self, words: str) -> None:
        """Say how it ended."""
        with self._lock:
            self._ended, self._awaited = words, []

    async def _page(self, _: Request) -> Response:
        with self._lock:
            step, awaited, ended = self._step, list(self._awaited), self._ended
            results = list(self._results)
        waiting = consent_files.waiting(self._state)
        news = ended or (
            f"{step}: waiting for {', '.join(awaited)}" if awaited else f"{step}: computing"
        )
        if waiting:
            news = f"{len(waiting)} question{'s' * (len(waiting) > 1)} for you. {news}"
        page = render(
            "site_page.html",
            where=PATH,
            look=page_guard.LOOK,
            title=f"{self._site}: {self._study}",
            study=self._study,
            site=self._site,
            news=news,
            questions=waiting,
            answers=[(str(question), result is not None) for question, result in results],
            most=_LONGEST_REASON,
        )
        return answer(page)

    async def _whole_results(self, _: Request) -> Response:
        with self._lock:
            results = [pair for pair in self._results if pair[1] is not None]
        # Figures take a while to draw.
        return answer(await asyncio.to_thread(self._show, results), policy=DOCUMENT)

    async def _consent(self, request: Request) -> Response:
        given = await form(request)
        number, reason = given.get("number", ""), given.get("reason", "").strip()
        if not number.isdecimal() or given.get("answer") not in ("allow", "refuse"):
            return answer("the form is not complete\n", 400, kind="text/plain")
        refused = given["answer"] == "refuse"
        if refused and not 0 < len(reason) <= _LONGEST_REASON:
            return answer(
                f"a refusal needs a reason of at most {_LONGEST_REASON} characters; the analyst "
                "and all sites read it\n",
                400,
                kind="text/plain",
            )
        try:
            consent_files.answer(self._state, int(number[:9]), reason if refused else "")
        except ParameterError as error:
            return answer(f"{error}\n", 409, kind="text/plain")
        return RedirectResponse(PATH, 303)
