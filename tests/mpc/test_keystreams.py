"""Every block of every keystream hides one thing: it is drawn by its two holders, once each."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from cases import each_case

from securecomp.core import prg
from securecomp.mpc import Computation
from securecomp.protocol.local_carrier import LocalCarrier

N = 4 * prg.BLOCK_WORDS + 1  # several blocks, and in threads


@pytest.fixture
def drawn(monkeypatch):
    """The purpose of each key, and every (key, nonce) that was drawn, in order."""
    purposes, draws = {}, []
    derive, cipher = prg.derive, prg._cipher

    def named(secret, purpose, *context, **salt):
        key = derive(secret, purpose, *context, **salt)
        facts = (purpose, bytes(secret), context, salt)
        assert purposes.setdefault(bytes(key), facts) == facts  # no key of two contexts
        return key

    class Counted:
        def __init__(self, key):
            self.key, self.cipher = bytes(key), cipher(key)

        def encrypt_into(self, nonce, *rest):
            draws.append((self.key, bytes(nonce)))
            return self.cipher.encrypt_into(nonce, *rest)

    monkeypatch.setattr(prg, "derive", named)
    monkeypatch.setattr(prg, "_cipher", Counted)
    return purposes, draws


@each_case("facts", [{}, {"dealer": False}])
def test_no_block_hides_two_things(drawn, facts):
    purposes, draws = drawn
    run = Computation(("a", "b", "c"), LocalCarrier(), clients=("north",), **facts)
    x = run.share("a", np.ones(N, np.int64), bound=9)
    y = run.share("north", np.ones(N, np.int64), bound=9)
    fine = run.share("b", np.ones(N), bound=9, bits=3)
    del draws[:]  # what inputs are expanded from, two parties of three hold: elsewhere
    product = x * y
    assert int((x * y).sum().reveal()) == N
    x.square()
    assert int((x < y).sum().reveal()) == 0
    assert int((x == y).sum().reveal()) == N
    assert fine.truncate(2).sum().reveal() == N
    side = x[:10_000].reshape(100, 100)
    (side @ side).reveal()
    product.reveal(to="north")
    times = defaultdict(Counter)
    for (key, _), count in Counter(draws).items():
        times[purposes[key][0]][count] += 1
    times.pop("sealed message", None)
    wanted = {"residues", "words"} | ({"replicated zero", "replicated circuit"} if facts else set())
    assert set(times) == wanted
    for purpose, counts in times.items():
        assert set(counts) == {2}, (purpose, counts)
