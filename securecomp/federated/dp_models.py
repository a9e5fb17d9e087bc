"""scikit-learn's estimators with a promise: logistic and linear regression, trained by DP-SGD.

Epsilon and delta cover the fitted weights, and those of all steps. They do not cover what is told
beside: the number of units, unless `units` declares one; the classes, unless `fit` is told them;
how many features there are; that data were refused; and whatever was computed from the rows before,
such as a StandardScaler's means: scale by public numbers. Each fit is a new answer: a grid search
or a cross-validation pays for each of its fits, and scores on these rows are not noised at all.
"""

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.errors import BackendUnavailableError, ParameterError, RangeError
from securecomp.federated.clipping import Places, UnitRows, check_finite
from securecomp.federated.dp_config import DPTerms, agreed
from securecomp.federated.dpsgd import Schedule, train
from securecomp.federated.losses import Floats, Loss, one_hot
from securecomp.federated.poisson import check_rate
from securecomp.privacy.policy import Budget

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise BackendUnavailableError(
        "estimators need scikit-learn 1.6 or newer; pip install 'securecomp[federated]'"
    ) from error


_READING: dict[str, Any] = {"dtype": np.float64, "ensure_all_finite": False}
"""How scikit-learn reads a table; NaN and infinity are ours to name."""


@dataclass(eq=False, repr=False)
class _PrivateLinear(BaseEstimator, DPTerms):  # type: ignore[misc]
    """Common part of both models; see `DPLogisticRegression` for the arguments."""

    clip: float = 1.0
    _: KW_ONLY
    learning_rate: float = 1.0
    fit_intercept: bool = True
    units: int | None = None
    ledger: Budget | None = None
    entropy: Entropy = entropy_.system

    def _train(self, table: Floats, targets: Floats, loss: Loss, groups: Any) -> None:
        """Check, pay, train, and set what is fitted."""
        rows = UnitRows(self._augmented(table), self._owners(groups, len(table)))
        units = rows.units if self.units is None else self.units
        plan = agreed(self, units, targets.shape[1] * rows.features)
        schedule = Schedule(
            plan.rate, plan.steps, self.clip, plan.noise, self.learning_rate, plan.rate * units
        )
        check_rate(plan.rate, rows.units)
        with plan.paying(type(self).__name__, self.ledger):
            model = train(rows, targets, loss, schedule, self.entropy)
        weights, constant = model, np.zeros(len(model))
        if self.fit_intercept:
            weights, constant = model[:, :-1], model[:, -1]
        self.coef_: Floats = weights.copy()
        self.intercept_: Floats = constant.copy()
        self.rate_, self.steps_, self.noise_multiplier_ = plan.rate, plan.steps, plan.noise
        self.epsilon_ = math.inf if plan.cost is None else plan.cost.epsilon
        self.accountant_ = "none" if plan.cost is None else plan.cost.accountant
        self.guarantee_ = plan.guarantee(self.clip, units, self.ledger is not None)

    def _read(self, X: Any, y: Any) -> tuple[Floats, npt.NDArray[Any]]:  # noqa: N803
        """Return rows and targets, as scikit-learn reads them."""
        values = np.asarray(y)
        row = _first_missing(values) if values.ndim == 1 else None
        if row is not None:
            raise RangeError(
                f"y: row {row} (counted from 0) is NaN or missing; fill it in or leave the row "
                "out; nothing was trained or spent"
            )
        table, values = validate_data(self, X, y, **_READING)
        return table, values

    def _augmented(self, table: Floats) -> Floats:
        return np.hstack([table, np.ones((len(table), 1))]) if self.fit_intercept else table

    def _owners(self, groups: Any, count: int) -> Places | None:
        if self.unit == "record":
            if groups is not None:
                raise ParameterError(
                    'groups say whose record a row is; that is for unit="patient", not "record"'
                )
            return None
        if groups is None:
            raise ParameterError(
                f"unit={self.unit!r} needs to know whose record a row is: fit(X, y, groups=...)"
            )
        # As objects, so that a list's 1 and "1", or large numbers, do not become one patient.
        owners = np.asarray(groups if hasattr(groups, "dtype") else np.array(groups, object))
        if owners.shape != (count,):
            raise ParameterError(f"groups have one entry a row, shape ({count},): {owners.shape}")
        row = _first_missing(owners)
        if row is not None:
            raise ParameterError(f"groups: row {row} (counted from 0) says no patient")
        if owners.dtype.kind == "f" and (np.abs(owners) >= 2 / np.finfo(owners.dtype).eps).any():
            raise ParameterError(
                f"groups: numbers this large are rounded as {owners.dtype}, and two patients may "
                "have become one; give them as integers or text"
            )
        try:
            return np.asarray(np.unique(owners, return_inverse=True)[1], np.intp)
        except TypeError:
            raise ParameterError("groups are of several types; give all as text") from None

    def _scores(self, X: Any) -> Floats:  # noqa: N803
        check_is_fitted(self)
        table = validate_data(self, X, reset=False, **_READING)
        check_finite("X", table)
        return np.asarray(table @ self.coef_.reshape(-1, table.shape[1]).T + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        return tags


def _first_missing(values: npt.NDArray[Any]) -> int | None:
    """Return the first row that is NaN, None, NaT or NA, if there is any."""
    if values.dtype != object:
        rows = np.flatnonzero(values != values)
        return int(rows[0]) if len(rows) else None
    kinds = ("NoneType", "NaTType", "NAType")  # pandas' own are no objects of ours
    missing = (type(value).__name__ in kinds or value != value for value in values)
    return next((row for row, found in enumerate(missing) if found), None)


def _declared(classes: Any) -> npt.NDArray[Any]:
    """Return labels that are given as an argument."""
    labels = np.asarray(classes)
    if labels.ndim != 1 or _first_missing(labels) is not None:
        raise ParameterError(f"classes are a list of labels, none of them missing: {classes!r}")
    return labels


def _loss(classes: int) -> Loss:
    return Loss("sigmoid" if classes == 2 else "softmax")


class DPLogisticRegression(ClassifierMixin, _PrivateLinear):  # type: ignore[misc]
    """Logistic regression, of two or more classes, that promises (epsilon, delta).

    Args:
        epsilon: The promise; None with a `noise_multiplier`, which says what it comes to.
        delta: The promise; well below one over the number of units.
        clip: The largest norm of a unit's gradient, intercept included. Public: not from the data.
        rate: The probability with which a unit is in a step's batch.
        batch: Instead of `rate`: the expected size of a batch.
        steps: How many.
        epochs: Instead of `steps`: how often each unit is drawn on average.
        learning_rate: What the noised mean gradient is multiplied by.
        fit_intercept: Whether rows get a constant feature of 1.
        noise_multiplier: Instead of `epsilon`: the noise's standard deviation over `clip`. 0
            trains without noise, and promises nothing.
        units: How many units there are, a public number, which need not be exact; by default the
            exact one, which so becomes public.
        sampling: "poisson", which is what is accounted.
        unit: "record", or "patient" with all records; `fit` gets `groups` then, and the norms of
            a patient's rows' gradients add up to at most `clip`.
        records: The most records of a patient that the promise is stated for. It holds for more.
        relation: "add/remove".
        ledger: What fits are paid from: reserved before the first step, settled after the last.
        entropy: Source of batches and noise; for replays only.

    Attributes:
        coef_: Weights, shape (1, d) of two classes, else (classes, d).
        intercept_: Constants, shape (1,) or (classes,).
        classes_: The labels, in ascending order.
        guarantee_: What is promised, to whom (`securecomp.privacy.guarantee.Guarantee`); None
            without noise.
        epsilon_: What the accountant says: at most `epsilon`; infinity without noise.
        accountant_: Which accountant says so; "none" without noise.
        noise_multiplier_: The noise's standard deviation over `clip`.
        rate_: The sampling rate.
        steps_: How many.
        n_features_in_: How many features.
        feature_names_in_: Their names, if `X` had any.
    """

    def fit(
        self,
        X: Any,  # noqa: N803
        y: Any,
        groups: Any = None,
        classes: Any = None,
    ) -> "DPLogisticRegression":
        """Train.

        Args:
            X: Rows, shape (n, d).
            y: Labels, shape (n,).
            groups: With `unit="patient"`: whose record each row is, shape (n,).
            classes: The labels, public; by default those in `y`, which so become public.

        Raises:
            ParameterError: Terms that promise nothing or contradict each other, one class alone.
            RangeError: A value is NaN, infinite or beyond 1e60; the row is named.
            BudgetError: The ledger does not have what it costs.
            BackendUnavailableError: dp-accounting is not installed.
        """
        X, y = self._read(X, y)  # noqa: N806
        check_classification_targets(y)
        known = np.unique(y if classes is None else _declared(classes))
        if len(known) < 2:
            raise ParameterError(
                "there is one class only, and nothing to tell apart; if the other one may be "
                "missing in y, say fit(X, y, classes=[...])"
            )
        strange = ~np.isin(y, known)
        if strange.any():
            row = int(np.flatnonzero(strange)[0])
            raise ParameterError(f"y: row {row} (counted from 0) is none of the given classes")
        targets = one_hot(np.searchsorted(known, y), len(known))
        self._train(X, targets, _loss(len(known)), groups)
        self.classes_ = known
        return self

    def decision_function(self, X: Any) -> Floats:  # noqa: N803
        """Return scores, shape (n,) of two classes, else (n, classes)."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """Return probabilities, shape (n, classes)."""
        scores = self._scores(X)
        found = _loss(len(self.classes_)).means(scores)
        return np.hstack([1 - found, found]) if found.shape[1] == 1 else found

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: N803
        """Return labels, shape (n,)."""
        scores = self.decision_function(X)
        places = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[places])


class DPLinearRegression(RegressorMixin, _PrivateLinear):  # type: ignore[misc]
    """Least squares that promises (epsilon, delta).

    Arguments as of `DPLogisticRegression`.

    Attributes:
        coef_: Weights, shape (d,).
        intercept_: The constant.
        guarantee_: As there, and so are all others.
    """

    def fit(self, X: Any, y: Any, groups: Any = None) -> "DPLinearRegression":  # noqa: N803
        """Train; arguments and errors as of `DPLogisticRegression.fit`, `y` being numbers."""
        X, y = self._read(X, y)  # noqa: N806
        try:
            targets = np.asarray(y, np.float64)[:, None]
        except (TypeError, ValueError):
            raise ParameterError("y is numbers, one a row") from None
        check_finite("y", targets)
        self._train(X, targets, Loss("squared"), groups)
        self.coef_, self.intercept_ = self.coef_[0], self.intercept_[0]
        return self

    def predict(self, X: Any) -> Floats:  # noqa: N803
        """Return expected values, shape (n,)."""
        return self._scores(X)[:, 0]
