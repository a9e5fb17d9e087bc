"""Computing on shares: products, exact truncation, matrix products, comparisons."""

import inspect
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isqrt
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.job import Case, Cost, Job, Target, WrongResultError
from securecomp.local import LocalCarrier
from securecomp.sharing.choosing import sort
from securecomp.sharing.computation import Computation
from securecomp.sharing.functions import SIGMOID_ERROR, sigmoid
from securecomp.sharing.shared import SharedArray

BITS = 16
PRODUCTS = 1_000_000
SIDE = 500
COMPARISONS = 100_000
GROWTH = (1_000, 10_000, 100_000)
NOTE = (
    "Of shares, to shares: sharing the inputs and revealing the result are not in the time, but "
    "checked. All parties, and the dealer if there is one, in one process, over sealed messages "
    "that are counted, the dealer's too; a thread a party for large vectors. Set-up is the "
    "dealer's work: what it draws, sends, and a party reads."
)


@dataclass(frozen=True, slots=True)
class Setting:
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

    @property
    def known(self) -> bool:
        """Whether the library can do it."""
        return self.options.keys() <= inspect.signature(Computation).parameters.keys()


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
    """

    title: str
    bound: int
    bits: int
    secure: Callable[[SharedArray, SharedArray], SharedArray]
    plain: Callable[[np.ndarray, np.ndarray, np.ndarray], Any]
    square: bool = False
    floats: bool = False
    error: float = 0.0

    def inputs(self, elements: int) -> tuple[np.ndarray, np.ndarray]:
        """Return two arrays of integers."""
        side = isqrt(elements)
        shape = (side, side) if self.square else (elements,)
        rng = np.random.default_rng(0)
        first, second = rng.integers(-self.bound, self.bound + 1, (2, *shape))
        return first, second


def shift(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    np.multiply(a, b, out=out)
    np.right_shift(out, BITS, out=out)


def shift_matrix(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    np.matmul(a, b, out=out)
    np.multiply(out, 2.0**-BITS, out=out)
    np.floor(out, out=out)


def logistic(a: np.ndarray, _: np.ndarray, out: np.ndarray) -> None:
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
    ),
    "sort": Operation(
        "a vector sorted",
        1 << 40,
        0,
        lambda x, _: sort(x),
        lambda a, _, out: out.__setitem__(slice(None), np.sort(a)),
    ),
    "compare": Operation(
        "comparisons", 1 << 40, 0, lambda x, y: x < y, lambda a, b, out: np.less(a, b, out=out)
    ),
}


@dataclass(frozen=True, slots=True)
class Result:
    """Shares of a result, and what they took."""

    array: SharedArray
    online: float
    dealer: float
    cost: Cost


def job(operation: Operation, setting: Setting, elements: int, series: str = "") -> Job:
    """Return a job; its inputs are shared here, once."""
    # BLAS's threads would spin while others are timed, and slow numpy's short product most.
    threadpool_limits(1)
    integers = operation.inputs(elements)
    carrier = LocalCarrier()
    names = [f"hospital {i + 1}" for i in range(setting.parties)]
    mpc = Computation(names, carrier, **setting.options)
    engine: Any = mpc.engine
    unit = 1 << operation.bits
    x, y = (
        mpc.share(name, values / unit, bound=operation.bound // unit, bits=operation.bits)
        if operation.bits
        else mpc.share(name, values, bound=operation.bound)
        for name, values in zip(names, integers, strict=False)
    )
    a, b = (v.astype(np.float64) if operation.floats else v for v in integers)
    truths = (OPERATIONS["compare"], OPERATIONS["equal"])
    out = np.empty_like(a, dtype=np.bool_ if operation in truths else None)

    def plain() -> np.ndarray:
        operation.plain(a, b, out)
        return out

    def secure(_: object) -> Result:
        run = engine.run
        carrier.start()
        rounds, dealt = run.rounds, dealer_seconds(run)
        start = time.perf_counter()
        array = operation.secure(x, y)
        if setting.owes:
            array.reshape(-1)[:1].reveal()
        took = time.perf_counter() - start
        dealer, sent = dealer_seconds(run) - dealt, carrier.transcript
        cost = Cost(max(sent.sent.values()), sent.bytes_sent, run.rounds - rounds, sent.messages)
        return Result(array, took - dealer, dealer, cost)

    sizes = {"parties": setting.parties, "elements": a.size}
    sizes |= {"side": a.shape[0]} if operation.square else {}
    return Job(
        sizes=sizes | ({series: elements} if series else {}),
        plain=plain,
        secure=secure,
        check=lambda plain, result: check(plain, result, operation.error),
        cost=lambda _, result: result.cost,
        seconds=lambda result: result.online,
        before=lambda result: result.dealer,
        note=NOTE + _MATRIX_NOTE * operation.square + _OWING_NOTE * setting.owes,
    )


def dealer_seconds(run: Any) -> float:
    """Return what the dealer has taken so far, 0 where there is none."""
    return getattr(run, "dealer_seconds", 0.0)


def check(plain: np.ndarray, result: Result, error: float) -> float:
    """Open the result and compare it with numpy's, on the same grid unless an error is allowed."""
    if error:
        found = float(np.abs(result.array.reveal() - plain).max())
        if found > error:
            raise WrongResultError(f"an error of {found:.2g}, more than what is promised")
        return found
    opened = result.array.reveal() * result.array.scale  # a power of two: exact
    if opened.shape != plain.shape or not np.array_equal(opened, plain):
        raise WrongResultError("the opened result is not numpy's")
    return 0.0


TWO = Setting("2", "2 parties and a dealer", 2)
OTHERS = (
    Setting("3", "3 parties without a dealer", 3, {"dealer": False}),
    Setting("mac", "2 parties and a dealer, active security", 2, {"integrity": "mac"}, owes=True),
)
_SIZES = {  # reported, and of a quick run
    "products": (PRODUCTS, 100_000),
    "truncated": (PRODUCTS, 50_000),
    "matmul": (SIDE**2, 100**2),
    "matmul-truncated": (SIDE**2, 100**2),
    "sigmoid": (COMPARISONS, 10_000),
    "equal": (COMPARISONS, 10_000),
    "sort": (1_000, 100),
    "compare": (COMPARISONS, 10_000),
}
_MATMUL = Target("at most 80x of numpy's product", 80)


def case(name: str, setting: Setting) -> Case:
    operation = OPERATIONS[name]
    size, quick = _SIZES[name]
    return Case(
        f"computing/{name}/{setting.name}",
        f"On shares, {operation.title}, {setting.title}",
        lambda elements: job(operation, setting, elements),
        size=size,
        quick=quick,
        tiny=4,
        target=_MATMUL if name == "matmul" else None,
    )


CASES = (
    *(case(name, TWO) for name in OPERATIONS),
    *(
        case(name, setting)
        for setting in OTHERS
        if setting.known
        for name in ("products", "compare")
    ),
    *(
        Case(
            f"growth/compared/{n}",
            f"On shares, {n:,} comparisons, 2 parties and a dealer",
            lambda elements: job(OPERATIONS["compare"], TWO, elements, "compared"),
            size=n,
            quick=n,
            tiny=4,
            series="compared",
        )
        for n in GROWTH
    ),
)
