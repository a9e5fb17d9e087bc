"""Client and server of a linear model in one object, by scikit-learn's conventions."""

import inspect
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

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
from securecomp.models import Bounds, Link, LogisticModel, UnfittedError, client_steps, labels
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


class EncryptedModel:
    """A linear model that predicts on encrypted rows; what its kinds have in common.

    Client and server both run here, and exchange the bytes that would cross a network. Between
    organisations each side runs its own part (`InferenceClient`, `InferenceServer`).

    Given a fitted model, it predicts at once. Given one that is not fitted, it waits for `fit`, as
    scikit-learn's searches and cross-validation want it.

    Attributes:
        client_: The side with the rows.
        server_: The side with the model.
        plan_: The circuit and its promises. Print it to read them.
        traffic_: Counts of messages, rows and bytes.
        estimator_: What `fit` has fitted, on plaintext; missing before.
        classes_: The labels; none of a regression.
        n_features_in_: Number of encrypted features: outputs of the steps that are the client's.
        feature_names_in_: Their names.
    """

    links: ClassVar[tuple[Link, ...]]
    use: ClassVar[str]

    def __init__(
        self,
        estimator: Any,
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
        """Plan, and draw the keys, if the model is fitted.

        Args:
            estimator: An estimator for `LogisticModel.from_fitted`, or a `LogisticModel`.
            bounds: Largest absolute values of the features, as for `LogisticModel.from_sklearn`.
            precision: Largest error of a logit after rounding (by default 1e-4), or of a
                probability that the server computes (0.01).
            protect_model: Hide everything of the model but the logits. The server then answers as
                many different rows as the model has features.
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
            ParameterError: Another kind of model, or a plan that no secure ring allows.
        """
        self.estimator = estimator
        self.bounds = bounds
        self.precision = precision
        self.protect_model = protect_model
        self.shareable_rows = shareable_rows
        self.model = model
        self.backend = backend
        self.activation = activation
        self.degree = degree
        self.domain = domain
        self.workers = workers
        self.entropy = entropy
        with suppress(UnfittedError):
            self._prepare(estimator)

    def _prepare(self, fitted: Any) -> None:
        """Plan for a fitted model, and draw the keys."""
        numbers, self._steps = fitted, list[Any]()
        if not isinstance(fitted, LogisticModel):
            numbers = LogisticModel.from_fitted(fitted, self.bounds)
            self._steps = client_steps(fitted)
        if numbers.link not in self.links:
            kind = type(fitted).__name__
            raise ParameterError(f"{kind} is not {self.use}; its link is {numbers.link!r}")
        workers, entropy = self.workers, self.entropy
        if self.model == "encrypted":
            server, owner = self._with_owner(numbers)
        else:
            owner = None
            server = InferenceServer.create(
                numbers,
                precision=self.precision,
                protect_model=self.protect_model,
                shareable_rows=self.shareable_rows,
                backend=self.backend,
                activation=self.activation,
                degree=self.degree,
                domain=self.domain,
                workers=workers,
                entropy=entropy,
            )
        self.client_ = InferenceClient.create(server.offer, workers=workers, entropy=entropy)
        registration = self.client_.registration.encode()
        server.register(registration)
        if owner is not None:
            server.load_model(owner.encrypt(registration))
        self.server_ = server
        self.plan_: InferencePlan = server.offer.plan
        self.traffic_ = InferenceTraffic()
        self.classes_ = labels(self.plan_.classes)
        self.n_features_in_ = len(self.plan_.features)
        self.feature_names_in_ = np.array(self.plan_.features, object)
        self._known: dict[bytes, npt.NDArray[np.float64]] = {}

    def _with_owner(self, numbers: LogisticModel) -> tuple[InferenceServer, ModelOwner]:
        seal = self.backend == "seal" or self.activation == "server"
        if self.protect_model or self.shareable_rows or seal:
            raise ParameterError(
                "with an encrypted model, leave out protect_model, shareable_rows, "
                'backend="seal" and activation="server"'
            )
        identity = Identity.generate(self.entropy)
        owner = ModelOwner(
            numbers,
            "owner",
            "server",
            identity.public,
            precision=self.precision,
            entropy=self.entropy,
        )
        server = InferenceServer(
            owner.offer, identity, None, workers=self.workers, entropy=self.entropy
        )
        return server, owner

    def fit(self, X: Any, y: Any, **options: Any) -> Self:  # noqa: N803
        """Fit a clone of the estimator on plaintext, then plan and draw new keys.

        Args:
            X: Rows.
            y: Their labels.
            options: More arguments of the estimator's `fit`.

        Raises:
            ParameterError: The estimator is not one of scikit-learn's.
        """
        if not hasattr(self.estimator, "fit"):
            raise ParameterError(
                f"a {type(self.estimator).__name__} cannot be fitted; give scikit-learn's estimator"
            )
        from sklearn.base import clone

        self.estimator_ = clone(self.estimator).fit(X, y, **options)
        self._prepare(self.estimator_)
        return self

    def _predict(self, table: Any) -> Predictions:
        if not self.__sklearn_is_fitted__():
            raise UnfittedError(f"this {type(self).__name__} is not fitted; call fit first")
        for step in self._steps:  # what does not fold into weights is for whoever has the rows
            table = step.transform(table)
        # All rows are checked before any is sent.
        rows = inputs.rows(table, self.plan_, one_request=False)
        if not self.plan_.max_rows:
            return self._asked(rows)
        # Each row that was answered costs its budget once, whatever is asked of it.
        keys = [row.tobytes() for row in rows + 0.0]
        new = {key: place for place, key in reversed([*enumerate(keys)]) if key not in self._known}
        if new:
            answers = self._asked(rows[sorted(new.values())])
            order = sorted(new, key=new.__getitem__)
            self._known.update(zip(order, answers.values, strict=True))
        values = np.array([self._known[key] for key in keys])
        inside = np.zeros(len(values), bool)
        return Predictions(values, "logits", self.plan_.classes, self.plan_.link, inside)

    def _asked(self, rows: npt.NDArray[np.float64]) -> Predictions:
        """Return the server's answers to rows, by as many requests as they take."""
        most = self.plan_.rows_per_request
        parts = []
        for start in range(0, len(rows), most):
            request = self.client_.encrypt(rows[start : start + most])
            answer = self.server_.predict(request)
            parts.append(self.client_.decrypt(answer, first=start + 1))
            self.traffic_.requests += 1
            self.traffic_.rows += len(parts[-1].values)
            self.traffic_.sent += len(request)
            self.traffic_.received += len(answer)
        return Predictions(
            np.concatenate([part.values for part in parts]),
            parts[0].kind,
            self.plan_.classes,
            self.plan_.link,
            np.concatenate([part.outside for part in parts]),
        )

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments of the constructor, and with `deep` those of the estimator."""
        found = {name: getattr(self, name) for name in _PARAMETERS}
        if deep and hasattr(self.estimator, "get_params"):
            inner = self.estimator.get_params()
            found |= {f"estimator__{name}": value for name, value in inner.items()}
        return found

    def set_params(self, **params: Any) -> Self:
        """Change arguments. A model that was fitted is planned again, with new keys.

        Raises:
            ParameterError: No such argument.
        """
        inner = {}
        for name, value in params.items():
            if name.startswith("estimator__"):
                inner[name.removeprefix("estimator__")] = value
            elif name in _PARAMETERS:
                setattr(self, name, value)
            else:
                raise ParameterError(f"there is no parameter {name!r}; known are {_PARAMETERS}")
        if inner:
            self.estimator.set_params(**inner)
        if self.__sklearn_is_fitted__():
            changed = "estimator" in params or not hasattr(self, "estimator_")
            self._prepare(self.estimator if changed else self.estimator_)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "plan_")

    def __repr__(self) -> str:
        if not self.__sklearn_is_fitted__():
            return f"{type(self).__name__}({self.estimator!r}, not fitted)"
        return f"{type(self).__name__}({self.n_features_in_} features, {self.plan_.link})"


_PARAMETERS = tuple(inspect.signature(EncryptedModel).parameters)
