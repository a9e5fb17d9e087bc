"""Three parties without a dealer: replicated shares, for an honest majority.

x = x_0 + x_1 + x_2 over the field, and party i holds (x_i, x_(i+1)), indices modulo 3. Sums are
local. Of a product party i can compute

    z_i = x_i (y_i + y_(i+1)) + x_(i+1) y_i,

and z_0 + z_1 + z_2 = x y. Each party hides its z_i under a share of zero and sends it to party i-1,
so that every party has two shares again. That takes one round, and one element a party for each
element of the result, also of a matrix product.

Keys: party i draws a seed and seals it for party i-1. So the parties j and j-1, who hold x_j, know
the stream F_j. F_i - F_(i+1) is party i's share of zero. An input of party i is
(x - F_(i+1)) + F_(i+1) + 0. Its first summand travels to party i-1.

Comparisons and truncation: party 0 adds up x_0 + x_1 and party 1 takes x_2, which are two shares of
x. These two parties run the circuits of `compare_bits`, with party 2 as their dealer. Their result
u_0 + u_1 becomes F_0 + (u_0 - F_0 + u_1 - F_2) + F_2: they tell each other the two differences.

Security: against any single party that follows the protocol. Two together learn everything, and
there is no integrity: a party that deviates can change results unseen. A party's view can be
simulated from its input, the shapes, and the values revealed to it:

- Keys, and shares from streams, are random, and independent of all data.
- In a product party i-1 gets z_i + F_i - F_(i+1). It does not have the key of F_(i+1), whose
  elements are used once, so that the sum is uniform whatever the shares are. The same holds for an
  input less F_(i+1).
- When x is revealed to a party, the share it lacks is x less its own two. A client gets x_0 + x_1
  and x_2: one is uniform, and the other is x less it.
- Of a client's input a party gets two of three summands. Any two of them are uniform.
- In the circuits party 2 knows all masks, as the dealer, but hears neither the openings nor the two
  differences, so that it has nothing to unmask. Parties 0 and 1 see the openings as they do beside
  a dealer that colludes with neither (`dealer_parties`): uniform given the party's own shares.
  Afterwards party 0 gets u_1 - F_2 without the key of F_2, and party 1 gets u_0 - F_0 without the
  key of F_0.

Source: Araki, Furukawa, Lindell, Nof, Ohara, CCS 2016 (products, shares of zero from keys).
"""

from collections.abc import Sequence

import numpy as np

from securecomp.core import field, field_kernels
from securecomp.core.field import Residues
from securecomp.mpc import compare_bits
from securecomp.mpc.engine import LinearEngine, Move, Value, column_sums
from securecomp.mpc.three_party import Part, ThreeParties


class ReplicatedEngine(LinearEngine[ThreeParties]):
    """Replicated shares: three parties, no dealer, any one of them passive.

    Each party's array of a value has two rows: its own share, and the next party's.
    """

    def input(self, owner: str, residues: Residues) -> Value:
        """Share a vector that one party or client has."""
        return self.run.input(owner, residues)

    def add_public(self, x: Value, constant: Residues) -> Value:
        """x + constant, added by the two parties that hold x_0."""
        first = field.add(x[0][0], constant)
        last = field.add(x[2][1], constant)
        return [np.stack([first, x[0][1]]), x[1], np.stack([x[2][0], last])]

    def move(self, x: Value, change: Move) -> Value:
        """The elements in their new places."""
        return [np.stack([change(row).reshape(-1) for row in pair]) for pair in x]

    def total(self, x: Value, rows: int, width: int) -> Value:
        """The sums of equal parts."""
        return [np.stack([column_sums(row.reshape(rows, width)) for row in pair]) for pair in x]

    def matmul_public(self, x: Value, shape: tuple[int, int], table: Residues, left: bool) -> Value:
        """A product with a public matrix: both shares in one product."""
        m, k = shape
        if left:
            beside = [pair.reshape(2, m, k).transpose(1, 0, 2).reshape(m, 2 * k) for pair in x]
            made = [field.matmul(table, b).reshape(-1, 2, k).transpose(1, 0, 2) for b in beside]
        else:
            made = [field.matmul(pair.reshape(2 * m, k), table) for pair in x]
        return [np.ascontiguousarray(product).reshape(2, -1) for product in made]

    def multiply(self, x: Value, y: Value) -> Value:
        """x y: one round, in which each party sends one element a product."""

        def local(party: int) -> Part:
            shares = (*x[party], *y[party])
            return lambda a, b, out: field_kernels.add_cross(*(share[a:b] for share in shares), out)

        return self.run.reshare(x[0].shape[1], local)

    def square(self, x: Value) -> Value:
        """x^2: a party's summand is x_i (x_i + 2 x_(i+1))."""
        return self.multiply(x, x)

    def matmul(self, x: Value, y: Value, shape: tuple[int, int, int]) -> Value:
        """A matrix product: one round, in which each party sends m n elements."""
        m, k, n = shape

        def local(party: int) -> Part:
            mine, following = x[party].reshape(2, m, k)
            both = field.add(y[party][0], y[party][1]).reshape(k, n)
            product = field.matmul(mine, both)
            product = field.matmul(following, y[party][0].reshape(k, n), plus=product).reshape(-1)
            return lambda a, b, out: field.add(out, product[a:b], out=out)

        return self.run.reshare(m * n, local)

    def negative(self, x: Value) -> Value:
        """1 where x < 0: eight rounds."""
        return self.run.in_circuit(x, compare_bits.negative)

    def zero(self, x: Value) -> Value:
        """1 where x = 0: eight rounds."""
        return self.run.in_circuit(x, compare_bits.zero)

    def shifted(self, x: Value, by: int) -> Value:
        """floor(x / 2^by)."""
        return self.run.in_circuit(x, lambda run, shares: compare_bits.shifted(run, shares, by))

    def reveal(self, x: Value, recipients: Sequence[str]) -> Residues:
        """Open x to some parties: one round, one share to each."""
        return self.run.reveal(x, recipients)
