"""All the roles of a protocol in one process, over their real bytes.

The messages between the roles are the encoded, sealed ones that would cross a network; they are
counted, and handed over without one.
"""

import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from securecomp import sums, wire
from securecomp.carrier import K, T
from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.core.fixedpoint import FixedPoint, Limbs, Number
from securecomp.errors import ParameterError
from securecomp.identity import Identity
from securecomp.session import Layout

_WORTH_A_THREAD = 1 << 16  # elements; the kernels release the GIL


@dataclass(slots=True)
class Transcript:
    """What crossed the network: counts, no contents.

    Attributes:
        sent: Bytes that each party sent to others.
        received: Bytes that each party got from others.
        messages: Number of messages between different parties.
        rounds: Number of rounds; messages of one round do not wait for each other.
        seconds: Wall time of all roles together in this process.
        crossed: The same bytes, by round, party and direction ("out" or "in").
    """

    sent: Counter[str] = field(default_factory=Counter)
    received: Counter[str] = field(default_factory=Counter)
    messages: int = 0
    rounds: int = 1
    seconds: float = 0.0
    crossed: Counter[tuple[int, str, str]] = field(default_factory=Counter)

    def count(self, sender: str, recipient: str, size: int) -> None:
        """Count a message of this round."""
        self.sent[sender] += size
        self.received[recipient] += size
        self.crossed[self.rounds, sender, "out"] += size
        self.crossed[self.rounds, recipient, "in"] += size
        self.messages += 1

    @property
    def loads(self) -> list[int]:
        """For each round, the most bytes that one party sent or received: what its line carries."""
        found = [0] * self.rounds
        for (number, _, _), size in self.crossed.items():
            found[number - 1] = max(found[number - 1], size)
        return found

    @property
    def bytes_sent(self) -> int:
        """Bytes that all parties sent."""
        return self.sent.total()


class LocalCarrier:
    """Brings messages from role to role within this process, and counts them."""

    def __init__(self, entropy: Entropy = entropy_.system) -> None:
        self.entropy = entropy
        self.transcript = Transcript()
        self._identities: dict[str, Identity] = {}
        self._lock = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None

    def start(self) -> None:
        """Begin a new computation: count from zero. The parties keep their keys."""
        self.transcript = Transcript()

    def identity(self, name: str) -> Identity:
        """Return a party's key, drawn at the first call."""
        if name not in self._identities:
            self._identities[name] = Identity.generate(self.entropy)
        return self._identities[name]

    def send(self, sender: str, recipient: str, data: wire.Buffer) -> wire.Buffer:
        """Count a message and return it. What a party keeps to itself is not counted."""
        if sender != recipient:
            with self._lock:
                self.transcript.count(sender, recipient, len(data))
        return data

    def next_round(self) -> None:
        """Count a round."""
        self.transcript.rounds += 1

    def each(self, work: Callable[[K], T], names: Iterable[K], elements: int) -> dict[K, T]:
        """Do the work of several parties, side by side where the vectors are worth a thread."""
        names = list(names)
        cores = os.cpu_count() or 1
        if elements < _WORTH_A_THREAD or min(cores, len(names)) < 2:
            return {name: work(name) for name in names}
        if self._threads is None:  # kept: a protocol of many rounds would start thousands
            self._threads = ThreadPoolExecutor(cores - 1)
        todo = deque(names)
        done: dict[K, T] = {}

        def take() -> None:
            while True:
                try:
                    name = todo.popleft()
                except IndexError:  # nothing is left
                    return
                done[name] = work(name)

        running = [self._threads.submit(take) for _ in range(min(cores, len(names)) - 1)]
        try:
            take()
        finally:
            todo.clear()
            # Nobody works on after an error, and nobody is waited for who has not begun.
            running = [task for task in running if not task.cancel()]
            wait(running)
        for task in running:
            task.result()
        return {name: done[name] for name in names}


@dataclass(frozen=True, slots=True)
class SecureSum:
    """The total of the parties' vectors.

    Attributes:
        values: The total, in the shape of the inputs: int64 on the integer grid, else float64.
        integers: The exact total times `scale`, as Python ints, flat.
        scale: Integers per unit.
        protocol: What computed it.
        transcript: What it took.
        learned: What each kind of party learned.
    """

    values: npt.NDArray[Any]
    integers: list[int]
    scale: int
    protocol: str
    transcript: Transcript
    learned: dict[str, str]


def secure_sum(
    vectors: Mapping[str, npt.ArrayLike],
    *,
    bound: Number,
    decimals: int | None = None,
    bits: int | None = None,
    protocol: sums.SumProtocol | str = "sharing",
    servers: int | Literal["all"] | None = None,
    receivers: tuple[str, ...] | None = None,
    entropy: Entropy = entropy_.system,
) -> SecureSum:
    """Add arrays of several parties in this process, each role seeing only its own messages.

    Args:
        vectors: Party name to numbers, all of one shape.
        bound: Largest absolute value of any element. Public.
        decimals: Decimals of the values, by default 0; the sum is exact.
        bits: Instead of `decimals`: round to multiples of 2^-bits.
        protocol: A protocol or its name.
        servers: For `sharing`: number of servers, by default 3, or "all".
        receivers: Who gets the result; by default every party.
        entropy: Source of all randomness. With vectors of 65,536 elements and more several
            threads call it.

    Raises:
        ParameterError: Different shapes, not numbers.
        RangeError: A value is beyond the bound or off the grid; it names the party.
        ThresholdError: Fewer than two parties.
    """
    if bits is not None and decimals is not None:
        raise ParameterError("give decimals or bits, not both")
    if isinstance(receivers, str):
        raise ParameterError(f"receivers are several names, not one text: {receivers!r}")
    if bits is None:
        grid = FixedPoint.decimal(bound, decimals or 0)
    else:
        grid = FixedPoint.binary(bound, bits)
    scheme = sums.protocol(protocol, servers=servers) if isinstance(protocol, str) else protocol
    encoded = {name: grid.encode(values, name) for name, values in vectors.items()}
    shapes = {name: array.shape for name, array in encoded.items()}
    shape = next(iter(shapes.values()), (0,))
    for name, other in shapes.items():
        if other != shape:
            raise ParameterError(
                f"{name}: shape {other}, but {next(iter(shapes))} has {shape}; all must agree"
            )
    plan = Limbs.plan(grid.limit, max(1, len(encoded)), scheme.limit)
    length = int(np.prod(shape, dtype=np.int64)) * plan.count
    carrier = LocalCarrier(entropy)
    start = time.perf_counter()

    def reader(array: npt.NDArray[Any]) -> Any:
        flat = array.reshape(-1)
        return lambda: flat if plan.count == 1 else np.array(plan.split(flat, entropy), np.int64)

    total = scheme.run(
        carrier,
        Layout(length, plan.largest),
        {name: reader(array) for name, array in encoded.items()},
        receivers,
    )
    carrier.transcript.seconds = time.perf_counter() - start
    integers = total.tolist() if plan.count == 1 else plan.join(total.tolist())
    values: npt.NDArray[Any]
    if grid.scale == 1:
        fits = all(abs(v) < 1 << 63 for v in integers)
        values = np.array(integers, np.int64 if fits else object)
    elif plan.count == 1 and grid.limit * len(encoded) < 1 << 53:
        values = total / float(grid.scale)
    else:
        values = np.array([grid.decode(v) for v in integers], np.float64)
    return SecureSum(
        values.reshape(shape),
        integers,
        grid.scale,
        scheme.name,
        carrier.transcript,
        scheme.learned(),
    )
