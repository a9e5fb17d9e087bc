"""Logistic regression on encrypted rows, with the logistic function on the server's side.

The client sends d ciphertexts, one a feature, each with up to N/2 rows in its slots, and its
relinearisation keys. The server multiplies them by its plain weights, evaluates the best
polynomial for the logistic function, and sends one ciphertext of probabilities back.

The server learns the plan and how many batches there are; no value. The client learns the
probabilities, and with enough rows of its choice it learns the model, as anybody does whom a model
answers: the noise of a result is not flooded, so a result is not a proof against a client who
looks for more in it. Honest-but-curious parties; integrity is the transport's (verify a MAC before
anything here is given bytes). Never give a decrypted result back to the server: it carries traces
of the key's noise (Li, Micciancio, EUROCRYPT 2021).

A logit outside the declared domain gives a number that means nothing. Where that number cannot be
a probability, the client notices; otherwise it cannot. Far outside (where the polynomial passes
thousands) a single row overflows the last modulus and spoils its whole batch. Only bounds with
weight_bound * feature_bound + |intercept| <= domain rule this out beforehand.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.ckks import chebyshev, minimax, security
from securecomp.ckks.chain import LEAST_PRIME_BITS, MOST_PRIME_BITS, Chain, choose
from securecomp.ckks.chebyshev import Encrypted, Series, Value
from securecomp.ckks.noise import Trace, Tracer
from securecomp.ckks.seal import Context, SecretKey, refusing
from securecomp.errors import DecodeError, ParameterError, RangeError

Reals = npt.NDArray[np.float64]

MOST_FEATURES = 1 << 14
_SPOILED = 2.0  # half of what the last modulus holds
_RINGS = tuple(sorted(ring for ring in security.LARGEST if ring >= 4096))


@dataclass(frozen=True)
class Plan:
    """Everything that both sides agree on before a key is made. Public.

    It is not sent: each side makes it, by `plan`, from the same arguments.

    Attributes:
        features: d.
        domain: Largest absolute logit, B.
        degree: The polynomial's.
        feature_bound: Largest absolute feature.
        weight_bound: Largest sum of the absolute weights of one model.
        chain: The ring and its moduli.
        scale_bits: log2 of what stands for 1 in a fresh ciphertext and in a result.
        numeric_error: How far a result may be from the polynomial's value: noise and rounding, as
            `Tracer.bound` states it (a heuristic; exceeded by one batch in 2^30).
        polynomial_error: How far the polynomial may be from the logistic function; proven.
    """

    features: int
    domain: float
    degree: int
    feature_bound: float
    weight_bound: float
    chain: Chain
    scale_bits: int
    numeric_error: float
    polynomial_error: float

    @property
    def scale(self) -> float:
        """What stands for 1."""
        return 2.0**self.scale_bits

    @property
    def slots(self) -> int:
        """Rows in one batch."""
        return self.chain.slots

    @property
    def depth(self) -> int:
        """Rescalings: one for the logit, the rest for the polynomial."""
        return 1 + chebyshev.depth(self.degree)

    @property
    def error(self) -> float:
        """How far a probability may be from the logistic function of its logit."""
        return self.numeric_error + self.polynomial_error

    @property
    def polynomial(self) -> minimax.SigmoidPolynomial:
        """What the server evaluates."""
        return minimax.sigmoid(self.domain, self.degree)


@lru_cache(maxsize=64)
def plan(
    features: int,
    domain: float = 8.0,
    degree: int = 7,
    *,
    feature_bound: float = 8.0,
    weight_bound: float | None = None,
    precision: float = 1e-4,
) -> Plan:
    """Choose the smallest ring, then the smallest scale, whose noise stays below `precision`.

    Args:
        features: d, in [1, 16384].
        domain: Largest absolute logit, in [0.5, 128]. Rows beyond it get meaningless results.
        degree: The polynomial's; odd, in [1, 63].
        feature_bound: Largest absolute feature; larger ones are refused.
        weight_bound: Largest sum of one model's absolute weights; larger ones are refused. By
            default domain / feature_bound, with which no row can leave the domain (but for the
            intercept). Standardised features with a larger bound are the usual case.
        precision: Largest `numeric_error`. The polynomial's own error comes on top, and is
            usually larger.

    Raises:
        ParameterError: An argument out of range, or nothing fits at 128-bit security.
    """
    if not isinstance(features, int) or not 1 <= features <= MOST_FEATURES:
        raise ParameterError(f"{features} features, not 1 to {MOST_FEATURES}")
    polynomial = minimax.sigmoid(domain, degree)
    _check_positive("feature_bound", feature_bound)
    _check_positive("precision", precision)
    if weight_bound is None:
        weight_bound = domain / feature_bound
    _check_positive("weight_bound", weight_bound)
    rescalings = 1 + chebyshev.depth(degree)
    best = math.inf
    for ring in _RINGS:
        for bits in range(LEAST_PRIME_BITS, MOST_PRIME_BITS):
            chain = choose(ring, bits, rescalings)
            # The whole sum of a logit, at the square of the scale, has to fit the top modulus.
            if chain is None or not _holds(chain, bits, weight_bound * feature_bound / domain):
                continue
            error = _numeric_error(
                chain, 2.0**bits, polynomial, features, feature_bound, weight_bound
            )
            if error <= precision:
                return Plan(
                    features,
                    float(domain),
                    degree,
                    float(feature_bound),
                    float(weight_bound),
                    chain,
                    bits,
                    error,
                    polynomial.error,
                )
            best = min(best, error)
    raise ParameterError(
        f"{features} features and degree {degree} do not reach a precision of {precision:g} in "
        f"any ring at 128-bit security; {best:.1g} would fit, or try a lower degree"
    )


def _check_positive(name: str, number: float) -> None:
    if not 0 < number <= 1e9:  # also false for nan
        raise ParameterError(f"{name} is {number}, not above 0 and at most 1e9")


def _holds(chain: Chain, bits: int, largest: float) -> bool:
    """Whether the sum of a logit before its rescaling stays within half of the top modulus."""
    top = sum(math.log2(q) for q in chain.moduli)
    return 2 * bits + math.log2(max(largest, 1.0) + 1) + 2 < top


def _numeric_error(
    chain: Chain,
    scale: float,
    polynomial: minimax.SigmoidPolynomial,
    features: int,
    feature_bound: float,
    weight_bound: float,
) -> float:
    """The bound of the error of a result against the polynomial's exact value."""
    tracer = Tracer(chain)
    top = chain.moduli[-1]
    # Columns have independent noise; the 2-norm of the weights is at most their 1-norm.
    errors = tracer.source(tracer.fresh() / scale * weight_bound / polynomial.domain, True)
    errors |= tracer.source(tracer.rounding() / scale, True)
    # Weights are rounded to multiples of 1/top. A model of zeros has one weight of 1/top.
    errors |= tracer.source((features + 2) / 2 * feature_bound / top, False)
    t = Value(Trace(tracer.grid, errors), chain.levels - 1, scale)
    t = tracer.add_plain(t, 0.0)  # the intercept
    return tracer.bound(Series(chain.moduli, tracer, t)(polynomial.coefficients, scale))


class SigmoidClient:
    """Holds the key; encrypts rows and decrypts probabilities.

    Args:
        plan: The agreed plan.
        secret: `secret` of an earlier client; None makes a new key.

    Raises:
        BackendUnavailableError: TenSEAL is not installed.
        DecodeError: `secret` is not a key of this plan.
    """

    def __init__(self, plan: Plan, secret: bytes | None = None) -> None:
        self.plan = plan
        self._context = Context(plan.chain)
        self._key = (
            SecretKey(self._context)
            if secret is None
            else SecretKey.from_bytes(self._context, secret)
        )

    def __repr__(self) -> str:
        return f"<SigmoidClient features={self.plan.features} ring={self.plan.chain.ring}>"

    def secret(self) -> bytes:
        """The key itself, to be kept where nobody reads it."""
        return self._key.to_bytes()

    def evaluation_keys(self) -> bytes:
        """What the server needs to multiply. Public; made anew at each call, one is enough."""
        return self._key.relinearisation_keys()

    def encrypt_columns(self, rows: npt.ArrayLike) -> list[bytes]:
        """One ciphertext a feature.

        Args:
            rows: Shape (n, d) with 1 <= n <= `plan.slots`.

        Raises:
            ParameterError: Another shape.
            RangeError: A feature beyond `plan.feature_bound`, or not a number.
        """
        table = np.asarray(rows, np.float64)
        if table.ndim != 2 or table.shape[1] != self.plan.features:
            raise ParameterError(
                f"rows of shape {table.shape}, not (n, {self.plan.features}) as planned"
            )
        if not 1 <= len(table) <= self.plan.slots:
            raise ParameterError(f"{len(table)} rows, not 1 to {self.plan.slots}")
        wrong = np.flatnonzero(~np.all(np.abs(table) <= self.plan.feature_bound, axis=0))
        if len(wrong):
            raise RangeError(
                f"feature {wrong[0]} has a value beyond {self.plan.feature_bound:g} or none; "
                "plan with a larger feature_bound or scale it"
            )
        # Slots without a row repeat the last one, so that they leave the domain no sooner than it.
        full = np.pad(table, ((0, self.plan.slots - len(table)), (0, 0)), mode="edge")
        return [self._key.encrypt(column, self.plan.scale) for column in full.T.tolist()]

    def decrypt(self, result: bytes, rows: int, *, outside: float | None = None) -> Reals:
        """The polynomial's values: probabilities, within `plan.error`.

        They may be below 0 or above 1 by that much, and are not clipped.

        Args:
            result: One of `SigmoidServer.evaluate`.
            rows: How many were encrypted.
            outside: What to give for a row whose logit was evidently outside the domain; None
                refuses the batch. A batch that is spoiled as a whole is always refused.

        Returns:
            Shape (rows,).

        Raises:
            DecodeError: Not a result under this plan.
            RangeError: A row's logit was outside the domain.
        """
        if not 1 <= rows <= self.plan.slots:
            raise ParameterError(f"{rows} rows, not 1 to {self.plan.slots}")
        ciphertext = self._context.load(result, 1, self.plan.scale, seeded=False)
        slots = np.array(self._key.decrypt(ciphertext))
        where = f"outside [-{self.plan.domain:g}, {self.plan.domain:g}]"
        # No coefficient is larger than the mean of the slots' absolute values. What overflowed
        # +-2^HEADROOM_BITS / 2 comes back as numbers of that size in all slots.
        if not np.mean(np.abs(slots)) <= _SPOILED:
            raise RangeError(f"the batch is spoiled: logits were far {where}; plan a larger domain")
        values, error = slots[:rows], self.plan.error
        wrong = ~((values >= -error) & (values <= 1 + error))
        if outside is not None:
            return np.where(wrong, outside, values)
        if np.any(wrong):
            raise RangeError(
                f"{np.count_nonzero(wrong)} of {rows} rows, the first of them row "
                f"{np.argmax(wrong)}, had logits {where}; plan a larger domain"
            )
        return values


class SigmoidServer:
    """Computes on what it cannot read. Built from public bytes.

    Args:
        plan: The agreed plan.
        evaluation_keys: The client's; verify who sent them first.

    Raises:
        BackendUnavailableError: TenSEAL is not installed.
        DecodeError: Not evaluation keys of this plan.
    """

    def __init__(self, plan: Plan, evaluation_keys: bytes) -> None:
        self.plan = plan
        self._context = Context(plan.chain)
        keys = self._context.load_relinearisation_keys(evaluation_keys)
        self._arithmetic = Encrypted(self._context, keys)

    def __repr__(self) -> str:
        return f"<SigmoidServer features={self.plan.features} ring={self.plan.chain.ring}>"

    def evaluate(
        self, columns: Sequence[bytes], weights: npt.ArrayLike, intercept: npt.ArrayLike = 0.0
    ) -> list[bytes]:
        """Score one batch with one model or several.

        Args:
            columns: The client's ciphertexts, one a feature; verify who sent them first.
            weights: Shape (d,), or (K, d) for K models.
            intercept: One number, or shape (K,).

        Returns:
            One ciphertext a model.

        Raises:
            ParameterError: Weights of another shape or beyond the plan's bounds.
            DecodeError: Not d fresh ciphertexts of this plan, or they do not work with the keys.
        """
        models, constants = self._models(weights, intercept)
        if len(columns) != self.plan.features:
            raise DecodeError(f"{len(columns)} columns, not {self.plan.features} as planned")
        with refusing("ciphertexts and keys that work together"):
            sums = self._sums(columns, models)
            return [self._score(t, float(b)) for t, b in zip(sums, constants, strict=True)]

    def _models(self, weights: npt.ArrayLike, intercept: npt.ArrayLike) -> tuple[Reals, Reals]:
        models = np.atleast_2d(np.asarray(weights, np.float64))
        if models.ndim != 2 or models.shape[1] != self.plan.features or not len(models):
            raise ParameterError(
                f"weights of shape {np.shape(weights)}, not ({self.plan.features},) as planned"
            )
        constants = np.asarray(intercept, np.float64)
        if constants.shape not in ((), (1,), (len(models),)):
            raise ParameterError(f"intercepts of shape {constants.shape} for {len(models)} models")
        largest = float(np.max(np.sum(np.abs(models), axis=1)))
        if not largest <= self.plan.weight_bound * (1 + 1e-12):
            raise ParameterError(
                f"a model's absolute weights add up to {largest:g}, above the planned "
                f"{self.plan.weight_bound:g}; plan with a larger weight_bound"
            )
        most = self.plan.domain + self.plan.weight_bound * self.plan.feature_bound
        if not np.all(np.abs(constants) <= most):
            raise ParameterError(f"an intercept beyond {most:g} leaves no row in the domain")
        return models, np.broadcast_to(constants, (len(models),))

    def _sums(self, columns: Sequence[bytes], models: Reals) -> list[Any]:
        """Each model's weighted sum of the columns over B, not yet rescaled.

        A column is decoded once and dropped, however many models there are.
        """
        plan, evaluator = self.plan, self._context.evaluator
        top, levels = float(plan.chain.moduli[-1]), plan.chain.levels
        factors = models / plan.domain
        # SEAL refuses to multiply by 0. If nothing is left, the least weight stands for it.
        used = np.rint(factors * top) != 0
        idle = ~np.any(used, axis=1)
        used[idle, 0], factors[idle, 0] = True, 1 / top
        sums: list[Any] = [None] * len(models)
        for j, column in enumerate(columns):
            ciphertext = self._context.load(column, levels, plan.scale, seeded=True)
            for k in np.flatnonzero(used[:, j]):
                term = self._context.empty()
                constant = self._context.encode(float(factors[k, j]), levels, top)
                evaluator.multiply_plain(ciphertext, constant, term)
                if sums[k] is None:
                    sums[k] = term
                else:
                    evaluator.add_inplace(sums[k], term)
        return sums

    def _score(self, total: Any, intercept: float) -> bytes:
        plan = self.plan
        self._context.evaluator.rescale_to_next_inplace(total)
        total.scale = plan.scale
        t = Value(total, plan.chain.levels - 1, plan.scale)
        t = self._arithmetic.add_plain(t, intercept / plan.domain)
        series = Series(plan.chain.moduli, self._arithmetic, t)
        return self._context.save(series(plan.polynomial.coefficients, plan.scale).payload)
