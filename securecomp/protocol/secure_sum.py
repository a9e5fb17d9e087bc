"""`secure_sum`: add arrays of several parties in this process, by any sum protocol."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.core.fixedpoint import FixedPoint, Number
from securecomp.core.limbs import Limbs
from securecomp.errors import ParameterError
from securecomp.protocol import sum_protocols as sums
from securecomp.protocol.carrier import Transcript
from securecomp.protocol.local_carrier import LocalCarrier
from securecomp.protocol.session import Layout


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
        return lambda: flat if plan.count == 1 else plan.cut(flat, entropy)

    total = scheme.run(
        carrier,
        Layout(length, plan.largest),
        {name: reader(array) for name, array in encoded.items()},
        receivers,
    )
    carrier.transcript.seconds = time.perf_counter() - start
    integers = plan.put_together(total).tolist()
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
