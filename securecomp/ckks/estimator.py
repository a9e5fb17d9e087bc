"""scikit-learn's models on encrypted rows, in scikit-learn's interface."""

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from securecomp.ckks.encrypted_model import EncryptedModel
from securecomp.models import LOGISTIC, REGRESSIONS, Link


class EncryptedClassifier(EncryptedModel):
    """A linear classifier that predicts on encrypted rows: one with margins, as `LinearSVC`."""

    _estimator_type = "classifier"
    links: ClassVar[tuple[Link, ...]] = (*LOGISTIC, "margin")
    use: ClassVar[str] = "a linear classifier"

    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:  # noqa: N803
        """Return logits, shape (n,) for two classes, else (n, classes).

        Raises:
            ParameterError, RangeError: Rows that the plan does not allow; nothing was encrypted.
            ParameterError: The server computes probabilities.
            BudgetError: More rows than the plan of a protected model answers.
        """
        logits = self._predict(X).logits
        return logits[:, 0] if self.plan_.outputs == 1 else logits

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: N803
        """Return the most likely class of each row, shape (n,)."""
        return self._predict(X).labels

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """Return the share of rows whose predicted class is the given one."""
        return float(np.average(self.predict(X) == np.asarray(y), weights=sample_weight))

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(sparse=True),
        )


class EncryptedLogisticRegression(EncryptedClassifier):
    """A logistic regression that predicts on encrypted rows."""

    links: ClassVar[tuple[Link, ...]] = LOGISTIC
    use: ClassVar[str] = "a logistic regression"

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:  # noqa: N803
        """Return probabilities, shape (n, classes)."""
        return self._predict(X).probabilities

    def predict_log_proba(self, X: Any) -> npt.NDArray[np.float64]:  # noqa: N803
        """Return the logarithms of the probabilities; that of 0 is minus infinity."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


class EncryptedRegressor(EncryptedModel):
    """A linear regression that predicts on encrypted rows, with an identity or a log link.

    The client takes the exponential of a log link itself.
    """

    _estimator_type = "regressor"
    links: ClassVar[tuple[Link, ...]] = REGRESSIONS
    use: ClassVar[str] = "a linear regression"

    def predict(self, X: Any) -> npt.NDArray[np.float64]:  # noqa: N803
        """Return the mean of each row, shape (n,). Raises the errors of `EncryptedClassifier`."""
        return self._predict(X).means

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """Return the share of the variance that the predictions explain, R^2."""
        truth = np.asarray(y, float)
        middle = np.average(truth, weights=sample_weight)
        left = np.average((truth - self.predict(X)) ** 2, weights=sample_weight)
        return float(1 - left / np.average((truth - middle) ** 2, weights=sample_weight))

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags

        return Tags(
            estimator_type="regressor",
            target_tags=TargetTags(required=True),
            regressor_tags=RegressorTags(),
            input_tags=InputTags(sparse=True),
        )
