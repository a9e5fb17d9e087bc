"""Logistic regression on encrypted rows, with the logistic function on the server's side.

The client sends its relinearisation keys and d ciphertexts, one for each feature, each with up to
N/2 rows in its slots. The server multiplies them by its plain weights, evaluates the best
polynomial for the logistic function, and sends back one ciphertext of probabilities.

The server learns the plan and the number of batches, and no value. The client learns the
probabilities. With enough rows of its choice it learns the model, as anybody does whom a model
answers. The noise of a result is not flooded, so a client that looks can find more in it. Parties
are honest but curious. The transport gives integrity: verify a MAC before any bytes come here.
Never give a decrypted result back to the server, since it carries traces of the key's noise (Li,
Micciancio, EUROCRYPT 2021).

A logit outside the declared domain gives a meaningless number. Far outside, a single row overflows
the last modulus and spoils its whole batch. So the logits come back too, divided by a bound that
they all keep, and the client computes the probabilities of such a batch from them. They tell it
nothing new: within the domain a probability determines its logit.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from securecomp.ckks.seal.chebyshev import Encrypted, Series, Value
from securecomp.ckks.seal.seal_context import Context, SealSecretKey, refusing
from securecomp.ckks.seal.sigmoid_plan import Reals, SigmoidPlan, logit_error, reduced
from securecomp.ckks.seal.weighted_columns import weighted_sums
from securecomp.core import minimax
from securecomp.core.secret import Secret
from securecomp.errors import DecodeError, ParameterError, RangeError


class SigmoidCiphertexts(NamedTuple):
    """One model's answer for one batch: ciphertexts of two numbers for each row.

    Attributes:
        probabilities: The polynomial's values.
        logits: The logits over `SigmoidPlan.reach`.
    """

    probabilities: bytes
    logits: bytes


class SigmoidValues(NamedTuple):
    """One model's decrypted answer for one batch.

    Attributes:
        probabilities: Shape (n,).
        outside: Whether a row's logit is outside the polynomial's domain, shape (n,).
    """

    probabilities: Reals
    outside: npt.NDArray[np.bool_]


class SigmoidClient(Secret):
    """Holds the key, encrypts rows and decrypts probabilities.

    Args:
        plan: The agreed plan.
        secret: `secret()` of an earlier client. None makes a new key.

    Raises:
        BackendUnavailableError: TenSEAL is not installed.
        DecodeError: `secret` is not a key of this plan.
    """

    def __init__(self, plan: SigmoidPlan, secret: bytes | None = None) -> None:
        self.plan = plan
        self._context = Context(plan.chain)
        self._key = (
            SealSecretKey(self._context)
            if secret is None
            else SealSecretKey.from_bytes(self._context, secret)
        )

    def __repr__(self) -> str:
        return f"SigmoidClient(features={self.plan.features}, ring={self.plan.chain.ring})"

    def secret(self) -> bytes:
        """Return the key itself. Keep it where nobody else can read it."""
        return self._key.to_bytes()

    def evaluation_keys(self) -> bytes:
        """Return the public keys with which the server multiplies. Each call makes new ones."""
        return self._key.relinearisation_keys()

    def encrypt_columns(self, rows: npt.ArrayLike) -> list[bytes]:
        """Encrypt rows as one ciphertext for each feature.

        Args:
            rows: Shape (n, d) with 1 <= n <= `plan.slots`.

        Raises:
            ParameterError: Another shape.
            RangeError: A feature beyond `plan.feature_bound`, or not a number.
        """
        table = np.asarray(rows, np.float64)
        if table.ndim != 2 or table.shape[1] != self.plan.features:
            raise ParameterError(
                f"the rows have shape {table.shape}, not (n, {self.plan.features}) as planned"
            )
        if not 1 <= len(table) <= self.plan.slots:
            raise ParameterError(f"a batch has 1 to {self.plan.slots} rows, not {len(table)}")
        wrong = np.flatnonzero(~np.all(np.abs(table) <= self.plan.feature_bound, axis=0))
        if len(wrong):
            raise RangeError(
                f"feature {wrong[0]} has a value that is missing or beyond "
                f"{self.plan.feature_bound:g}; scale it, or plan with a larger feature_bound"
            )
        # Slots without a row repeat the last row, so that they leave the domain no sooner.
        full = np.pad(table, ((0, self.plan.slots - len(table)), (0, 0)), mode="edge")
        return [self._key.encrypt(column, self.plan.scale) for column in full.T.tolist()]

    def decrypt(self, result: SigmoidCiphertexts, rows: int) -> SigmoidValues:
        """Return probabilities, within `plan.error`, and which logits were outside the domain.

        They may be below 0 or above 1 by that much, and are not clipped. If a logit of the batch
        is outside, all of its probabilities are the logistic function of the decrypted logits. A
        logit that is outside by more than 1/64 of the domain is always noticed.

        Args:
            result: One result of `SigmoidServer.evaluate`.
            rows: Number of rows that were encrypted.

        Raises:
            DecodeError: Not a result under this plan, or probabilities of other logits.
        """
        plan = self.plan
        if not 1 <= rows <= plan.slots:
            raise ParameterError(f"a batch has 1 to {plan.slots} rows, not {rows}")
        logits = self._slots(result.logits, rows) * plan.reach
        lies = DecodeError("not probabilities of these logits: the server did not keep to the plan")
        if not np.all(np.abs(logits) <= plan.reach + logit_error(plan)):
            raise lies
        finished = minimax.logistic(logits)
        outside = np.abs(logits) > (plan.domain + plan.span) / 2
        if outside.any():
            return SigmoidValues(finished, outside)
        values = self._slots(result.probabilities, rows)
        if not np.all(np.abs(values - finished) <= plan.error + logit_error(plan) / 4):
            raise lies
        return SigmoidValues(values, outside)

    def _slots(self, data: bytes, rows: int) -> Reals:
        ciphertext = self._context.load(data, 1, self.plan.scale, seeded=False)
        return np.array(self._key.decrypt(ciphertext))[:rows]


class SigmoidServer:
    """Computes on values that it cannot read. It is built from public bytes.

    Args:
        plan: The agreed plan.
        evaluation_keys: The client's. Verify who sent them first.

    Raises:
        BackendUnavailableError: TenSEAL is not installed.
        DecodeError: Not evaluation keys of this plan.
    """

    def __init__(self, plan: SigmoidPlan, evaluation_keys: bytes) -> None:
        self.plan = plan
        self._context = Context(plan.chain)
        keys = self._context.load_relinearisation_keys(evaluation_keys)
        self._arithmetic = Encrypted(self._context, keys)

    def __repr__(self) -> str:
        return f"<SigmoidServer features={self.plan.features} ring={self.plan.chain.ring}>"

    def evaluate(
        self, columns: Sequence[bytes], weights: npt.ArrayLike, intercept: npt.ArrayLike = 0.0
    ) -> list[SigmoidCiphertexts]:
        """Score one batch with one model or several.

        Args:
            columns: The client's ciphertexts, one for each feature. Verify who sent them first.
            weights: Shape (d,), or (K, d) for K models.
            intercept: One number, or shape (K,).

        Returns:
            One result for each model.

        Raises:
            ParameterError: Weights of another shape or beyond the plan's bounds.
            DecodeError: Not d fresh ciphertexts of this plan, or they do not work with the keys.
        """
        models, constants = self._models(weights, intercept)
        if len(columns) != self.plan.features:
            raise DecodeError(
                f"the request has {len(columns)} columns, not {self.plan.features} as planned"
            )
        with refusing("ciphertexts and keys that work together"):
            sums = self._sums(columns, models)
            return [self._score(t, float(b)) for t, b in zip(sums, constants, strict=True)]

    def _models(self, weights: npt.ArrayLike, intercept: npt.ArrayLike) -> tuple[Reals, Reals]:
        models = np.atleast_2d(np.asarray(weights, np.float64))
        if models.ndim != 2 or models.shape[1] != self.plan.features or not len(models):
            raise ParameterError(
                f"the weights have shape {np.shape(weights)}, not ({self.plan.features},) as "
                "planned"
            )
        constants = np.asarray(intercept, np.float64)
        if constants.shape not in ((), (1,), (len(models),)):
            raise ParameterError(f"intercepts of shape {constants.shape} for {len(models)} models")
        largest = float(np.max(np.sum(np.abs(models), axis=1)))
        if not largest <= self.plan.weight_bound * (1 + 1e-12):
            raise ParameterError(
                "a model's absolute weights add up to more than the planned "
                f"{self.plan.weight_bound:g}; plan with a larger weight_bound"
            )
        most = self.plan.domain + self.plan.weight_bound * self.plan.feature_bound
        if not np.all(np.abs(constants) <= most):
            raise ParameterError(
                f"an intercept beyond {most:g} leaves no row in the domain; plan a larger domain"
            )
        return models, np.broadcast_to(constants, (len(models),))

    def _sums(self, columns: Sequence[bytes], models: Reals) -> list[Any]:
        """Return each model's weighted sum of the columns over B, not yet rescaled."""
        plan = self.plan
        top = float(plan.chain.moduli[-1])
        sums = weighted_sums(self._context, columns, plan.scale, np.rint(models / plan.span * top))
        for total in sums:
            total.scale = plan.scale * top
        return sums

    def _score(self, total: Any, intercept: float) -> SigmoidCiphertexts:
        plan, context = self.plan, self._context
        context.evaluator.rescale_to_next_inplace(total)
        total.scale = plan.scale
        t = Value(total, plan.chain.levels - 1, plan.scale)
        t = self._arithmetic.add_plain(t, intercept / plan.span)
        series = Series(plan.chain.moduli, self._arithmetic, t)
        value = series(plan.polynomial.coefficients, plan.scale)
        logit = self._arithmetic.lower(reduced(self._arithmetic, plan, t), 1)
        return SigmoidCiphertexts(context.save(value.payload), context.save(logit.payload))
