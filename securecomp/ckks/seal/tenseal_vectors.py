"""Answers for users of TenSEAL: its own encrypted vectors in, its own encrypted vectors out."""

import operator
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from securecomp.ckks.seal.seal_context import backend, refusing
from securecomp.errors import DecodeError, KeyMismatchError, ParameterError
from securecomp.models import LogisticModel


class VectorServer:
    """Computes logits of a `tenseal.CKKSVector`, for a client whose program is TenSEAL's.

    It keeps TenSEAL code running as it is. Nothing here is agreed by a plan, sealed or counted:
    the error is whatever the client's parameters give, the client can learn the model, and
    TenSEAL's parser reads the bytes before anything here can. So take them from senders that you
    know, over a channel that verifies them. The server learns the number of rows.

    Args:
        model: The model.
        context: The client's context, as `context.serialize(save_secret_key=False)` gives it, with
            Galois keys if vectors are rows.

    Raises:
        BackendUnavailableError: TenSEAL is not installed.
        DecodeError: Not a context.
        KeyMismatchError: The context has the client's secret key.
        ParameterError: A logit of the model has no weight but 0, which SEAL does not multiply by.
    """

    def __init__(self, model: LogisticModel, context: bytes) -> None:
        backend()
        import tenseal

        if not all(map(any, model.weights)):
            raise ParameterError("a logit of the model has no weight but 0; it is its intercept")
        self._model = model
        self._load = tenseal.ckks_vector_from
        with refusing("a context of TenSEAL"):
            self._context = tenseal.context_from(context)
        if self._context.has_secret_key():
            raise KeyMismatchError(
                "the context has the client's secret key, with which anybody reads its rows; send "
                "context.serialize(save_secret_key=False), and draw a new key"
            )

    def predict_row(self, vector: bytes) -> list[bytes]:
        """Return a vector of one number for each logit.

        Args:
            vector: A serialized vector of one row's features, in the model's order.

        Raises:
            DecodeError: Not a vector of this context, or of another length.
            ParameterError: The context has no Galois keys.
        """
        if not self._context.has_galois_keys():
            raise ParameterError(
                "a row in a vector needs Galois keys: context.generate_galois_keys(); a column in "
                "a vector needs none"
            )
        with refusing("a vector of this context"):
            row = self._vector(vector)
            if row.size() != len(self._model.features):
                raise DecodeError(
                    f"the vector has {row.size()} numbers, and the model "
                    f"{len(self._model.features)} features"
                )
            return [
                row.dot(list(weights)).add([intercept]).serialize()
                for weights, intercept in zip(
                    self._model.weights, self._model.intercepts, strict=True
                )
            ]

    def predict_columns(self, vectors: Sequence[bytes]) -> list[bytes]:
        """Return a vector of all rows' numbers for each logit.

        Args:
            vectors: A serialized vector for each feature, in the model's order.

        Raises:
            DecodeError: Not as many vectors of this context as features, or of unequal lengths.
        """
        if len(vectors) != len(self._model.features):
            raise DecodeError(
                f"{len(vectors)} columns, and the model has {len(self._model.features)} features"
            )
        with refusing("vectors of this context"):
            columns = [self._vector(vector) for vector in vectors]
            if len({column.size() for column in columns}) != 1:
                raise DecodeError("the columns have different lengths")
            return [
                reduce(operator.add, (columns[j] * row[j] for j in np.flatnonzero(row)))
                .add([intercept] * columns[0].size())
                .serialize()
                for row, intercept in zip(self._model.weights, self._model.intercepts, strict=True)
            ]

    def _vector(self, data: bytes) -> Any:
        return self._load(self._context, data)

    def __repr__(self) -> str:
        return f"<VectorServer {self._model!r}>"
