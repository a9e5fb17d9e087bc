"""A fitted scikit-learn model that predicts on encrypted rows, in scikit-learn's interface."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from securecomp.ckks import inputs
from securecomp.ckks.inference_client import InferenceClient, Predictions
from securecomp.ckks.inference_server import InferenceServer
from securecomp.ckks.owner import ModelOwner
from securecomp.ckks.plan import Backend, InferencePlan
from securecomp.ckks.planner import Activation
from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.errors import ParameterError
from securecomp.models import Bounds, LogisticModel, labels
from securecomp.protocol.identity import Identity


@dataclass(slots=True)
class InferenceTraffic:
    """Counts of the messages between client and server so far.

    Attributes:
        requests: Number of requests.
        rows: Number of rows in them.
        sent: Bytes sent to the server.
        received: Bytes received from the server.
    """

    requests: int = 0
    rows: int = 0
    sent: int = 0
    received: int = 0


class EncryptedLogisticRegression:
    """A fitted logistic regression that predicts on encrypted rows.

    Client and server both run here, and exchange the bytes that would cross a network. Between
    organisations each side runs its own part (`InferenceClient`, `InferenceServer`).

    Attributes:
        client_: The side with the rows.
        server_: The side with the model.
        plan_: The circuit and its promises. Print it to read them.
        traffic_: Counts of messages, rows and bytes.
        classes_: The labels.
        n_features_in_: Number of features.
        feature_names_in_: Names of the features.
    """

    def __init__(
        self,
        fitted: Any,
        *,
        bounds: Bounds = None,
        precision: float | None = None,
        protect_model: bool = False,
        shareable_rows: int = 0,
        model: Literal["plain", "encrypted"] = "plain",
        backend: Backend | None = None,
        activation: Activation = "client",
        degree: int | None = None,
        domain: float | None = None,
        workers: int = 1,
        entropy: Entropy = entropy_.system,
    ) -> None:
        """Plan, and draw the keys.

        Args:
            fitted: An estimator for `LogisticModel.from_sklearn`, or a `LogisticModel`.
            bounds: Largest absolute values of the features, as for `LogisticModel.from_sklearn`.
            precision: Largest error of a logit after rounding (by default 1e-4), or of a
                probability that the server computes (0.01).
            protect_model: Hide everything of the model but the logits. The server then answers as
                many rows as the model has features.
            shareable_rows: Number of rows whose results may be given to anybody
                (`InferenceClient`).
            model: "encrypted" if the server must not know the model either.
            backend: "seal" or "native", as for `planner.plan`. By default SEAL where it can do it.
            activation: "server" if the server computes the probabilities, by a polynomial.
            degree: Degree of that polynomial, odd. By default it follows from the precision.
            domain: Largest absolute logit for which the polynomial is made, 8 by default. Rows
                beyond it are finished by the client.
            workers: Threads of client and server.
            entropy: Source of keys, masks and noise.

        Raises:
            ParameterError: Not a logistic model, or a plan that no secure ring allows.
        """
        numbers = fitted
        if not isinstance(fitted, LogisticModel):
            numbers = LogisticModel.from_sklearn(fitted, bounds)
        if model == "encrypted":
            if protect_model or shareable_rows or activation == "server" or backend == "seal":
                raise ParameterError(
                    "with an encrypted model, leave out protect_model, shareable_rows, "
                    'backend="seal" and activation="server"'
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
                backend=backend,
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
            BudgetError: More rows than the plan of a protected model answers.
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
