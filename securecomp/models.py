"""A logistic model as numbers: weights, intercepts, classes. From scikit-learn, or a JSON file.

Pickles and skops files run code when they are loaded, and are never read.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from securecomp.errors import DecodeError, ParameterError
from securecomp.protocol.storage import read_text

Link = Literal["sigmoid", "softmax", "ovr"]
Label = bool | int | float | str
Bounds = float | Sequence[float] | Mapping[str, float] | None
Floats = npt.NDArray[np.float64]

DEFAULT_BOUND = 65536.0
"""What a feature's values are bounded by if nothing is known of it."""
_FORMAT = "securecomp logistic model"
_VERSION = 1
_SPREAD = 16  # standard deviations around the mean, where a scaler knows both


class LogisticModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fitted logistic model: logits = X weights' + intercepts.

    Attributes:
        weights: One row of weights a logit, shape (K, d); K is 1 for two classes.
        intercepts: One a logit.
        classes: The labels, in the order of the probabilities.
        features: The features' names.
        bounds: Largest absolute value of each feature.
        link: How logits become probabilities: "sigmoid" for two classes; for more "softmax" or
            "ovr" (one against the rest, sigmoids that are divided by their sum).
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
            raise ParameterError("a model has at least one feature, and each name once")
        for i, row in enumerate(self.weights):
            if len(row) != d:
                raise ParameterError(f"logit {i} has {len(row)} weights for {d} features")
        expected = 1 if self.link == "sigmoid" else len(self.classes)
        if len(self.classes) < 2 or (self.link == "sigmoid") != (len(self.classes) == 2):
            raise ParameterError(f"{len(self.classes)} classes do not go with a {self.link}")
        check_classes(self.classes)
        if k != expected or len(self.intercepts) != k:
            raise ParameterError(
                f"{k} rows of weights and {len(self.intercepts)} intercepts; {expected} of each "
                "are needed"
            )
        if len(self.bounds) != d:
            raise ParameterError(f"{len(self.bounds)} bounds for {d} features")
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
            fitted: `LogisticRegression` or `LogisticRegressionCV`, `SGDClassifier` with
                `loss="log_loss"`, `OneVsRestClassifier` over these, a search over one of them, or
                a `Pipeline` of scalers (standard, min-max, max-abs, robust) and one of them. The
                scalers are folded into the weights.
            bounds: Largest absolute value of the features as they go into the pipeline: one for
                all, one each, or by name. By default 16 standard deviations beyond the mean
                (twice the range, for a scaler that knows just that), and without a scaler 65536.

        Raises:
            ParameterError: Not fitted, no logistic model, or a step that is no such scaler.
        """
        steps, classifier = _split(fitted)
        weights, intercepts, link = _linear(classifier)
        count = weights.shape[1]
        names = _names(steps[0] if steps else classifier, count)
        scale, shift, largest = np.ones(count), np.zeros(count), np.full(count, np.nan)
        for step in steps:
            # x -> x scale + shift -> (x scale + shift) a + c
            a, c, reach = _affine(step, count)
            if step is steps[0]:
                largest = reach
            scale, shift = scale * a, shift * a + c
        largest = np.where(np.isnan(largest), DEFAULT_BOUND, largest)
        return cls(
            weights=tuple(map(tuple, (weights * scale).tolist())),
            intercepts=tuple((intercepts + weights @ shift).tolist()),
            classes=tuple(_label(c) for c in classifier.classes_),
            features=names,
            bounds=bounds_of(bounds, names, largest),
            link=link,
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> "LogisticModel":
        """Read what `to_json` wrote.

        Raises:
            DecodeError: Not JSON, or not a model; it names what is missing or wrong.
        """
        try:
            return msgspec.json.decode(text, type=cls)
        except (msgspec.DecodeError, UnicodeError, RecursionError, ParameterError) as error:
            raise DecodeError(f"not a logistic model: {error}") from None

    @classmethod
    def read(cls, path: Path) -> "LogisticModel":
        """Read a file that has what `to_json` wrote.

        Raises:
            ParameterError: It cannot be read.
            DecodeError: Not a model; it names the file, and what is missing or wrong.
        """
        try:
            return cls.from_json(read_text(path))
        except DecodeError as error:
            raise DecodeError(f"{path}: {error}") from None

    def to_json(self) -> str:
        """Return the model as JSON."""
        return msgspec.json.format(msgspec.json.encode(self)).decode()

    def logits(self, rows: Floats) -> Floats:
        """Return the logits in plaintext, shape (n, K)."""
        logits: Floats = rows @ np.array(self.weights).T + np.array(self.intercepts)
        return logits

    def __repr__(self) -> str:
        return f"LogisticModel({len(self.features)} features, {len(self.classes)} classes)"


def check_classes(classes: tuple[Label, ...]) -> None:
    """Refuse labels that are equal, as 1 and True are.

    Raises:
        ParameterError: Two are.
    """
    if len({(type(c) is str, c) for c in classes}) != len(classes):
        raise ParameterError("a class is named twice")


def labels(classes: tuple[Label, ...]) -> npt.NDArray[Any]:
    """Return labels as an array; text and numbers together stay what they are."""
    texts = {type(c) is str for c in classes}
    return np.array(classes, object if len(texts) > 1 else None)


def probabilities(logits: Floats, link: Link) -> Floats:
    """Return probabilities, shape (n, classes), of logits, shape (n, K)."""
    if link == "softmax":
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        softmax: Floats = powers / powers.sum(axis=1, keepdims=True)
        return softmax
    if link == "sigmoid":  # 1 - p has no digits where p is nearly 1
        return np.hstack([sigmoid(-logits), sigmoid(logits)])
    return link_probabilities(sigmoid(logits), link)


def link_probabilities(ones: Floats, link: Link) -> Floats:
    """Return probabilities, shape (n, classes), of each logit's sigmoid, shape (n, K)."""
    if link == "sigmoid":
        return np.hstack([1 - ones, ones])
    total = ones.sum(axis=1, keepdims=True)
    # scikit-learn: where all sigmoids are 0, all classes are equally likely
    return np.where(total > 0, ones / np.where(total > 0, total, 1), 1 / ones.shape[1])


def sigmoid(logits: Floats) -> Floats:
    """Return 1 / (1 + exp(-x)), without overflow."""
    small = np.exp(-np.abs(logits))
    result: Floats = np.where(logits >= 0, 1, small) / (1 + small)
    return result


def winners(logits: Floats, link: Link, middle: float = 0.0) -> npt.NDArray[np.intp]:
    """Return the index of each row's class, of two classes the second above `middle`."""
    if link == "sigmoid":
        return (logits[:, 0] > middle).astype(np.intp)
    winner: npt.NDArray[np.intp] = np.argmax(logits, axis=1)
    return winner


def _split(fitted: Any) -> tuple[list[Any], Any]:
    """Return the scalers and the classifier."""
    search = hasattr(fitted, "refit") and hasattr(fitted, "estimator")
    if search and not hasattr(fitted, "best_estimator_"):
        raise ParameterError(
            f"this {type(fitted).__name__} is not fitted, or without refit; call fit first"
        )
    fitted = getattr(fitted, "best_estimator_", fitted)
    if not hasattr(fitted, "named_steps"):  # a classifier may have steps of another kind
        return [], fitted
    *scalers, last = [step for _, step in fitted.steps]
    if last is None or last == "passthrough":
        raise ParameterError("the pipeline has no classifier at its end")
    inner, classifier = _split(last)
    return [*chain.from_iterable(map(_scalers, scalers)), *inner], classifier


def _scalers(step: Any) -> list[Any]:
    """Return the scalers of a step that may be a pipeline itself."""
    if step is None or step == "passthrough":
        return []
    if not hasattr(step, "steps"):
        return [step]
    return [*chain.from_iterable(_scalers(inner) for _, inner in step.steps)]


def _linear(classifier: Any) -> tuple[Floats, Floats, Link]:
    name = type(classifier).__name__
    if name == "OneVsRestClassifier":
        if not hasattr(classifier, "estimators_"):
            raise ParameterError("this OneVsRestClassifier is not fitted; call fit first")
        if getattr(classifier, "multilabel_", False):
            raise ParameterError("a multi-label model has no single class a row; split it")
        parts = [_linear(estimator) for estimator in classifier.estimators_]
        weights = np.vstack([p[0] for p in parts])
        intercepts = np.concatenate([p[1] for p in parts])
        return weights, intercepts, "sigmoid" if len(parts) == 1 else "ovr"
    logistic = name in ("LogisticRegression", "LogisticRegressionCV", "DPLogisticRegression") or (
        name == "SGDClassifier" and classifier.loss == "log_loss"
    )
    if not logistic:
        loss = f" with loss {classifier.loss!r}" if hasattr(classifier, "loss") else ""
        raise ParameterError(
            f"{name}{loss} is not a logistic regression; use LogisticRegression, "
            'LogisticRegressionCV or SGDClassifier(loss="log_loss")'
        )
    if not hasattr(classifier, "coef_"):
        raise ParameterError(f"this {name} is not fitted; call fit first")
    weights = classifier.coef_
    weights = np.asarray(weights.toarray() if hasattr(weights, "toarray") else weights, float)
    intercepts = np.broadcast_to(np.asarray(classifier.intercept_, float), weights.shape[:1])
    multi_class = getattr(classifier, "multi_class", "")
    if len(classifier.classes_) == 2:
        if multi_class == "multinomial":
            raise ParameterError(
                'multi_class="multinomial" with two classes has probabilities of twice its '
                "decisions; fit without it"
            )
        return weights, intercepts, "sigmoid"
    ovr = (
        name == "SGDClassifier"
        or multi_class == "ovr"
        # before scikit-learn 1.8 this solver knew nothing else
        or getattr(classifier, "solver", "") == "liblinear"
    )
    return weights, intercepts, "ovr" if ovr else "softmax"


def _affine(step: Any, count: int) -> tuple[Floats, Floats, Floats]:
    """Return a scaler's factor and shift, and how far its training data suggest values reach."""
    name = type(step).__name__
    unknown = np.full(count, np.nan)
    ones, zeros = np.ones(count), np.zeros(count)
    if name not in ("StandardScaler", "RobustScaler", "MinMaxScaler", "MaxAbsScaler"):
        raise ParameterError(
            f"the pipeline's step {name} is no scaler that folds into weights; apply it before, "
            "and give the model that follows it"
        )
    if not hasattr(step, "n_features_in_"):
        raise ParameterError(f"the pipeline's {name} is not fitted; call fit first")
    if getattr(step, "clip", False):
        raise ParameterError(f"{name}(clip=True) is not linear; use clip=False")
    if name == "MinMaxScaler":
        reach = 2 * np.maximum(np.abs(step.data_min_), np.abs(step.data_max_))
        return step.scale_, step.min_, np.where(reach > 0, reach, np.nan)
    if name == "MaxAbsScaler":
        return 1 / step.scale_, zeros, 2 * step.scale_
    if name == "RobustScaler":
        factor = 1 / step.scale_ if step.with_scaling else ones
        centre = step.center_ if step.with_centering else zeros
        return factor, -centre * factor, unknown
    factor = 1 / step.scale_ if step.with_std else ones
    centre = step.mean_ if step.with_mean else zeros
    if not (step.with_mean or step.with_std):
        return factor, zeros, unknown
    deviation = np.sqrt(step.var_) if step.var_ is not None else np.nan
    reach = np.abs(step.mean_) + _SPREAD * deviation
    return factor, -centre * factor, np.where(reach == 0, 1.0, reach)


def _names(first: Any, count: int) -> tuple[str, ...]:
    names = getattr(first, "feature_names_in_", None)
    if names is None:
        return tuple(f"x{i}" for i in range(count))
    return tuple(map(str, names))


def _label(label: Any) -> Label:
    plain = label.item() if isinstance(label, np.generic) else label
    if not isinstance(plain, bool | int | float | str):
        raise ParameterError(f"a class is a number or text, not {plain!r}")
    return plain


def bounds_of(given: Bounds, names: tuple[str, ...], default: Floats) -> tuple[float, ...]:
    """Return each feature's bound: as given, for all, one each or by name, else the default.

    Raises:
        ParameterError: There is no such feature.
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
