"""A model that answers with less than its probabilities."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from securecomp.audit.confidences import classes_of, probabilities
from securecomp.errors import ParameterError

Floats = npt.NDArray[np.float64]
Form = Literal["probabilities", "rounded", "top", "labels"]
FORMS: tuple[Form, ...] = ("probabilities", "rounded", "top", "labels")


class RestrictedModel:
    """A fitted classifier that tells less, to see how attacks fare against it.

    Attacks that follow small differences of scores (inversion, matching an answer, membership by
    the loss) then need more questions, or fail. But a label alone is enough to tell members from
    others, by how far a row can change before the label flips (Choquette-Choo et al., ICML 2021),
    to extract a model (Tramèr et al., USENIX Security 2016), and to infer an attribute on which the
    label depends. Fewer digits guarantee nothing. Noise in training does.

    Attributes:
        classes_: The labels of the model.
    """

    def __init__(
        self,
        model: Any,
        form: Form = "probabilities",
        *,
        decimals: int | None = None,
        k: int | None = None,
    ) -> None:
        """Choose the form of answers.

        Args:
            model: Fitted, with `predict_proba` and `classes_`.
            form: "probabilities"; "rounded": probabilities with `decimals` decimals; "top": those
                of the `k` likeliest classes, others 0; "labels": 1 for the label, others 0.
            decimals: For "rounded", from 0 to 15.
            k: For "top", from 1 to the number of classes.

        Raises:
            ParameterError: A model without probabilities, or a form without its number.
        """
        self.classes_ = np.array(classes_of(model))
        if form not in FORMS:
            raise ParameterError(f"the form must be one of {', '.join(FORMS)}, not {form!r}")
        if (decimals is not None) != (form == "rounded") or (k is not None) != (form == "top"):
            raise ParameterError('"rounded" takes decimals, "top" takes k, and no other form does')
        if decimals is not None and not _whole(decimals, 0, 15):
            raise ParameterError(f"decimals must be from 0 to 15, not {decimals!r}")
        if k is not None and not _whole(k, 1, len(self.classes_)):
            raise ParameterError(f"k must be from 1 to the {len(self.classes_)} classes, not {k!r}")
        self.model, self.form, self.decimals, self.k = model, form, decimals, k

    def predict(self, rows: Any) -> npt.NDArray[Any]:
        """Return the labels, which every form gives."""
        return np.asarray(self.model.predict(rows))

    def predict_proba(self, rows: Any) -> Floats:
        """Return the answers, shape (n, classes). A row need not sum to 1."""
        if self.form == "labels":
            return np.asarray(self.predict(rows)[:, None] == self.classes_, np.float64)
        scores = probabilities(self.model, rows, "the rows")
        if self.form == "rounded":
            return np.round(scores, self.decimals or 0)
        if self.form == "top":
            # Of equal ones the first, as argmax does.
            ranks = np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1, kind="stable")
            return np.where(ranks < (self.k or 0), scores, 0.0)
        return scores

    def __str__(self) -> str:
        if self.form == "rounded":
            return f"rounded to {self.decimals} decimals"
        return f"top {self.k} of {len(self.classes_)}" if self.form == "top" else self.form


def _whole(value: object, least: int, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
