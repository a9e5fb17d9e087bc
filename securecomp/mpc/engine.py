"""Engines that compute on shares: their interface, their common part, and the one with a dealer.

A *value* is a shared vector of n elements, as one array for each party. Only an engine looks inside
a value. It knows no shapes, scales or bounds: `SharedArray` keeps those.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from securecomp.core import buffers, field, field_kernels
from securecomp.core.field import Residues
from securecomp.mpc import compare_bits
from securecomp.mpc.dealer_parties import Lockstep

Value = list[Residues]
Move = Callable[[Residues], Residues]
"""Moves or repeats the elements of a vector, in the same way for every party."""


class Engine(Protocol):
    """A way to compute on shares. No method but `reveal` reveals anything."""

    @property
    def names(self) -> tuple[str, ...]:
        """The computing parties."""

    @property
    def clients(self) -> tuple[str, ...]:
        """The names that share inputs and hear results without computing."""

    def input(self, owner: str, residues: Residues) -> Value:
        """Share a vector that one party or client has."""

    def add(self, x: Value, y: Value) -> Value:
        """x + y."""

    def subtract(self, x: Value, y: Value) -> Value:
        """x - y."""

    def add_public(self, x: Value, constant: Residues) -> Value:
        """x + constant; one number or n."""

    def scale(self, x: Value, constant: Residues) -> Value:
        """x times public residues, one number or n."""

    def move(self, x: Value, change: Move) -> Value:
        """The elements in their new places."""

    def join(self, parts: Sequence[Value]) -> Value:
        """Vectors one after the other."""

    def total(self, x: Value, rows: int, width: int) -> Value:
        """The element-wise sum of `rows` parts of one width."""

    def matmul_public(self, x: Value, shape: tuple[int, int], table: Residues, left: bool) -> Value:
        """A shared matrix of a shape times a public one, or the public one times it (left)."""

    def multiply(self, x: Value, y: Value) -> Value:
        """x y, element by element."""

    def square(self, x: Value) -> Value:
        """x^2."""

    def matmul(self, x: Value, y: Value, shape: tuple[int, int, int]) -> Value:
        """The product of matrices (m, k) and (k, n), row after row."""

    def negative(self, x: Value) -> Value:
        """1 where x < 0, else 0, for |x| <= (p-1)/2."""

    def zero(self, x: Value) -> Value:
        """1 where x = 0, else 0."""

    def shifted(self, x: Value, by: int) -> Value:
        """floor(x / 2^by), exactly, for |x| < 2^59 and 0 < by < 59."""

    def reveal(self, x: Value, recipients: Sequence[str]) -> Residues:
        """Open x to some parties or clients."""


class _Run(Protocol):
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def clients(self) -> Mapping[str, Any]: ...

    def each(self, work: Callable[[int], Residues], elements: int) -> list[Residues]: ...


_LIGHT = 4
"""One pass over a vector is a quarter of the work of a round."""

R = TypeVar("R", bound=_Run)


class LinearEngine(Generic[R]):
    """The operations that every linear sharing does in the same way, without a message.

    The last axis of a party's array is the elements. A subclass adds the rest.
    """

    def __init__(self, run: R) -> None:
        self.run = run

    @property
    def names(self) -> tuple[str, ...]:
        """The computing parties."""
        return self.run.names

    @property
    def clients(self) -> tuple[str, ...]:
        """The names that share inputs and hear results without computing."""
        return tuple(self.run.clients)

    def add(self, x: Value, y: Value) -> Value:
        """x + y, without a message."""
        return self._each(lambda i: field.add(x[i], y[i]), x[0].size)

    def subtract(self, x: Value, y: Value) -> Value:
        """x - y, without a message."""
        return self._each(lambda i: field.subtract(x[i], y[i]), x[0].size)

    def scale(self, x: Value, constant: Residues) -> Value:
        """x times public residues."""
        return self._each(lambda i: field.multiply(x[i], constant), x[0].size)

    def join(self, parts: Sequence[Value]) -> Value:
        """Vectors one after the other."""
        ahead = parts[0][0].shape[:-1]
        shape = (*ahead, sum(part[0].shape[-1] for part in parts))
        size = math.prod(shape)

        def joined(party: int) -> Residues:
            out = buffers.residues(size).reshape(shape)
            return np.concatenate([part[party] for part in parts], axis=-1, out=out)

        return self._each(joined, size)

    def _each(self, work: Callable[[int], Residues], elements: int) -> Value:
        return self.run.each(work, elements // _LIGHT)


class AdditiveEngine(LinearEngine[Lockstep]):
    """Additive shares with correlations from a dealer, against all passive parties but one.

    For x = a + d and y = b + e, with d and e opened and c = a b shared, x y = c + d b + x e.
    """

    def input(self, owner: str, residues: Residues) -> Value:
        """Share a vector that one party has."""
        return self.run.input(owner, residues)

    def add_public(self, x: Value, constant: Residues) -> Value:
        """x + constant: the first party adds it."""
        return [field.add(x[0], constant), *x[1:]]

    def move(self, x: Value, change: Move) -> Value:
        """The elements in their new places."""
        return [np.ascontiguousarray(change(share)).reshape(-1) for share in x]

    def total(self, x: Value, rows: int, width: int) -> Value:
        """The sums of equal parts."""
        return [column_sums(share.reshape(rows, width)) for share in x]

    def matmul_public(self, x: Value, shape: tuple[int, int], table: Residues, left: bool) -> Value:
        """A product with a public matrix."""
        shared = [share.reshape(shape) for share in x]
        made = [field.matmul(table, s) if left else field.matmul(s, table) for s in shared]
        return [m.reshape(-1) for m in made]

    def multiply(self, x: Value, y: Value) -> Value:
        """x y: one round, one triple an element."""
        size = x[0].size
        parts = self.run.correlation("triple", (size,))

        def product(party: int, opened: Residues) -> Residues:
            _, b, c = parts[party]
            field_kernels.beaver(opened[:size], opened[size:], x[party], b, c, c)
            return c

        return self.run.open(2 * size, lambda i: masked(x[i], y[i], parts[i]), product)

    def square(self, x: Value) -> Value:
        """x^2 = c + d (x + a), where a and c = a^2 are shared and d = x - a is opened."""
        size = x[0].size
        parts = self.run.correlation("square", (size,))

        def product(party: int, d: Residues) -> Residues:
            a, c = parts[party]
            field_kernels.beaver(d, d, x[party], a, c, c)
            return c

        return self.run.open(size, lambda i: field.subtract(x[i], parts[i][0]), product)

    def matmul(self, x: Value, y: Value, shape: tuple[int, int, int]) -> Value:
        """A matrix product: one round, m k + k n elements are opened."""
        m, k, n = shape
        parts = self.run.correlation("matrix", shape)

        def product(party: int, opened: Residues) -> Residues:
            _, b, c = parts[party]
            d, e = opened[: m * k].reshape(m, k), opened[m * k :].reshape(k, n)
            out = field.matmul(d, b.reshape(k, n), plus=c.reshape(m, n))
            return field.matmul(x[party].reshape(m, k), e, plus=out).reshape(-1)

        return self.run.open(m * k + k * n, lambda i: masked(x[i], y[i], parts[i]), product)

    def negative(self, x: Value) -> Value:
        """1 where x < 0: seven rounds."""
        return compare_bits.negative(self.run, x)

    def zero(self, x: Value) -> Value:
        """1 where x = 0: seven rounds."""
        return compare_bits.zero(self.run, x)

    def shifted(self, x: Value, by: int) -> Value:
        """floor(x / 2^by)."""
        return compare_bits.shifted(self.run, x, by)

    def reveal(self, x: Value, recipients: Sequence[str]) -> Residues:
        """Open x to some parties: one round."""
        return self.run.reveal(x, recipients)


def masked(x: Residues, y: Residues, part: Sequence[Residues]) -> Residues:
    """Return a party's shares of x - a and y - b, one after the other, for a product to open."""
    a, b, _ = part
    both = buffers.residues(x.size + y.size)
    field.subtract(x, a, out=both[: x.size])
    field.subtract(y, b, out=both[x.size :])
    return both


def column_sums(table: Residues) -> Residues:
    """Return sums over the first axis modulo p, by halving."""
    while table.shape[0] > 1:
        half = table.shape[0] // 2
        rest = table[2 * half :]
        table = field.add(table[:half], table[half : 2 * half])
        if rest.size:
            table = np.concatenate([table, rest])
    return table[0] if table.shape[0] else np.zeros(table.shape[1:], np.uint64)
