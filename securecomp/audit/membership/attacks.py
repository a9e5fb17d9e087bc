"""Attacks on membership. Each gives every row a score, larger if it looks more like a member.

An attack sees the model's answers about rows with known labels. It never sees who is a member.

Sources: Yeom, Giacomelli, Fredrikson, Jha, Privacy Risk in Machine Learning, CSF 2018 (loss);
Shokri, Stronati, Song, Shmatikov, Membership Inference Attacks Against Machine Learning Models,
IEEE S&P 2017 (shadow models); Carlini, Chien, Nasr, Song, Terzis, Tramèr, Membership Inference
Attacks From First Principles, IEEE S&P 2022 (likelihood ratio).
"""

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from scipy import special

from securecomp.audit.bounds import Floats
from securecomp.audit.confidences import Confidences, Rows, answers, checked_rows, classes_of
from securecomp.audit.labelled_rows import joined, refuse_alike
from securecomp.audit.membership.shadows import (
    Inside,
    Progress,
    check_trainable,
    halves,
    sklearn_clone,
    trained,
)
from securecomp.audit.seeded_random import SeededRandom
from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.errors import ParameterError

_LEAST_VARIANCE = 1e-4
"""Least variance of a logit over shadow models: if they all agree, they are still not certain."""
_FEW = 20
"""Rows of a class for each shadow model that give the class an attack model of its own."""
_POOL = "are the same; a pool must have no attacked row: leave these out of it"


class Attack(Protocol):
    """An attack that gives rows scores."""

    @property
    def name(self) -> str:
        """Name of the attack, in a few words."""

    def scores(self, model: Any, rows: Rows) -> Floats:
        """Return a score for each row, shape (n,). Larger ones speak for membership."""


@dataclass(frozen=True, slots=True)
class LossThreshold:
    """Takes rows that the model predicts well for members: minus the loss (Yeom et al.)."""

    @property
    def name(self) -> str:
        """Name of the attack, in a few words."""
        return "loss threshold"

    def scores(self, model: Any, rows: Rows) -> Floats:
        """Return minus the cross-entropy of each row."""
        return -answers(model, rows, "the rows").losses


@dataclass(frozen=True, slots=True)
class ShadowModels:
    """Learns from shadow models how answers about members look (Shokri et al.).

    There is one logistic attack model for each class. Its features are the label's logit and its
    square, the answer's entropy, and whether the answer is right.

    Attributes:
        estimator: The estimator that trained the model. It is cloned.
        pool: Rows and labels like the model's; none is a member or in the holdout.
        shadows: Number of models to train, each on half of the pool.
        entropy: Source of the halves and seeds.
        progress: Called with the number of trained models, and of all.
    """

    estimator: Any
    pool: Rows
    shadows: int = 16
    entropy: Entropy = entropy_.system
    progress: Progress | None = None

    @property
    def name(self) -> str:
        """Name of the attack, in a few words."""
        return f"shadow models, {self.shadows}"

    def scores(self, model: Any, rows: Rows) -> Floats:
        """Return the log odds of membership of each row, by the attack models.

        Raises:
            ParameterError: The estimator cannot be trained on the pool, or the pool has an attacked
                row.
        """
        check_trainable(self.estimator, self.shadows)
        target, classes = answers(model, rows, "the rows"), classes_of(model)
        x, y = checked_rows(self.pool, "the pool")
        refuse_alike((x, y), rows, ("the pool", "the attacked rows"), _POOL)
        lots = SeededRandom.fresh("shadow models", self.entropy)
        inside = halves(self.shadows, len(y), lots)
        models = trained(self.estimator, x, y, inside, classes, lots, self.progress)
        said = [answers(shadow, (x, y), "the pool") for shadow in models]
        features = np.concatenate([_features(one) for one in said])
        truth = np.concatenate([one.truth for one in said])
        members = inside.reshape(-1)
        found = np.empty(len(target.truth))
        for label in range(len(classes)):
            wanted = target.truth == label
            if wanted.any():
                of = truth == label if (truth == label).sum() >= _FEW * self.shadows else truth >= 0
                attack = _attack_model().fit(features[of], members[of])
                found[wanted] = attack.decision_function(_features(target)[wanted])
        return found


def _attack_model() -> Any:
    sklearn_clone()  # or an error that says what to install
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def _features(said: Confidences) -> Floats:
    logits = said.logits
    spread = special.entr(said.probabilities).sum(axis=1)
    correct = said.probabilities.argmax(axis=1) == said.truth
    return np.column_stack([logits, logits**2, spread, correct])


@dataclass(frozen=True, slots=True)
class LikelihoodRatio:
    """Compares a row's logit with its logits under shadow models with and without the row (LiRA).

    Logits are taken to be normal. "online" trains shadow models on halves of the attacked rows
    themselves, and of the pool; half of the models have seen each row. "offline" trains them on
    halves of a pool alone, once for any rows, and asks how unusual the logit is without the row.

    Attributes:
        estimator: The estimator that trained the model. It is cloned.
        pool: Rows and labels like the model's; none is attacked. Needed offline.
        shadows: Number of models to train.
        mode: "online" or "offline".
        variance: "pooled" over all rows, or of "each" row, for which 64 shadow models are few.
        entropy: Source of the halves and seeds.
        progress: Called with the number of trained models, and of all.
    """

    estimator: Any
    pool: Rows | None = None
    shadows: int = 64
    mode: Literal["online", "offline"] = "online"
    variance: Literal["pooled", "each"] = "pooled"
    entropy: Entropy = entropy_.system
    progress: Progress | None = None

    @property
    def name(self) -> str:
        """Name of the attack, in a few words."""
        return f"likelihood ratio, {self.mode}, {self.shadows} shadow models"

    def scores(self, model: Any, rows: Rows) -> Floats:
        """Return each row's log likelihood ratio; offline, the log probability of a smaller logit.

        Raises:
            ParameterError: An invalid argument, a pool that is missing or has an attacked row, or
                rows on which the estimator cannot be trained.
        """
        self._check()
        target = answers(model, rows, "the rows")
        logits, inside = self._shadow_logits(model, rows)
        out_mean, out_variance = _moments(logits, ~inside, self.variance)
        if self.mode == "offline":
            below: Floats = special.log_ndtr((target.logits - out_mean) / np.sqrt(out_variance))
            return below
        in_mean, in_variance = _moments(logits, inside, self.variance)
        return _log_density(target.logits, in_mean, in_variance) - _log_density(
            target.logits, out_mean, out_variance
        )

    def _check(self) -> None:
        check_trainable(self.estimator, self.shadows)
        if self.mode not in ("online", "offline"):
            raise ParameterError(f'mode must be "online" or "offline", not {self.mode!r}')
        if self.variance not in ("pooled", "each"):
            raise ParameterError(f'variance must be "pooled" or "each", not {self.variance!r}')
        if self.mode == "offline" and self.pool is None:
            raise ParameterError(
                "offline shadow models are trained on a pool of rows that are not "
                "attacked; give one, "
                'or take mode="online"'
            )

    def _shadow_logits(self, model: Any, rows: Rows) -> tuple[Floats, Inside]:
        """Return each shadow model's logits of the attacked rows, and the rows that it learned."""
        classes, count = classes_of(model), len(rows[1])
        x, y = checked_rows(rows, "the rows")
        lots = SeededRandom.fresh("likelihood ratio", self.entropy)
        if self.pool is not None:
            more, labels = checked_rows(self.pool, "the pool")
            refuse_alike((more, labels), (x, y), ("the pool", "the attacked rows"), _POOL)
            x = more if self.mode == "offline" else joined(x, more)
            y = labels if self.mode == "offline" else np.concatenate([y, labels])
        learned = halves(self.shadows, len(y), lots)
        models = trained(self.estimator, x, y, learned, classes, lots, self.progress)
        logits = np.stack([answers(shadow, rows, "the rows").logits for shadow in models])
        if self.mode == "offline":
            return logits, np.zeros((self.shadows, count), bool)
        return logits, learned[:, :count]


def _moments(logits: Floats, which: Inside, variance: str) -> tuple[Floats, Floats]:
    """Return mean and variance of each row's logits over some shadow models."""
    mean = logits.mean(axis=0, where=which)
    each = logits.var(axis=0, where=which, ddof=1)
    spread = each if variance == "each" else np.full_like(each, each.mean())
    return mean, np.maximum(spread, _LEAST_VARIANCE)


def _log_density(x: Floats, mean: Floats, variance: Floats) -> Floats:
    density: Floats = -((x - mean) ** 2) / (2 * variance) - np.log(variance) / 2
    return density
