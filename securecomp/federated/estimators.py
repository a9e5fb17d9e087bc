"""Classifiers and regressors that are trained over sites, in scikit-learn's manners."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from securecomp.federated.base import (
    ClassifierMixin,
    Federated,
    RegressorMixin,
    check_is_fitted,
)
from securecomp.federated.losses import Floats, Loss
from securecomp.federated.scaling import Scaling
from securecomp.federated.trainer import Trainer
from securecomp.federated.training_data import TrainingData
from securecomp.models import LogisticModel, labels, probabilities, winners

_LEAST_BOUND, _MOST_BOUND = 2.0**-100, 2.0**100


class FederatedLogisticRegression(ClassifierMixin, Federated):  # type: ignore[misc]
    """Logistic regression over sites, of two classes or more, without pooling a row.

    Federated averaging or federated SGD over any sum protocol. Each site's change of the weights is
    multiplied by its number of rows and rounded to a public grid; one exact secure sum a round adds
    these, and the numbers of rows. So the model is bit for bit what the same rounds give in the
    clear, and nobody sees a site's change, nor, where all rounds are over all sites, how many rows
    it has (else give `examples`).

    With privacy every round's sum has noise of all sites' parts, planned for all rounds together
    and paid for before the first. What is protected: a "record" or a "patient" (federated SGD on
    all rows: each one's gradient is clipped at its site) or a "site" (its change is clipped). A few
    thousand records over 50 rounds leave little of a model at epsilon below 1: look at the
    guarantee's scale before you spend.

    What parties learn: the model after every round, so the totals in `run_.opened`, and no more;
    `learned_` says it by role. Without privacy, what is seen in many rounds says something of
    a site that is one of few. That a site takes part is no secret.

    Sources: McMahan et al., AISTATS 2017; Bonawitz et al., CCS 2017; Kairouz, Liu, Steinke, ICML
    2021; McMahan et al., ICLR 2018.

    Args:
        protocol: Who adds, and how; by default the study's, else sharing. "clear" protects nothing
            and is for comparison.
        privacy: What noise promises. Its `dropouts` and `colluding` hold.
        strategy: "averaging" or "sgd".
        rounds: How many.
        fraction: Of the sites that are asked in a round, at least the protocol's fewest.
        local_epochs: Of averaging: passes over a site's rows in a round.
        batch_size: Rows of a batch; None for all.
        learning_rate: Of the sites' steps, in scaled columns.
        server_rate: What the averaged change is multiplied by.
        l2: Penalty on squared weights (in scaled columns), times a half.
        clip: With privacy: largest norm of what one unit adds.
        examples: A public number of all sites' rows, or units with privacy, that rounds divide by
            instead of summing their own; None to sum it (with privacy once, with noise).
        dropouts: How many sites of a round may be missing; no sum over fewer is opened. Masking
            goes on when they vanish in the middle; with the others the round begins again.
        track_loss: Whether each round's mean loss is opened too: one more total a round.
        fit_intercept: Of matrices; a formula says it itself.
        scaling: "moments" (by default: means and variances are opened), "bounds" (by default with
            privacy: nothing is), or "none".
        classes: The labels in order, of matrices; needed with privacy.
        bounds: Of matrices' columns the largest absolute values, or pairs of lowest and highest
            (one for all, one each, or by name); of a formula's factors the largest (by name).
        bound: No round changes a scaled weight by more; a change that would is refused.
        bits: Changes are rounded to multiples of 2^-bits.
        max_rows: No site has more rows; public.
        checkpoint: A file to go on from, and to write after each round. A training that is
            finished there is not run again.
        progress: Is told the rounds that are done, and how many there will be.
        absent: For simulations: takes round and sites, and returns who does not answer, by step:
            {"start": late ones, "mask": those that vanish when they should send, ...}.
        entropy: Source of all randomness.

    Attributes:
        classes_: The labels, in order.
        coef_: Weights in the columns' own units, shape (1, d) or (K, d).
        intercept_: Shape (1,) or (K,).
        history_: The rounds: who was in the sum, how many rows, the mean loss before it (if it was
            opened), the size of the step.
        guarantee_: What noise promises; None without.
        learned_: What each kind of party learned.
        run_: Messages, bytes, rounds, and the names of all totals that were opened.
        model_: The model as a `LogisticModel`, which encrypted inference and audits take.
    """

    _classify = True

    def _loss(self, outputs: int) -> Loss:
        return Loss("sigmoid" if outputs == 1 else "softmax")

    def _take(self, read: TrainingData, scale: Scaling, trainer: Trainer) -> None:
        super()._take(read, scale, trainer)
        self._classes = read.classes or ()
        self.classes_ = labels(self._classes)

    def decision_function(self, rows: Any) -> Floats:
        """Return the logits, shape (n,) for two classes, else (n, K)."""
        found = self._scores(rows)
        return found[:, 0] if found.shape[1] == 1 else found

    def predict_proba(self, rows: Any) -> Floats:
        """Return probabilities, shape (n, classes), in the order of `classes_`."""
        return probabilities(self._scores(rows), self._link)

    def predict(self, rows: Any) -> npt.NDArray[Any]:
        """Return labels, shape (n,)."""
        scores = self._scores(rows)
        return np.asarray(self.classes_[winners(scores, self._link)])

    @property
    def _link(self) -> Literal["sigmoid", "softmax"]:
        return "sigmoid" if len(self._classes) == 2 else "softmax"

    @property
    def model_(self) -> LogisticModel:
        """The model as numbers; `to_json` writes it for encrypted inference and audits."""
        check_is_fitted(self, "coef_")
        names, reach = self._gathered[:2]
        bounds = np.clip(reach, _LEAST_BOUND, _MOST_BOUND)
        return LogisticModel(
            weights=tuple(map(tuple, self.coef_.tolist())),
            intercepts=tuple(self.intercept_.tolist()),
            classes=self._classes,
            features=names,
            bounds=tuple(bounds.tolist()),
            link=self._link,
        )


class FederatedLinearRegression(RegressorMixin, Federated):  # type: ignore[misc]
    """Least squares over sites, by the same rounds as `FederatedLogisticRegression`.

    Without noise `Study.glm` with family "linear" is exact, and needs no rounds; this is for
    penalties, for sites that come and go, and for noise. A gradient grows with the response: bring
    it to about -1..1, or lower the learning rate.

    Attributes:
        coef_: Weights in the columns' own units, shape (d,).
        intercept_: A number.
    """

    def _loss(self, outputs: int) -> Loss:  # noqa: ARG002 - there is one
        return Loss("squared")

    def _take(self, read: TrainingData, scale: Scaling, trainer: Trainer) -> None:
        super()._take(read, scale, trainer)
        self.coef_ = self.coef_[0]
        self.intercept_ = self.intercept_[0]

    def predict(self, rows: Any) -> Floats:
        """Return means of the response, shape (n,)."""
        return self._scores(rows)[:, 0]
