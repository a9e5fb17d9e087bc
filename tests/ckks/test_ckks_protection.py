"""What a client can get of the model: everything without protection, its logits with it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case
from ckks.parties import Parties, changed, linear_model, stream, table
from core.prg_reference import derive
from core.prg_reference import words as keystream

from securecomp.ckks.native import linear
from securecomp.ckks.native.logits import integers
from securecomp.errors import BudgetError

FEATURES = 6


def protected(**choices):
    choices = {"protect_model": True} | choices
    return Parties(linear_model(FEATURES, choices.pop("outputs", 1)), **choices)


@pytest.fixture(scope="module")
def plan():
    return protected().plan


def answered(parties, rows, request=None):
    """(query, its c_0, its answer's c_0 of the logits, the answer's c_1)."""
    data = request or parties.ann.encrypt(rows)
    query, sent = parties.read(data)
    _, got = parties.read(parties.server.predict(data))
    levels, count = parties.ring.levels, len(rows) * parties.plan.outputs
    flat = got.reshape(levels, -1)
    return query, sent.reshape(levels, -1, parties.ring.degree), flat[:, :count], flat[:, count:]


def stolen_from_the_mask(parties, rows):
    """W by dividing the reply's c_1 by the request's, place by place: the attack is one line."""
    query, _, _, masks = answered(parties, rows)
    return divided(parties, masks[:, : parties.ring.degree], query)


def divided(parties, masks, query):
    """The weights by which c_1 of one logit is a multiple of the request's, if it is one."""
    ring = parties.ring
    a = ring.uniform(query.seed, 1)[:, 0]
    out = np.empty_like(a)
    for level, q in enumerate(ring.primes):
        out[level] = [
            int(x) * pow(int(y), -1, q) % q for x, y in zip(masks[level], a[level], strict=True)
        ]
    ring.to_coefficients(out)
    w = ring.signed(out)
    return [int(w[0]), *(-int(w[ring.degree - j]) for j in range(1, FEATURES))]


def unrounded(parties, logits, masks, count):
    """What the client's key opens, as whole numbers at the logits' scale."""
    ring, key = parties.ring, parties.ann._circuit._key
    phase = key.phase(np.ascontiguousarray(masks.reshape(ring.levels, 1, ring.degree)))
    where = np.arange(count) * FEATURES
    both = ring.signed(logits) + ring.signed(np.ascontiguousarray(phase[:, where]))
    return ring.signed(ring.residues(both)).tolist()


def own_numbers(parties, query, sent, rows):
    """X 2^lift + e of every row: a client's own key opens its own request."""
    ring, key = parties.ring, parties.ann._circuit._key
    c0 = np.ascontiguousarray(sent[:, 0]).copy()
    ring.to_coefficients(c0)
    phase = key.phase(ring.uniform(query.seed, 1))
    whole = ring.signed(ring.residues(ring.signed(c0) + ring.signed(phase)))
    return [whole[r * FEATURES : (r + 1) * FEATURES].tolist() for r in range(len(rows))]


def solved(matrix, right):
    """The exact solution, by elimination in fractions."""
    n = len(matrix)
    rows = [
        [Fraction(x) for x in row] + [Fraction(y)] for row, y in zip(matrix, right, strict=True)
    ]
    for i in range(n):
        pivot = next(r for r in range(i, n) if rows[r][i])
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for r in range(n):
            if r != i:
                rows[r] = [x - rows[r][i] * y for x, y in zip(rows[r], rows[i], strict=True)]
    return [row[-1] for row in rows]


def stolen_with_its_noise(parties, rows):
    """W from as many rows as features: the client knows all else (it is given the intercept)."""
    query, sent, logits, masks = answered(parties, rows)
    known = own_numbers(parties, query, sent, rows)
    _, (intercept,) = integers(parties.model, parties.plan)
    right = [x - intercept for x in unrounded(parties, logits, masks, len(rows))]
    return solved(known, right)


def floods(parties, rows, skip=0):
    """Of every row: what the answer adds to the logit, and the client's own noise in it.

    Args:
        parties: One server and client.
        rows: What is asked.
        skip: Answers that the server gives first.
    """
    for _ in range(skip):
        answered(parties, rows)
    query, sent, logits, masks = answered(parties, rows)
    known = own_numbers(parties, query, sent, rows)
    (weights,), (intercept,) = integers(parties.model, parties.plan)
    got = unrounded(parties, logits, masks, len(rows))
    lift = 1 << parties.plan.linear.lift_bits
    found = []
    for number, row in zip(got, known, strict=True):
        flooded = number - intercept - sum(w * x for w, x in zip(weights, row, strict=True))
        own = sum(w * (x - round(x / lift) * lift) for w, x in zip(weights, row, strict=True))
        found.append((flooded, own))
    return found


def the_weights(parties):
    weights, _ = integers(parties.model, parties.plan)
    return weights[0]


class TestAttacks:
    def test_the_mask_gives_everything_away(self):
        parties = Parties(linear_model(FEATURES))
        assert stolen_from_the_mask(parties, table(1, FEATURES)) == the_weights(parties)

    def test_but_not_of_a_protected_model(self):
        parties = protected()
        got = stolen_from_the_mask(parties, table(1, FEATURES))
        assert not set(got) & set(the_weights(parties))
        # nothing is left but noise as large as the modulus
        assert min(map(abs, got)) > parties.ring.modulus >> 30

    def test_nor_do_two_logits_share_what_hides_them(self):
        """If they did, the difference of their masks would give the difference of the weights."""
        for parties, hidden in (
            (Parties(linear_model(FEATURES, 3)), False),
            (protected(outputs=3), True),
        ):
            query, _, _, masks = answered(parties, table(1, FEATURES))
            ring = parties.ring
            one, two = masks.reshape(ring.levels, 3, ring.degree)[:, :2].swapaxes(0, 1)
            apart = np.stack(
                [(a + q - b) % q for a, b, q in zip(one, two, ring.moduli, strict=True)]
            )
            got = divided(parties, apart, query)
            first, second, _ = integers(parties.model, parties.plan)[0]
            expected = [a - b for a, b in zip(first, second, strict=True)]
            assert (got == expected) != hidden
            assert hidden == (min(map(abs, got)) > ring.modulus >> 30)

    def test_the_noise_gives_everything_away(self):
        parties = Parties(linear_model(FEATURES))
        assert stolen_with_its_noise(parties, table(FEATURES, FEATURES)) == the_weights(parties)

    def test_but_not_of_a_protected_model_either(self):
        parties = protected()
        got = stolen_with_its_noise(parties, table(FEATURES, FEATURES))
        assert not set(got) & set(the_weights(parties))
        # what comes near is what rounded logits say, and no more
        scale = 2.0**parties.plan.linear.weight_bits
        assert np.abs(np.array(got, float) / scale - parties.model.weights[0]).max() > 1e-7

    def test_the_difference_to_the_logit_is_the_flood(self):
        """Not the client's noise: that is 2^-40 of it."""
        parties = protected()
        f = parties.plan.linear.flood_bits
        for flooded, noise in floods(parties, table(FEATURES, FEATURES)):
            assert 2 ** (f - 12) < abs(flooded) < 2**f + 2 ** (f - 40)
            assert abs(noise) < 2 ** (f - 40) / FEATURES

    def test_the_flood_is_as_wide_as_the_plan_says(self):
        """One bit less would keep every one of many within half of the range."""
        noises, f = [], 0
        for seed in range(12):
            parties = protected(seed=f"width {seed}")
            f = parties.plan.linear.flood_bits
            noises += [flooded / 2**f for flooded, _ in floods(parties, table(FEATURES, FEATURES))]
        assert len(noises) == 12 * FEATURES
        # Uniform: of 72 the largest is below 0.9 with probability 0.0005. The seeds are fixed.
        assert 0.9 < max(map(abs, noises)) < 1 + 2**-39
        assert min(noises) < -0.9
        assert max(noises) > 0.9
        # And it is wide enough: 2^40 times what it hides, over all logits that it is used for.
        weights = the_weights(parties)
        own = min(21 * sum(map(abs, weights)), math.sqrt(947 * sum(w * w for w in weights)) + 1)
        hidden = own + 21 * (2 * parties.ring.degree + 1)
        assert 2 ** (f - 1) < 2**40 * FEATURES * hidden <= 2**f

    def test_a_flood_is_never_used_twice(self):
        """If it were, two answers to one ciphertext would differ by the noise below it alone."""
        rows = table(2, FEATURES)
        first, second = protected(seed="one"), protected(seed="two")
        for answers in (
            [floods(first, rows) for _ in range(2)],  # of one server
            [floods(second, rows), floods(protected(seed="two"), rows, skip=1)],  # started again
            [floods(protected(seed=s), rows) for s in ("three", "four")],  # of two servers
        ):
            f = first.plan.linear.flood_bits
            for one, other in zip(*answers, strict=True):
                assert abs(one[0] - other[0]) > 2 ** (f - 12)
        (one, _), (other, _) = floods(protected(seed="five"), rows)
        assert abs(one - other) > 2 ** (f - 12)  # nor for two rows of one answer

    def test_the_same_row_twice(self):
        """Same ciphertext, other request: nothing of the two answers is the same."""
        parties = protected()
        data = parties.ann.encrypt(table(1, FEATURES))
        query, residues = parties.read(data)
        _, one = parties.read(parties.server.predict(data))
        again = parties.say(changed(query, request=b"another request."), residues)
        _, two = parties.read(parties.server.predict(again))
        assert (one == two).mean() < 1e-3
        assert one[0] != two[0]
        open_ = Parties(linear_model(FEATURES))
        data = open_.ann.encrypt(table(1, FEATURES))
        query, residues = open_.read(data)
        _, one = open_.read(open_.server.predict(data))
        again = open_.say(changed(query, request=b"another request."), residues)
        assert (one == open_.read(open_.server.predict(again))[1]).all()


class TestReplies:
    @each_case("choice", [{}, {"protect_model": True}])
    @each_case("outputs", [1, 3])
    @each_case("rows", [1, 4, FEATURES])
    def test_have_no_coefficient_that_is_not_a_logits(self, choice, outputs, rows):
        parties = Parties(linear_model(FEATURES, outputs), **choice)
        answer, residues = parties.read(
            parties.server.predict(parties.ann.encrypt(table(rows, FEATURES)))
        )
        masks = outputs * parties.ring.degree
        assert residues.size == parties.ring.levels * (rows * outputs + masks)
        assert answer.residues.length == residues.size

    @each_case("precision", [0.1, 1e-4, 1e-8])
    @each_case("outputs", [1, 3])
    def test_are_within_the_plans_own_bound(self, precision, outputs):
        parties = protected(precision=precision, outputs=outputs)
        rows = table(FEATURES, FEATURES)
        rows[1] = -1.0
        data = parties.ann.encrypt(rows)
        circuit = parties.ann._circuit
        raw = {}

        class Spy(type(circuit)):
            def decrypt(self, *arguments):
                found = super().decrypt(*arguments)
                raw["logits"] = found.values
                return found

        circuit.__class__ = Spy
        got = parties.ann.decrypt(parties.server.predict(data)).logits
        weights = np.array(parties.model.weights)
        for row, values, rounded in zip(rows, raw["logits"], got, strict=True):
            for k in range(outputs):
                exact = sum(
                    (Fraction(w) * Fraction(x) for w, x in zip(weights[k], row, strict=True)),
                    Fraction(parties.model.intercepts[k]),
                )
                assert abs(Fraction(float(values[k])) - exact) <= Fraction(parties.plan.error)
                assert abs(Fraction(float(rounded[k])) - exact) <= Fraction(precision)
        # the flood is most of it
        assert np.abs(raw["logits"] - parties.model.logits(rows)).max() > parties.plan.error / 50


class TestFlood:
    def test_is_what_its_seed_says(self, plan):
        seed = stream("flood")(32)
        bits = plan.linear.flood_bits + 1
        assert bits > 64  # more than a word
        found = plan.linear.ring.signed(
            linear.flood(plan.linear.ring, plan.linear.flood_bits, 50, seed)
        ).tolist()
        drawn = keystream(derive(seed, "ckks flood"), 100, 0)
        whole = [drawn[2 * i] + (drawn[2 * i + 1] << 64) for i in range(50)]
        assert found == [x % 2**bits - 2 ** (bits - 1) for x in whole]

    def test_is_uniform_in_its_range(self, plan):
        f = plan.linear.flood_bits
        count = 40_000  # more than one block of the stream
        ring = plan.linear.ring
        numbers = ring.signed(linear.flood(ring, f, count, stream("uniform")(32)))
        assert min(numbers) >= -(2**f)
        assert max(numbers) < 2**f
        assert len(set(numbers.tolist())) == count
        cells = np.bincount(((numbers + 2**f) >> (f + 1 - 6)).astype(int), minlength=64)
        share = count / 64
        assert ((cells - share) ** 2 / share).sum() < 112.5  # 63 degrees of freedom, 1 in 10,000
        low = np.bincount((numbers % 64).astype(int), minlength=64)
        assert ((low - share) ** 2 / share).sum() < 112.5
        mean = float(sum(numbers)) / count / 2**f
        assert abs(mean) < 4 / math.sqrt(3 * count)

    def test_another_seed_is_another_flood(self, plan):
        one, two = (linear.flood(plan.linear.ring, 70, 10, stream(s)(32)) for s in ("one", "two"))
        assert (one != two).all()


class TestLimits:
    def test_as_many_rows_as_features(self):
        parties = protected()
        parties.ask(table(2, FEATURES))
        parties.ask(table(4, FEATURES))
        for rows in (1, 5):
            with pytest.raises(
                BudgetError, match=f"ann: {rows} more rows after 6 would pass the 6"
            ):
                parties.ask(table(rows, FEATURES))

    def test_a_request_that_is_refused_costs_nothing(self):
        parties = protected()
        parties.ask(table(3, FEATURES))
        with pytest.raises(BudgetError):
            parties.ask(table(4, FEATURES))
        parties.ask(table(3, FEATURES))

    def test_a_new_key_does_not_begin_anew(self):
        parties = protected()
        parties.ask(table(5, FEATURES))
        client = parties.join("ann", "a new key")
        with pytest.raises(BudgetError, match="2 more rows after 5"):
            parties.server.predict(client.encrypt(table(2, FEATURES)))
        client.decrypt(parties.server.predict(client.encrypt(table(1, FEATURES))))
        with pytest.raises(BudgetError, match="1 more rows after 6"):
            parties.ask(table(1, FEATURES))  # nor does the old one

    def test_each_client_has_its_own(self):
        parties = protected(clients=("ann", "bob"))
        parties.ask(table(6, FEATURES))
        parties.ask(table(6, FEATURES), "bob")
        with pytest.raises(BudgetError, match="bob"):
            parties.ask(table(1, FEATURES), "bob")

    def test_fewer_rows(self):
        parties = protected(max_rows=2)
        parties.ask(table(2, FEATURES))
        with pytest.raises(BudgetError, match="would pass the 2"):
            parties.ask(table(1, FEATURES))

    def test_a_protected_client_needs_its_public_key(self):
        assert protected().ann.registration.public
        assert not Parties(linear_model(FEATURES)).ann.registration.public
