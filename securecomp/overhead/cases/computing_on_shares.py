"""Computing on shares against numpy: whole computations, and single operations shares to shares."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import isqrt
from typing import Any

import numpy as np

from securecomp.errors import WrongResultError
from securecomp.mpc.computation import Computation
from securecomp.overhead.cases.clocked_carrier import ClockedCarrier
from securecomp.overhead.cases.private_sums import grown, hospitals
from securecomp.overhead.cases.share_operations import OPERATIONS, Array, Operation
from securecomp.overhead.job import Case, Communication, Job

_PARTIES = (
    "All parties, and the dealer if there is one, in one process, over sealed messages "
    "that are counted, the dealer's too; a thread a party for large vectors. Set-up is the "
    "dealer's work: what it draws, sends, and a party reads."
)
NOTE = (
    "Of shares, to shares: sharing the inputs and revealing the result are not in the time, but "
    f"checked. {_PARTIES}"
)
_WHOLE_NOTE = f"From inputs, which are shared, to the revealed result. {_PARTIES}"
_MATRIX_NOTE = " numpy: float64, exact on these numbers. BLAS has one thread on both sides."
_OWING_NOTE = " One element is revealed within the time: that checks all that was opened."


@dataclass(frozen=True, slots=True)
class ComputingParties:
    """The parties that compute, and their engine.

    Attributes:
        name: Last part of a case's name.
        title: One phrase.
        parties: How many.
        options: Other arguments of `Computation`.
        owes: Whether opened values are checked later, before anything is revealed. The job then
            reveals one element at its end, so that the check is in the time.
    """

    name: str
    title: str
    parties: int
    options: Mapping[str, Any] = field(default_factory=dict)
    owes: bool = False


TWO = ComputingParties("2", "2 parties and a dealer", 2)
OTHERS = (
    ComputingParties("3", "3 parties without a dealer", 3, {"dealer": False}),
    ComputingParties(
        "mac", "2 parties and a dealer, active security", 2, {"integrity": "mac"}, owes=True
    ),
)


@dataclass(frozen=True, slots=True)
class ComputedShares:
    """A result with its times and messages.

    Attributes:
        open: Returns the opened result. It opens it if the job ends with shares.
        scale: Integers per unit.
        online: Seconds without the dealer's.
        dealer: The dealer's seconds.
        cost: Messages.
    """

    open: Callable[[], Array]
    scale: int
    online: float
    dealer: float
    cost: Communication


class Clock:
    """Tells the dealer's time from the parties', from now on."""

    def __init__(self, mpc: Computation, carrier: ClockedCarrier) -> None:
        engine: Any = mpc.engine
        self._run, self._carrier = engine.run, carrier
        carrier.start()
        self._rounds, self._dealt = self._run.rounds, self._dealer()
        self._start = time.perf_counter()

    def _dealer(self) -> float:
        """Return the dealer's seconds so far; 0 without a dealer."""
        return getattr(self._run, "dealer_seconds", 0.0)

    def result(self, scale: int, opened: Callable[[], Array]) -> ComputedShares:
        """Return the result with its times and messages."""
        took = time.perf_counter() - self._start
        dealer = self._dealer() - self._dealt
        cost = replace(
            Communication.of(self._carrier.transcript), rounds=self._run.rounds - self._rounds
        )
        return ComputedShares(opened, scale, took - dealer, dealer, cost)


def from_shares(
    operation: Operation, setting: ComputingParties, elements: int, series: str = ""
) -> Job:
    """Return a job from shares to shares. Its inputs are shared here, once."""
    carrier = ClockedCarrier(hospitals(setting.parties))
    mpc = Computation(hospitals(setting.parties), carrier, **setting.options)
    x, y = operation.sharing(elements)(mpc)

    def secure(_: object) -> ComputedShares:
        clock = Clock(mpc, carrier)
        array = operation.secure(x, y)
        if setting.owes:
            array.reshape(-1)[:1].reveal()
        return clock.result(array.scale, array.reveal)

    return _job(
        operation,
        setting,
        elements,
        secure,
        sizes={series: elements} if series else {},
        note=NOTE + _MATRIX_NOTE * operation.square + _OWING_NOTE * setting.owes,
    )


def whole(operation: Operation, elements: int) -> Job:
    """Return a job of two hospitals and a dealer, from inputs to the result that both read."""
    names, share = hospitals(TWO.parties), operation.sharing(elements)

    def setup() -> tuple[Computation, ClockedCarrier]:
        carrier = ClockedCarrier(names)
        return Computation(names, carrier), carrier

    def secure(state: tuple[Computation, ClockedCarrier]) -> ComputedShares:
        clock = Clock(*state)
        array = operation.secure(*share(state[0]))
        values = array.reveal()
        return clock.result(array.scale, lambda: values)

    def parts(state: tuple[Computation, ClockedCarrier], _: ComputedShares) -> dict[str, float]:
        # The dealer's work is set-up.
        return {name: s for name, s in state[1].parts().items() if name != "dealer"}

    note = _WHOLE_NOTE + _MATRIX_NOTE * operation.square
    return replace(
        _job(operation, TWO, elements, secure, sizes={}, note=note), setup=setup, parts=parts
    )


def _job(
    operation: Operation,
    setting: ComputingParties,
    elements: int,
    secure: Callable[[Any], ComputedShares],
    *,
    sizes: Mapping[str, int],
    note: str,
) -> Job:
    side = isqrt(elements)
    shape = {"elements": side**2, "side": side} if operation.square else {"elements": elements}
    return Job(
        sizes={"parties": setting.parties, **shape, **sizes},
        plain=operation.plaintext(elements),
        secure=secure,
        check=lambda plain, result: check(plain, result, operation.error),
        cost=lambda _, result: result.cost,
        seconds=lambda result: result.online,
        before=lambda result: result.dealer,
        note=note,
    )


def check(plain: Array, result: ComputedShares, error: float) -> float:
    """Compare the opened result with numpy's, on the same grid unless an error is allowed.

    Raises:
        WrongResultError: They differ.
    """
    opened = result.open()
    if error:
        found = float(np.abs(opened - plain).max())
        if not found <= error:
            raise WrongResultError(f"an error of {found:.2g}, more than is promised")
        return found
    opened = opened * result.scale  # a power of two: exact
    if opened.shape != plain.shape or not np.array_equal(opened, plain):
        raise WrongResultError("the opened result is not numpy's")
    return 0.0


_WHOLE = {  # elements of a whole run and of a quick one
    "products": ("Shares, products", 1_000_000, 50_000),
    "compare": ("Shares, comparisons", 100_000, 5_000),
    "matmul": ("Shares, matrices", 500**2, 100**2),
    "sigmoid": ("Shares, sigmoid", 100_000, 2_000),
}
_FROM_SHARES = {
    "products": (1_000_000, 100_000),
    "truncated": (1_000_000, 50_000),
    "matmul": (500**2, 100**2),
    "matmul-truncated": (500**2, 100**2),
    "sigmoid": (100_000, 10_000),
    "equal": (100_000, 10_000),
    "sort": (1_000, 100),
    "compare": (100_000, 10_000),
}
_COMPARED = (1_000, 10_000, 100_000)


def for_users(elements: int | None) -> Iterator[Case]:
    """Yield whole computations of two hospitals and a dealer."""
    for name, (title, size, quick) in _WHOLE.items():
        yield Case(
            f"shares/{name}",
            title,
            partial(whole, OPERATIONS[name]),
            size=elements or size,
            quick=elements or quick,
            tiny=4,
            scheme="shares",
            family="mpc",
        )


def growth(quick: int) -> Iterator[Case]:
    """Yield comparisons of growing vectors."""
    build = partial(whole, OPERATIONS["compare"])
    yield from grown("shares", "elements", "Comparisons", _COMPARED, build, "mpc", quick)


def for_developers() -> Iterator[Case]:
    """Yield every operation from shares to shares, some with other parties, and growing vectors."""
    pairs = [(name, TWO) for name in OPERATIONS]
    pairs += [(name, parties) for parties in OTHERS for name in ("products", "compare")]
    for name, parties in pairs:
        size, quick = _FROM_SHARES[name]
        yield Case(
            f"computing/{name}/{parties.name}",
            f"On shares, {OPERATIONS[name].title}, {parties.title}",
            partial(from_shares, OPERATIONS[name], parties),
            size=size,
            quick=quick,
            tiny=4,
        )
    for n in _COMPARED:
        yield Case(
            f"growth/compared/{n}",
            f"On shares, {n:,} comparisons, 2 parties and a dealer",
            partial(from_shares, OPERATIONS["compare"], TWO, series="compared"),
            size=n,
            quick=n,
            tiny=4,
            series="compared",
        )
