"""A party's view is the same for other data: the proof of the circuits' secrecy, carried out.

World 1 runs on some data. In world 2 the data differ, and what the viewer holds does not. Every
opening of world 1 is to come out again: the other party's free masks are moved by what that takes,
and what depends on them is computed anew. That this is possible for every opening, jointly, is the
bijection that makes the view independent of the data: it fails where one mask hides two values.
"""

import numpy as np
import pytest

from securecomp.core import bits, field
from securecomp.mpc import correlated_randomness
from securecomp.mpc.dealer_parties import Lockstep
from securecomp.mpc.engine import AdditiveEngine
from securecomp.protocol.local_carrier import LocalCarrier

P = field.MODULUS
LIMIT = 1 << 59  # what can be truncated

# The vectors of a correlation that hide an opening, in its order, and how: subtracted from what is
# opened (-1), added (1), or exclusive-ored (0).
FREE = {
    "triple": [(0, -1), (1, -1)],
    "square": [(0, -1)],
    "matrix": [(0, -1), (1, -1)],
    "mask": [(0, 1)],
    "cut": [(0, 1)],
    "gates": [(0, 0), (1, 0)],
    "fork": [(0, 0), (1, 0)],
    "bits": [(1, 0)],
}


def repair(kind, shape, vectors, other, viewer):
    """Compute what depends on the other party's free masks anew; the viewer's vectors stay."""
    if kind == "matrix":
        m, k, n = shape
        a, b = (field.add(vectors[0][i], vectors[1][i]) for i in (0, 1))
        product = field.matmul(a.reshape(m, k), b.reshape(k, n)).reshape(-1)
        vectors[other][2][:] = field.subtract(product, vectors[viewer][2])
    elif kind in ("triple", "square"):
        a = field.add(vectors[0][0], vectors[1][0])
        b = field.add(vectors[0][-2], vectors[1][-2])
        vectors[other][-1][:] = field.subtract(field.multiply(a, b), vectors[viewer][-1])
    elif kind in ("gates", "fork"):
        x, y = (vectors[0][i] ^ vectors[1][i] for i in (0, 1))
        product = (x & y.reshape(-1, x.size)).reshape(-1) if x.size else y
        vectors[other][2][:] = product ^ vectors[viewer][2]
    elif kind == "bits":
        spread = bits.spread(vectors[0][1] ^ vectors[1][1], shape[0])
        vectors[other][0][:] = field.subtract(spread, vectors[viewer][0])
    else:
        r = field.add(vectors[0][0], vectors[1][0])
        by = shape[1] if kind == "cut" else 0
        rows = correlated_randomness._with_products(bits.slices(r), by)
        vectors[other][-1][:] = rows ^ vectors[viewer][-1]
        if by:
            high = r >> np.uint64(by)
            vectors[other][1][:] = field.subtract(high, vectors[viewer][1])


class Worlds(Lockstep):
    """Two parties; the second time every opening is the first time's."""

    def __init__(self, viewer):
        super().__init__(("a", "b"), LocalCarrier(), None)
        self.viewer = viewer
        self.dealt, self.opened = [], []
        self.world = 1

    def again(self):
        self.world = 2
        self.dealt, self.opened = self.dealt[::-1], self.opened[::-1]
        self.pending = []

    def correlation(self, kind, shape):
        if self.world == 1:
            vectors = super().correlation(kind, shape)
            self.dealt.append((kind, shape, [[v.copy() for v in part] for part in vectors]))
            return vectors
        was, of, vectors = self.dealt.pop()
        assert (was, of) == (kind, shape)
        self.pending.append((kind, shape, vectors))
        return vectors

    def open(self, size, share, then, width=field.BITS):
        words = width == 64
        add = np.bitwise_xor if words else field.add
        subtract = np.bitwise_xor if words else field.subtract
        shares = [share(0), share(1)]
        value = add(*shares)
        if self.world == 1:
            self.opened.append(value.copy())
        else:
            value = self.opened.pop()
            viewer, other = self.viewer, 1 - self.viewer
            move = subtract(subtract(value, shares[viewer]), shares[other])
            at = 0
            for kind, shape, vectors in self.pending:
                for vector, sign in FREE[kind]:
                    mask = vectors[other][vector]
                    part = move[at : at + mask.size]
                    at += mask.size
                    change = {0: np.bitwise_xor, 1: field.add, -1: field.subtract}[sign]
                    mask[:] = change(mask, part)
                repair(kind, shape, vectors, other, viewer)
            assert at == size  # every opened element has a mask of its own
            self.pending = []
            assert np.array_equal(add(share(0), share(1)), value)
        return [then(party, value.copy()) for party in (0, 1)]


OPERATIONS = {
    "multiply": (
        lambda e, x, y: e.multiply(x, y),
        lambda x, y: [a * b for a, b in zip(x, y, strict=True)],
    ),
    "square": (lambda e, x, y: e.square(x), lambda x, y: [a * a for a in x]),
    "matmul": (
        lambda e, x, y: e.matmul(x, y, (1, x[0].size, 1)),
        lambda x, y: [sum(a * b for a, b in zip(x, y, strict=True))],
    ),
    "negative": (lambda e, x, y: e.negative(x), lambda x, y: [int(a < 0) for a in x]),
    "zero": (lambda e, x, y: e.zero(x), lambda x, y: [int(a == 0) for a in x]),
    **{
        f"shifted by {by}": (
            lambda e, x, y, by=by: e.shifted(x, by),
            lambda x, y, by=by: [a >> by for a in x],
        )
        for by in (1, 2, 13, 30, 31, 58)
    },
}


@pytest.mark.parametrize("viewer", [0, 1])
@pytest.mark.parametrize("size", [1, 64, 70])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_view_is_the_same_for_other_data(operation, size, viewer, random_residues):
    secure, plain = OPERATIONS[operation]
    rng = np.random.default_rng(size)
    edges = [0, 1, -1, LIMIT - 1, 1 - LIMIT]
    data = [
        [
            [
                int(rng.choice(edges)) if rng.random() < 0.4 else int(rng.integers(-LIMIT, LIMIT))
                for _ in range(size)
            ]
            for _ in "xy"
        ]
        for _ in (1, 2)
    ]
    own = [random_residues(f"{operation} {name}", size) for name in "xy"]
    run = Worlds(viewer)
    engine = AdditiveEngine(run)
    mine = []
    for world, values in enumerate(data):
        shared = []
        for held, numbers in zip(own, values, strict=True):
            total = np.array([v % P for v in numbers], np.uint64)
            pair = [held.copy(), held.copy()]
            pair[1 - viewer] = field.subtract(total, held)
            shared.append(pair)
        if world:
            run.again()
        result = secure(engine, *shared)
        assert field.add(*result).tolist() == [v % P for v in plain(*values)]
        mine.append(result[viewer].copy())
    assert run.opened == run.dealt == []  # all of it came again
    assert np.array_equal(*mine)
