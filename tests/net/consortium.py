"""A consortium in threads of one process: relay, servers and sites, over real connections."""

import asyncio
import contextlib
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import uvicorn

from securecomp.net import (
    identity_file,
    parties,
    programs,
    simulation,
    sum_server,
)
from securecomp.net.questions import asking, site_agent
from securecomp.net.relay import Relay

SITES = ("north", "south", "west")
SERVERS = {
    "sharing": ["server 1", "server 2", "server 3"],
    "masking": ["server"],
    "paillier": ["aggregator", "key holder"],
}
COLUMNS = """
[columns.los]
bound = 60
decimals = 0
[columns.age]
bound = 120
decimals = 0
[columns.weight]
bound = 200
decimals = 1
[columns.died]
bound = 1
decimals = 0
[columns.days]
bound = 400
decimals = 0
[columns.ward]
levels = ["medical", "surgical"]
[columns.arm]
levels = ["control", "drug"]
[columns.dead]
levels = [0, 1]
"""


def rows(site, size=60):
    """Stays of one site."""
    rng = np.random.default_rng(sum(site.encode()))
    frame = pd.DataFrame(
        {
            "los": rng.integers(1, 60, size),
            "age": rng.integers(20, 100, size),
            "weight": rng.integers(400, 1500, size) / 10,
            "ward": rng.choice(["medical", "surgical"], size),
            "arm": rng.choice(["control", "drug"], size),
            "days": rng.integers(1, 400, size),
        }
    )
    frame["died"] = (rng.random(size) < 1 / (1 + np.exp((60 - frame.age) / 20))).astype(int)
    frame["dead"] = frame.died
    return frame


class Killed(BaseException):
    """A process that ends at once."""


def until_it_lives(work, killed=lambda: None):
    """Start something again whenever it was killed."""
    while True:
        try:
            return work()
        except Killed:
            killed()


def described(commands):
    """A transaction's commands without their bytes: the same in every run."""
    return tuple((sql, *(v for v in vs if not isinstance(v, bytes))) for sql, vs in commands)


async def serving(server):
    """Run a relay; when it stops, close the connections that its grace period has left."""
    await server.serve()
    for connection in list(server.server_state.connections):
        connection.transport.abort()
    await asyncio.sleep(0.01)


class Consortium:
    """A study, its keys in a folder, and a relay that can be stopped and started."""

    def __init__(
        self,
        folder: Path,
        analyses: str,
        protocol="sharing",
        sites=SITES,
        facts="",
        analysts=(),
        columns=COLUMNS,
    ):
        self.folder, self.sites, self.servers = folder, sites, SERVERS[protocol]
        text = (
            f'[study]\nname = "test"\nprotocol = "{protocol}"\nrows = 1000\npatience = 60\n{facts}'
            f"{columns}\n{analyses}"
        )
        self.path = simulation.prepare(folder, text, sites, self.servers, analysts)
        self.port = simulation._free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = None
        self.private = None  # the key holder's

    def start_relay(self, page_token=None, **tls):
        relay = Relay([parties.load(self.path)[1]], self.folder / "relay.db", page_token)
        app, self.store = relay.app(), relay._store
        config = uvicorn.Config(
            app, port=self.port, log_level="error", timeout_graceful_shutdown=1, **tls
        )
        self._relay = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=lambda: asyncio.run(serving(self._relay)), daemon=True
        )
        self._thread.start()
        while not self._relay.started:
            time.sleep(0.01)

    def stop_relay(self):
        self._relay.should_exit = True
        self._thread.join()

    @contextlib.contextmanager
    def relay(self, **tls):
        self.start_relay(**tls)
        try:
            yield self
        finally:
            self.stop_relay()

    def key(self, name):
        return identity_file.read(self.folder / f"{name}.identity")

    def member(self, name, run="1", **facts):
        connection = programs.Connection(self.url, run=run)
        return programs.ConnectedParty(self.path, name, self.key(name), connection, **facts)

    def site(self, name, frame=None, run="1", **facts):
        """Run a site; return each question's result."""
        member = self.member(name, run, **facts)
        try:
            found = programs.join(member, name, rows(name) if frame is None else frame)
            return {str(analysis): result for analysis, result in found}
        finally:
            member.close()

    def server(self, name, run="1"):
        member = self.member(name, run)
        try:
            sum_server.serve(member, self.private if name == "key holder" else None)
        finally:
            member.close()

    def leaving(self, name, run="1"):
        """Run a site that answers the first question, and is never heard of again."""
        member = self.member(name, run)
        try:
            return next(programs.join(member, name, rows(name)))
        finally:
            member.close()

    def agent(self, name, frame=None, run="1", person=None):
        """Run a site's agent; return the results that it heard."""
        member, found = self.member(name, run), []
        frame = rows(name) if frame is None else frame
        log = self.folder / f"{name}.{run}.log"
        try:
            site_agent.SiteAgent(
                member, frame, person or (lambda *_: ""), log, lambda *heard: found.append(heard)
            ).run()
            return found
        finally:
            member.close()

    def asked(self, name, run="1"):
        """Connect an analyst."""
        key = self.folder / f"{name}.identity"
        return asking.connected(self.path, name, key, programs.Connection(self.url, run=run))

    def run(self, frames=None, run="1", site=None, server=None):
        """Run all parties; return each one's results, or its error."""
        found = {}
        frames = frames or {}

        def kept(name, work):
            try:
                found[name] = work()
            except BaseException as error:
                found[name] = error

        site, server = site or self.site, server or self.server
        works = [
            *((n, lambda n=n: site(n, frames.get(n), run)) for n in self.sites),
            *((n, lambda n=n: server(n, run)) for n in self.servers),
        ]
        threads = [threading.Thread(target=kept, args=work) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found
