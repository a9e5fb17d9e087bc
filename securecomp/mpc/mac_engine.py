"""The engine on shares with MACs: no party can change a result unseen.

Every value x is held as shares of x and of alpha x. Nobody knows the key alpha; each party has a
share of it from the dealer. A party that changes its share of x by d would have to change its share
of the MAC by alpha d. All opened values are checked in batches (`mac_checks`) before anything is
revealed.

Protected, against any number of parties but all, who deviate together as they like:

- Privacy: they learn shapes, their own inputs and the values revealed to them. An abort tells
  nothing of others' data either, because an error is found with the same probability whatever the
  data are. (But a recipient may abort once it knows its result: see fairness below.)
- Correctness: the result of `reveal` is right for the inputs that were shared, except with a
  probability of about 2^-60 a check. Otherwise `reveal` raises and returns nothing. All roles then
  drop alpha and their material, and refuse to say, hear or open anything later. All messages before
  a result is opened are uniform, so that an abort leaks nothing. A party that is no recipient never
  learns the result.

Not protected:

- The dealer is assumed to deal right correlations and to collude with nobody. With one party's help
  it opens everything. Wrong correlations are not found, nor selective failures: correlations that
  are wrong only where the data have a certain value.
- A value beyond its declared bound is refused by its recipients. That tells them that somebody
  shared a wrong value, and does not end the computation.
- Fairness: a recipient that deviates sees the result first and may then abort, also depending on
  the result, so that the others get nothing. It is not always known who deviated.
- Inputs: a party may share any element of the field, also beyond the declared bound. If a bound
  does not hold, comparisons, truncation and division of that value give wrong results.
- Availability: any party, and whoever carries the messages, can make the computation abort.

Sources: Damgård, Pastro, Smart, Zakarias, CRYPTO 2012 (SPDZ); Damgård, Keller, Larraia, Pastro,
Scholl, Smart, ESORICS 2013 (the check in batches).
"""

from collections.abc import Callable, Sequence

import numpy as np

from securecomp.core import field, field_kernels
from securecomp.core.field import Residues
from securecomp.mpc import compare_in_field
from securecomp.mpc.engine import LinearEngine, Move, Value, column_sums, masked
from securecomp.mpc.mac_dealer import digits
from securecomp.mpc.mac_driver import MacDriver

_BLOCK = 1 << 14
"""Elements compared at a time. Each takes 40 products."""


class MacEngine(LinearEngine[MacDriver]):
    """Additive shares with MACs, correlations from an honest dealer. A value is (2, n) a party."""

    # Without messages

    def add_public(self, x: Value, constant: Residues) -> Value:
        """x + constant."""
        return self.add_each(x, [constant] * len(x))

    def add_each(self, x: Value, constants: Sequence[Residues]) -> Value:
        """x + a public vector, as each party heard it.

        The first party adds it to its share, and each party its key share times it to the MAC.
        """
        out = []
        for party, pair, constant in zip(self.run.members, x, constants, strict=True):
            changed = pair.copy()
            if party.index == 0:
                changed[0] = field.add(pair[0], constant)
            changed[1] = field.add(pair[1], field.multiply(constant, party.key))
            out.append(changed)
        return out

    def move(self, x: Value, change: Move) -> Value:
        """The elements in their new places."""
        return [_rows(pair, change) for pair in x]

    def total(self, x: Value, rows: int, width: int) -> Value:
        """The sums of equal parts."""
        return [_rows(pair, lambda r: column_sums(r.reshape(rows, width))) for pair in x]

    def matmul_public(self, x: Value, shape: tuple[int, int], table: Residues, left: bool) -> Value:
        """A product with a public matrix."""

        def product(row: Residues) -> Residues:
            shared = row.reshape(shape)
            return field.matmul(table, shared) if left else field.matmul(shared, table)

        return [_rows(pair, product) for pair in x]

    # With messages

    def input(self, owner: str, residues: Residues) -> Value:
        """Share a vector that one party or client has.

        The dealer gives shares and MACs of a mask that only the owner knows. The owner announces
        its vector less the mask.
        """
        mask, shares = self.run.own_mask(owner, residues.size)
        return self.add_each(shares, self.run.announce(owner, field.subtract(residues, mask)))

    def open(self, x: Value) -> list[Residues]:
        """Open a masked x to all, as each party heard it. It is not checked yet."""
        return self.run.open_checked(x)

    def multiply(self, x: Value, y: Value) -> Value:
        """x y: one round, one triple an element."""
        size = x[0].shape[1]
        parts = self.run.material("triple", (size,))
        opened = self.open(self.run.each(lambda i: _masked(x[i], y[i], parts[i]), size))

        def product(party: int) -> Residues:
            d, e = opened[party][:size], opened[party][size:]
            _, b, c = parts[party]
            for row in (0, 1):  # x y = c + d b + e x is linear in the shares, and so are the MACs
                field_kernels.beaver(d, e, x[party][row], b[row], c[row], c[row])
            return c

        return self.run.each(product, size)

    def square(self, x: Value) -> Value:
        """x^2 = c + d (x + a), where a and c = a^2 are shared and d = x - a is opened."""
        parts = self.run.material("square", (x[0].shape[1],))
        opened = self.open([field.subtract(xs, p[0]) for xs, p in zip(x, parts, strict=True)])
        return [
            field.add(c, field.multiply(field.add(xs, a), d))
            for xs, d, (a, c) in zip(x, opened, parts, strict=True)
        ]

    def matmul(self, x: Value, y: Value, shape: tuple[int, int, int]) -> Value:
        """A matrix product: one round, m k + k n elements are opened."""
        m, k, n = shape
        parts = self.run.material("matrix", shape)
        size = m * k + k * n
        opened = self.open(self.run.each(lambda i: _masked(x[i], y[i], parts[i]), size))

        def product(party: int) -> Residues:
            d, e = opened[party][: m * k].reshape(m, k), opened[party][m * k :].reshape(k, n)
            _, b, c = parts[party]
            for row in (0, 1):
                field.matmul(d, b[row].reshape(k, n), plus=c[row].reshape(m, n))
                field.matmul(x[party][row].reshape(m, k), e, plus=c[row].reshape(m, n))
            return c

        return self.run.each(product, size)

    def mask_digits(self, count: int, cut: int) -> Value:
        """The digits of random masks below p, shape (2, rows, count) a party."""
        parts = self.run.material("digits", (count, cut))
        rows = sum((1 << bits) - 1 for _, bits in digits(cut))
        return [part[0].reshape(2, rows, count) for part in parts]

    def negative(self, x: Value) -> Value:
        """1 where x < 0: seven rounds, for every 2^14 elements."""
        return self._in_blocks(x, lambda part: compare_in_field.negative(self, part))

    def zero(self, x: Value) -> Value:
        """1 where x = 0: six rounds."""
        return self._in_blocks(x, lambda part: compare_in_field.zero(self, part))

    def shifted(self, x: Value, by: int) -> Value:
        """floor(x / 2^by)."""
        return self._in_blocks(x, lambda part: compare_in_field.shifted(self, part, by))

    def _in_blocks(self, x: Value, work: Callable[[Value], Value]) -> Value:
        size = x[0].shape[1]
        if size <= _BLOCK:
            return work(x)
        starts = range(0, size, _BLOCK)
        blocks = [[np.ascontiguousarray(p[:, s : s + _BLOCK]) for p in x] for s in starts]
        return self.join([work(block) for block in blocks])

    def reveal(self, x: Value, recipients: Sequence[str]) -> Residues:
        """Open x to some parties or clients, after a check of all that led to it, and check x too.

        If all parties are recipients, x is opened. Otherwise, for each recipient, x less a mask
        that only it knows is opened. So everybody takes part in the check, and only recipients
        learn x. Every party tells a client x less its mask, once that is checked.

        Raises:
            ProtocolError: A party deviated. Nothing is returned; all is dropped.
        """
        run = self.run
        run.check()
        if set(recipients) == set(run.names):
            opened = self.open(x)
            run.check()
            return opened[0]
        size = x[0].shape[1]
        made = {name: run.own_mask(name, size) for name in recipients}
        heard = {name: self.open(self.subtract(x, shares)) for name, (_, shares) in made.items()}
        run.check()
        found = []
        for name, (mask, _) in made.items():
            if name in run.clients:
                told = run.pass_on(heard[name], name)
            else:
                told = heard[name][run.names.index(name)]
            found.append(field.add(told, mask))
        return found[0]


def _masked(x: Residues, y: Residues, part: Sequence[Residues]) -> Residues:
    """Return a party's shares of x - a and y - b, one after the other, and their MACs."""
    return np.stack([masked(*rows) for rows in zip(x, y, zip(*part, strict=True), strict=True)])


def _rows(pair: Residues, change: Move) -> Residues:
    """Return both rows changed in the same way."""
    return np.stack([np.ascontiguousarray(change(row)).reshape(-1) for row in pair])
