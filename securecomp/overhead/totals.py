"""Jobs of the ways to add: the private sum of one vector a hospital."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Any

import numpy as np

from securecomp.errors import WrongResultError
from securecomp.overhead.data import integers
from securecomp.overhead.job import DECODE, Job, Traffic, role
from securecomp.paillier import PrivateKey, encrypt
from securecomp.paillier.encrypted_sum import Paillier
from securecomp.protocol.carrier import K, T, Vector
from securecomp.protocol.local_carrier import LocalCarrier
from securecomp.protocol.session import Layout
from securecomp.protocol.sum_protocols import SumProtocol
from securecomp.secagg.masked_sum import Masking
from securecomp.sharing.additive_sum import Sharing

BOUND = (1 << 40) - 1
BITS = 2048
_NOTES = {
    "sharing": "3 servers, every hospital receives. Set-up draws the long-term keys.",
    "masking": "One server, every hospital receives. Set-up draws the long-term keys.",
    "paillier": f"{BITS} bits, every hospital receives. Set-up draws the long-term keys and, but in"
    " a series, a Paillier key with its first table of powers; online, a key is in steady use.",
}
_BY_ROUND: dict[str, Callable[[int], str]] = {
    # Whose work it is that no hospital or receiver does, by the round. In masking's first round
    # that is the clients' keys too, which are told apart by nothing.
    "sharing": lambda _: "",
    "masking": lambda rounds: "server" if rounds > 1 else "",
    "paillier": lambda rounds: "aggregator" if rounds < 3 else "key holder",
}


class ClockedCarrier(LocalCarrier):
    """Also clocks what each party computes, in seconds of its thread's CPU time.

    Args:
        names: The parties, where a protocol tells them apart by their numbers.
    """

    def __init__(self, names: Sequence[str] = ()) -> None:
        super().__init__()
        self._names = names
        self.start()

    def start(self) -> None:
        """Begin a new computation: count from zero."""
        super().start()
        self._calls: list[dict[str, float]] = []
        self._between: defaultdict[int, float] = defaultdict(float)
        self._mark = time.thread_time()

    def next_round(self) -> None:
        """Count a round."""
        self._outside()
        super().next_round()

    def each(self, work: Callable[[K], T], names: Iterable[K], elements: int) -> dict[K, T]:
        """Do the work of several parties, and clock each."""
        self._outside()
        call: dict[str, float] = {}
        self._calls.append(call)

        def clocked(name: K) -> T:
            start = time.thread_time()
            result = work(name)
            party = self._names[name] if isinstance(name, int) else str(name)
            call[party] = time.thread_time() - start
            return result

        done = super().each(clocked, names, elements)
        self._mark = time.thread_time()
        return done

    def parts(self, by_round: Callable[[int], str] = lambda _: "") -> dict[str, float]:
        """Return the seconds of the median party of each role, and of a receiver's last step.

        Args:
            by_round: Whose work it is, by the round, that is no party's step; empty for nobody's.
        """
        *steps, last = self._calls
        parties: defaultdict[str, float] = defaultdict(float)
        for step in steps:
            for name, seconds in step.items():
                parties[name] += seconds
        found: dict[str, list[float]] = {}
        for name, seconds in parties.items():
            found.setdefault(role(name), []).append(seconds)
        result = {name: median(seconds) for name, seconds in found.items()}
        for rounds, seconds in self._between.items():
            if by_round(rounds):
                result[by_round(rounds)] = result.get(by_round(rounds), 0.0) + seconds
        return {**result, DECODE: median(last.values())}

    def _outside(self) -> None:
        now = time.thread_time()
        self._between[self.transcript.rounds] += now - self._mark
        self._mark = now


def hospitals(parties: int) -> tuple[str, ...]:
    """Return the names of so many contributors."""
    return tuple(f"hospital {i + 1}" for i in range(parties))


def check(plain: Vector, secure: Vector) -> float:
    """Refuse a total that is not plaintext's, integer by integer."""
    if secure.dtype != np.int64 or not np.array_equal(plain, secure):
        raise WrongResultError("the secure total is not the plaintext total")
    return 0.0


def pair(scheme: SumProtocol, inputs: Vector, receivers: Sequence[str]) -> dict[str, Any]:
    """Return set-up, secure side, check, cost and parts of a job that sums the rows of `inputs`."""
    parties, elements = inputs.shape
    names = hospitals(parties)
    layout = Layout(elements, BOUND)

    def reader(row: Vector) -> Callable[[], Vector]:
        return lambda: row

    readers = {name: reader(row) for name, row in zip(names, inputs, strict=True)}

    def setup() -> ClockedCarrier:
        carrier = ClockedCarrier()
        for name in dict.fromkeys((*names, *_machines(scheme), *receivers)):
            carrier.identity(name)
        return carrier

    def secure(carrier: ClockedCarrier) -> Vector:
        carrier.start()
        return scheme.run(carrier, layout, readers, tuple(receivers))

    return {
        "setup": setup,
        "secure": secure,
        "check": check,
        "cost": lambda carrier, _: Traffic.of(carrier.transcript),
        "parts": lambda carrier, _: carrier.parts(_BY_ROUND[scheme.name]),
    }


def _machines(scheme: SumProtocol) -> tuple[str, ...]:
    if isinstance(scheme, Sharing):
        count = 0 if scheme.servers == "all" else scheme.servers
        return tuple(f"server {i + 1}" for i in range(count))
    return (
        (Masking.server,)
        if isinstance(scheme, Masking)
        else (
            Paillier.aggregator,
            Paillier.key_holder,
        )
    )


def job(protocol: str, parties: int, elements: int, keys: bool = True) -> Job:
    """Return the job of a protocol's sum over so many hospitals.

    Args:
        protocol: Its name.
        parties: How many hospitals.
        elements: Values of each.
        keys: Whether set-up takes what a Paillier key takes, too.
    """
    inputs = integers((parties, elements), BOUND)
    out = np.empty(elements, np.int64)
    sizes = {"parties": parties, "elements": elements}
    if protocol == "paillier":
        scheme: SumProtocol = Paillier(bits=BITS)
        both = pair(scheme, inputs, hospitals(parties))
        both["secure"](both["setup"]())  # draws the key that is then in steady use
        if keys:
            both["setup"] = _with_key(both["setup"])
        sizes["bits"] = BITS
    else:
        scheme = Sharing(3) if protocol == "sharing" else Masking()
        both = pair(scheme, inputs, hospitals(parties))
    return Job(
        sizes=sizes,
        plain=lambda: np.add.reduce(inputs, axis=0, out=out),
        note=_NOTES[protocol],
        **both,
    )


def _with_key(setup: Callable[[], ClockedCarrier]) -> Callable[[], ClockedCarrier]:
    """Return a set-up that also takes what a key takes; the job goes on with its own key."""

    def complete() -> ClockedCarrier:
        key = PrivateKey.generate(BITS)
        encrypt(key.public, np.zeros(1, np.int64), bound=1)
        return setup()

    return complete
