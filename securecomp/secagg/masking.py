"""The arithmetic that client and server share: keys of masks, masked vectors, sums of them."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.core import buffers, prg
from securecomp.core.prg import Lanes
from securecomp.errors import ParameterError, RangeError
from securecomp.protocol import wire
from securecomp.protocol.session import Layout, Session
from securecomp.secagg import graph
from securecomp.secagg.masking_messages import Keys, Masked
from securecomp.secagg.parameters import Parameters


def graph_of(session: Session, parameters: Parameters) -> list[list[int]]:
    """Return each client's neighbours in a session; its id and its contributors are the seed."""
    seed = hashlib.sha256(prg.join("secagg graph", session.id, *session.contributors)).digest()
    return graph.neighbours(parameters.clients, parameters.degree, seed)


def digest(data: bytes) -> bytes:
    """Return SHA-256."""
    return hashlib.sha256(data).digest()


def roster(keys: Keys) -> bytes:
    """Return the digest of a list of advertised keys."""
    seen: list[bytes | int] = []
    for client, key in zip(keys.clients, keys.keys, strict=True):
        seen += [client, key.cipher_key, key.mask_key]
    return digest(prg.join("secagg keys", *seen))


def commitment(seed: bytes, agreement: bytes, client: int) -> bytes:
    """Return a hash that binds a client to its self-mask's seed and, the seed being uniform,
    shows nothing of the mask."""
    return digest(prg.join("secagg commitment", agreement, client, seed))


def statement(
    agreement: bytes, survivors: Sequence[int], application: bytes
) -> tuple[str, bytes, bytes, bytes]:
    """Return what a client signs about the survivors."""
    return "secagg survivors", agreement, np.array(survivors, "<u4").tobytes(), application


def self_key(seed: bytes, agreement: bytes, client: int) -> bytes:
    """Return the key of a client's self-mask."""
    return prg.derive(seed, "secagg self mask", agreement, client)


def pair_key(shared: bytes, agreement: bytes, one: int, other: int) -> bytes:
    """Return the key of the mask between two clients; the lower index adds it."""
    return prg.derive(shared, "secagg pair mask", agreement, min(one, other), max(one, other))


def lane_type(bits: int) -> type[np.uint32] | type[np.uint64]:
    """Return the words that a sum modulo 2^bits is computed on."""
    return np.uint32 if bits <= 32 else np.uint64


def reduced(lanes: Lanes, bits: int) -> Lanes:
    """Return lanes modulo 2^bits, in place where they are wider."""
    if bits < 8 * lanes.itemsize:
        lanes &= lanes.dtype.type((1 << bits) - 1)
    return lanes


def vector_length(layout: Layout, parameters: Parameters) -> int:
    """Return the masked vector's length: one more where weights are summed too."""
    return layout.length + (1 if parameters.max_weight else 0)


def encode(
    values: npt.ArrayLike,
    weight: int | None,
    layout: Layout,
    parameters: Parameters,
    name: str,
) -> npt.NDArray[np.int64]:
    """Check a client's vector and weight and return what is masked.

    Raises:
        ParameterError: Not integers, another length, or a weight too many or too few.
        RangeError: A value beyond the bound, or a weight beyond the largest.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "iub":
        raise ParameterError(
            f"{name}: expected integers, got {array.dtype}; encode reals with core.fixedpoint"
        )
    if array.shape != (layout.length,):
        raise ParameterError(
            f"{name}: the vector has shape {array.shape} and ({layout.length},) was agreed"
        )
    if array.size and max(int(array.max()), -int(array.min())) > layout.bound:
        raise RangeError(
            f"{name}: a value is beyond the bound {layout.bound}; declare a larger one"
        )
    array = array.astype(np.int64, copy=False)
    if not parameters.max_weight:
        if weight is not None:
            raise ParameterError(f"{name}: this session has no weights")
        return array
    if isinstance(weight, bool) or not isinstance(weight, int | np.integer):
        raise ParameterError(f"{name}: this session needs a weight that is an integer")
    if not 0 <= weight <= parameters.max_weight:
        raise RangeError(f"{name}: the weight is not in [0, {parameters.max_weight}]")
    return np.append(array * np.int64(weight), np.int64(weight))


def masked_body(
    vector: npt.NDArray[np.int64], plus: Sequence[bytes], minus: Sequence[bytes], bits: int
) -> wire.Bytes:
    """Return the body of a `Masked` message, computed a cache-sized block at a time."""
    masks = prg.RingMasks(plus, minus)
    block = np.empty(min(wire.BLOCK, vector.size), lane_type(bits))

    def lanes(start: int, stop: int) -> Lanes:
        part = block[: stop - start]
        # Two's complement: the low bits of a negative integer are its residue.
        np.copyto(part, vector[start:stop].view(np.uint64), casting="unsafe")
        masks.apply(part, start // wire.BLOCK)
        return reduced(part, bits)

    return wire.encode_body(Masked(wire.Vector(bits, vector.size)), vector.size, lanes, bits)


class Accumulator:
    """A sum of masked vectors modulo 2^bits."""

    def __init__(self, length: int, bits: int) -> None:
        self.bits = bits
        self.count = 0
        lane = lane_type(bits)
        self._lanes: Lanes = buffers.take(length * lane().itemsize).view(lane)
        self._lanes.fill(0)

    def add(self, vector: wire.Vector, payload: memoryview) -> None:
        """Add one masked vector.

        Raises:
            DecodeError: It is not one of the agreed length and width; the sum is unchanged.
        """
        lanes = wire.unpack(vector, payload, self._lanes.size, self.bits)
        np.add(self._lanes, lanes.astype(self._lanes.dtype, copy=False), out=self._lanes)
        self.count += 1

    def unmask(self, plus: Sequence[bytes], minus: Sequence[bytes]) -> None:
        """Add and subtract the masks of keys."""
        masks = prg.RingMasks(plus, minus)
        for index, start in enumerate(range(0, self._lanes.size, wire.BLOCK)):
            masks.apply(self._lanes[start : start + wire.BLOCK], index)

    def result(self) -> Lanes:
        """Return the sum modulo 2^bits."""
        return reduced(self._lanes, self.bits)


def decode(residues: Lanes, bits: int) -> npt.NDArray[np.int64]:
    """Return the signed integers that residues modulo 2^bits stand for."""
    shift = np.uint64(64 - bits)
    high: npt.NDArray[Any] = (residues.astype(np.uint64) << shift).view(np.int64)
    return high >> np.int64(64 - bits)
