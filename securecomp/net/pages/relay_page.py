"""The relay's page: who has come, who is late, the newest steps, and sizes of what waits.

All that it shows is from requests whose signatures were checked. It has no result, and cannot read
a message.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from securecomp.net.pages import page_guard
from securecomp.net.pages.page_guard import PageGuard, answer
from securecomp.net.parties import Parties
from securecomp.net.relay_store import RelayStore
from securecomp.show.pages import render

PATH = "/page"
_AWAY = 60.0  # seconds without a request
_MOST_RUNS = 50


@dataclass(slots=True)
class RelayNews:
    """What is newest in each run, as long as the relay lives.

    Attributes:
        seen: When each party's last request came: study and name to seconds since 1970.
        steps: The newest message of each run: study and run to time, sender and tag.
    """

    seen: dict[tuple[str, str], float] = field(default_factory=dict)
    steps: dict[tuple[str, str], tuple[float, str, str]] = field(default_factory=dict)

    def sent(self, study: str, run: str, sender: str, tag: str) -> None:
        """Note a message."""
        self.steps.pop((study, run), None)  # the newest is the last
        self.steps[study, run] = time.time(), sender, tag
        while len(self.steps) > _MOST_RUNS:
            del self.steps[next(iter(self.steps))]


class RelayPage:
    """Makes the page from what the relay knows."""

    def __init__(
        self,
        studies: Sequence[Parties],
        store: RelayStore,
        news: RelayNews,
        token: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Take what is shown, and the token that a browser must know."""
        self._studies, self._store, self._news, self._clock = studies, store, news, clock
        self._guard = PageGuard(PATH, "Relay", token)

    def routes(self) -> list[Route]:
        """Return the routes."""
        return self._guard.routes(self._page)

    async def _page(self, _: Request) -> Response:
        shown = [await self._study(study) for study in self._studies]
        return answer(
            render(
                "relay_page.html", where=PATH, look=page_guard.LOOK, studies=shown, title="Relay"
            )
        )

    async def _study(self, study: Parties) -> dict[str, Any]:
        now = self._clock()
        queues = await run_in_threadpool(self._store.queues, study.id)
        waits: dict[str, tuple[int, int]] = {}
        for number in queues.values():
            for party, (messages, size) in number.items():
                before = waits.get(party, (0, 0))
                waits[party] = before[0] + messages, before[1] + size
        parties = [
            self._party(study, name, role, waits.get(name, (0, 0)), now)
            for role, names in (
                ("site", study.sites), ("server", study.servers), ("analyst", study.analysts)
            )
            for name in names
        ]  # fmt: skip
        late = [party["name"] for party in parties if party["late"]]
        here = sum(party["here"] for party in parties)
        return {
            "id": study.id,
            "parties": parties,
            "runs": self._runs(study, queues, now),
            "summary": f"{here} of {len(parties)} parties are here"
            + (f"; others wait for {', '.join(late)}" if late else ""),
        }

    def _party(
        self, study: Parties, name: str, role: str, waits: tuple[int, int], now: float
    ) -> dict[str, Any]:
        seen = self._news.seen.get((study.id, name))
        here = seen is not None and now - seen <= _AWAY
        # Servers and analysts without messages have nothing to do yet.
        late = not here and waits[0] > 0
        state = "here" if here else "late" if late else "not yet" if seen is None else "away"
        return {
            "name": name,
            "role": role,
            "seen": "never" if seen is None else ago(now - seen),
            "messages": f"{waits[0]:,}",
            "size": size_of(waits[1]),
            "state": state,
            "here": here,
            "late": late,
        }

    def _runs(
        self, study: Parties, queues: Mapping[str, Mapping[str, tuple[int, int]]], now: float
    ) -> list[dict[str, str]]:
        names = {run for key, run in self._news.steps if key == study.id} | set(queues)
        found = []
        for run in sorted(names)[:_MOST_RUNS]:
            newest = self._news.steps.get((study.id, run))
            waiting = queues.get(run, {}).values()
            found.append(
                {
                    "run": run or "-",
                    "step": "-" if newest is None else step_name(newest[2], run),
                    "sender": "-" if newest is None else newest[1],
                    "when": "before the relay's start" if newest is None else ago(now - newest[0]),
                    "messages": f"{sum(messages for messages, _ in waiting):,}",
                    "size": size_of(sum(size for _, size in waiting)),
                }
            )
        return found


def step_name(tag: str, run: str) -> str:
    """Return the step that a tag names, without the session or the run before it."""
    parts = [part for part in tag.removeprefix(f"{run}/").split("/") if part]
    kept = [part for part in parts if len(part) < 32 or not part.isalnum()]
    return "/".join(kept) or "a sum is announced"


def ago(seconds: float) -> str:
    """Return how long ago something was, in words."""
    if seconds < 10:
        return "just now"
    for unit, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= unit:
            many = int(seconds // unit)
            return f"{many} {name}{'s' * (many > 1)} ago"
    return f"{int(seconds // 10) * 10} seconds ago"


def size_of(count: int) -> str:
    """Return a number of bytes in words."""
    for power, unit in ((3, "GB"), (2, "MB"), (1, "kB")):
        if count >= 1000**power:
            return f"{count / 1000**power:.1f} {unit}"
    return f"{count} bytes"
