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

A logit outside the declared domain gives a number that means nothing, and far outside a single row
overflows the last modulus and spoils its whole batch. So the logits come back too, over a bound
that none can pass, and the client refuses a batch with such a row, by its number. They tell it
nothing new: in the domain a probability determines its logit.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from securecomp.ckks import chebyshev, minimax, security
from securecomp.ckks.chain import LEAST_PRIME_BITS, MOST_PRIME_BITS, Chain, choose
from securecomp.ckks.chebyshev import Arithmetic, Encrypted, Series, Value
from securecomp.ckks.noise import Trace, Tracer
from securecomp.ckks.seal import Context, SecretKey, refusing
from securecomp.errors import DecodeError, ParameterError, RangeError

Reals = npt.NDArray[np.float64]
P = TypeVar("P")

MOST_FEATURES = 1 << 14
_ROOM = 1 + 1 / 64
MOST_DOMAIN = 126.0
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
    def span(self) -> float:
        """What the polynomial is made for: the domain, and room to tell what is outside of it."""
        return self.domain * _ROOM

    @property
    def reach(self) -> float:
        """What no logit passes, whatever intercept the server accepts."""
        return self.span + 2 * self.weight_bound * self.feature_bound

    @property
    def polynomial(self) -> minimax.SigmoidPolynomial:
        """What the server evaluates."""
        return minimax.sigmoid(self.span, self.degree)


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
    if not minimax.LEAST_DOMAIN <= domain <= MOST_DOMAIN:
        raise ParameterError(f"a domain of {domain}; it is {minimax.LEAST_DOMAIN} to {MOST_DOMAIN}")
    polynomial = minimax.sigmoid(domain * _ROOM, degree)
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
            found = Plan(
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
            # A logit in the domain must not look as if it were beyond the span, nor the reverse.
            if error <= precision and logit_error(found) <= (found.span - found.domain) / 2:
                return found
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


def _argument(
    tracer: Tracer,
    scale: float,
    domain: float,
    features: int,
    feature_bound: float,
    weight_bound: float,
) -> Value[Trace]:
    """The logit over the domain, as it is after its rescaling."""
    chain = tracer.chain
    top = chain.moduli[-1]
    # Columns have independent noise; the 2-norm of the weights is at most their 1-norm.
    errors = tracer.source(tracer.fresh() / scale * weight_bound / domain, True)
    errors |= tracer.source(tracer.rounding() / scale, True)
    # Weights are rounded to multiples of 1/top. A model of zeros has one weight of 1/top.
    errors |= tracer.source((features + 2) / 2 * feature_bound / top, False)
    t = Value(Trace(tracer.grid, errors), chain.levels - 1, scale)
    return tracer.add_plain(t, 0.0)  # the intercept


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
    t = _argument(tracer, scale, polynomial.domain, features, feature_bound, weight_bound)
    return tracer.bound(Series(chain.moduli, tracer, t)(polynomial.coefficients, scale))


def _reduced(arithmetic: Arithmetic[P], plan: Plan, t: Value[P]) -> Value[P]:
    """The logit over what no logit passes, two levels down."""
    level = plan.chain.levels - 2
    precision = plan.scale * plan.chain.moduli[level] / t.scale
    return arithmetic.multiply_plain(t, plan.span / plan.reach, precision, level, plan.scale)


@lru_cache(maxsize=64)
def logit_error(plan: Plan) -> float:
    """How far the logits that come back may be off; a heuristic as `Plan.numeric_error`."""
    tracer = Tracer(plan.chain)
    t = _argument(
        tracer, plan.scale, plan.span, plan.features, plan.feature_bound, plan.weight_bound
    )
    return tracer.bound(_reduced(tracer, plan, t)) * plan.reach


class Result(NamedTuple):
    """One model's answer for one batch: ciphertexts of two numbers a row.

    Attributes:
        probabilities: The polynomial's values.
        logits: The logits over `Plan.reach`.
    """

    probabilities: bytes
    logits: bytes


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

    def decrypt(self, result: Result, rows: int) -> Reals:
        """The polynomial's values: probabilities, within `plan.error`.

        They may be below 0 or above 1 by that much, and are not clipped.

        Args:
            result: One of `SigmoidServer.evaluate`.
            rows: How many were encrypted.

        Returns:
            Shape (rows,).

        Raises:
            DecodeError: Not a result under this plan.
            RangeError: A row's logit was outside the domain, by more than 1/64 of it certainly.
        """
        plan = self.plan
        if not 1 <= rows <= plan.slots:
            raise ParameterError(f"{rows} rows, not 1 to {plan.slots}")
        logits = self._slots(result.logits, rows) * plan.reach
        limit = (plan.domain + plan.span) / 2
        wrong = np.flatnonzero(~(np.abs(logits) <= limit))
        if len(wrong):
            raise RangeError(
                f"{len(wrong)} of {rows} rows have logits beyond {limit:.4g}, the first of them "
                f"row {wrong[0]}; plan a larger domain than {plan.domain:g}"
            )
        values = self._slots(result.probabilities, rows)
        if not np.all((values >= -plan.error) & (values <= 1 + plan.error)):
            raise DecodeError("not probabilities of these logits: the plan was not kept to")
        return values

    def _slots(self, data: bytes, rows: int) -> Reals:
        ciphertext = self._context.load(data, 1, self.plan.scale, seeded=False)
        return np.array(self._key.decrypt(ciphertext))[:rows]


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
    ) -> list[Result]:
        """Score one batch with one model or several.

        Args:
            columns: The client's ciphertexts, one a feature; verify who sent them first.
            weights: Shape (d,), or (K, d) for K models.
            intercept: One number, or shape (K,).

        Returns:
            One result a model.

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
        factors = models / plan.span
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

    def _score(self, total: Any, intercept: float) -> Result:
        plan, context = self.plan, self._context
        context.evaluator.rescale_to_next_inplace(total)
        total.scale = plan.scale
        t = Value(total, plan.chain.levels - 1, plan.scale)
        t = self._arithmetic.add_plain(t, intercept / plan.span)
        series = Series(plan.chain.moduli, self._arithmetic, t)
        value = series(plan.polynomial.coefficients, plan.scale)
        logit = self._arithmetic.lower(_reduced(self._arithmetic, plan, t), 1)
        return Result(context.save(value.payload), context.save(logit.payload))
