"""The numbers of a fitted scikit-learn estimator, without importing scikit-learn."""

from itertools import chain
from typing import Any

import numpy as np

from securecomp.errors import ParameterError
from securecomp.models import pipeline_steps, statsmodels_results
from securecomp.models.fitted_numbers import FittedNumbers
from securecomp.models.links import REGRESSIONS, Floats, Label, Link
from securecomp.models.pipeline_steps import UnfittedError

_MARGINS = (
    "LinearSVC",
    "PassiveAggressiveClassifier",
    "Perceptron",
    "RidgeClassifier",
    "RidgeClassifierCV",
)
_IDENTITY = (
    "ARDRegression",
    "BayesianRidge",
    "ElasticNet",
    "ElasticNetCV",
    "HuberRegressor",
    "Lasso",
    "LassoCV",
    "LassoLars",
    "LinearRegression",
    "LinearSVR",
    "QuantileRegressor",
    "Ridge",
    "RidgeCV",
    "SGDRegressor",
    "TheilSenRegressor",
)


def read(fitted: Any) -> FittedNumbers:
    """Read a fitted estimator, as `LogisticModel.from_sklearn` takes it.

    Raises:
        ParameterError: Not fitted, not a logistic model, or a step that neither folds nor is for
            the client.
    """
    if statsmodels_results.recognised(fitted):
        return statsmodels_results.read(fitted)
    steps, classifier = _split(fitted)
    for step in steps:
        pipeline_steps.check(step)
    weights, intercepts, link = _linear(classifier)
    before, after = _halves(steps)
    for step in reversed(after):
        weights, intercepts = pipeline_steps.fold(step, weights, intercepts)
    count = weights.shape[1]
    largest = pipeline_steps.reach(after[0]) if after else np.full(count, np.nan)
    names = _names(after[0] if after else classifier, count)
    if before:
        names = _names_after(before)
        if len(names) != count:
            raise ParameterError(
                f"the client's steps give {len(names)} features and the model takes {count}; fit "
                "the pipeline as a whole"
            )
        known = pipeline_steps.reach_after(before[-1])
        largest = np.where(np.isnan(known), largest, known)
    return FittedNumbers(
        weights=weights,
        intercepts=intercepts,
        classes=() if link in REGRESSIONS else tuple(_label(c) for c in classifier.classes_),
        features=names,
        reach=largest,
        link=link,
    )


def client_steps(fitted: Any) -> list[Any]:
    """Return the steps that the client applies to its rows, in order, before it encrypts.

    These are all steps up to the last one that is not affine.
    """
    return _halves(_split(fitted)[0])[0]


def _halves(steps: list[Any]) -> tuple[list[Any], list[Any]]:
    last = max((i for i, step in enumerate(steps) if pipeline_steps.for_client(step)), default=-1)
    return steps[: last + 1], steps[last + 1 :]


def _names_after(steps: list[Any]) -> tuple[str, ...]:
    names = None
    for step in steps:
        names = step.get_feature_names_out(names)
    return tuple(map(str, names if names is not None else ()))


def _split(fitted: Any) -> tuple[list[Any], Any]:
    """Return the steps and the classifier."""
    search = hasattr(fitted, "refit") and hasattr(fitted, "estimator")
    if search and not hasattr(fitted, "best_estimator_"):
        raise UnfittedError(
            f"this {type(fitted).__name__} is not fitted, or has refit=False; refit it and call fit"
        )
    fitted = getattr(fitted, "best_estimator_", fitted)
    if not hasattr(fitted, "named_steps"):  # a classifier may have steps of another kind
        return [], fitted
    *first, last = [step for _, step in fitted.steps]
    if last is None or last == "passthrough":
        raise ParameterError("the pipeline has no classifier at its end")
    inner, classifier = _split(last)
    return [*chain.from_iterable(map(pipeline_steps.flat, first)), *inner], classifier


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
    link = _kind(classifier, name)
    if not hasattr(classifier, "coef_"):
        raise UnfittedError(f"this {name} is not fitted; call fit first")
    weights = classifier.coef_
    weights = np.asarray(weights.toarray() if hasattr(weights, "toarray") else weights, float)
    if link in REGRESSIONS and weights.ndim > 1 and len(weights) > 1:
        raise ParameterError(f"this {name} has several targets; give one model for each")
    weights = np.atleast_2d(weights)
    intercepts = np.broadcast_to(np.asarray(classifier.intercept_, float), weights.shape[:1])
    if link is not None:
        return weights, intercepts, link
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


def _kind(classifier: Any, name: str) -> Link | None:
    """Return a model's link; None for a logistic regression, whose link needs more.

    Raises:
        ParameterError: Not a linear model.
    """
    if name in ("LogisticRegression", "LogisticRegressionCV", "DPLogisticRegression"):
        return None
    if name == "SGDClassifier":
        return None if classifier.loss == "log_loss" else "margin"
    if name in _MARGINS:
        return "margin"
    if name in _IDENTITY:
        return "identity"
    if name in ("PoissonRegressor", "GammaRegressor"):
        return "log"
    if name == "TweedieRegressor":
        if classifier.link == "auto":
            return "log" if classifier.power > 0 else "identity"
        return "log" if classifier.link == "log" else "identity"
    raise ParameterError(
        f"{name} is not a logistic regression, and no linear model whose weights are known here"
    )


def name_of(fitted: Any) -> str:
    """Return the kind of a model, without the pipeline or search around it."""
    model = _split(fitted)[1]
    loss = f" with loss {model.loss!r}" if hasattr(model, "loss") else ""
    return f"{type(model).__name__}{loss}"


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
