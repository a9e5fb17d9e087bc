"""A model file as a classifier like scikit-learn's, and a table's rows as it takes them."""

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.ckks.model import LogisticModel, labels, probabilities, winners
from securecomp.errors import ParameterError, brief
from securecomp.statistics.files import read_table
from securecomp.statistics.reading import comparable
from securecomp.statistics.tables import Table

Floats = npt.NDArray[np.float64]


class FileClassifier:
    """A logistic model out of a file, with the methods and names of scikit-learn's classifiers."""

    def __init__(self, model: LogisticModel) -> None:
        self._model = model
        self.classes_ = labels(model.classes)
        self.feature_names_in_ = np.array(model.features, object)

    def predict_proba(self, x: Any) -> Floats:
        """Return probabilities, shape (n, classes), of rows of features, shape (n, d)."""
        return probabilities(self._model.logits(np.asarray(x, np.float64)), self._model.link)

    def predict(self, x: Any) -> npt.NDArray[Any]:
        """Return the likeliest class of each row."""
        logits = self._model.logits(np.asarray(x, np.float64))
        found: npt.NDArray[Any] = self.classes_[winners(logits, self._model.link)]
        return found


def classifier(path: Path) -> FileClassifier:
    """Read a model file.

    Raises:
        ParameterError: The file cannot be read.
        DecodeError: It is no logistic model.
    """
    try:
        return FileClassifier(LogisticModel.from_json(path.read_bytes()))
    except OSError as error:
        raise ParameterError(f"{path}: cannot be read: {error.strerror}") from None


def rows(
    path: Path,
    model: FileClassifier,
    label: str,
    *,
    delimiter: str | None = None,
    decimal_comma: bool = False,
) -> tuple[Floats, npt.NDArray[Any]]:
    """Read a table's features, in the model's order, and its labels as the model writes them.

    Args:
        path: A CSV or Parquet file.
        model: Names the features.
        label: The labels' column.
        delimiter: As `read_table` takes it.
        decimal_comma: As `read_table` takes it.

    Raises:
        ParameterError: No rows, a missing column, a cell that is empty or no number, or a label
            that the model does not know.
    """
    table = Table(str(path), read_table(path, delimiter=delimiter, decimal_comma=decimal_comma))
    if not table.rows:
        raise ParameterError(f"{table.source}: has no rows; an audit needs members and holdout")
    columns = []
    for name in model.feature_names_in_:
        numbers = table.numbers(name)
        if numbers.missing.any():
            place = int(numbers.missing.argmax()) + 1
            raise ParameterError(
                f"{table.where(name)}: row {place} is empty, and the model has no answer to it; "
                "fill it in as for training, or leave the row out"
            )
        columns.append(numbers.values.astype(np.float64))
    known: dict[Hashable, Any] = {(comparable(one),): one for one in model.classes_.tolist()}
    found = [known.get(key) for key in table.keys([label])]
    if None in found:
        raise ParameterError(
            f"{table.where(label)}: row {found.index(None) + 1} is none of the model's "
            f"{len(known)} classes, which are {brief(', '.join(map(str, known.values())))}"
        )
    return np.column_stack(columns), np.array(found, model.classes_.dtype)
