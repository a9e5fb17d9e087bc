"""The numbers of a fitted scikit-learn estimator, without importing scikit-learn."""

from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from securecomp.errors import ParameterError
from securecomp.models.links import Floats, Label, Link

_SPREAD = 16  # fewest standard deviations around the mean, where a scaler knows both
_ROOM = 1 + 1e-9  # for the rounding of a mean and a variance


class UnfittedError(ParameterError):
    """An estimator that has no numbers yet."""


class FittedNumbers(NamedTuple):
    """A fitted estimator's numbers, with its scalers folded into the weights.

    Attributes:
        weights: Shape (K, d).
        intercepts: Shape (K,).
        classes: The labels, in the order of the probabilities.
        features: Names of the features.
        reach: Bound of each feature's values that the training data suggest; NaN if unknown.
        link: Link from logits to probabilities.
    """

    weights: Floats
    intercepts: Floats
    classes: tuple[Label, ...]
    features: tuple[str, ...]
    reach: Floats
    link: Link


def read(fitted: Any) -> FittedNumbers:
    """Read a fitted estimator, as `LogisticModel.from_sklearn` takes it.

    Raises:
        ParameterError: Not fitted, not a logistic model, or a step that is not such a scaler.
    """
    steps, classifier = _split(fitted)
    for step in steps:
        _check_scaler(step)
    weights, intercepts, link = _linear(classifier)
    count = weights.shape[1]
    for step in steps:
        # Steps may have been fitted apart, or changed since.
        if step.n_features_in_ != count:
            raise ParameterError(
                f"the pipeline's {type(step).__name__} takes {step.n_features_in_} features and "
                f"its classifier {count}; fit the pipeline as a whole"
            )
    names = _names(steps[0] if steps else classifier, count)
    scale, shift, largest = np.ones(count), np.zeros(count), np.full(count, np.nan)
    for step in steps:
        # x -> x scale + shift -> (x scale + shift) a + c
        a, c, reach = _affine(step, count)
        if step is steps[0]:
            largest = reach
        scale, shift = scale * a, shift * a + c
    return FittedNumbers(
        weights=weights * scale,
        intercepts=intercepts + weights @ shift,
        classes=tuple(_label(c) for c in classifier.classes_),
        features=names,
        reach=largest,
        link=link,
    )


def _split(fitted: Any) -> tuple[list[Any], Any]:
    """Return the scalers and the classifier."""
    search = hasattr(fitted, "refit") and hasattr(fitted, "estimator")
    if search and not hasattr(fitted, "best_estimator_"):
        raise UnfittedError(
            f"this {type(fitted).__name__} is not fitted, or has refit=False; refit it and call fit"
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
    """Return the scalers of a step, which may itself be a pipeline."""
    if step is None or step == "passthrough":
        return []
    if not hasattr(step, "steps"):
        return [step]
    return [*chain.from_iterable(_scalers(inner) for _, inner in step.steps)]


def _linear(classifier: Any) -> tuple[Floats, Floats, Link]:
    name = type(classifier).__name__
    if name == "OneVsRestClassifier":
        if not hasattr(classifier, "estimators_"):
            raise UnfittedError("this OneVsRestClassifier is not fitted; call fit first")
        if getattr(classifier, "multilabel_", False):
            raise ParameterError(
                "a multi-label model has several classes for a row; give one model for each label"
            )
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
        raise UnfittedError(f"this {name} is not fitted; call fit first")
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
        # Before scikit-learn 1.8 this solver knew nothing else.
        or getattr(classifier, "solver", "") == "liblinear"
    )
    return weights, intercepts, "ovr" if ovr else "softmax"


def _check_scaler(step: Any) -> None:
    """Refuse a step that does not fold into weights, before any number of it is used.

    Raises:
        ParameterError: Another kind of step, not fitted, or a scaler that clips.
    """
    name = type(step).__name__
    if name not in ("StandardScaler", "RobustScaler", "MinMaxScaler", "MaxAbsScaler"):
        raise ParameterError(
            f"the pipeline's step {name} is not a scaler that folds into weights (StandardScaler, "
            "MinMaxScaler, MaxAbsScaler, RobustScaler); apply it to the rows yourself, and give "
            "the model that follows it"
        )
    if not hasattr(step, "n_features_in_"):
        raise UnfittedError(f"the pipeline's {name} is not fitted; call fit first")
    if getattr(step, "clip", False):
        raise ParameterError(f"{name}(clip=True) is not linear; use clip=False")


def _affine(step: Any, count: int) -> tuple[Floats, Floats, Floats]:
    """Return a scaler's factor and shift, and the bounds that its training data suggest."""
    name = type(step).__name__
    unknown = np.full(count, np.nan)
    ones, zeros = np.ones(count), np.zeros(count)
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
    # No value of n is further from their mean than sd sqrt(n - 1) (Samuelson 1968).
    seen = np.asarray(getattr(step, "n_samples_seen_", 1), float)
    spread = np.maximum(_SPREAD, np.sqrt(np.maximum(seen - 1, 0)))
    reach = (np.abs(step.mean_) + spread * deviation) * _ROOM
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
