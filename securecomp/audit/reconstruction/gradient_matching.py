"""Gradient matching: reconstruct rows from an observed gradient by search.

No formula gives the rows if a gradient has several of them, or comes from layers other than dense
ones. Then an attacker searches: it starts anywhere, and moves rows until their gradient is near the
observed one. For n rows it looks for n times d numbers, and a gradient has as many equations as the
model has parameters. Well below that number it mostly succeeds, however many sites the rows came
from. Well above it finds some of the many sets of rows with the same sum. A sum over sites does not
protect by itself: more rows in it help, but do not bound the leak. Aggregation is not differential
privacy: an attacker who knows the other rows takes their gradients off the sum.

The found rows resemble the true ones partly because all rows of a class do. So they are also
compared with rows that were not in the sum, and the difference is the leak. A search that fails
does not prove that there is nothing to find.

Sources: Zhu, Liu, Han, NeurIPS 2019 (squared distance); Geiping, Bauermeister, Dröge, Moeller,
NeurIPS 2020 (cosine distance; here without their smoothing of images).
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment, minimize

from securecomp.audit.attack_result import AttackResult, grid
from securecomp.audit.labelled_rows import finite
from securecomp.audit.reconstruction.similarity import psnr, ssim
from securecomp.audit.reconstruction.two_layer_net import Differentiable
from securecomp.audit.seeded_random import SeededRandom
from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.errors import ParameterError
from securecomp.show.exhibit import TextTable

Floats = npt.NDArray[np.float64]
Distance = Literal["squared", "cosine"]
RECOGNISED = 20.0
"""Decibels from which a row counts as recovered: a root mean squared error of a tenth."""
_APART = 0.02
_PERFECT = 100.0  # an error of a hundred-thousandth; smaller ones are due to the arithmetic


@dataclass(frozen=True, slots=True)
class Match:
    """Rows whose gradient is near the observed one.

    Attributes:
        rows: The rows, shape (n, d), in the order of the targets.
        distance: Distance of the gradients, which was minimised. 0 is a perfect match.
        steps: Number of steps of the best search.
    """

    rows: Floats
    distance: float
    steps: int


def match_gradient(
    model: Differentiable,
    gradient: npt.ArrayLike,
    targets: npt.ArrayLike,
    *,
    guess: npt.ArrayLike | None = None,
    low: float = 0.0,
    high: float = 1.0,
    distance: Distance = "squared",
    restarts: int = 1,
    steps: int = 1000,
    entropy: Entropy = entropy_.system,
) -> Match:
    """Search for rows with this gradient.

    Args:
        model: The model with which the gradient was computed.
        gradient: The sum over the rows, shape (model.parameters,).
        targets: The rows' targets, one-hot, shape (n, K). The attacker knows the labels: the
            gradient of one row gives its label away (`gradients.recover_row`), and that of a batch
            the number of each.
        guess: Start of the search: a row, or one for each row, such as the mean of other people's
            rows of the class. By default a random place.
        low: Smallest value of the rows.
        high: Largest value of the rows.
        distance: "squared", relative to the gradient's square; or "cosine", which ignores a common
            factor.
        restarts: Number of searches from different random places. The nearest result is kept.
        steps: Largest number of steps of one search.
        entropy: Source of the starting places.

    Raises:
        ParameterError: Wrong shapes, NaN, a guess beyond the bounds, or a gradient of zero.
    """
    seen = finite(gradient, "the gradient", 1)
    aims = finite(targets, "targets", 2)
    if len(seen) != model.parameters or aims.shape[1] != model.classes:
        raise ParameterError(
            f"the model has {model.parameters} parameters and {model.classes} classes; the "
            f"gradient has {len(seen)} numbers, the targets {aims.shape[1]} columns"
        )
    if not seen.any():
        raise ParameterError("the gradient is zero: nothing can be recovered from it")
    if not low < high or restarts < 1 or steps < 1:
        raise ParameterError("low must be below high, and restarts and steps at least 1")
    if distance not in ("squared", "cosine"):
        raise ParameterError(f'distance must be "squared" or "cosine", not {distance!r}')
    shape = (len(aims), model.features)
    between = _squared if distance == "squared" else _cosine
    begin = None if guess is None else _guess(guess, shape)
    if begin is not None and not low <= begin.min() <= begin.max() <= high:
        raise ParameterError(f"the guess must be within {low} and {high}")

    def goal(flat: Floats) -> tuple[float, Floats]:
        rows = flat.reshape(shape)
        far, slope = between(model.gradient(rows, aims), seen)
        return far, model.pull(rows, aims, slope).reshape(-1)

    best, lots = None, SeededRandom.fresh("matching", entropy)
    for _ in range(restarts):
        start = low + (high - low) * lots.uniforms(shape)
        if begin is not None:  # rows that begin as equals would stay equal
            start = begin + _APART * (start - begin)
        found = minimize(
            goal,
            start.reshape(-1),
            jac=True,
            method="L-BFGS-B",
            bounds=[(low, high)] * start.size,
            # An exact match has a distance near the square of a double's precision.
            options={"maxiter": steps, "maxfun": 2 * steps, "ftol": 0.0, "gtol": 0.0, "maxcor": 30},
        )
        if best is None or found.fun < best.fun:
            best = found
    assert best is not None  # noqa: S101  (restarts is at least 1)
    return Match(np.asarray(best.x, np.float64).reshape(shape), float(best.fun), int(best.nit))


def _guess(guess: npt.ArrayLike, shape: tuple[int, int]) -> Floats:
    array = finite(guess, "the guess", np.ndim(guess))
    if array.shape not in (shape, shape[1:]):
        raise ParameterError(f"the guess has shape {array.shape}, the rows {shape}")
    return np.broadcast_to(array, shape)


def _squared(gradient: Floats, seen: Floats) -> tuple[float, Floats]:
    """Return the distance, relative to the observed gradient, and its slope."""
    size, off = float(seen @ seen), gradient - seen
    return float(off @ off) / size, 2 / size * off


def _cosine(gradient: Floats, seen: Floats) -> tuple[float, Floats]:
    length = float(np.linalg.norm(gradient))
    if length == 0:  # no direction: a right angle away, with no slope
        return 1.0, np.zeros_like(gradient)
    aim, now = seen / np.linalg.norm(seen), gradient / length
    cosine = float(now @ aim)
    return 1 - cosine, (cosine * now - aim) / length


def paired(found: Floats, rows: Floats) -> Floats:
    """Return the found rows in the order that is nearest to the true ones in total.

    A sum has no order, so the attacker is given the best one.
    """
    squares = (rows**2).sum(axis=1)[:, None] - 2 * rows @ found.T + (found**2).sum(axis=1)
    order = linear_sum_assignment(squares)[1]
    return np.asarray(found[order], np.float64)


@dataclass(frozen=True, slots=True)
class Nearness:
    """The similarity of rows to others, one by one.

    Attributes:
        psnr: Peak signal-to-noise ratio of each row, in decibels.
        ssim: Structural similarity of each row.
    """

    psnr: Floats
    ssim: Floats

    @classmethod
    def of(cls, found: Floats, true: Floats) -> "Nearness":
        """Compare rows, one by one."""
        return cls(psnr(found, true), ssim(found, true))

    @property
    def recovered(self) -> int:
        """Number of rows that are as near as `RECOGNISED`."""
        return int((self.psnr >= RECOGNISED).sum())

    @property
    def decibel(self) -> str:
        """The median row's decibels, as text."""
        middle = float(np.median(self.psnr))
        return f"{middle:.1f}" if middle < _PERFECT else f"> {_PERFECT:g}"

    def facts(self) -> dict[str, Any]:
        """Return the medians as plain values, with None for the infinite decibels of equal rows."""
        middle = float(np.median(self.psnr))
        return {
            "recovered": self.recovered,
            "psnr": middle if np.isfinite(middle) else None,
            "ssim": float(np.median(self.ssim)),
        }


@dataclass(frozen=True, slots=True, repr=False)
class MatchingLeak(AttackResult):
    """Rows found by gradient matching, compared with the true ones and with other people's.

    Attributes:
        rows: The found rows, shape (n, d), in the order of the true rows.
        distance: Distance of the gradients.
        steps: Number of steps of the search.
        parameters: Number of values in the gradient.
        members: Similarity of the found rows to the rows in the sum.
        others: Similarity to as many rows that were not in the sum: the part common to everybody.
        guess: Similarity of the guess without the gradient to the rows in the sum.
    """

    rows: Floats
    distance: float
    steps: int
    parameters: int
    members: Nearness
    others: Nearness
    guess: Nearness
    knows: ClassVar[str] = (
        "the model, the gradient summed over the rows, the number of rows and their labels, and "
        "the "
        "guess"
    )

    @property
    def title(self) -> str:
        """The title, with the size of the problem."""
        return f"Gradient matching: {self.rows.size} numbers out of {self.parameters} sums"

    def grids(self) -> list[TextTable]:
        """Return the table."""
        columns = (self.members, self.others, self.guess)
        rows = [
            (f"rows recovered, of {len(self.rows)}", *(str(c.recovered) for c in columns)),
            ("decibels, median row", *(c.decibel for c in columns)),
            ("structural similarity", *(f"{np.median(c.ssim):.2f}" for c in columns)),
        ]
        return [grid("", ("", "rows in the sum", "other rows", "guess"), rows)]

    def facts(self) -> dict[str, Any]:
        """Return the result as plain objects."""
        return {
            "rows": len(self.rows),
            "unknowns": self.rows.size,
            "parameters": self.parameters,
            "distance": self.distance,
            "steps": self.steps,
            "members": self.members.facts(),
            "others": self.others.facts(),
            "guess": self.guess.facts(),
        }

    def remarks(self) -> list[str]:
        """Return remarks on how to read the result."""
        return [
            "the leak is the part that is nearer to the rows in the sum than to other rows; rows "
            "of "
            "one sum are not independent trials, so there is no interval",
            "a search that fails does not prove that there was nothing to find",
        ]


def gradient_matching(
    model: Differentiable,
    rows: npt.ArrayLike,
    targets: npt.ArrayLike,
    others: npt.ArrayLike,
    *,
    gradient: npt.ArrayLike | None = None,
    guess: npt.ArrayLike | None = None,
    distance: Distance = "squared",
    restarts: int = 1,
    steps: int = 1000,
    entropy: Entropy = entropy_.system,
) -> MatchingLeak:
    """Search for rows by their gradient, and compare with the true ones.

    Args:
        model: The model with which the gradient is computed.
        rows: The true rows, values from 0 to 1, shape (n, d).
        targets: Their targets, one-hot, shape (n, K).
        others: As many rows of the same population that are not in the sum, preferably of the same
            classes. The found rows are compared with them in the same way.
        gradient: The observed gradient. By default the exact sum over the rows.
        guess: As for `match_gradient`. By default the search begins anywhere, and the mean of
            `others` is shown for comparison.
        distance: As for `match_gradient`.
        restarts: As for `match_gradient`.
        steps: As for `match_gradient`.
        entropy: As for `match_gradient`.

    Raises:
        ParameterError: Wrong shapes, NaN, values beyond 0 to 1, or a gradient of zero.
    """
    true, beside = finite(rows, "rows", 2), finite(others, "others", 2)
    aims = finite(targets, "targets", 2)
    for what, values in (("rows", true), ("others", beside)):
        if values.min() < 0 or values.max() > 1:
            raise ParameterError(f"{what}: values must be from 0 to 1; scale them")
    if true.shape[1] != model.features or aims.shape != (len(true), model.classes):
        raise ParameterError(
            f"rows of shape {true.shape} and targets of shape {aims.shape} do not fit a model of "
            f"{model.features} features and {model.classes} classes"
        )
    if beside.shape != true.shape:
        raise ParameterError(
            f"others of shape {beside.shape} must have the shape of the rows, {true.shape}"
        )
    found = match_gradient(
        model,
        model.gradient(true, aims) if gradient is None else gradient,
        aims,
        guess=guess,
        distance=distance,
        restarts=restarts,
        steps=steps,
        entropy=entropy,
    )
    ordered = paired(found.rows, true)
    guesses = _guess(beside.mean(axis=0) if guess is None else guess, true.shape)
    return MatchingLeak(
        rows=ordered,
        distance=found.distance,
        steps=found.steps,
        parameters=model.parameters,
        members=Nearness.of(ordered, true),
        others=Nearness.of(paired(found.rows, beside), beside),
        guess=Nearness.of(paired(guesses, true), true),
    )
