"""Shadow models: models like the attacked one, trained on other rows.

Each is trained in the same way as the attacked model, on a random half of rows. They show the
attacker how answers look for rows that were learned, and for rows that were not.

Needs scikit-learn (`pip install 'securecomp[federated]'`).
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.audit.confidences import classes_of
from securecomp.audit.labelled_rows import taken
from securecomp.audit.seeded_random import SeededRandom
from securecomp.errors import BackendUnavailableError, ParameterError

Inside = npt.NDArray[np.bool_]
"""Shape (shadows, rows): whether a shadow model was trained on a row."""
Progress = Callable[[int, int], None]


def check_trainable(estimator: Any, shadows: int) -> None:
    """Refuse an object that cannot be trained, or too few shadow models.

    Raises:
        ParameterError: Fewer than 4 or an odd number, or not a scikit-learn estimator.
        BackendUnavailableError: scikit-learn is not installed.
    """
    if isinstance(shadows, bool) or not isinstance(shadows, int) or shadows < 4 or shadows % 2:
        raise ParameterError(
            f"shadows must be an even number of at least 4, for example 64, not {shadows!r}"
        )
    if not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
        raise ParameterError(
            "estimator: give the scikit-learn estimator that trained the model, not "
            f"{type(estimator).__name__}"
        )
    sklearn_clone()


def sklearn_clone() -> Callable[[Any], Any]:
    """Return scikit-learn's `clone`.

    Raises:
        BackendUnavailableError: scikit-learn is not installed.
    """
    try:
        from sklearn.base import clone
    except ImportError as error:
        raise BackendUnavailableError(
            "shadow models need scikit-learn: pip install 'securecomp[federated]'"
        ) from error
    found: Callable[[Any], Any] = clone
    return found


def halves(shadows: int, rows: int, lots: SeededRandom) -> Inside:
    """Return the rows of each shadow model: each row is in exactly half of them, at random."""
    inside = np.zeros((shadows, rows), bool)
    block = max(1, (1 << 20) // shadows)  # rows that are drawn at once
    for start in range(0, rows, block):
        count = min(block, rows - start)
        order = np.argsort(lots.words(shadows * count).reshape(shadows, count), axis=0)
        np.put_along_axis(inside[:, start : start + count], order[: shadows // 2], True, axis=0)
    return inside


def trained(
    estimator: Any,
    x: Any,
    y: npt.NDArray[Any],
    inside: Inside,
    classes: list[Any],
    lots: SeededRandom,
    progress: Progress | None = None,
) -> Iterator[Any]:
    """Train one shadow after the other.

    Args:
        estimator: The estimator to clone. Every `random_state` in it is drawn anew.
        x: Rows.
        y: Their labels.
        inside: The rows of each shadow model.
        classes: The labels that the attacked model knows.
        lots: Source of the seeds.
        progress: Called with the number of trained models, and of all.

    Raises:
        ParameterError: The rows of a shadow model lack a class.
    """
    clone = sklearn_clone()
    for number, mask in enumerate(inside):
        shadow = clone(estimator)
        seeds = {
            name: lots.seed()
            for name in shadow.get_params(deep=True)
            if name == "random_state" or name.endswith("__random_state")
        }
        shadow.set_params(**seeds)
        labels = y[mask]
        if set(labels.tolist()) != set(classes):
            raise ParameterError(
                f"the {int(mask.sum())} rows of shadow model {number + 1} do not have all of the "
                f"model's {len(classes)} classes and no other; give a larger pool of rows of them"
            )
        shadow.fit(taken(x, np.flatnonzero(mask)), labels)
        if classes_of(shadow) != classes:
            raise ParameterError(
                "the estimator and the model have their classes in different orders"
            )
        if progress is not None:
            progress(number + 1, len(inside))
        yield shadow
