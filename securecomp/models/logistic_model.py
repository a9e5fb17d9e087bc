"""A logistic model as numbers: weights, intercepts, classes. From scikit-learn, or a JSON file.

Pickles and skops files run code when they are loaded, and are never read.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from securecomp.errors import DecodeError, ParameterError
from securecomp.models import fitted_estimator
from securecomp.models.links import LOGISTIC, Floats, Label, Link, check_classes, sums
from securecomp.protocol.storage import read_text

Bounds = float | Sequence[float] | Mapping[str, float] | None

DEFAULT_BOUND = 65536.0
"""Bound of a feature's values if nothing is known of it."""
_FORMAT = "securecomp logistic model"
_VERSION = 1


class LogisticModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fitted logistic model, or another one that is linear: logits = X weights' + intercepts.

    Attributes:
        weights: One row of weights for each logit, shape (K, d); K is 1 for two classes.
        intercepts: One for each logit.
        classes: The labels, in the order of the probabilities.
        features: The features' names.
        bounds: Largest absolute value of each feature.
        link: How logits become probabilities: "sigmoid" for two classes; for more "softmax" or
            "ovr" (one against the rest, sigmoids that are divided by their sum). "margin" for
            classes without probabilities; "identity" or "log" for a regression, which has no
            classes.
    """

    weights: tuple[tuple[float, ...], ...]
    intercepts: tuple[float, ...]
    classes: tuple[Label, ...]
    features: tuple[str, ...]
    bounds: tuple[float, ...]
    link: Link
    format: str = _FORMAT
    version: int = _VERSION

    def __post_init__(self) -> None:
        d, k = len(self.features), len(self.weights)
        if self.format != _FORMAT or self.version != _VERSION:
            raise ParameterError(
                f"the model is {self.format!r}, version {self.version}; this software reads "
                f"{_FORMAT!r}, version {_VERSION}"
            )
        if not d or len(set(self.features)) != d:
            raise ParameterError("a model has at least one feature, and no name twice")
        for i, row in enumerate(self.weights):
            if len(row) != d:
                raise ParameterError(f"logit {i} has {len(row)} weights for {d} features")
        expected = sums(self.link, self.classes)
        if not expected:
            raise ParameterError(f"{len(self.classes)} classes do not match the link {self.link}")
        check_classes(self.classes)
        if k != expected or len(self.intercepts) != k:
            raise ParameterError(
                f"the model has {k} rows of weights and {len(self.intercepts)} intercepts, and "
                f"needs {expected} of each"
            )
        if len(self.bounds) != d:
            raise ParameterError(f"the model has {len(self.bounds)} bounds for {d} features")
        for what, numbers in (
            ("weight", [*chain.from_iterable(self.weights)]),
            ("intercept", self.intercepts),
        ):
            if not all(math.isfinite(x) for x in numbers):
                raise ParameterError(f"the model has a {what} that is not a finite number")
        for name, bound in zip(self.features, self.bounds, strict=True):
            if not (math.isfinite(bound) and 2.0**-100 <= bound <= 2.0**100):
                raise ParameterError(f"feature {name!r}: its bound must be positive, not {bound}")

    @classmethod
    def from_sklearn(cls, fitted: Any, bounds: Bounds = None) -> "LogisticModel":
        """Take the numbers out of a fitted scikit-learn estimator.

        Args:
            fitted: A `LogisticRegression`, `LogisticRegressionCV`, `SGDClassifier` with
                `loss="log_loss"`, a `OneVsRestClassifier` or a search over one of these, or a
                `Pipeline` that ends with one. Scalers, selections, `PCA` and `ColumnTransformer`
                are folded into the weights. Steps up to the last `OneHotEncoder`,
                `PolynomialFeatures` or `SimpleImputer` are for the client: the features of the
                model are their outputs, by scikit-learn's names.
            bounds: Largest absolute value of the features as they go into the pipeline: one for
                all, one each, or by name. By default sqrt(n - 1) standard deviations beyond the
                mean, which covers all n training rows, and 16 at least (twice the range, for a
                scaler that knows just that). Without a scaler 65536.

        Raises:
            ParameterError: Not fitted, no logistic model, or another kind of step, which is named.
        """
        found = cls.from_fitted(fitted, bounds)
        if found.link not in LOGISTIC:
            raise ParameterError(
                f"{fitted_estimator.name_of(fitted)} is not a logistic regression; use "
                'LogisticRegression, LogisticRegressionCV or SGDClassifier(loss="log_loss"), or '
                "LogisticModel.from_fitted for other linear models"
            )
        return found

    @classmethod
    def from_fitted(cls, fitted: Any, bounds: Bounds = None) -> "LogisticModel":
        """Take the numbers out of any fitted linear model.

        Args:
            fitted: As for `from_sklearn`; or one of scikit-learn's linear regressions (least
                squares, ridge, lasso, elastic net, Huber, support vectors, Poisson, gamma,
                Tweedie), a classifier with margins (`LinearSVC`, `RidgeClassifier`,
                `Perceptron`, any `SGDClassifier`); or statsmodels' result of OLS, WLS, Logit,
                Poisson or a GLM with an identity, log or logit link.
            bounds: As for `from_sklearn`. For statsmodels twice the training rows by default.

        Raises:
            ParameterError: Not fitted, not linear, or another kind of step, which is named.
        """
        found = fitted_estimator.read(fitted)
        largest = np.where(np.isnan(found.reach), DEFAULT_BOUND, found.reach)
        return cls(
            weights=tuple(map(tuple, found.weights.tolist())),
            intercepts=tuple(found.intercepts.tolist()),
            classes=found.classes,
            features=found.features,
            bounds=bounds_of(bounds, found.features, largest),
            link=found.link,
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> "LogisticModel":
        """Read what `to_json` wrote.

        Raises:
            DecodeError: Not JSON, or not a model. The message names what is missing or wrong.
        """
        try:
            return msgspec.json.decode(text, type=cls)
        except (msgspec.DecodeError, UnicodeError, RecursionError, ParameterError) as error:
            raise DecodeError(f"not a logistic model: {error}") from None

    @classmethod
    def read(cls, path: Path) -> "LogisticModel":
        """Read a file that `to_json` wrote.

        Raises:
            ParameterError: The file cannot be read.
            DecodeError: Not a model. The message names the file, and what is missing or wrong.
        """
        try:
            return cls.from_json(read_text(path))
        except DecodeError as error:
            raise DecodeError(f"{path}: {error}") from None

    @property
    def digest(self) -> bytes:
        """SHA-256 of the model as a file holds it."""
        # Read back first: 1 and 1.0 are one weight.
        read = msgspec.json.decode(self._encoded(), type=LogisticModel)
        return hashlib.sha256(read._encoded()).digest()

    def _encoded(self) -> bytes:
        return msgspec.json.encode(self, enc_hook=_plain)

    def to_json(self) -> str:
        """Return the model as JSON."""
        return msgspec.json.format(self._encoded()).decode()

    def logits(self, rows: Floats) -> Floats:
        """Return the logits in plaintext, shape (n, K)."""
        logits: Floats = rows @ np.array(self.weights).T + np.array(self.intercepts)
        return logits

    def __repr__(self) -> str:
        return f"LogisticModel({len(self.features)} features, {len(self.classes)} classes)"


def _plain(value: Any) -> Any:
    """Return numpy's numbers as Python's, which is what the file has."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a model holds numbers and text, not {type(value).__name__}")


def bounds_of(given: Bounds, names: tuple[str, ...], default: Floats) -> tuple[float, ...]:
    """Return the bound of each feature.

    Args:
        given: One bound for all, one each, or by name.
        names: The features.
        default: Bounds of those for which none is given.

    Raises:
        ParameterError: There is no feature of a given name.
    """
    if given is None:
        return tuple(default.tolist())
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in names]
        if unknown:
            raise ParameterError(f"bounds: the model has no feature {unknown[0]!r}")
        return tuple(
            float(given.get(name, known)) for name, known in zip(names, default, strict=True)
        )
    if isinstance(given, int | float):
        return (float(given),) * len(names)
    return tuple(float(bound) for bound in given)
