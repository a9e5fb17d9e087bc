"""The server's circuit: sums of ciphertexts times weights, and what hides the weights."""

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from securecomp.ckks import kernels, layout
from securecomp.ckks.encryption import SEED_BYTES, PublicKey
from securecomp.ckks.layout import Block, Section
from securecomp.ckks.parallel import run
from securecomp.ckks.plan import Plan
from securecomp.ckks.ring import Fixed, Polynomials, Ring
from securecomp.core import entropy as entropy_
from securecomp.core import prg
from securecomp.core.entropy import Entropy

Pair = tuple[Polynomials, Polynomials]
Unpack = Callable[[int, int, int, npt.NDArray[np.uint64]], None]
"""Writes c_0 of polynomials from a position on, modulo a prime, shape (count, N):
(level, position, count, out)."""


class PlainWeights:
    """A model that the server knows, as residues, in both layouts.

    Args:
        plan: Of the circuit.
        weights: Integers, K rows of d.
        intercepts: Integers at a logit's scale.
    """

    parts = 1

    def __init__(self, plan: Plan, weights: list[list[int]], intercepts: list[int]) -> None:
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

    def add(
        self,
        block: Block,
        level: int,
        ciphertext: tuple[Polynomials, Polynomials],
        acc: Polynomials,
    ) -> None:
        """Add a block's products to sums.

        Args:
            block: Which terms of which group.
            level: Modulo which prime.
            ciphertext: c_0 and c_1 of the terms, each of shape (count, N).
            acc: c_0 and c_1 of the logits, shape (K, 2, N).
        """
        q = self.plan.linear.ring.moduli[level]
        terms = block.terms
        if block.section.by_columns:
            w, ws = self._columns.residues[level], self._columns.quotients[level]
            for output in range(len(acc)):
                for part, polynomials in enumerate(ciphertext):
                    kernels.add_multiples(
                        acc[output, part], polynomials, w[output, terms], ws[output, terms], q
                    )
            return
        w, ws = self._rows.residues[level], self._rows.quotients[level]
        for output in range(len(acc)):
            for part, polynomials in enumerate(ciphertext):
                for i, term in enumerate(range(terms.start, terms.stop)):
                    kernels.add_product(
                        acc[output, part], polynomials[i], w[output, term], ws[output, term], q
                    )


class EncryptedWeights:
    """A model under the client's key: a logit is a ciphertext of three parts.

    Args:
        plan: Of the circuit.
        columns: Values of (c_0, c_1), shape (L, 2, K, d, N).
        rows: The same by rows, shape (L, 2, K, terms, N).
    """

    parts = 2

    def __init__(self, plan: Plan, columns: Polynomials, rows: Polynomials) -> None:
        ring = plan.linear.ring
        self.plan = plan
        self._columns = Fixed(ring, columns)
        self._rows = Fixed(ring, rows)
        self.intercepts = ring.residues([0] * plan.outputs)

    def add(
        self,
        block: Block,
        level: int,
        ciphertext: tuple[Polynomials, Polynomials],
        acc: Polynomials,
    ) -> None:
        """Add a block's products to sums; `acc` has shape (K, 3, N)."""
        q = self.plan.linear.ring.moduli[level]
        fixed = self._columns if block.section.by_columns else self._rows
        w, ws = fixed.residues[level], fixed.quotients[level]
        for output in range(len(acc)):
            for i, term in enumerate(range(block.terms.start, block.terms.stop)):
                for part, polynomials in enumerate(ciphertext):
                    for other in range(2):
                        kernels.add_product(
                            acc[output, part + other],
                            polynomials[i],
                            w[other, output, term],
                            ws[other, output, term],
                            q,
                        )


Weights = PlainWeights | EncryptedWeights


def weight_values(plan: Plan, weights: list[list[int]], by_columns: bool) -> Polynomials:
    """Return weights as polynomials' values, shape (L, K, terms, N)."""
    c = plan.linear
    section = Section(c.degree, plan.inputs, by_columns, 0, 1)
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


def evaluate(weights: Weights, rows: int, seed: bytes, unpack: Unpack, workers: int) -> Polynomials:
    """Return the logits' ciphertexts as values, shape (L, groups, K, parts, N).

    Args:
        weights: The model.
        rows: How many rows the request has.
        seed: What its masks are expanded from.
        unpack: Gives its c_0.
        workers: Threads.
    """
    plan = weights.plan
    ring = plan.linear.ring
    found = plan.sections(rows)
    groups = sum(section.groups for section in found)
    shape = (ring.levels, groups, plan.outputs, weights.parts + 1, ring.degree)

    def work(blocks: Sequence[Block]) -> tuple[Sequence[Block], Polynomials]:
        first, last = blocks[0].output, blocks[-1].output
        acc = np.zeros((ring.levels, last - first + 1, *shape[2:]), np.uint64)
        c0 = np.empty((ring.step, ring.degree), np.uint64)
        c1 = np.empty((ring.step, ring.degree), np.uint64)
        streams = [ring.stream(seed, level) for level in range(ring.levels)]
        for block in blocks:
            count = block.terms.stop - block.terms.start
            for level, stream in enumerate(streams):
                unpack(level, block.first, count, c0)
                ring.fill(stream, level, block.index, c1[:count])
                weights.add(
                    block, level, (c0[:count], c1[:count]), acc[level, block.output - first]
                )
        return blocks, acc

    parts = run(work, layout.blocks(found, ring.step), workers)
    if len(parts) == 1:
        return parts[0][1]
    total = np.zeros(shape, np.uint64)
    for blocks, acc in parts:
        place = slice(blocks[0].output, blocks[-1].output + 1)
        for level, q in enumerate(ring.moduli):
            kernels.add(total[level, place].reshape(-1), acc[level].reshape(-1), q)
    return total


def hide(
    plan: Plan, total: Polynomials, public: PublicKey, entropy: Entropy = entropy_.system
) -> None:
    """Add a fresh encryption of zero to every ciphertext, in place.

    c_1 then is a u + e_1 more, for u, e_1 that the client does not know and a that it did not
    choose (it is expanded from a seed, with AES as a random function): pseudorandom under ring-LWE.
    What it knows of c_0 + c_1 s is the logit and noise, which `flood` drowns.

    A client that registers another b than its key's reads a few bits of b u with every logit, and
    so of u. `Plan.sections` keeps the logits of one ciphertext so few that these are less than a
    twentieth of what u holds.
    """
    ring = plan.linear.ring
    for group in range(total.shape[1]):
        for output in range(total.shape[2]):
            zero = public.zero(entropy(SEED_BYTES))
            for part in range(2):
                for level, q in enumerate(ring.moduli):
                    target = total[level, group, output, part]
                    kernels.add(target, np.ascontiguousarray(zero[part, level]), q)


def flood(ring: Ring, bits: int, count: int, seed: bytes) -> Polynomials:
    """Return uniform noise from -2^bits to 2^bits - 1, shape (L, count).

    Added to a number whose own noise is below 2^(bits - 39) / n, over n numbers, it leaves a
    distribution within 2^-40 of one that does not depend on that noise.
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
