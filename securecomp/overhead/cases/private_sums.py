"""Private sums of one vector a hospital, by every sum protocol, against numpy's sum."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from securecomp.errors import WrongResultError
from securecomp.overhead.cases import aes_floors
from securecomp.overhead.cases.clocked_carrier import ClockedCarrier
from securecomp.overhead.cases.synthetic_data import integers
from securecomp.overhead.job import Case, Communication, Job
from securecomp.paillier import PrivateKey, encrypt
from securecomp.paillier.encrypted_sum import Paillier
from securecomp.protocol import sum_protocols
from securecomp.protocol.carrier import Vector
from securecomp.protocol.local_carrier import LocalCarrier
from securecomp.protocol.session import Layout
from securecomp.protocol.sum_protocols import SumProtocol
from securecomp.sharing.additive_sum import Sharing

BOUND = (1 << 40) - 1
BITS = 2048
_NOTES = {
    "sharing": "3 servers, every hospital receives. Set-up draws the long-term keys.",
    "masking": "One server, every hospital receives. Set-up draws the long-term keys.",
    "paillier": f"{BITS} bits, every hospital receives. Set-up draws the long-term keys and, but in"
    " a series, a Paillier key with its first table of powers; online, a key is in steady use.",
}
_BETWEEN: dict[str, Callable[[int], str]] = {
    # The role that works between the parties' steps, by the round. In masking's first round the
    # clients draw keys there too; the clock cannot tell them from the server.
    "masking": lambda rounds: "server" if rounds > 1 else "",
    "paillier": lambda rounds: "aggregator" if rounds < 3 else "key holder",
}


@dataclass(frozen=True, slots=True)
class _Sizes:
    """A protocol's sizes in `securecomp bench`."""

    title: str
    elements: int
    quick: int
    family: str
    series: tuple[int, ...]
    parties: tuple[int, ...]


_THOUSANDS = (1_000, 10_000, 100_000, 1_000_000)
_PROTOCOLS = {
    "sharing": _Sizes("Sum, shares", 1_000_000, 100_000, "mpc", _THOUSANDS, (3, 10, 30, 100)),
    "masking": _Sizes("Sum, masks", 1_000_000, 100_000, "mpc", _THOUSANDS, (3, 10, 30, 100)),
    "paillier": _Sizes("Sum, Paillier", 10_000, 1_000, "", (100, 300, 1_000, 10_000), (3, 10, 30)),
}
FEW = 100
"""Elements of a series in which the parties vary."""
_QUICK = 3  # sizes of a series in a quick run, the smallest
_MILLION = 1_000_000


def hospitals(parties: int) -> tuple[str, ...]:
    """Return the names of so many contributors."""
    return tuple(f"hospital {i + 1}" for i in range(parties))


def check(plain: Vector, secure: Vector) -> float:
    """Compare a total with plaintext's, integer by integer.

    Raises:
        WrongResultError: They differ.
    """
    if secure.dtype != np.int64 or not np.array_equal(plain, secure):
        raise WrongResultError("the secure total is not the plaintext total")
    return 0.0


def summed(
    scheme: SumProtocol,
    inputs: Vector,
    receivers: Sequence[str],
    plain: Callable[[], Vector] | None = None,
    **facts: Any,
) -> Job:
    """Return the job that sums the rows of `inputs`.

    Args:
        scheme: The protocol.
        inputs: One row for each hospital, shape (parties, elements).
        receivers: Names of those who get the total.
        plain: The plaintext sum; by default numpy's reduction over the rows.
        **facts: Other fields of the job.
    """
    parties, elements = inputs.shape
    names = hospitals(parties)
    out = np.empty(elements, np.int64)
    layout = Layout(elements, BOUND)
    readers = {name: partial(_row, inputs, i) for i, name in enumerate(names)}
    machines = _parties(scheme, names, tuple(receivers))

    def setup() -> ClockedCarrier:
        carrier = ClockedCarrier()
        for name in machines:
            carrier.identity(name)
        return carrier

    def secure(carrier: ClockedCarrier) -> Vector:
        carrier.start()
        return scheme.run(carrier, layout, readers, tuple(receivers))

    between = _BETWEEN.get(scheme.name, lambda _: "")
    default: dict[str, Any] = {
        "sizes": {"parties": parties, "elements": elements},
        "setup": setup,
        "cost": lambda carrier, _: Communication.of(carrier.transcript),
        "parts": lambda carrier, _: carrier.parts(between),
    }
    return Job(
        plain=plain or (lambda: np.add.reduce(inputs, axis=0, out=out)),
        secure=secure,
        check=check,
        **default | facts,
    )


def _row(inputs: Vector, index: int) -> Vector:
    row: Vector = inputs[index]
    return row


def _parties(
    scheme: SumProtocol, names: Sequence[str], receivers: tuple[str, ...]
) -> tuple[str, ...]:
    """Return all parties of a sum, from a small one, which draws keys that the scheme keeps."""
    carrier = LocalCarrier()
    one = np.ones(1, np.int64)
    scheme.run(carrier, Layout(1, BOUND), dict.fromkeys(names, lambda: one), receivers)
    return tuple(dict.fromkeys((*carrier.transcript.sent, *carrier.transcript.received)))


def job(protocol: str, parties: int, elements: int, keys: bool = True) -> Job:
    """Return the job of a protocol's sum over so many hospitals, each of which receives it.

    Args:
        protocol: Its name.
        parties: How many hospitals.
        elements: Values of each.
        keys: Whether set-up also draws a Paillier key.
    """
    inputs = integers((parties, elements), BOUND)
    sizes = {"parties": parties, "elements": elements}
    if protocol == Paillier.name:
        scheme: SumProtocol = Paillier(bits=BITS)
        sizes["bits"] = BITS
    else:
        scheme = sum_protocols.protocol(protocol)
    found = summed(scheme, inputs, hospitals(parties), sizes=sizes, note=_NOTES.get(protocol, ""))
    return _with_key(found) if keys and protocol == Paillier.name else found


def _with_key(found: Job) -> Job:
    """Return a job whose set-up also draws a key, while the work goes on with the job's own key."""

    def complete() -> Any:
        key = PrivateKey.generate(BITS)
        encrypt(key.public, np.zeros(1, np.int64), bound=1)
        return found.prepare()

    return replace(found, setup=complete)


def for_users(elements: int | None, parties: int) -> Iterator[Case]:
    """Yield a sum by each protocol."""
    for name, sizes in _PROTOCOLS.items():
        yield Case(
            f"sum/{name}",
            sizes.title,
            partial(job, name, parties),
            size=elements or sizes.elements,
            quick=elements or sizes.quick,
            tiny=10,
            scheme=name,
            family=sizes.family,
        )


def growth(parties: int, quick: int) -> Iterator[Case]:
    """Yield sums of growing vectors, and of growing numbers of hospitals."""
    for name, sizes in _PROTOCOLS.items():
        by_elements = partial(job, name, parties, keys=False)
        by_parties = partial(_of_few, name)
        for series, numbers, build in (
            ("elements", sizes.series, by_elements),
            ("parties", sizes.parties, by_parties),
        ):
            yield from grown(name, series, sizes.title, numbers, build, sizes.family, quick)


def _of_few(protocol: str, parties: int) -> Job:
    return job(protocol, parties, FEW, keys=False)


def grown(
    scheme: str,
    series: str,
    title: str,
    sizes: Sequence[int],
    build: Callable[[int], Job],
    family: str,
    quick: int,
) -> Iterator[Case]:
    """Yield a case for each size; one process measures them all, the smallest first."""
    for size in sizes[:_QUICK] if quick else sizes:
        yield Case(
            f"growth/{scheme}/{series}/{size}",
            f"{title}, {size:,} {series}",
            build,
            size=size,
            quick=size,
            tiny=sizes[0],
            series=series,
            scheme=scheme,
            family=family,
            batch=f"{scheme}/{series}",
        )


def _three(servers: int | Literal["all"], receivers: Sequence[str], elements: int) -> Job:
    """Return a sum by sharing over three hospitals, with the AES that it cannot avoid beside it."""
    inputs = integers((3, elements), BOUND)
    a, b, c = inputs
    out: Vector = np.empty_like(a)

    def plain() -> Vector:
        np.add(a, b, out=out)
        np.add(out, c, out=out)
        return out

    threads = min(3, os.cpu_count() or 1)
    return summed(
        Sharing(servers),
        inputs,
        receivers,
        plain,
        sizes={"parties": 3, "elements": elements, "servers": 3, "receivers": len(receivers)},
        # Three contributors expand two seeds each, and three servers the six that they get.
        floors=aes_floors.floors(12, 8 * elements, threads),
        note=f"Up to {threads} threads, in the floors too. Set-up draws the long-term keys.",
    )


def _shared(parties: int, elements: int) -> Job:
    """Return a sum by sharing with three servers; every hospital receives."""
    inputs = integers((parties, elements), BOUND)
    sizes = {"parties": parties, "elements": elements, "servers": 3, "receivers": parties}
    return summed(Sharing(3), inputs, hospitals(parties), sizes=sizes)


def for_developers() -> Iterator[Case]:
    """Yield sums by sharing: who serves and receives varies, then elements, then parties."""
    for name, title, servers, receivers in (
        ("one-receiver", "3 servers, an analyst receives", 3, ("analyst",)),
        ("three-receivers", "3 servers, every contributor receives", 3, hospitals(3)),
        ("all-servers", "every contributor is a server and receives", "all", hospitals(3)),
    ):
        yield Case(
            f"sum/{name}",
            f"Private sum, {title}",
            partial(_three, servers, receivers),  # type: ignore[arg-type]
            size=_MILLION,
            quick=100_000,
            tiny=100,
        )


def growth_for_developers() -> Iterator[Case]:
    """Yield sums by sharing of growing vectors, and over growing numbers of hospitals."""
    for n in (100, 1_000, 10_000, 100_000, _MILLION):
        yield Case(
            f"growth/elements/{n}",
            f"Private sum, 3 parties, {n:,} elements",
            partial(_shared, 3),
            size=n,
            quick=n,
            tiny=FEW,
            series="elements",
        )
    for n in (3, 10, 54, 200):
        yield Case(
            f"growth/parties/{n}",
            f"Private sum, {n} parties, {FEW} elements",
            partial(_shared, elements=FEW),
            size=n,
            quick=n,
            tiny=3,
            series="parties",
        )
