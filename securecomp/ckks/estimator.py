"""scikit-learn in, scikit-learn out: a fitted model whose predictions are made on ciphertexts."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from securecomp.ckks import inputs
from securecomp.ckks.inference_client import InferenceClient, Predictions
from securecomp.ckks.inference_server import InferenceServer
from securecomp.ckks.owner import ModelOwner
from securecomp.ckks.plan import InferencePlan
from securecomp.ckks.planner import Activation
from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.errors import ParameterError
from securecomp.models import Bounds, LogisticModel, labels
from securecomp.protocol.identity import Identity


@dataclass(slots=True)
class InferenceTraffic:
    """What crossed between client and server so far.

    Attributes:
        requests: How many.
        rows: Of all of them.
        sent: Bytes to the server.
        received: Bytes from the server.
    """

    requests: int = 0
    rows: int = 0
    sent: int = 0
    received: int = 0


class EncryptedLogisticRegression:
    """A fitted logistic regression that predicts on encrypted rows.

    Client and server both run here, and exchange the bytes that would cross a network; between
    organisations each runs its own (`InferenceClient`, `InferenceServer`).

    Attributes:
        client_: The side with the rows.
        server_: The side with the model.
        plan_: The circuit, and what it promises; print it.
        traffic_: Counts of what crossed.
        classes_: The labels.
        n_features_in_: How many features.
        feature_names_in_: Their names.
    """

    def __init__(
        self,
        fitted: Any,
        *,
        bounds: Bounds = None,
        precision: float = 1e-4,
        protect_model: bool = False,
        shareable_rows: int = 0,
        model: Literal["plain", "encrypted"] = "plain",
        activation: Activation = "client",
        degree: int = 7,
        domain: float | None = None,
        workers: int = 1,
        entropy: Entropy = entropy_.system,
    ) -> None:
        """Plan, and draw the keys.

        Args:
            fitted: What `LogisticModel.from_sklearn` takes, or a `LogisticModel`.
            bounds: Largest absolute values of the features, as `LogisticModel.from_sklearn` takes
                them.
            precision: What a logit is within, after rounding.
            protect_model: Hide everything of the model but the logits, of as many rows as the
                model has features.
            shareable_rows: Rows whose results may be given to anybody (`InferenceClient`).
            model: "encrypted" if the server may not know it either.
            activation: "server" if the server computes probabilities too, by a polynomial.
            degree: The polynomial's, odd.
            domain: Largest absolute logit that it is made for; by default what the bounds allow.
            workers: Threads of client and server.
            entropy: Source of keys, masks and noise.

        Raises:
            ParameterError: No logistic model, or a plan that no secure ring allows.
        """
        numbers = fitted
        if not isinstance(fitted, LogisticModel):
            numbers = LogisticModel.from_sklearn(fitted, bounds)
        if model == "encrypted":
            if protect_model or shareable_rows or activation == "server":
                raise ParameterError(
                    "an encrypted model goes without protect_model, shareable_rows and "
                    'activation="server"'
                )
            identity = Identity.generate(entropy)
            owner = ModelOwner(
                numbers, "owner", "server", identity.public, precision=precision, entropy=entropy
            )
            server = InferenceServer(owner.offer, identity, None, workers=workers, entropy=entropy)
        else:
            server = InferenceServer.create(
                numbers,
                precision=precision,
                protect_model=protect_model,
                shareable_rows=shareable_rows,
                activation=activation,
                degree=degree,
                domain=domain,
                workers=workers,
                entropy=entropy,
            )
        self.client_ = InferenceClient.create(server.offer, workers=workers, entropy=entropy)
        registration = self.client_.registration.encode()
        server.register(registration)
        if model == "encrypted":
            server.load_model(owner.encrypt(registration))
        self.server_ = server
        self.plan_: InferencePlan = server.offer.plan
        self.traffic_ = InferenceTraffic()
        self.classes_ = labels(self.plan_.classes)
        self.n_features_in_ = len(self.plan_.features)
        self.feature_names_in_ = np.array(self.plan_.features, object)

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:  # noqa: N803
        """Return logits, shape (n,) for two classes, else (n, classes).

        Raises:
            ParameterError, RangeError: Rows that the plan does not allow; nothing was encrypted.
            ParameterError: The server computes probabilities.
            BudgetError: More rows than a protected model answers.
        """
        logits = np.concatenate([part.logits for part in self._predict(X)])
        return logits[:, 0] if self.plan_.link == "sigmoid" else logits

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:  # noqa: N803
        """Return probabilities, shape (n, classes)."""
        return np.concatenate([part.probabilities for part in self._predict(X)])

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: N803
        """Return the most likely class of each row, shape (n,)."""
        return np.concatenate([part.labels for part in self._predict(X)])

    def _predict(self, table: Any) -> Iterator[Predictions]:
        # All rows are checked before any is sent.
        rows = inputs.rows(table, self.plan_, one_request=False)
        most = self.plan_.rows_per_request
        for start in range(0, len(rows), most):
            request = self.client_.encrypt(rows[start : start + most])
            answer = self.server_.predict(request)
            predictions = self.client_.decrypt(answer, first=start + 1)
            self.traffic_.requests += 1
            self.traffic_.rows += len(predictions.values)
            self.traffic_.sent += len(request)
            self.traffic_.received += len(answer)
            yield predictions

    def __repr__(self) -> str:
        return f"EncryptedLogisticRegression({self.n_features_in_} features, {self.plan_.link})"
