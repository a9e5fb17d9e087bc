"""Jobs of computing on shares: products, exact truncation, matrix products, comparisons."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import isqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.errors import WrongResultError
from securecomp.mpc.computation import Computation
from securecomp.mpc.functions import SIGMOID_ERROR, sigmoid
from securecomp.mpc.selection import sort
from securecomp.mpc.shared_array import SharedArray
from securecomp.overhead.data import integers
from securecomp.overhead.job import Job, Traffic
from securecomp.overhead.totals import ClockedCarrier, hospitals

Array = npt.NDArray[Any]
BITS = 16
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


@dataclass(frozen=True, slots=True)
class ComputingParties:
    """Who computes, and how.

    Attributes:
        name: Last part of a case's name.
        title: One phrase.
        parties: How many.
        options: What else `Computation` is told.
        owes: Whether what was opened is checked later, before something is revealed. The job then
            reveals one element at its end, so that the check is in the time.
    """

    name: str
    title: str
    parties: int
    options: Mapping[str, Any] = field(default_factory=dict)
    owes: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """What is computed of two arrays.

    Attributes:
        title: One line.
        bound: Largest absolute integer in them.
        bits: They are multiples of 2^-bits.
        secure: The secure side.
        plain: The plaintext side on the integers; it takes two arrays and one for the result.
        square: Whether the arrays are square matrices of `elements` elements.
        floats: Whether the plaintext side takes its integers as float64.
        error: How far a value may be from plaintext's, in units; 0 for the same integers.
        truth: Whether the result is 0 or 1.
    """

    title: str
    bound: int
    bits: int
    secure: Callable[[SharedArray, SharedArray], SharedArray]
    plain: Callable[[Array, Array, Array], Any]
    square: bool = False
    floats: bool = False
    error: float = 0.0
    truth: bool = False

    def inputs(self, elements: int) -> tuple[Array, Array]:
        """Return two arrays of integers."""
        side = isqrt(elements)
        shape = (side, side) if self.square else (elements,)
        first, second = integers((2, *shape), self.bound)
        return first, second

    def sharing(self, elements: int) -> Callable[[Computation], list[SharedArray]]:
        """Return what shares both arrays, one of each of the first two parties."""
        unit = 1 << self.bits
        facts: dict[str, Any] = {"bits": self.bits} if self.bits else {}
        arrays = [values / unit if self.bits else values for values in self.inputs(elements)]

        def share(mpc: Computation) -> list[SharedArray]:
            return [
                mpc.share(name, values, bound=self.bound // unit, **facts)
                for name, values in zip(mpc.engine.names, arrays, strict=False)
            ]

        return share

    def plaintext(self, elements: int) -> Callable[[], Array]:
        """Return the plaintext side."""
        a, b = (v.astype(np.float64) if self.floats else v for v in self.inputs(elements))
        out = np.empty_like(a, dtype=np.bool_ if self.truth else None)

        def plain() -> Array:
            self.plain(a, b, out)
            return out

        return plain


def shift(a: Array, b: Array, out: Array) -> None:
    """Multiply integers, and round down to their grid."""
    np.multiply(a, b, out=out)
    np.right_shift(out, BITS, out=out)


def shift_matrix(a: Array, b: Array, out: Array) -> None:
    """Multiply matrices of integers, and round down to their grid."""
    np.matmul(a, b, out=out)
    np.multiply(out, 2.0**-BITS, out=out)
    np.floor(out, out=out)


def logistic(a: Array, _: Array, out: Array) -> None:
    """Compute the sigmoid of integers on their grid."""
    np.multiply(a, -(2.0**-BITS), out=out)
    np.exp(out, out=out)
    np.add(out, 1, out=out)
    np.reciprocal(out, out=out)


_MATRIX_NOTE = " numpy: float64, exact on these numbers. BLAS has one thread on both sides."
_OWING_NOTE = " One element is revealed within the time: that checks all that was opened."
_FIXED = 16 << BITS  # products, and sums of 500 of them, stay where float64 is exact
OPERATIONS = {
    "products": Operation(
        "products", 1 << 29, 0, lambda x, y: x * y, lambda a, b, out: np.multiply(a, b, out=out)
    ),
    "truncated": Operation(
        "fixed-point products, truncated exactly",
        _FIXED,
        BITS,
        lambda x, y: (x * y).truncate(BITS),
        shift,
    ),
    "matmul": Operation(
        "matrix product",
        _FIXED,
        0,
        lambda x, y: x @ y,
        lambda a, b, out: np.matmul(a, b, out=out),
        square=True,
        floats=True,
    ),
    "matmul-truncated": Operation(
        "fixed-point matrix product, truncated exactly",
        _FIXED,
        BITS,
        lambda x, y: (x @ y).truncate(BITS),
        shift_matrix,
        square=True,
        floats=True,
    ),
    "sigmoid": Operation(
        "sigmoids",
        _FIXED,
        BITS,
        lambda x, _: sigmoid(x),
        logistic,
        floats=True,
        error=SIGMOID_ERROR,
    ),
    "equal": Operation(
        "tests for equality",
        1 << 40,
        0,
        lambda x, y: x == y,
        lambda a, b, out: np.equal(a, b, out=out),
        truth=True,
    ),
    "sort": Operation(
        "a vector sorted",
        1 << 40,
        0,
        lambda x, _: sort(x),
        lambda a, _, out: out.__setitem__(slice(None), np.sort(a)),
    ),
    "compare": Operation(
        "comparisons",
        1 << 40,
        0,
        lambda x, y: x < y,
        lambda a, b, out: np.less(a, b, out=out),
        truth=True,
    ),
}


TWO = ComputingParties("2", "2 parties and a dealer", 2)
OTHERS = (
    ComputingParties("3", "3 parties without a dealer", 3, {"dealer": False}),
    ComputingParties(
        "mac", "2 parties and a dealer, active security", 2, {"integrity": "mac"}, owes=True
    ),
)


@dataclass(frozen=True, slots=True)
class ComputedShares:
    """A result, and what it took.

    Attributes:
        open: Opens it, where the job ends with shares; else returns what was opened in the time.
        scale: Integers per unit.
        online: Seconds without the dealer's.
        dealer: The dealer's.
        cost: What was sent.
    """

    open: Callable[[], Array]
    scale: int
    online: float
    dealer: float
    cost: Traffic


class Clock:
    """Tells apart what the dealer takes and sends from what the parties do, from now on."""

    def __init__(self, mpc: Computation, carrier: ClockedCarrier) -> None:
        engine: Any = mpc.engine
        self._run, self._carrier = engine.run, carrier
        carrier.start()
        self._rounds, self._dealt = self._run.rounds, self._dealer()
        self._start = time.perf_counter()

    def _dealer(self) -> float:
        """Return what the dealer has taken so far, 0 where there is none."""
        return getattr(self._run, "dealer_seconds", 0.0)

    def result(self, scale: int, opened: Callable[[], Array]) -> ComputedShares:
        """Return the result with what was counted."""
        took = time.perf_counter() - self._start
        dealer = self._dealer() - self._dealt
        cost = replace(Traffic.of(self._carrier.transcript), rounds=self._run.rounds - self._rounds)
        return ComputedShares(opened, scale, took - dealer, dealer, cost)


def job(operation: Operation, setting: ComputingParties, elements: int, series: str = "") -> Job:
    """Return a job from shares to shares; its inputs are shared here, once."""
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
    """Return a job of two hospitals and a dealer, from their inputs to what both of them read."""
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
    """Compare the opened result with numpy's, on the same grid unless an error is allowed."""
    opened = result.open()
    if error:
        found = float(np.abs(opened - plain).max())
        if not found <= error:
            raise WrongResultError(f"an error of {found:.2g}, more than what is promised")
        return found
    opened = opened * result.scale  # a power of two: exact
    if opened.shape != plain.shape or not np.array_equal(opened, plain):
        raise WrongResultError("the opened result is not numpy's")
    return 0.0
