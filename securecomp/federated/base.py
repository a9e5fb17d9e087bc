"""Base of all models that are trained over sites: scikit-learn's interface, and `fit`.

`fit` takes a `Study` and a formula, or a mapping from site to (X, y): the sites' roles run in this
process, over the bytes that would cross a network. What is fitted predicts here, on rows that stay
here.
"""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, Literal

import numpy as np

from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.errors import BackendUnavailableError, ParameterError
from securecomp.federated import checkpoints, matrices, scaling, training_data
from securecomp.federated.checkpoints import CheckpointFile, Round
from securecomp.federated.config import TrainingArguments, TrainingTerms, digest
from securecomp.federated.losses import Floats, Loss
from securecomp.federated.matrices import Arrays, Ranges
from securecomp.federated.plaintext_sum import PlaintextSum
from securecomp.federated.round_sum import RoundSum
from securecomp.federated.scaling import Kind, Scaling
from securecomp.federated.trainer import Absent, Model, Progress, Trainer
from securecomp.federated.training_data import TrainingData
from securecomp.models import Label
from securecomp.privacy.guarantee import Guarantee
from securecomp.privacy.policy import Privacy
from securecomp.protocol import sum_protocols as sums
from securecomp.protocol.carrier import Carrier
from securecomp.protocol.local_carrier import LocalCarrier
from securecomp.sharing.additive_sum import Sharing
from securecomp.statistics.regression import designs
from securecomp.statistics.regression.designs import INTERCEPT
from securecomp.statistics.results import Run
from securecomp.statistics.study import Study

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils.validation import check_is_fitted
except ImportError:
    raise BackendUnavailableError(
        "training has scikit-learn's manners: pip install 'securecomp[federated]'"
    ) from None

__all__ = ["ClassifierMixin", "Federated", "RegressorMixin", "check_is_fitted"]

Protocol = sums.SumProtocol | Literal["sharing", "masking", "paillier", "clear"]
_PROMISED = (
    "unit", "identifier", "records", "sites", "relation", "noise", "colluding", "dropouts",
)  # fmt: skip
_TERMS = tuple(field.name for field in fields(TrainingArguments))


@dataclass(eq=False, repr=False)
class Federated(BaseEstimator, TrainingArguments):  # type: ignore[misc]  # scikit-learn is untyped
    """Common part of both models; see `FederatedLogisticRegression` for the arguments."""

    _classify = False

    protocol: Protocol | None = None
    privacy: Privacy | None = None
    _: KW_ONLY
    fit_intercept: bool = True
    scaling: Kind | None = None
    classes: Sequence[Label] | None = None
    bounds: Ranges = None
    checkpoint: str | os.PathLike[str] | None = None
    progress: Progress | None = None
    absent: Absent | None = None
    entropy: Entropy = entropy_.system

    def _loss(self, outputs: int) -> Loss:
        """Return what is trained, of a model with so many outputs."""
        raise NotImplementedError

    def fit(self, data: Study | Arrays, formula: str | None = None) -> "Federated":
        """Train over the sites.

        Args:
            data: A study, whose protocol, terms of privacy and declared columns hold unless others
                are given; or site name to (X, y), with patients as units (X, y, whose each row is).
            formula: Of a study: as `Study.glm` takes it. It says whether there is an intercept.

        Returns:
            This model, fitted.

        Raises:
            ParameterError: Terms, columns or labels that do not fit; it says which and where.
            RangeError: A value is missing or beyond its bound, or the training diverges.
            ThresholdError: Too few sites, or too few that stay; a checkpoint can be gone on from.
            BudgetError: The ledger does not cover the whole training; nothing was sent.
            DecodeError, KeyMismatchError: The checkpoint is damaged, or another training's.
        """
        clock = time.perf_counter()
        self._check()
        terms = TrainingTerms(**{name: getattr(self, name) for name in _TERMS})
        privacy, protocol = self._agreed(data)
        read = self._read(data, formula, privacy)
        for name, site in read.sites.items():
            terms.check_rows(name, len(site.features), noised=privacy is not None)
        terms.fewest(len(read.everybody), protocol.fewest)
        kind = self.scaling or ("moments" if privacy is None else "bounds")
        loss = self._loss(read.outputs)
        agreed = digest(terms, loss, _facts(read, kind, privacy, protocol))
        record = CheckpointFile(self.checkpoint, agreed)
        names = (*read.names, INTERCEPT) if read.intercept else read.names
        size, columns = len(names) * read.outputs, len(read.names)
        # Over a network the seed of orders and participants is what gives the sums their ids.
        apart = data.carrier if isinstance(data, Study) and data.apart else None
        if apart is not None:
            self._check_apart(privacy)
        carrier: Carrier = LocalCarrier(self.entropy) if apart is None else apart
        public = self.entropy if apart is None else apart.session_ids
        state, first = record.load(size, columns), None
        resumed = state is not None
        if state is None:
            state = checkpoints.begin(size, columns, public)
            if privacy is None:
                first = RoundSum(protocol, carrier, read.everybody, protocol.fewest, 0, {})
            state = scaling.agree(state, kind, read, first, terms.max_rows)
        scale = Scaling.of(state, read)
        trainer = Trainer(
            terms,
            Model(loss, names, read.outputs, read.intercept),
            scaling.scaled(read, scale),
            protocol,
            carrier,
            state,
            sites=read.everybody,
            resumed=resumed,
            privacy=privacy,
            record=record,
            absent=self.absent,
            progress=self.progress,
        )
        trainer.train()
        self._take(read, scale, trainer)
        self.learned_ = _learned(protocol, trainer)
        self.guarantee_: Guarantee | None = None
        if trainer.protection is not None:
            paid = trainer.state.reserved is not None
            self.guarantee_ = trainer.protection.guarantee(paid)
        self.run_ = Run(
            protocol.name,
            trainer.sites,
            getattr(protocol, "servers", 1),
            carrier.transcript,
            time.perf_counter() - clock,
            self.learned_,
            dict(read.from_data),
            trainer.opener.count + (first.count if first else 0),
            tuple(trainer.opener.opened),
        )
        return self

    def _check(self) -> None:
        """Refuse arguments of wrong types before anything is sent or paid."""
        for name in ("progress", "absent", "entropy"):
            given = getattr(self, name)
            if not callable(given) and (given is not None or name == "entropy"):
                raise ParameterError(f"{name} is a function, not {given!r}")
        if not isinstance(self.checkpoint, str | os.PathLike | None):
            raise ParameterError(f"checkpoint is a file's path, not {self.checkpoint!r}")
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise ParameterError(f"fit_intercept is True or False, not {self.fit_intercept!r}")

    def _check_apart(self, privacy: Privacy | None) -> None:
        """Refuse what would make a run over a network another one after a restart, or elsewhere."""
        if self.checkpoint is not None:
            raise ParameterError(
                "over a network a training goes on from the site's state; leave checkpoint out, "
                "and start the same program again"
            )
        if self.privacy is not None:
            raise ParameterError(
                "over a network the terms of privacy are the study file's, which all sites signed; "
                "write them there as [privacy], and leave them out of the model"
            )
        if privacy is not None and (privacy.dropouts or self.absent is not None):
            raise ParameterError(
                "training with noise over a network needs all sites to the end; set dropouts in "
                "[privacy] to 0, and leave absent out"
            )

    def _agreed(self, data: Study | Arrays) -> tuple[Privacy | None, sums.SumProtocol]:
        """Return terms of privacy and protocol: the model's own, or the study's."""
        privacy, protocol = self.privacy, self.protocol
        if privacy is not None and not isinstance(privacy, Privacy):
            raise ParameterError(f"privacy is a Privacy, not {privacy!r}")
        if isinstance(data, Study):
            if privacy is not None and data.privacy not in (None, privacy):
                raise ParameterError(
                    "the study has other terms of privacy than the model; give them once"
                )
            privacy = privacy or data.privacy
            protocol = protocol or data.protocol
        if protocol is None:
            return privacy, Sharing()
        if not isinstance(protocol, str):
            if not isinstance(protocol, sums.SumProtocol):
                raise ParameterError(f"protocol is a name or a SumProtocol, not {protocol!r}")
            return privacy, protocol
        return privacy, PlaintextSum() if protocol == "clear" else sums.protocol(protocol)

    def _read(
        self, data: Study | Arrays, formula: str | None, privacy: Privacy | None
    ) -> TrainingData:
        if isinstance(data, Study):
            if formula is None:
                raise ParameterError('a study needs a formula, such as "died ~ los + C(type)"')
            if self.classes is not None:
                raise ParameterError("classes of a study are its response's levels; declare them")
            if self.bounds is not None and not isinstance(self.bounds, Mapping):
                raise ParameterError("bounds of a study map factors of the formula to numbers")
            return training_data.of_study(
                data, formula, privacy, self.bounds, classify=self._classify
            )
        if formula is not None:
            raise ParameterError("a formula is for a Study; matrices have their columns")
        return matrices.of_arrays(
            data,
            privacy,
            self.bounds,
            self.classes,
            bool(self.fit_intercept),
            classify=self._classify,
        )

    def _take(self, read: TrainingData, scale: Scaling, trainer: Trainer) -> None:
        """Take what was trained, in the columns' own units."""
        self.coef_, self.intercept_ = scale.unscaled(trainer.weights, read.intercept)
        self.n_features_in_ = len(read.names)
        if read.named:
            self.feature_names_in_ = np.array(read.names, object)
        elif hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_
        self.history_: tuple[Round, ...] = trainer.state.rounds
        self.n_iter_ = len(self.history_)
        self._gathered = (read.names, scale.reach, read.formula, dict(read.levels))

    def _scores(self, rows: Any) -> Floats:
        """Return the linear predictors of new rows, shape (n, K)."""
        check_is_fitted(self, "coef_")
        names, _, formula, levels = self._gathered
        if formula is not None:
            design, read = designs.new_rows(rows, formula, levels)
            places = [i for i, name in enumerate(design.names) if name != INTERCEPT]
            features = design.matrix(read)[:, places]
        else:
            features = matrices.matrix(rows, "new rows")
            given = matrices.names_of(rows)
            if features.shape[1] != len(names):
                raise ParameterError(
                    f"new rows have {features.shape[1]} columns, and the model {len(names)}"
                )
            if hasattr(self, "feature_names_in_") and given not in (None, names):
                raise ParameterError("the columns of new rows are not named as those of training")
            if not np.isfinite(features).all():
                raise ParameterError("new rows have a number that is missing or infinite")
        found = features @ np.atleast_2d(self.coef_).T + self.intercept_
        return np.asarray(found, np.float64)


def _facts(
    read: TrainingData, kind: Kind, privacy: Privacy | None, protocol: sums.SumProtocol
) -> dict[str, Any]:
    """Return what a checkpoint is bound to, beside the terms."""
    promised = None
    if privacy is not None:
        promised = {name: getattr(privacy, name) for name in _PROMISED}
        promised["cost"] = str(privacy.cost)
        promised["bounds"] = {name: str(privacy.limits(name)) for name in privacy.bounds}
    return {
        "sites": list(read.everybody),
        "formula": read.formula,  # it names the response too
        "columns": list(read.names),
        "classes": [repr(label) for label in read.classes or ()],
        "intercept": read.intercept,
        "scaling": str(kind),
        "low": read.low.tobytes(),
        "high": read.high.tobytes(),
        "protocol": [
            protocol.name,
            str(getattr(protocol, "servers", "")),
            str(getattr(protocol, "security", "")),
        ],
        "privacy": promised,
    }


def _learned(protocol: sums.SumProtocol, trainer: Trainer) -> dict[str, str]:
    """Say what each kind of party learned."""
    found = dict(protocol.learned())
    if trainer.protection is None:
        what = "changes times rows" + ", and rows," * (trainer.terms.examples is None)
        what += " of all sites in it together"
        what += "; and of their losses" if trainer.terms.track_loss else ""
    else:
        unit = "changes" if trainer.protection.of_sites else "gradients"
        what = f"clipped {unit} of all sites in it together, with noise"
        what += "; and once of their units" * trainer.protection.counted
    everybody = f"the model after each round: the totals of {what}; who took part"
    # The first sum is of the rows of all sites.
    kept = {frozenset(done.sites) for done in trainer.state.rounds if not done.lost}
    kept.add(frozenset(trainer.sites))
    if trainer.protection is None and trainer.terms.examples is None and len(kept) > 1:
        everybody += (
            "; as these are of rows over different sets of sites, how many rows single sites have "
            "(give examples, and no rows are summed)"
        )
    if trainer.protection is None:
        everybody += "; at the beginning the totals of rows, and what else run_.opened names"
    return {**found, "everybody": everybody}
