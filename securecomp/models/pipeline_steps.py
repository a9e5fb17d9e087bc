"""Steps of a fitted pipeline: folded into the weights, or applied by the client to its own rows.

An affine step x -> A x + c before logits W y + b gives the logits (W A) x + (W c + b). Scalers,
selections, projections and columns side by side are affine. A step that is not (categories,
products of features, missing values) works on one row alone, so whoever has the rows applies it.
"""

from typing import Any

import numpy as np

from securecomp.errors import ParameterError
from securecomp.models.links import Floats

SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")
SELECTORS = (
    "SelectKBest",
    "SelectPercentile",
    "SelectFpr",
    "SelectFdr",
    "SelectFwe",
    "GenericUnivariateSelect",
    "SelectFromModel",
    "SequentialFeatureSelector",
    "RFE",
    "RFECV",
    "VarianceThreshold",
)
PROJECTIONS = ("PCA", "IncrementalPCA", "TruncatedSVD")
AT_CLIENT = ("OneHotEncoder", "PolynomialFeatures", "SimpleImputer")
_SPREAD = 16  # fewest standard deviations around the mean, where a scaler knows both
_ROOM = 1 + 1e-9  # for the rounding of a mean and a variance


class UnfittedError(ParameterError):
    """An estimator that has no numbers yet."""


def flat(step: Any) -> list[Any]:
    """Return the steps of a step, which may itself be a pipeline."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return []
    if type(step).__name__ == "FunctionTransformer" and step.func is None:
        return []  # what a ColumnTransformer makes of "passthrough"
    if not hasattr(step, "steps"):
        return [step]
    return [part for _, inner in step.steps for part in flat(inner)]


def check(step: Any) -> None:
    """Refuse a step that neither folds nor is for the client, before any of its numbers is used.

    Raises:
        ParameterError: Another kind of step, or a scaler that clips.
        UnfittedError: Not fitted.
    """
    name = type(step).__name__
    if name == "ColumnTransformer":
        if not hasattr(step, "transformers_"):
            raise UnfittedError(f"the pipeline's {name} is not fitted; call fit first")
        for _, inner, _ in step.transformers_:
            for part in [] if _dropped(inner) else flat(inner):
                check(part)
        return
    if name not in (*SCALERS, *SELECTORS, *PROJECTIONS, *AT_CLIENT):
        raise ParameterError(
            f"the pipeline's step {name} does not fold into weights ({', '.join(SCALERS)}, "
            f"PCA, TruncatedSVD, selections, ColumnTransformer), and is not one for the client "
            f"({', '.join(AT_CLIENT)}); apply it to the rows yourself, and give the model that "
            "follows it"
        )
    if not hasattr(step, "n_features_in_"):
        raise UnfittedError(f"the pipeline's {name} is not fitted; call fit first")
    if name in SCALERS and getattr(step, "clip", False):
        raise ParameterError(f"{name}(clip=True) is not linear; use clip=False")


def for_client(step: Any) -> bool:
    """Return whether a step is for the client, since it is not affine."""
    if type(step).__name__ == "ColumnTransformer":
        return any(
            for_client(part)
            for _, inner, _ in step.transformers_
            if not _dropped(inner)
            for part in flat(inner)
        )
    return type(step).__name__ in AT_CLIENT


def _dropped(step: Any) -> bool:
    return isinstance(step, str) and step == "drop"


def fold(step: Any, weights: Floats, intercepts: Floats) -> tuple[Floats, Floats]:
    """Return weights, shape (K, d), and intercepts of the rows before an affine step.

    Raises:
        ParameterError: The step was fitted for another number of features.
    """
    name, count = type(step).__name__, weights.shape[1]
    if name == "ColumnTransformer":
        return _fold_columns(step, weights, intercepts)
    if name in SELECTORS:
        kept = np.flatnonzero(step.get_support())
        _same(name, len(kept), count)
        before = np.zeros((len(weights), step.n_features_in_))
        before[:, kept] = weights
        return before, intercepts
    if name in PROJECTIONS:
        matrix = step.components_
        _same(name, len(matrix), count)
        if getattr(step, "whiten", False):
            matrix = matrix / np.sqrt(step.explained_variance_)[:, None]
        before = weights @ matrix
        mean = getattr(step, "mean_", None)
        return before, intercepts if mean is None else intercepts - before @ mean
    _same(name, step.n_features_in_, count)
    factor, shift = _scaling(step, count)
    return weights * factor, intercepts + weights @ shift


def _same(name: str, takes: int, count: int) -> None:
    # Steps may have been fitted apart, or changed since.
    if takes != count:
        raise ParameterError(
            f"the pipeline's {name} takes {takes} features and its classifier {count}; fit the "
            "pipeline as a whole"
        )


def _fold_columns(step: Any, weights: Floats, intercepts: Floats) -> tuple[Floats, Floats]:
    _same("ColumnTransformer", len(step.get_feature_names_out()), weights.shape[1])
    before = np.zeros((len(weights), step.n_features_in_))
    for name, inner, columns in step.transformers_:
        if _dropped(inner):
            continue
        part = weights[:, step.output_indices_[name]]
        for affine in reversed(flat(inner)):
            part, intercepts = fold(affine, part, intercepts)
        before[:, _places(step, columns)] += part  # a column may go to several transformers
    return before, intercepts


def _places(step: Any, columns: Any) -> Any:
    """Return the indices of a transformer's columns."""
    if isinstance(columns, slice):
        return np.arange(step.n_features_in_)[columns]
    array = np.atleast_1d(np.asarray(columns))
    if array.dtype.kind in "OUT":
        names = list(step.feature_names_in_)
        return np.array([names.index(name) for name in array], np.intp)
    return np.flatnonzero(array) if array.dtype == bool else array.astype(np.intp)


def _scaling(step: Any, count: int) -> tuple[Floats, Floats]:
    """Return a scaler's factor and shift."""
    name = type(step).__name__
    ones, zeros = np.ones(count), np.zeros(count)
    if name == "MinMaxScaler":
        return step.scale_, step.min_
    if name == "MaxAbsScaler":
        return 1 / step.scale_, zeros
    if name == "RobustScaler":
        factor = 1 / step.scale_ if step.with_scaling else ones
        centre = step.center_ if step.with_centering else zeros
        return factor, -centre * factor
    factor = 1 / step.scale_ if step.with_std else ones
    centre = step.mean_ if step.with_mean else zeros
    return factor, -centre * factor


def reach(step: Any) -> Floats:
    """Return bounds of a step's inputs that its training data suggest; NaN where unknown."""
    name, unknown = type(step).__name__, np.full(step.n_features_in_, np.nan)
    if name == "ColumnTransformer":
        for _, inner, columns in step.transformers_:
            parts = [] if _dropped(inner) else flat(inner)
            if parts:
                unknown[_places(step, columns)] = reach(parts[0])
        return unknown
    if name == "MinMaxScaler":
        twice = 2 * np.maximum(np.abs(step.data_min_), np.abs(step.data_max_))
        return np.where(twice > 0, twice, np.nan)
    if name == "MaxAbsScaler":
        return np.asarray(2 * step.scale_, float)
    if name != "StandardScaler" or not (step.with_mean or step.with_std):
        return unknown
    deviation = np.sqrt(step.var_) if step.var_ is not None else np.nan
    found = (np.abs(step.mean_) + _spread(step) * deviation) * _ROOM
    return np.where(found == 0, 1.0, found)


def _spread(step: Any) -> Floats:
    """Return how many deviations from the mean a training value of a standard scaler can be."""
    # No value of n is further from their mean than sd sqrt(n - 1) (Samuelson 1968).
    seen = np.asarray(getattr(step, "n_samples_seen_", 1), float)
    spread: Floats = np.maximum(_SPREAD, np.sqrt(np.maximum(seen - 1, 0)))
    return spread


def reach_after(step: Any) -> Floats:
    """Return bounds of a client's step's outputs; NaN where unknown."""
    unknown = np.full(len(step.get_feature_names_out()), np.nan)
    name = type(step).__name__
    if name == "OneHotEncoder":
        return np.ones_like(unknown)
    if name == "StandardScaler" and step.with_mean and step.with_std:
        return np.broadcast_to(_spread(step) * _ROOM, unknown.shape).copy()
    if name == "ColumnTransformer":
        for block, inner, _ in step.transformers_:
            parts = [] if _dropped(inner) else flat(inner)
            if parts:
                unknown[step.output_indices_[block]] = reach_after(parts[-1])
    return unknown
