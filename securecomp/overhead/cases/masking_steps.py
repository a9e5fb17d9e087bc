"""Secure aggregation by masking: the time of a client and of the server, each step apart."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from securecomp import secagg
from securecomp.overhead.cases import aes_floors
from securecomp.overhead.cases.synthetic_data import Synthetic
from securecomp.overhead.job import Case, Communication, Job, WrongResultError
from securecomp.protocol.carrier import Vector
from securecomp.protocol.identity import Identity
from securecomp.protocol.session import Layout, Session
from securecomp.secagg import Client, Parameters, Server

LANE = 4
"""Bytes of an element modulo 2^32."""
_NOTE = "Plaintext: numpy's sum of all clients' vectors. Secure: the time of this role alone."
_CLIENTS = (50, 100, 200, 400, 800, 1600)


class Aggregation:
    """An aggregation of the same vector of every client, with each step clocked.

    Attributes:
        steps: Seconds of each step, one entry for each client, or for each call of the server.
        sent: Bytes of a client's message, by step.
        messages: How many messages the clients sent.
    """

    def __init__(self, session: Session, identities: dict[str, Identity], vector: Vector) -> None:
        names = session.contributors
        self.steps: dict[str, list[float]] = {}
        self.sent: dict[str, int] = {}
        self.messages = 0
        self._vector = vector
        self._clients = {n: Client(session, n, identities[n]) for n in names}
        self._server = Server(session, "server", identities["server"])
        self._inbox: dict[str, Any] = {}
        self._waiting = list(names)
        self._counts = True

    def agree(self) -> None:
        """Let all clients advertise keys and share the secrets behind their masks."""
        for client in self._clients.values():
            self._up("advertise", client.advertise)
        self._close("advertise")
        for name, client in self._clients.items():
            self._up("share", partial(client.share, self._inbox[name]))
        self._close("share")

    def drop(self, number: int) -> None:
        """Let the first clients drop out before they send their vectors."""
        self._waiting = self._waiting[number:]

    def mask(self, number: int | None = None) -> None:
        """Let the next clients mask and send their vectors; by default all that are left."""
        number = len(self._waiting) if number is None else number
        now, self._waiting = self._waiting[:number], self._waiting[number:]
        for name in now:
            self._up("mask", partial(self._clients[name].mask, self._inbox[name], self._vector))

    def unmask(self) -> Vector:
        """Take the masks off the sum, and return it."""
        self._close("mask")
        for name, data in self._inbox.items():
            self._up("unmask", partial(self._clients[name].unmask, data))
        self._close("unmask")
        return self._server.result().values

    def rest(self) -> Vector:
        """Return the sum of an aggregation that stopped at `mask`; count nothing more."""
        self._counts = False
        self.mask()
        return self.unmask()

    def client(self, *steps: str) -> float:
        """Return the seconds of the median client in some steps."""
        return sum(median(self.steps[step]) for step in steps)

    def server(self, *steps: str) -> float:
        """Return all of the server's seconds in some steps."""
        return sum(sum(self.steps[f"server {step}"]) for step in steps)

    def last(self, step: str) -> float:
        """Return the seconds of the server's last call in a step."""
        return self.steps[f"server {step}"][-1]

    def _up(self, step: str, work: Callable[[], Any]) -> None:
        data = self._clocked(step, work)
        if self._counts:
            self.sent[step] = len(data)
            self.messages += 1
        self._clocked(f"server {step}", partial(self._server.receive, data))

    def _close(self, step: str) -> None:
        self._inbox = self._clocked(f"server {step}", self._server.close)

    def _clocked(self, step: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        result = work()
        if self._counts:
            self.steps.setdefault(step, []).append(time.perf_counter() - start)
        return result


class Cohort:
    """Clients and a server with their long-term keys, ready to aggregate."""

    def __init__(self, clients: int, elements: int, bound: int, **choices: Any) -> None:
        names = [f"client {i + 1}" for i in range(clients)]
        self.identities = {name: Identity.generate() for name in (*names, "server")}
        self.parameters = Parameters.choose(clients, bound, **choices)
        self.session = Session.create(
            secagg.PROTOCOL,
            contributors=names,
            servers=["server"],
            receivers=["server"],
            keys={name: identity.public for name, identity in self.identities.items()},
            layout=Layout(elements, bound),
            limit=(1 << 62) - 1,
            terms=self.parameters.terms(),
        )
        rng = Synthetic(0)
        self.vector = rng.integers(-bound, bound + 1, elements)

    def begin(self, dropped: int = 0) -> Aggregation:
        """Return an aggregation in which keys are agreed on.

        Args:
            dropped: How many clients drop out before they send their vector.
        """
        begun = Aggregation(self.session, self.identities, self.vector)
        begun.agree()
        begun.drop(dropped)
        return begun


def job(
    clients: int,
    elements: int,
    bound: int,
    seconds: Callable[[Aggregation], float],
    *,
    dropped: int = 0,
    masking: int | None = None,
    floors: dict[str, Callable[[], None]] | None = None,
    note: str = _NOTE,
    **choices: Any,
) -> Job:
    """Return the job of an aggregation, of which one role's steps are timed.

    Args:
        clients: How many.
        elements: Of each vector.
        bound: Largest absolute value of an element.
        seconds: Reads the timed steps.
        dropped: Clients that drop out before they send their vector.
        masking: Time the masking of so many clients and stop there. The check lets the others mask
            too, and compares the sum.
        floors: Work that the timed steps cannot avoid.
        note: Facts that a reader needs.
        **choices: Other arguments of `Parameters.choose`.
    """
    cohort = Cohort(clients, elements, bound, **choices)
    copies = np.stack([cohort.vector] * (clients - dropped))
    out = np.empty(elements, np.int64)

    def secure(_: Any) -> tuple[Aggregation, Vector | None]:
        done = cohort.begin(dropped)
        done.mask(masking)
        return done, done.unmask() if masking is None else None

    def check(plain: Vector, result: tuple[Aggregation, Vector | None]) -> float:
        done, total = result
        if not np.array_equal(done.rest() if total is None else total, plain):
            raise WrongResultError("the total is not that of the survivors")
        return 0.0

    def cost(_: Any, result: tuple[Aggregation, Vector | None]) -> Communication:
        each = sum(result[0].sent.values())
        return Communication(each, each * clients, 7, result[0].messages)

    degree = cohort.parameters.degree
    return Job(
        sizes={"clients": clients, "neighbours": degree, "elements": elements, "dropped": dropped},
        plain=lambda: np.add.reduce(copies, axis=0, out=out),
        secure=secure,
        check=check,
        cost=cost,
        seconds=lambda result: seconds(result[0]),
        floors=floors or {},
        note=note,
    )


def _client(elements: int) -> Job:
    return job(20, elements, 1 << 26, lambda d: d.client("share", "mask"), complete=True)


def _server(dropped: int, elements: int) -> Job:
    return job(20, elements, 1 << 26, lambda d: d.last("unmask"), dropped=dropped, complete=True)


def one_mask(neighbours: int, elements: int) -> Job:
    """Return the job of one client that masks its vector."""
    return job(
        neighbours + 1,
        elements,
        1 << 24,
        lambda d: d.client("mask"),
        masking=1,
        complete=True,
        floors=aes_floors.floors(neighbours + 1, LANE * elements),
        note="Secure: Client.mask() alone, key agreement and boxes included.",
    )


def _large(elements: int) -> Job:
    return job(
        500,
        elements,
        1 << 20,
        lambda d: d.server("advertise", "share", "mask", "unmask"),
        dropped=50,
        complete=True,
        note="Secure: all of the server's time, from the first key to the total. Bonawitz et al. "
        "2017, table 3, report 62 s for 500 clients, 100,000 elements of 24 bits and 10 % dropped "
        "out, on one core of a Xeon E5-1650 v3 at 3.5 GHz.",
    )


def _grown(clients: int) -> Job:
    return job(
        clients,
        10_000,
        1 << 20,
        lambda d: d.client("advertise", "share", "mask", "unmask"),
        complete=False,
        note="Sparse graph for 20 % corrupt and 20 % dropped clients; secure: all of the median "
        "client's time.",
    )


def for_developers() -> Iterator[Case]:
    """Yield a client's and the server's steps, and a client's work as clients grow."""
    steps: Sequence[tuple[str, str, Callable[[int], Job], int]] = (
        ("client", "Client of 20: key shares and masking", _client, 100_000),
        ("server", "Server of 20: unmasking, nobody dropped", partial(_server, 0), 100_000),
        ("server-drop", "Server of 20: unmasking, 10 % dropped", partial(_server, 2), 100_000),
        ("mask/10", "Client masking, 10 neighbours", partial(one_mask, 10), 1_000_000),
        ("mask/52", "Client masking, 52 neighbours", partial(one_mask, 52), 1_000_000),
    )
    for name, title, build, size in steps:
        yield Case(f"masking/{name}", title, build, size=size, quick=10_000, tiny=100)
    yield Case(
        "masking/server/500",
        "Server of 500: everything, 10 % dropped",
        _large,
        size=100_000,
        quick=1_000,
        tiny=100,
        rounds=1,
    )
    for n in _CLIENTS:
        yield Case(
            f"growth/clients/{n}",
            f"Masking client of {n}, sparse graph, 10,000 elements",
            _grown,
            size=n,
            quick=n if n <= 100 else 50,
            tiny=50,
            series="clients",
            rounds=1,
        )
