"""Attribute inference: an attacker who knows a row except one attribute asks the model for it.

The attacker fills in each value that the attribute can have, asks the model, and takes the value
whose answers fit best to the rest of the row. The success rate alone says little: it is not a leak
if anybody could work out the attribute from other people's data. So the same attack also runs on
rows that the model has never seen, and beside it an imputation that does not use the model:

- Members better than others is a leak: the model says more about the rows that it learned.
- Others better than the imputation is statistical inference: the model holds what is true of
  anybody, member or not. Leaving the study would not have protected anybody from it.

Sources: Fredrikson et al., USENIX Security 2014 (the attack); Fredrikson, Jha, Ristenpart, CCS 2015
(with confidences); Yeom, Giacomelli, Fredrikson, Jha, CSF 2018, section 5 (advantage);
Jayaraman, Evans, CCS 2022 (imputation as the baseline).
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from securecomp.audit.attack_result import AttackResult, Rate, difference, grid
from securecomp.audit.confidences import places, probabilities
from securecomp.audit.labelled_rows import finite, one_each, shaped
from securecomp.audit.seeded_random import SeededRandom
from securecomp.errors import BackendUnavailableError, ParameterError
from securecomp.show.exhibit import TextTable

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]
Known = Literal["label", "answer"]
_MOST_VALUES = 100
_LEAST_ROWS = 10


@dataclass(frozen=True, slots=True, repr=False)
class AttributeLeak(AttackResult):
    """The success of guessing an attribute.

    Attributes:
        attribute: Its name or number.
        known: The attacker's knowledge beside the other attributes.
        values: Number of its values.
        members: Right guesses on rows that the model learned.
        others: Right guesses on rows that it has not seen.
        imputed: Right guesses without the model, from other people's data: on members, on others.
        frequent: Right guesses by the most frequent value: on members, on others.
    """

    attribute: str | int
    known: Known
    values: int
    members: Rate
    others: Rate
    imputed: tuple[Rate, Rate]
    frequent: tuple[Rate, Rate]
    knows: ClassVar[str] = (
        "all other attributes, the label, the values that the attribute can have, and rows of "
        "other "
        "people; it may ask the model anything"
    )

    @property
    def advantage(self) -> float:
        """Rate on members less rate on others."""
        return self.members.value - self.others.value

    @property
    def interval(self) -> tuple[float, float]:
        """Interval of the advantage, with at least 95 % confidence."""
        return difference(self.members, self.others)

    @property
    def gap(self) -> str:
        """The advantage with its interval, as text."""
        low, high = self.interval
        return f"{self.advantage:+.1%} ({low:+.1%} to {high:+.1%})"

    @property
    def leaks(self) -> bool:
        """Whether the model shows more of its members than of others, beyond chance."""
        return self.interval[0] > 0

    @property
    def title(self) -> str:
        """The title, with the attack's name."""
        beside = "label" if self.known == "label" else "model's answer"
        return f"Attribute inference: {self.attribute!r} from the other attributes and the {beside}"

    def grids(self) -> list[TextTable]:
        """Return the table."""
        header = ("right guesses", "members", "others")
        rows = [
            ("with the model", str(self.members), str(self.others)),
            ("imputed without it", *map(str, self.imputed)),
            ("most frequent value", *map(str, self.frequent)),
        ]
        return [grid("", header, rows)]

    def comparison(self) -> dict[str, str]:
        """Return the result as one row for `compared`."""
        return {
            "members": str(self.members),
            "others": str(self.others),
            "members less others": self.gap,
        }

    def facts(self) -> dict[str, Any]:
        """Return the result as plain objects."""
        low, high = self.interval
        return {
            "attribute": self.attribute,
            "known": self.known,
            "values": self.values,
            "members": self.members.facts(),
            "others": self.others.facts(),
            "imputed": [rate.facts() for rate in self.imputed],
            "frequent": [rate.facts() for rate in self.frequent],
            "advantage": self.advantage,
            "advantage_low": low,
            "advantage_high": high,
            "leaks": self.leaks,
        }

    def remarks(self) -> list[str]:
        """Tell the part that is a leak from the part that anybody's data imply."""
        gap = self.gap
        found = [
            f"leak: members less others {gap}; the model shows more of the people it learned"
            if self.leaks
            else f"members less others {gap}: this shows no leak about members"
        ]
        if self.interval[1] < 0:
            found.append(
                "members are guessed worse than others, beyond chance: either members and holdout "
                "are swapped, or they are not of one population; correct that and audit again"
            )
        if difference(self.others, self.imputed[1])[0] > 0:
            found.append(
                "statistical inference: of people whom it has not seen, the model shows more than "
                "other people's data do"
                if self.known == "label"
                else "an answer was computed from the attribute and gives it away, of everybody "
                "whose answer is seen, in training or not"
            )
        if not difference(*self.imputed)[0] <= 0 <= difference(*self.imputed)[1]:
            found.append(
                "members and others differ even without asking the model: they are not of one "
                "population, and the advantage is not due to the model alone"
            )
        return found


def attribute_inference(
    model: Any,
    members: Any,
    member_labels: npt.ArrayLike,
    holdout: Any,
    holdout_labels: npt.ArrayLike,
    attribute: str | int,
    *,
    known: Known = "label",
    imputer: Any = None,
) -> AttributeLeak:
    """Infer one attribute of members and of others.

    Args:
        model: A fitted classifier with probabilities. `RestrictedModel` makes it tell less.
        members: Rows that it learned: numbers, shape (n, d), or a data frame of pandas or polars.
        member_labels: Their labels, shape (n,).
        holdout: Rows of the same population that it has not seen. A random half is attacked, and
            the other half is the attacker's own data. No person should have rows in both halves.
        holdout_labels: Their labels.
        attribute: A column's number, or its name in a frame.
        known: "label": the row's true label. The attacker takes the value that makes it likeliest.
            "answer": a published answer of the model about the complete row. The attacker takes the
            value with the nearest answer.
        imputer: A scikit-learn classifier that learns the attribute from the other columns and the
            label. By default a logistic regression on standardised columns.

    Raises:
        ParameterError: No probabilities, no such attribute, only one value or more than 100, values
            that the attacker's data lack, NaN, fewer than 10 rows, or no holdout.
        BackendUnavailableError: scikit-learn is not installed.
    """
    if known not in ("label", "answer"):
        raise ParameterError(f'known must be "label" or "answer", not {known!r}')
    if holdout is None or not len(holdout):
        raise ParameterError(
            "no holdout: give rows that the model has not seen; without them no leak shows"
        )
    column = _column(members, attribute)
    if _names(members) != _names(holdout) and _names(members) and _names(holdout):
        raise ParameterError("members and holdout must have the same columns in the same order")
    _column(holdout, attribute)
    rows, labels = _rows(model, members, member_labels, "members")
    other, other_labels = _rows(model, holdout, holdout_labels, "holdout")
    if rows.shape[1] != other.shape[1] or rows.shape[1] < 2:
        raise ParameterError(
            f"members have {rows.shape[1]} columns and the holdout {other.shape[1]}; both need the "
            "same number, at least 2"
        )
    lot = SeededRandom.of("attribute inference", other).order(len(other))
    own, own_labels = other[lot[::2]], other_labels[lot[::2]]
    values, counts = np.unique(own[:, column], return_counts=True)
    if len(values) < 2:
        raise ParameterError(
            f"{attribute!r} has a single value in the holdout: there is nothing to infer"
        )
    if len(values) > _MOST_VALUES:
        raise ParameterError(
            f"{attribute!r} has {len(values)} values; take an attribute of at most {_MOST_VALUES}"
        )
    asked = _Asked(model, members, column, values, np.log(counts / counts.sum()), known)
    asked.learn_errors(own, own_labels)
    guess = _imputer(imputer, own, own_labels, column)
    rates = []
    for attacked, its, what in (
        (rows, labels, "members"),
        (other[lot[1::2]], other_labels[lot[1::2]], "holdout"),
    ):
        truth = _truth(attacked[:, column], values, f"{what}, {attribute!r}")
        imputed = np.searchsorted(values, guess(attacked, its))
        guesses = (asked.infer(attacked, its), imputed, np.full(len(its), np.argmax(counts)))
        rates.append([Rate(int((g == truth).sum()), len(truth)) for g in guesses])
    (of_members, *beside), (of_others, *beside_others) = rates
    imputed_rates, frequent_rates = zip(beside, beside_others, strict=True)
    return AttributeLeak(
        attribute, known, len(values), of_members, of_others, imputed_rates, frequent_rates
    )


def _column(rows: Any, attribute: str | int) -> int:
    names = _names(rows)
    if isinstance(attribute, str):
        if attribute not in names:
            listed = ", ".join(map(str, names)) or "the rows have no names; give its number"
            raise ParameterError(f"the rows have no attribute {attribute!r}: {listed}")
        return names.index(attribute)
    width = np.shape(rows)[1] if np.ndim(rows) == 2 else 0
    whole = isinstance(attribute, int | np.integer) and not isinstance(attribute, bool)
    if not whole or not 0 <= attribute < width:
        raise ParameterError(f"the rows have no attribute {attribute!r}; they have {width} columns")
    return int(attribute)


def _names(rows: Any) -> list[Any]:
    return list(getattr(rows, "columns", ()))


def _rows(model: Any, rows: Any, labels: Any, what: str) -> tuple[Floats, Places]:
    array = finite(rows, what, 2)
    if len(array) < _LEAST_ROWS:
        raise ParameterError(f"{what}: {len(array)} rows; at least {_LEAST_ROWS} are needed")
    return array, places(model, one_each(labels, len(array), what), what)


def _truth(column: Floats, values: Floats, what: str) -> Places:
    found = np.minimum(np.searchsorted(values, column), len(values) - 1)
    unknown = np.flatnonzero(values[found] != column)
    if len(unknown):
        raise ParameterError(
            f"{what}: the attacker's half of the holdout lacks the value of row {unknown[0] + 1} "
            f"(and of {len(unknown) - 1} more); leave out such rows"
        )
    return found


@dataclass(slots=True)
class _Asked:
    """The attacker's questions to the model."""

    model: Any
    like: Any
    column: int
    values: Floats
    frequencies: Floats
    known: Known
    floor: float = 0.0

    def answer(self, rows: Floats) -> Floats:
        return probabilities(self.model, shaped(rows, self.like), "the rows asked")

    def learn_errors(self, rows: Floats, labels: Places) -> None:
        """Estimate the error rate of the answers: a label with a score of 0 is not impossible."""
        scores = self.answer(rows)
        wrong = (np.argmax(scores, axis=1) != labels).sum()
        self.floor = float((wrong + 0.5) / (len(rows) + 1) / scores.shape[1])

    def infer(self, rows: Floats, labels: Places) -> Places:
        """Return the places of the likeliest values, given the answers."""
        seen = self.answer(rows) if self.known == "answer" else None
        fits: list[Floats] = []
        for value in self.values:
            filled = rows.copy()
            filled[:, self.column] = value
            answers = self.answer(filled)
            if seen is not None:
                fits.append(-np.abs(answers - seen).max(axis=1))
            else:
                at_label = answers[np.arange(len(rows)), labels]
                fits.append(np.log(np.maximum(at_label, self.floor)))
        fit = np.array(fits).T
        if seen is not None:  # the most frequent of the values with the nearest answer
            fit = np.where(fit >= fit.max(axis=1, keepdims=True) - 1e-12, 0.0, -np.inf)
        return np.asarray(np.argmax(fit + self.frequencies, axis=1), np.intp)


def _imputer(imputer: Any, rows: Floats, labels: Places, column: int) -> Any:
    """Return a function of rows and labels that guesses the attribute without the model."""
    try:
        from sklearn.base import clone
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
    except ImportError:
        raise BackendUnavailableError(
            "imputation needs scikit-learn: pip install 'securecomp[federated]'"
        ) from None
    if imputer is not None and (isinstance(imputer, type) or not hasattr(imputer, "get_params")):
        raise ParameterError(f"the imputer must be a scikit-learn classifier, not {imputer!r}")
    chosen = (
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        if imputer is None
        else clone(imputer)
    )
    width = int(labels.max()) + 1

    def inputs(of: Floats, its: Places) -> Floats:
        marks = (its[:, None] == np.arange(width)).astype(np.float64)
        return np.hstack([np.delete(of, column, axis=1), marks])

    # Values as places: scikit-learn takes reals for targets of a regression.
    values, at = np.unique(rows[:, column], return_inverse=True)
    chosen.fit(inputs(rows, labels), at)
    return lambda of, its: values[np.asarray(chosen.predict(inputs(of, its)), np.intp)]
