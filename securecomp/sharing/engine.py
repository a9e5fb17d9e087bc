"""What computes on shares: the interface that `SharedArray` needs, and the engine with a dealer.

A *value* is what the parties hold of one vector, one array a party; only an engine looks inside.
Everything is a vector of n elements: shapes, scales and bounds are `SharedArray`'s business.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from securecomp.core import field, kernels
from securecomp.core.field import Residues
from securecomp.sharing import comparing
from securecomp.sharing.computing import Lockstep

Value = list[Residues]
Move = Callable[[Residues], Residues]
"""Moves the elements of a vector around, or repeats them; the same for every party."""


class Engine(Protocol):
    """A way to compute. Each method's rounds are its own; all but `reveal` reveal nothing."""

    @property
    def names(self) -> tuple[str, ...]:
        """The computing parties."""

    @property
    def clients(self) -> tuple[str, ...]:
        """Who shares inputs and hears results without computing."""

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
        """The elements in other places."""

    def join(self, parts: Sequence[Value]) -> Value:
        """Vectors one after the other."""

    def total(self, x: Value, rows: int, width: int) -> Value:
        """The sums of `rows` parts of a width, element by element."""

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


R = TypeVar("R", bound=_Run)


class LinearEngine(Generic[R]):
    """What each linear sharing does alike, without a message. A party's last axis is the elements.

    An engine adds to it what depends on how it shares.
    """

    def __init__(self, run: R) -> None:
        self.run = run

    @property
    def names(self) -> tuple[str, ...]:
        """The computing parties."""
        return self.run.names

    @property
    def clients(self) -> tuple[str, ...]:
        """Who shares inputs and hears results without computing."""
        return tuple(self.run.clients)

    def add(self, x: Value, y: Value) -> Value:
        """x + y, without a message."""
        return [field.add(a, b) for a, b in zip(x, y, strict=True)]

    def subtract(self, x: Value, y: Value) -> Value:
        """x - y, without a message."""
        return [field.subtract(a, b) for a, b in zip(x, y, strict=True)]

    def scale(self, x: Value, constant: Residues) -> Value:
        """x times public residues."""
        return [field.multiply(share, constant) for share in x]

    def join(self, parts: Sequence[Value]) -> Value:
        """Vectors one after the other."""
        return [np.concatenate(shares, axis=-1) for shares in zip(*parts, strict=True)]


class Additive(LinearEngine[Lockstep]):
    """Additive shares, correlations from a dealer; any number of passive parties but all."""

    def input(self, owner: str, residues: Residues) -> Value:
        """Share a vector that one party has."""
        return self.run.input(owner, residues)

    def add_public(self, x: Value, constant: Residues) -> Value:
        """x + constant: the first party adds it."""
        return [field.add(x[0], constant), *x[1:]]

    def move(self, x: Value, change: Move) -> Value:
        """The elements in other places."""
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
        run, size = self.run, x[0].size
        parts = run.correlation("triple", (size,))
        masked = []
        for xs, ys, (a, b, _) in zip(x, y, parts, strict=True):
            both = np.empty(2 * size, np.uint64)
            field.subtract(xs, a, out=both[:size])
            field.subtract(ys, b, out=both[size:])
            masked.append(both)
        opened = run.open(masked)
        d, e = opened[:size], opened[size:]
        out = []
        for party, (a, b, c) in zip(run.parties, parts, strict=True):
            share = np.empty(size, np.uint64)
            kernels.beaver(d, e, a, b, c, party.index == 0, share)
            out.append(share)
        return out

    def square(self, x: Value) -> Value:
        """x^2 = c + 2 d a + d^2, where a and c = a^2 are shared and d = x - a is opened."""
        run = self.run
        parts = run.correlation("square", (x[0].size,))
        d = run.open([field.subtract(xs, p[0]) for xs, p in zip(x, parts, strict=True)])
        twice = field.add(d, d)
        out = [field.add(c, field.multiply(twice, a)) for a, c in parts]
        return self.add_public(out, field.multiply(d, d))

    def matmul(self, x: Value, y: Value, shape: tuple[int, int, int]) -> Value:
        """A matrix product: one round, m k + k n elements are opened."""
        m, k, n = shape
        run = self.run
        parts = run.correlation("matrix", shape)
        masked = [
            np.concatenate([field.subtract(xs, a), field.subtract(ys, b)])
            for xs, ys, (a, b, _) in zip(x, y, parts, strict=True)
        ]
        opened = run.open(masked)
        d, e = opened[: m * k].reshape(m, k), opened[m * k :].reshape(k, n)
        out = []
        for party, (a, b, c) in zip(run.parties, parts, strict=True):
            second = b.reshape(k, n)
            if party.index == 0:
                second = field.add(second, e)
            # d b + a e in one product: [d a] times b over e
            left = np.concatenate([d, a.reshape(m, k)], axis=1)
            product = field.matmul(left, np.concatenate([second, e], axis=0))
            out.append(field.add(c, product.reshape(-1)))
        return out

    def negative(self, x: Value) -> Value:
        """1 where x < 0: eight rounds."""
        return comparing.negative(self.run, x)

    def zero(self, x: Value) -> Value:
        """1 where x = 0: eight rounds."""
        return comparing.zero(self.run, x)

    def shifted(self, x: Value, by: int) -> Value:
        """floor(x / 2^by)."""
        return comparing.shifted(self.run, x, by)

    def reveal(self, x: Value, recipients: Sequence[str]) -> Residues:
        """Open x to some parties: one round."""
        return self.run.reveal(x, recipients)


def column_sums(table: Residues) -> Residues:
    """Return sums over the first axis modulo p, by halving."""
    while table.shape[0] > 1:
        half = table.shape[0] // 2
        rest = table[2 * half :]
        table = field.add(table[:half], table[half : 2 * half])
        if rest.size:
            table = np.concatenate([table, rest])
    return table[0] if table.shape[0] else np.zeros(table.shape[1:], np.uint64)
