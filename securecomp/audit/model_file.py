"""A model's JSON file as a classifier with scikit-learn's interface, and files of labelled rows.

The file holds numbers, and nothing that runs when it is read (`securecomp.models`).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.errors import ParameterError, RangeError, brief
from securecomp.models import Label, LogisticModel, feature_columns, labels, probabilities, winners
from securecomp.statistics.cell_values import comparable, is_missing
from securecomp.statistics.site_table import Table
from securecomp.statistics.table_files import read_table

Floats = npt.NDArray[np.float64]
Rows = tuple[Floats, npt.NDArray[Any]]
"""Features, shape (n, d), and labels, shape (n,)."""

_LISTED = 10


class Classifier:
    """A logistic model that predicts, with numpy alone.

    Attributes:
        model: The model's numbers.
        classes_: The labels, in the order of the probabilities.
        feature_names_in_: The features, in the order of an array's columns.
        n_features_in_: Number of features.
    """

    _estimator_type = "classifier"

    def __init__(self, model: LogisticModel) -> None:
        self.model = model
        self.classes_ = labels(model.classes)
        self.feature_names_in_ = np.array(model.features, object)
        self.n_features_in_ = len(model.features)

    def decision_function(self, X: Any) -> Floats:  # noqa: N803
        """Return logits, shape (n,) for two classes, else (n, classes).

        Args:
            X: An array of shape (n, d), or a data frame that has the features among its columns.

        Raises:
            ParameterError: A missing column, another shape, or values that are not numbers.
        """
        logits = self._logits(X)
        return logits[:, 0] if self.model.link == "sigmoid" else logits

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """Return probabilities, shape (n, classes), accurate also where they are near 0."""
        return probabilities(self._logits(X), self.model.link)

    def predict(self, X: Any) -> npt.NDArray[Any]:  # noqa: N803
        """Return the most likely class of each row, shape (n,)."""
        found: npt.NDArray[Any] = self.classes_[winners(self._logits(X), self.model.link)]
        return found

    def _logits(self, table: Any) -> Floats:
        return self.model.logits(
            _finite(feature_columns(table, self.model.features), self.model.features)
        )

    def __repr__(self) -> str:
        return f"Classifier({self.n_features_in_} features, {len(self.classes_)} classes)"


def classifier(source: LogisticModel | Path | str) -> Classifier:
    """Return a model that predicts.

    Args:
        source: A model, or the path of its JSON file.

    Raises:
        ParameterError: The file cannot be read.
        DecodeError: The file does not hold a logistic model.
    """
    if isinstance(source, LogisticModel):
        return Classifier(source)
    return Classifier(LogisticModel.read(Path(source)))


def read_rows(
    path: Path | str,
    model: LogisticModel | Classifier,
    label: str,
    *,
    delimiter: str | None = None,
    decimal_comma: bool = False,
) -> Rows:
    """Read the rows of a file for a model: columns by name, and labels as the model writes them.

    A cell is a label if the two are equal; 1, 1.0 and true are. Otherwise it is a label if it is
    written the same, apart from white space around it: the text "1" is the label 1 and "True" is
    true, unless two labels are written so.

    Args:
        path: A CSV or Parquet file.
        model: The model, with its features and labels.
        label: Name of the column of labels.
        delimiter: As for `read_table`.
        decimal_comma: As for `read_table`.

    Raises:
        ParameterError: A file that cannot be read or has no rows; a missing column, text among
            numbers, an empty cell; a label that the model does not know.
        RangeError: A number that is not finite. File, column and row are named.
    """
    model = model.model if isinstance(model, Classifier) else model
    frame = read_table(Path(path), delimiter=delimiter, decimal_comma=decimal_comma)
    table = Table(str(path), frame)
    table.check_column(label)
    if label in model.features:
        raise ParameterError(
            f"{path}: column {brief(repr(label))} is a feature of the model; name the "
            "column of labels"
        )
    if not table.rows:
        raise ParameterError(f"{path}: has no rows")
    try:
        features = _finite(feature_columns(frame, model.features), model.features)
    except (ParameterError, RangeError) as error:
        raise type(error)(f"{path}: {error}") from None
    return features, _labels(table, label, model.classes)


def _finite(array: Floats, features: Sequence[str]) -> Floats:
    if array.ndim != 2 or array.shape[1] != len(features):
        raise ParameterError(
            f"the rows have shape {array.shape}; expected (n, {len(features)}), one column for "
            "each of the model's features"
        )
    if not np.isfinite(array).all():
        row, column = np.argwhere(~np.isfinite(array))[0]
        raise RangeError(
            f"feature {features[column]!r}, row {row + 1}: is empty or infinite; correct it, or "
            "drop the row"
        )
    return array


def _labels(table: Table, column: str, classes: tuple[Label, ...]) -> npt.NDArray[Any]:
    encoded = table.distinct(column)
    cells = encoded.dictionary.to_pylist()
    written = _written(classes)
    places = np.full(len(cells) + 1, -2, np.int64)  # the last one: null
    for i, cell in enumerate(cells):
        if not (is_missing(cell) or comparable(cell) is None):
            exact = (k for k, c in enumerate(classes) if _equal(cell, c))
            alike = (written[way] for way in _ways(cell) if way in written)
            places[i] = next(exact, next(alike, -1))
    codes = encoded.indices.fill_null(len(cells)).to_numpy(zero_copy_only=False)
    found = places[codes]
    if (found == -2).any():
        row = int(np.argmax(found == -2)) + 1
        raise ParameterError(
            f"{table.where(column)}: row {row} has no label; fill it in, or drop the row"
        )
    if (found == -1).any():
        row, number = int(np.argmax(found == -1)) + 1, len(cells)
        known = ", ".join(brief(repr(c), 30) for c in classes[:_LISTED])
        raise ParameterError(
            f"{table.where(column)}: row {row} has a label that the model does not know; the "
            f"model's are {known}{', ...' * (len(classes) > _LISTED)}; the column has {number:,} "
            "different values, so check that it is the column of labels"
        )
    taken: npt.NDArray[Any] = labels(classes)[found]
    return taken


def _equal(cell: Any, label: Label) -> bool:
    return isinstance(cell, str) == isinstance(label, str) and bool(cell == label)


def _written(classes: tuple[Label, ...]) -> dict[str, int]:
    """Return the ways to write labels, with the labels' places; ambiguous ways are left out."""
    forms: dict[str, set[int]] = {}
    for place, label in enumerate(classes):
        for way in _ways(label):
            forms.setdefault(way, set()).add(place)
    return {way: next(iter(places)) for way, places in forms.items() if len(places) == 1}


def _ways(cell: Any) -> tuple[str, ...]:
    """Return the ways in which a file may write a value."""
    if isinstance(cell, bool):
        return (str(cell), str(cell).lower(), str(cell).upper(), str(int(cell)))
    return (
        (str(comparable(cell)), str(cell)) if isinstance(cell, float) else (str(comparable(cell)),)
    )
