"""The server's linear circuit: sums of ciphertexts times weights, and noise that hides these."""

import math
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from securecomp.ckks.native import layout, ring_kernels
from securecomp.ckks.native.encryption import SEED_BYTES, RingPublicKey
from securecomp.ckks.native.layout import Batch, RowRun
from securecomp.ckks.native.ring import Fixed, Polynomials, Ring
from securecomp.ckks.plan import InferencePlan
from securecomp.core import buffers, prg
from securecomp.core import entropy as entropy_
from securecomp.core import field_kernels as packing
from securecomp.core.entropy import Entropy
from securecomp.core.parallel import run_parts
from securecomp.errors import DecodeError

Pair = tuple[Polynomials, Polynomials]
Words = npt.NDArray[np.uint64]
Source = Callable[[int, int], Words]
"""Takes (level, position); returns the packed words of c_0 from that polynomial on, modulo the
level's prime."""


class PlainWeights:
    """A model that the server knows, as residues, in both layouts.

    Args:
        plan: The plan.
        weights: Integers, K rows of d.
        intercepts: Integers at a logit's scale.
    """

    parts = 1

    def __init__(
        self, plan: InferencePlan, weights: list[list[int]], intercepts: list[int]
    ) -> None:
        self.plan = plan
        self._weights = weights
        self.intercepts = plan.linear.ring.residues(intercepts)

    @cached_property
    def _columns(self) -> Fixed:
        """Shape (L, K, d)."""
        ring = self.plan.linear.ring
        return Fixed(ring, ring.residues(self._weights))

    @cached_property
    def _rows(self) -> Fixed:
        """Values, shape (L, K, terms, N)."""
        return Fixed(self.plan.linear.ring, weight_values(self.plan, self._weights, False))

    def absorb(self, block: Batch, level: int, request: "_Request", acc: Polynomials) -> None:
        """Add a block's products to sums.

        Args:
            block: The polynomials to multiply.
            level: Index of the prime.
            request: Source of the ciphertexts.
            acc: c_0 and c_1 of the logits, below twice the prime, shape (K, 2, N).

        Raises:
            DecodeError: The request has a residue that is not below its prime.
        """
        q, terms = self.plan.linear.ring.moduli[level], block.terms
        if block.section.by_columns:
            w = np.ascontiguousarray(self._columns.residues[level][:, terms])
            ws = np.ascontiguousarray(self._columns.quotients[level][:, terms])
            request.absorb(block, level, w, ws, acc)
            return
        bodies, masks = request.ciphertexts(block, level)
        w, ws = self._rows.residues[level], self._rows.quotients[level]
        for output in range(len(acc)):
            for part, polynomials in enumerate((bodies, masks)):
                for i, term in enumerate(range(terms.start, terms.stop)):
                    ring_kernels.add_product(
                        acc[output, part], polynomials[i], w[output, term], ws[output, term], q
                    )


class WeightCiphertexts:
    """A model under the client's key. A logit is then a ciphertext of three parts.

    Args:
        plan: The plan.
        columns: Values of (c_0, c_1), shape (L, 2, K, d, N).
        rows: The same by rows, shape (L, 2, K, terms, N).
    """

    parts = 2

    def __init__(self, plan: InferencePlan, columns: Polynomials, rows: Polynomials) -> None:
        ring = plan.linear.ring
        self.plan = plan
        self._columns = Fixed(ring, columns)
        self._rows = Fixed(ring, rows)
        self.intercepts = ring.residues([0] * plan.outputs)

    def absorb(self, block: Batch, level: int, request: "_Request", acc: Polynomials) -> None:
        """Add a block's products to sums; `acc` has shape (K, 3, N)."""
        q = self.plan.linear.ring.moduli[level]
        fixed = self._columns if block.section.by_columns else self._rows
        w, ws = fixed.residues[level], fixed.quotients[level]
        ciphertexts = request.ciphertexts(block, level)
        for output in range(len(acc)):
            for i, term in enumerate(range(block.terms.start, block.terms.stop)):
                for part, polynomials in enumerate(ciphertexts):
                    for other in range(2):
                        ring_kernels.add_product(
                            acc[output, part + other],
                            polynomials[i],
                            w[other, output, term],
                            ws[other, output, term],
                            q,
                        )


Weights = PlainWeights | WeightCiphertexts


class _Request:
    """The ciphertexts of a request, one block at a time. Not thread-safe."""

    def __init__(self, ring: Ring, seed: bytes, source: Source) -> None:
        self._ring = ring
        self._source = source
        self._streams = [ring.stream(seed, level) for level in range(ring.levels)]
        room = (ring.step, ring.degree)
        self._bodies = buffers.residues(ring.step * ring.degree).reshape(room)
        self._masks = buffers.residues(ring.step * ring.degree).reshape(room)

    def absorb(self, block: Batch, level: int, w: Words, ws: Words, acc: Polynomials) -> None:
        """Add multiples of a block's ciphertexts, by numbers, shape (K, count), to `acc`."""
        ring = self._ring
        q, bits = ring.moduli[level], ring.primes[level].bit_length()
        words = self._source(level, block.first)
        masks = self._streams[level].words(w.shape[1] * ring.degree, block.index)
        kept = np.uint64((1 << bits) - 1)
        row = self._bodies[0]
        found = ring_kernels.absorb(words, ring.bits, masks, kept, w, ws, q, row, acc)
        if (
            found == ring_kernels.MASKS
        ):  # a word in billions stands for no residue, and is drawn again
            drawn = self._drawn(block, level, w.shape[1])
            found = ring_kernels.absorb(
                words, ring.bits, drawn.reshape(-1), kept, w, ws, q, row, acc
            )
        if found != ring_kernels.GOOD:
            raise DecodeError(_NOT_BELOW)

    def ciphertexts(self, block: Batch, level: int) -> Pair:
        """Return c_0 and c_1 of a block, shape (count, N). The next call overwrites them."""
        ring = self._ring
        count = block.terms.stop - block.terms.start
        bodies = self._bodies[:count].reshape(-1)
        packing.unpack(self._source(level, block.first), ring.bits, bodies)
        if not ring_kernels.canonical(bodies, ring.moduli[level]):
            raise DecodeError(_NOT_BELOW)
        return self._bodies[:count], self._drawn(block, level, count)

    def _drawn(self, block: Batch, level: int, count: int) -> Polynomials:
        return self._ring.fill(self._streams[level], level, block.index, self._masks[:count])


_NOT_BELOW = "the request has a residue that is not below its prime"


def weight_values(plan: InferencePlan, weights: list[list[int]], by_columns: bool) -> Polynomials:
    """Return weights as polynomials' values, shape (L, K, terms, N)."""
    c = plan.linear
    section = RowRun(c.degree, plan.inputs, by_columns, 0, 1)
    polynomials = np.zeros((len(weights), section.terms, c.degree), object)
    for output, row in enumerate(weights):
        laid = section.weights(row)
        if by_columns:
            polynomials[output, :, 0] = laid
        else:
            polynomials[output] = laid
    values = c.ring.residues(polynomials)
    c.ring.to_values(values)
    return values


def evaluate(weights: Weights, rows: int, seed: bytes, source: Source, workers: int) -> Polynomials:
    """Return the logits' ciphertexts as values, shape (L, groups, K, parts, N).

    Args:
        weights: The model.
        rows: Number of rows in the request.
        seed: Expands to its masks.
        source: Gives its c_0.
        workers: Threads.

    Raises:
        DecodeError: The request has a residue that is not below its prime.
    """
    plan = weights.plan
    ring = plan.linear.ring
    found = plan.sections(rows)
    groups = sum(section.groups for section in found)
    shape = (ring.levels, groups, plan.outputs, weights.parts + 1, ring.degree)

    def work(blocks: Sequence[Batch]) -> tuple[Sequence[Batch], Polynomials]:
        first, last = blocks[0].output, blocks[-1].output
        size = (ring.levels, last - first + 1, *shape[2:])
        acc = buffers.zeros(math.prod(size)).reshape(size)
        request = _Request(ring, seed, source)
        for block in blocks:
            for level in range(ring.levels):
                weights.absorb(block, level, request, acc[level, block.output - first])
        for level, q in enumerate(ring.moduli):
            ring_kernels.reduce(acc[level].reshape(-1), q)
        return blocks, acc

    parts = run_parts(work, layout.blocks(found, ring.step), workers)
    if len(parts) == 1:
        return parts[0][1]
    total = buffers.zeros(math.prod(shape)).reshape(shape)
    for blocks, acc in parts:
        place = slice(blocks[0].output, blocks[-1].output + 1)
        for level, q in enumerate(ring.moduli):
            ring_kernels.add(total[level, place].reshape(-1), acc[level].reshape(-1), q)
    return total


def hide(
    plan: InferencePlan,
    total: Polynomials,
    public: RingPublicKey,
    entropy: Entropy = entropy_.system,
) -> None:
    """Add a fresh encryption of zero to every ciphertext, in place.

    This adds a u + e_1 to c_1. The client knows neither u nor e_1 and did not choose a, which is
    expanded from a seed (with AES as a random function). So c_1 is pseudorandom under ring-LWE. Of
    c_0 + c_1 s the client reads the logit and the noise, and `flood` drowns that noise.

    A client that registers another b than that of its key reads a few bits of b u with every logit,
    and so of u. `InferencePlan.sections` puts so few logits in one ciphertext that these bits are
    less than a twentieth of u.
    """
    ring = plan.linear.ring
    for group in range(total.shape[1]):
        for output in range(total.shape[2]):
            zero = public.zero(entropy(SEED_BYTES))
            for part in range(2):
                for level, q in enumerate(ring.moduli):
                    target = total[level, group, output, part]
                    ring_kernels.add(target, np.ascontiguousarray(zero[part, level]), q)


def flood(ring: Ring, bits: int, count: int, seed: bytes) -> Polynomials:
    """Return uniform noise from -2^bits to 2^bits - 1, shape (L, count).

    Add it to n numbers whose own noise is below 2^(bits - 39) / n. The result is then within 2^-40
    (statistical distance) of a distribution that does not depend on that noise.
    """
    width = -(-(bits + 1) // 64)
    stream = prg.Uniform(prg.derive(seed, "ckks flood"))
    numbers = np.empty(count, object)
    block = prg.BLOCK_WORDS // width
    for index, start in enumerate(range(0, count, block)):
        size = min(block, count - start)
        words = stream.words(size * width, index).astype(object).reshape(size, width)
        whole = sum(words[:, i] << (64 * i) for i in range(width))
        numbers[start : start + size] = whole % (2 << bits) - (1 << bits)
    return ring.residues(numbers)
