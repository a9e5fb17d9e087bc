"""The demonstration of training over sites: real hospitals, and the cost of secrecy and noise.

Four data sets are split into train and test rows. The model is logistic in all. Two data sets have
their own hospitals. scikit-learn's two are dealt to sites with different shares of the classes.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text
from scipy import special

from securecomp.audit.seeded_random import SeededRandom
from securecomp.demos import hospitals
from securecomp.errors import BackendUnavailableError
from securecomp.federated.losses import Floats
from securecomp.privacy.policy import Privacy

EPSILONS = (8.0, 2.0, 0.5)
_ROUNDS, _NOISY_ROUNDS = 40, 20
_TEST = 0.3
_SEED = b"splits of the training demo-----"  # public
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Data:
    """Rows of several sites, and rows to test on.

    Attributes:
        name: Name for people.
        source: Origin of the sites.
        sites: Name to (X, y).
        test: (X, y) of all sites.
        bounds: Lowest and highest value of each column; public.
    """

    name: str
    source: str
    sites: dict[str, tuple[Floats, Any]]
    test: tuple[Floats, Any]
    bounds: list[tuple[float, float]]

    @property
    def rows(self) -> int:
        """Rows to train on."""
        return sum(len(y) for _, y in self.sites.values())

    @property
    def classes(self) -> list[int]:
        """The labels."""
        return [int(c) for c in np.unique(self.test[1])]


@dataclass(frozen=True)
class Score:
    """The quality of a model on the test rows.

    Attributes:
        how: Method: on pooled rows, over sites, with noise.
        accuracy: Share of right labels.
        auc: Area under the ROC curve. For several classes, the mean of each against the others.
        seconds: Time of training.
    """

    how: str
    accuracy: float
    auc: float
    seconds: float


@dataclass(frozen=True)
class Trained:
    """The findings on one data set.

    Attributes:
        data: Name of the data.
        source: Origin of the sites.
        sites: Number of sites.
        rows: Rows to train on.
        columns: Number of columns.
        delta: Delta of the noise.
        majority: Accuracy of a model that always predicts the most frequent label.
        equal: Whether secure sums and sums in the clear gave the same model, bit for bit.
        scores: One score for each method.
    """

    data: str
    source: str
    sites: int
    rows: int
    columns: int
    delta: float
    majority: float
    equal: bool
    scores: list[Score]

    def facts(self) -> dict[str, Any]:
        """Return all as plain values."""
        return {**self.__dict__, "scores": [score.__dict__ for score in self.scores]}


def medpar() -> Data:
    """Return deaths after 1,495 stays at 54 hospitals."""
    frame = hospitals.data("COUNT", "medpar")
    columns = [np.log(frame["los"]), *(frame[c] for c in ("hmo", "white", "age80"))]
    columns += [frame["type"] == level for level in (2, 3)]
    ends = [(0.0, 5.0)] + [(0.0, 1.0)] * 5
    return _own("deaths, medpar", frame["provnum"], columns, frame["died"], ends)


def preterm() -> Data:
    """Return births before 37 weeks in a trial at 4 clinics.

    Source: Michalowicz et al., N Engl J Med 355 (2006) 1885-1894: periodontal treatment.
    """
    frame = hospitals.data("medicaldata", "opt")
    frame = frame[frame["Preg.ended...37.wk"].str.strip() != ""]

    def said(column: str, text: str) -> Any:
        return frame[column].str.strip() == text

    columns = [frame["Age"], frame["BL.PD.avg"], frame["BL..BOP"], said("Group", "T")]
    columns += [said(c, "Yes") for c in ("Black", "Diabetes", "Use.Tob", "Prev.preg")]
    columns += [said("Hypertension", "Y"), said("Education", "LT 8 yrs")]
    ends = [(15.0, 50.0), (1.0, 7.0), (0.0, 100.0)] + [(0.0, 1.0)] * 7
    early = said("Preg.ended...37.wk", "Yes")
    return _own("preterm births, opt", frame["Clinic"], columns, early, ends)


def tumours() -> Data:
    """Return breast tumours, dealt to 6 sites with mostly one kind each."""
    x, y = _sklearn("load_breast_cancer")
    share = np.where(np.arange(6) < 3, 0.85, 0.15)  # of benign ones
    where = _dealt(np.where(y[:, None] == 1, share, 1 - share))
    # The data's documentation states each column's lowest and highest value.
    ends = list(zip(x.min(axis=0).tolist(), x.max(axis=0).tolist(), strict=True))
    return _split("tumours, breast cancer", "6 sites, by label", x, y, where, ends)


def digits() -> Data:
    """Return handwritten digits, dealt to 10 sites by Dirichlet's distribution."""
    x, y = _sklearn("load_digits")
    # Gamma numbers over their sum are Dirichlet's; each row is one label's shares.
    shares = special.gammaincinv(0.5, SeededRandom(_SEED, "shares").uniforms((10, 10)))
    where = _dealt(shares[y])
    return _split("digits", "10 sites, Dirichlet", x, y, where, [(0.0, 16.0)] * x.shape[1])


ALL = (medpar, preterm, tumours, digits)


def run(
    sets: tuple[Callable[[], Data], ...] = ALL,
    epsilons: tuple[float, ...] = EPSILONS,
    progress: Progress = lambda _done, _total: None,
) -> Iterator[Trained]:
    """Train on every data set: pooled, over sites in the clear and in secret, and with noise.

    Args:
        sets: Functions that return the data.
        epsilons: Epsilons of the noise.
        progress: Is called with the number of finished trainings, and of all.

    Raises:
        BackendUnavailableError: scikit-learn, or the data, are not installed.
    """
    each = 3 + len(epsilons)
    for place, make in enumerate(sets):
        scores = []
        data = make()
        delta = min(1e-5, data.rows**-1.1)
        models = _models(data, epsilons, delta)
        for how, model in models.items():
            scores.append(_score(how, model, data))
            progress(place * each + len(scores), len(sets) * each)
        test = data.test[1]
        yield Trained(
            data.name,
            data.source,
            len(data.sites),
            data.rows,
            len(data.bounds),
            delta,
            float(np.bincount(test).max() / len(test)),
            models["federated"].coef_.tobytes() == models["secure sums"].coef_.tobytes(),
            scores,
        )


def _models(data: Data, epsilons: tuple[float, ...], delta: float) -> dict[str, Any]:
    """Return the models to train, by their names for people."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from securecomp.federated.estimators import FederatedLogisticRegression

    pooled = make_pipeline(StandardScaler(), LogisticRegression(C=1.0, max_iter=1000))
    given: dict[str, Any] = {"classes": data.classes, "bounds": data.bounds, "strategy": "sgd"}
    # scikit-learn's C = 1 is on the sum of losses, a penalty here on their mean.
    how = {**given, "rounds": _ROUNDS, "learning_rate": 1.0, "l2": 1 / data.rows}
    noisy = {**given, "rounds": _NOISY_ROUNDS, "learning_rate": 2.0}
    found = {
        "pooled": pooled,
        "federated": FederatedLogisticRegression("clear", **how),
        "secure sums": FederatedLogisticRegression("sharing", **how),
    }
    for epsilon in epsilons:
        privacy = Privacy(epsilon, f"{delta:.3g}")
        found[f"epsilon {epsilon:g}"] = FederatedLogisticRegression("sharing", privacy, **noisy)
    return found


def _score(how: str, model: Any, data: Data) -> Score:
    """Train a model, and try it on the test rows."""
    from sklearn.metrics import roc_auc_score

    start = time.perf_counter()
    if how == "pooled":
        x, y = (np.concatenate(parts) for parts in zip(*data.sites.values(), strict=True))
        model.fit(x, y)
    else:
        model.fit(data.sites)
    seconds = time.perf_counter() - start
    x, y = data.test
    proba = model.predict_proba(x)
    ranked = proba[:, 1] if proba.shape[1] == 2 else proba
    auc = roc_auc_score(y, ranked, multi_class="ovr")
    return Score(how, float((model.predict(x) == y).mean()), float(auc), seconds)


def parts(found: list[Trained]) -> Iterator[Any]:
    """Yield the parts to print."""
    table = Table(
        title="accuracy and area under the ROC curve on rows that nobody trained on",
        title_justify="left",
        title_style="bold",
    )
    table.add_column("")
    for score in found[0].scores:
        table.add_column(score.how, justify="right")
    for one in found:
        about = f"{one.data}\n{one.source}\n{one.rows:,} rows, {one.columns} columns"
        cells = [f"{score.accuracy:.3f}\n{score.auc:.3f}" for score in one.scores]
        table.add_row(about, *cells, end_section=True)
    yield table
    for one in found:
        equal = "equal, bit for bit" if one.equal else "NOT equal"
        yield Text(
            f"{one.data}: secure sums and sums in the clear are {equal}; the most frequent label "
            f"alone is right in {one.majority:.3f}; delta {one.delta:.1g}"
        )
    yield Text(
        "Noise protects single records, over all rounds together, and no party adds all of it. "
        "Trainings with noise have fewer rounds and no penalty, which also explains part of the "
        "differences. On some hundred test rows a few hundredths are chance. A model that is not "
        "right more often than the most frequent label gives no useful labels. A model with an "
        "area of .5 has learned nothing."
    )


def _own(name: str, sites: Any, columns: list[Any], labels: Any, ends: Any) -> Data:
    """Return data with their own sites."""
    x = np.column_stack([np.asarray(column, np.float64) for column in columns])
    names, where = np.unique(np.asarray(sites).astype(str), return_inverse=True)
    source = f"{len(names)} real sites"
    return _split(name, source, x, np.asarray(labels).astype(int), where, ends)


def _dealt(weights: Floats) -> Any:
    """Draw each row's site, by that row's weights of the sites."""
    ends = weights.cumsum(axis=1)
    drawn = SeededRandom(_SEED, "sites").uniforms((len(weights), 1)) * ends[:, -1:]
    return np.minimum((drawn >= ends).sum(axis=1), weights.shape[1] - 1)


def _split(name: str, source: str, x: Floats, y: Any, where: Any, ends: Any) -> Data:
    """Return data with a share of the rows to test on. Each site keeps at least one."""
    mixed = SeededRandom(_SEED, "test rows").order(len(y))
    kept = np.ones(len(y), bool)
    kept[mixed[: int(_TEST * len(y))]] = False
    for site in np.unique(where):
        if not kept[where == site].any():
            kept[np.flatnonzero(where == site)[0]] = True
    sites = {
        f"site {site + 1}": (x[kept & (where == site)], y[kept & (where == site)])
        for site in np.unique(where)
    }
    return Data(name, source, sites, (x[~kept], y[~kept]), list(ends))


def _sklearn(name: str) -> tuple[Floats, Any]:
    try:
        from sklearn import datasets
    except ImportError:
        raise BackendUnavailableError(
            "the demonstration trains with scikit-learn: pip install 'securecomp[federated,demo]'"
        ) from None
    x, y = getattr(datasets, name)(return_X_y=True)
    return np.asarray(x, np.float64), y
