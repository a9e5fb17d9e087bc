"""Secure aggregation by masking: what a client and the server spend, each role's time apart."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

from benchmarks import aes
from securecomp import secagg
from securecomp.overhead.job import Case, Job, Target, Traffic, WrongResultError
from securecomp.protocol.identity import Identity
from securecomp.protocol.session import Layout, Session
from securecomp.secagg import Client, Parameters, Server

LANE = 4  # bytes of an element modulo 2^32
NOTE = "Plaintext: numpy's sum of all clients' vectors. Secure: the time of this role alone."


@dataclass(slots=True)
class Aggregation:
    """One aggregation that was run; seconds of each step, of each client or of the server."""

    total: np.ndarray
    parameters: Parameters
    steps: dict[str, list[float]] = field(default_factory=dict)
    sent: dict[str, int] = field(default_factory=dict)
    messages: int = 0

    def client(self, *steps: str) -> float:
        """Return the seconds of the median client in some steps."""
        return sum(median(self.steps[step]) for step in steps)

    def server(self, *steps: str) -> float:
        """Return all of the server's seconds in some steps."""
        return sum(sum(self.steps[step]) for step in steps)


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
        rng = np.random.default_rng(0)
        self.vector = rng.integers(-bound, bound + 1, elements)

    def run(self, dropped: int = 0, masking: int | None = None) -> Aggregation:
        """Aggregate the same vector of every client.

        Args:
            dropped: How many drop out before they send their vector.
            masking: Stop after so many have masked; by default all, and the sum comes out.
        """
        names, session = self.session.contributors, self.session
        clients = {n: Client(session, n, self.identities[n]) for n in names}
        server = Server(session, "server", self.identities["server"])
        done = Aggregation(self.vector, self.parameters)

        def clocked(step: str, work: Callable[[], Any]) -> Any:
            start = time.perf_counter()
            result = work()
            done.steps.setdefault(step, []).append(time.perf_counter() - start)
            return result

        def up(step: str, work: Callable[[], Any]) -> None:
            data = clocked(step, work)
            done.sent[step], done.messages = len(data), done.messages + 1
            clocked(f"server {step}", lambda: server.receive(data))

        def close(step: str) -> dict[str, Any]:
            return clocked(f"server {step}", server.close)

        for name in names:
            up("advertise", clients[name].advertise)
        inbox = close("advertise")
        for name in names:
            up("share", lambda n=name: clients[n].share(inbox[n]))
        inbox = close("share")
        alive = names[dropped:]
        for name in alive[:masking]:
            up("mask", lambda n=name: clients[n].mask(inbox[n], self.vector))
        if masking is not None:
            return done
        inbox = close("mask")
        for name in alive:
            up("unmask", lambda n=name: clients[n].unmask(inbox[n]))
        close("unmask")
        done.total = server.result().values
        return done


def job(
    clients: int,
    elements: int,
    bound: int,
    seconds: Callable[[Aggregation], float],
    *,
    dropped: int = 0,
    masking: int | None = None,
    floors: dict[str, Callable[[], None]] | None = None,
    note: str = NOTE,
    **choices: Any,
) -> Job:
    cohort = Cohort(clients, elements, bound, **choices)
    copies = np.stack([cohort.vector] * (clients - dropped))
    out = np.empty(elements, np.int64)

    def check(plain: np.ndarray, done: Aggregation) -> float:
        expected = cohort.vector if masking is not None else plain
        if not np.array_equal(done.total, expected):
            raise WrongResultError("the total is not that of the survivors")
        return 0.0

    def cost(_: Any, done: Aggregation) -> Traffic:
        each = sum(done.sent.values())
        return Traffic(each, each * clients, 7, done.messages)

    degree = cohort.parameters.degree
    return Job(
        sizes={"clients": clients, "neighbours": degree, "elements": elements, "dropped": dropped},
        plain=lambda: np.add.reduce(copies, axis=0, out=out),
        secure=lambda _: cohort.run(dropped, masking),
        check=check,
        cost=cost,
        seconds=seconds,
        floors=floors or {},
        note=note,
    )


def _client(elements: int) -> Job:
    return job(20, elements, 1 << 26, lambda d: d.client("share", "mask"), complete=True)


def _server(dropped: int) -> Callable[[int], Job]:
    return lambda elements: job(
        20,
        elements,
        1 << 26,
        lambda d: d.steps["server unmask"][-1],
        dropped=dropped,
        complete=True,
    )


def _masking(neighbours: int) -> Callable[[int], Job]:
    return lambda elements: job(
        neighbours + 1,
        elements,
        1 << 24,
        lambda d: d.client("mask"),
        masking=1,
        complete=True,
        floors=aes.floors(neighbours + 1, LANE * elements),
        note="Secure: Client.mask() alone, key agreement and boxes included.",
    )


def _large(elements: int) -> Job:
    steps = [f"server {step}" for step in ("advertise", "share", "mask", "unmask")]
    return job(
        500,
        elements,
        1 << 20,
        lambda d: d.server(*steps),
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


GROWTH = (50, 100, 200, 400, 800, 1600)

CASES = (
    Case(
        "masking/client",
        "Client of 20: key shares and masking",
        _client,
        size=100_000,
        quick=10_000,
        tiny=100,
    ),
    Case(
        "masking/server",
        "Server of 20: unmasking, nobody dropped",
        _server(0),
        size=100_000,
        quick=10_000,
        tiny=100,
    ),
    Case(
        "masking/server-drop",
        "Server of 20: unmasking, 10 % dropped",
        _server(2),
        size=100_000,
        quick=10_000,
        tiny=100,
    ),
    *(
        Case(
            f"masking/mask/{k}",
            f"Client masking, {k} neighbours",
            _masking(k),
            size=1_000_000,
            quick=10_000,
            tiny=100,
            target=Target(f"at most 1.4x of {k + 1} AES-256-CTR expansions", 1.4, floor=aes.CTR),
        )
        for k in (10, 52)
    ),
    Case(
        "masking/server/500",
        "Server of 500: everything, 10 % dropped",
        _large,
        size=100_000,
        quick=1_000,
        tiny=100,
        rounds=1,
    ),
    *(
        Case(
            f"growth/clients/{n}",
            f"Masking client of {n}, sparse graph, 10,000 elements",
            _grown,
            size=n,
            quick=n if n <= 100 else 50,
            tiny=50,
            series="clients",
            rounds=1,
        )
        for n in GROWTH
    ),
)
