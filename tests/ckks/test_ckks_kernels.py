"""The loops and the ring against Python's integers."""

import gmpy2
import numpy as np
import pytest
from cases import each_case
from ckks.parties import stream
from hypothesis import given
from hypothesis import strategies as st

from securecomp.ckks.native import ring, ring_kernels
from securecomp.ckks.native.ring import Fixed, Ring, primes
from securecomp.core import field_kernels as packing
from securecomp.errors import ParameterError

SIZES = [(64, 25, 1), (64, 61, 3), (128, 61, 1), (256, 30, 2), (512, 50, 1), (1024, 61, 1)]
RINGS = {f"degree {n}, {count} of {bits} bits": (n, bits, count) for n, bits, count in SIZES}


def make(degree, bits, count=1):
    return Ring(degree, primes(degree, bits, count))


def made(name):
    return make(*RINGS[name])


def numbers(seed, count, below):
    """The same random numbers for the same seed."""
    source = stream(seed)
    return [int.from_bytes(source(16)) % below for _ in range(count)]


def drawn(seed, some, count=1):
    """Random polynomials as Python ints, shape (L, count, N), with the largest residue in it."""
    n = some.degree
    out = [numbers(seed, count * n, q) for q in some.primes]
    out = np.array(out, object).reshape(some.levels, count, n)
    for level, q in enumerate(some.primes):
        out[level, 0, [0, -1]] = q - 1
    return out.astype(np.uint64)


def negacyclic(a, b, q):
    """a b modulo X^N + 1 and q: all products, added up."""
    n = len(a)
    full = np.convolve(np.array(a, object), np.array(b, object))
    full = np.concatenate([full, np.zeros(2 * n - len(full), object)])
    return ((full[:n] - full[n:]) % q).tolist()


def evaluated(polynomial, x, q):
    total = 0
    for c in reversed(polynomial):
        total = (total * x + int(c)) % q
    return total


def reversed_bits(i, degree):
    bits = degree.bit_length() - 1
    return int(f"{i:0{bits}b}"[::-1], 2)


class TestTransform:
    @each_case("some", RINGS, made)
    def test_there_and_back(self, some):
        start = drawn("round trip", some, 3)
        polynomials = start.copy()
        some.to_values(polynomials)
        assert not np.array_equal(polynomials, start)
        for level, q in enumerate(some.primes):
            assert polynomials[level].max() < q
        some.to_coefficients(polynomials)
        assert np.array_equal(polynomials, start)

    @each_case("some", RINGS, made)
    def test_values_are_those_at_the_odd_powers(self, some):
        start = drawn("values", some)
        values = start.copy()
        some.to_values(values)
        for level, q in enumerate(some.primes):
            root = smallest_root(some.degree, q)
            for i in range(0, some.degree, max(1, some.degree // 32)):
                x = pow(root, 2 * reversed_bits(i, some.degree) + 1, q)
                assert int(values[level, 0, i]) == evaluated(start[level, 0], x, q)

    @each_case("some", RINGS, made)
    def test_products_are_negacyclic(self, some):
        a, b = drawn("a", some), drawn("b", some)
        want = [
            negacyclic(a[i, 0].tolist(), b[i, 0].tolist(), q) for i, q in enumerate(some.primes)
        ]
        some.to_values(a)
        some.to_values(b)
        product = np.zeros_like(a[:, 0])
        some.add_product(product, np.ascontiguousarray(a[:, 0]), Fixed(some, b[:, 0]))
        some.to_coefficients(product)
        assert product.tolist() == want

    @each_case("some", RINGS, made)
    def test_a_product_that_wraps_changes_its_sign(self, some):
        """X^(N-1) X = -1."""
        a, x = np.zeros((2, some.levels, some.degree), np.uint64)
        a[:, -1], x[:, 1] = 1, 1
        some.to_values(a)
        some.to_values(x)
        product = np.zeros_like(a)
        some.add_product(product, a, Fixed(some, x))
        some.to_coefficients(product)
        assert some.signed(product).tolist() == [-1] + [0] * (some.degree - 1)

    @each_case("some", RINGS, made)
    def test_residues_up_to_twice_the_prime_are_taken(self, some):
        """As the kernels say: what is below 2q gives the canonical result."""
        start = drawn("lazy", some)
        lazy = start + np.array(some.moduli)[:, None, None] * (start % np.uint64(2))
        for transform in (some.to_values, some.to_coefficients):
            a, b = start.copy(), lazy.copy()
            transform(a)
            transform(b)
            assert np.array_equal(a, b)


def smallest_root(degree, q):
    """By its definition: the smallest number whose N-th power is -1, from any generator."""
    order = 2 * degree
    for base in range(2, 1000):
        root = pow(base, (q - 1) // order, q)
        if pow(root, degree, q) == q - 1:
            return min(pow(root, k, q) for k in range(1, order, 2))
    raise AssertionError


@each_case("degree, bits", [(64, 25), (64, 61), (1024, 30), (4096, 61)])
def test_the_smallest_root(degree, bits):
    (q,) = primes(degree, bits, 1)
    root = ring._smallest_root(degree, q)
    assert pow(root, degree, q) == q - 1
    assert root == smallest_root(degree, q)


def test_the_smallest_root_by_trying_all():
    degree, q = 64, 641
    every = [x for x in range(1, q) if pow(x, degree, q) == q - 1]
    assert len(every) == degree
    assert ring._smallest_root(degree, q) == min(every)


class TestPrecompute:
    @given(st.data())
    def test_is_the_quotient(self, data):
        bits = data.draw(st.integers(20, 61))
        (q,) = primes(64, bits, 1)
        w = data.draw(st.lists(st.integers(0, q - 1), min_size=1, max_size=8))
        w += [0, 1, q - 1, q // 2]
        out = np.empty(len(w), np.uint64)
        ring_kernels.precompute(np.array(w, np.uint64), np.uint64(q), out)
        assert out.tolist() == [(x << 64) // q for x in w]

    @given(st.data())
    def test_products_with_any_word(self, data):
        """Shoup: exact for each w below q and every 64-bit x."""
        bits = data.draw(st.integers(20, 61))
        (q,) = primes(64, bits, 1)
        words = st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, q - 1, q, 2 * q, 2**64 - 1])
        x = data.draw(st.lists(words, min_size=1, max_size=8))
        w = data.draw(
            st.lists(st.integers(0, q - 1) | st.just(q - 1), min_size=len(x), max_size=len(x))
        )
        ws = np.array([(y << 64) // q for y in w], np.uint64)
        arrays = np.array(x, np.uint64), np.array(w, np.uint64), ws, np.uint64(q)
        acc = np.array([q - 1] * len(x), np.uint64)
        ring_kernels.add_product(acc, *arrays)
        assert acc.tolist() == [(q - 1 + a * b) % q for a, b in zip(x, w, strict=True)]
        acc = np.zeros((1, len(x)), np.uint64)
        ring_kernels.subtract_products(acc, arrays[0][None], *arrays[1:])
        assert acc[0].tolist() == [-a * b % q for a, b in zip(x, w, strict=True)]


def absorbed(q, bits, bodies, masks, weights, start, kept=None):
    """What `absorb` says, and the sums (K, 2, N) that it leaves."""
    n = len(bodies[0])
    words = np.zeros(-(-n * len(bodies) * bits // 64) + 1, np.uint64)
    packing.pack(np.array(bodies, np.uint64).reshape(-1), bits, words)
    acc = np.array(start, np.uint64)
    found = ring_kernels.absorb(
        words,
        bits,
        np.array(masks, np.uint64).reshape(-1),
        np.uint64((1 << bits) - 1 if kept is None else kept),
        np.array(weights, np.uint64),
        np.array([[(x << 64) // q for x in row] for row in weights], np.uint64),
        np.uint64(q),
        np.empty(n, np.uint64),
        acc,
    )
    return found, acc


@given(st.data())
def test_sums_of_multiples(data):
    bits = data.draw(st.sampled_from([25, 40, 61]))
    (q,) = primes(64, bits, 1)
    residue = st.integers(0, q - 1) | st.sampled_from([0, 1, q - 1])

    def array(*shape):
        if not shape:
            return data.draw(residue)
        return [array(*shape[1:]) for _ in range(shape[0])]

    # Rows of 64 residues begin with a word of their own; a few of them are not zero.
    n, count, outputs = 64, data.draw(st.integers(1, 5)), data.draw(st.integers(1, 3))
    bodies = [array(4) + [0] * (n - 4) for _ in range(count)]
    masks = [array(4) + [q - 1] * (n - 4) for _ in range(count)]
    weights, start = array(outputs, count), [[[1] * n, [q - 1] * n]] * outputs
    found, acc = absorbed(q, bits, bodies, masks, weights, start)
    assert found == ring_kernels.GOOD
    ring_kernels.reduce(acc.reshape(-1), np.uint64(q))
    for k in range(outputs):
        for part, ciphertexts in enumerate((bodies, masks)):
            products = [[w * x for x in c] for w, c in zip(weights[k], ciphertexts, strict=True)]
            sums = map(sum, zip(start[k][part], *products, strict=True))
            assert acc[k, part].tolist() == [x % q for x in sums]


def test_only_the_low_bits_of_a_mask_count():
    (q,) = primes(64, 40, 1)
    bodies, masks = [[0] * 64], [[(7 << 40) + 5] * 64]
    found, acc = absorbed(q, 40, bodies, masks, [[3]], np.zeros((1, 2, 64)))
    assert (found, acc[0, 1].tolist()) == (ring_kernels.GOOD, [15] * 64)


@each_case("place", [0, 63, 64, 127])
def test_residues_that_are_none(place):
    """Bodies are refused; masks are drawn again, and so must not have been added."""
    (q,) = primes(64, 40, 1)
    good = np.zeros((2, 64), np.uint64)
    bad = good.copy()
    bad.reshape(-1)[place] = q
    weights, start = [[1, 1]], np.zeros((1, 2, 64))
    assert absorbed(q, 40, bad, good, weights, start)[0] == ring_kernels.BODIES
    found, acc = absorbed(q, 40, good, bad, weights, start)
    assert found == ring_kernels.MASKS
    assert not acc.any()


def test_noise_is_the_difference_of_two_counts():
    """21 bits minus 21 bits of each word, to a message that is lifted."""
    (q,) = primes(64, 61, 1)
    words = numbers("words", 60, 2**64)
    words += [0, 2**64 - 1, 2**21 - 1, (2**21 - 1) << 21]
    messages = [m - 2**50 for m in numbers("messages", 62, 2**51)] + [2**50, -(2**50)]
    lift = 2**55 % q
    out = np.empty((1, 64), np.uint64)
    ring_kernels.noisy(
        np.array([messages], np.int64),
        np.array(words, np.uint64),
        np.uint64(lift),
        np.uint64((lift << 64) // q),
        np.uint64(q),
        out,
    )
    low = 2**21 - 1
    noise = [(w & low).bit_count() - (w >> 21 & low).bit_count() for w in words]
    assert out[0].tolist() == [(m * lift + e) % q for m, e in zip(messages, noise, strict=True)]
    assert (max(noise), min(noise)) == (21, -21)
    assert ring_kernels.NOISE_BOUND == 21


def test_ternary_is_the_remainder_by_three():
    words = np.array([0, 1, 2, 3, 2**64 - 1, 2**64 - 2], np.uint64)
    out = np.empty(6, np.uint64)
    ring_kernels.ternary(words, out)
    assert out.view(np.int64).tolist() == [int(w) % 3 - 1 for w in words]


@each_case("place", [0, 1, 62, 63])
def test_canonical(place):
    (q,) = primes(64, 61, 1)
    a = np.full(64, q - 1, np.uint64)
    assert ring_kernels.canonical(a, np.uint64(q))
    for wrong in (q, q + 1, 2**64 - 1):
        a[place] = wrong
        assert not ring_kernels.canonical(a, np.uint64(q))


class TestRing:
    @each_case("degree, bits, count", SIZES)
    def test_primes(self, degree, bits, count):
        found = primes(degree, bits, count)
        assert len(found) == count
        below = 1 << bits
        for q in found:
            assert gmpy2.is_prime(q)
            assert q.bit_length() == bits
            assert q % (2 * degree) == 1
            for other in range(q + 2 * degree, below, 2 * degree):
                assert not gmpy2.is_prime(other)  # the largest ones
            below = q

    def test_too_few_primes(self):
        with pytest.raises(ParameterError, match=r"not 2 primes of 7 bits for degree 64"):
            primes(64, 7, 2)

    @each_case("some", RINGS, made)
    def test_the_whole_number(self, some):
        q = some.modulus
        numbers = [0, 1, -1, q // 2, -(q // 2), 12345, -(q // 3)]
        residues = some.residues(numbers)
        assert residues.tolist() == [[x % p for x in numbers] for p in some.primes]
        assert some.signed(residues).tolist() == numbers
        for bits in (0, 3, 40):
            assert some.scaled(residues, bits).tolist() == [x / 2**bits for x in numbers]

    @each_case("some", RINGS, made)
    def test_numbers_beyond_half_the_modulus_come_back_negative(self, some):
        q = some.modulus
        assert some.signed(some.residues([q // 2 + 1])).tolist() == [-(q // 2)]
        assert some.scaled(some.residues([q // 2 + 1]), 0).tolist() == [float(-(q // 2))]

    @each_case("degree", [0, 1, 32, 63, 96, 65536, -64])
    def test_degrees_that_are_none(self, degree):
        with pytest.raises(ParameterError, match="a ring's degree is a power of 2"):
            Ring(degree, primes(64, 30, 1))

    def test_primes_that_are_none(self):
        good = primes(64, 61, 1)[0]
        composite = next(c for c in range(2**60 + 1, 2**61, 128) if not gmpy2.is_prime(c))
        large = next(c for c in range(2**61 + 1, 2**62, 128) if gmpy2.is_prime(c))
        other = next(c for c in range(2**60 + 3, 2**61, 2) if gmpy2.is_prime(c) and c % 128 != 1)
        for q in (composite, large, other, 1, -127):
            with pytest.raises(ParameterError, match="is not a prime below"):
                Ring(64, (good, q))
        for wrong in ((), (good, good)):
            with pytest.raises(ParameterError, match="at least one prime, and no prime twice"):
                Ring(64, wrong)

    def test_tables_are_made_once(self):
        q = primes(64, 30, 1)
        assert ring.ring(64, q) is ring.ring(64, q)

    @each_case("some", RINGS, made)
    def test_no_contents_in_a_repr(self, some):
        fixed = Fixed(some, some.residues([[7] * some.degree]))
        assert repr(fixed) == f"Fixed(shape={(some.levels, 1, some.degree)})"
        assert repr(some) == (
            f"Ring(degree {some.degree}, {some.levels} primes, {some.modulus.bit_length()} bits)"
        )
