"""Rows searched for whose gradient is the one that was seen.

Where no formula gives a row (several rows in one gradient, other layers than dense ones), an
attacker searches: it starts anywhere and moves rows until their gradient is near the seen one. Of
n rows it looks for n times d numbers, and a gradient has as many equations as the model has
parameters: well below that it mostly succeeds, however many sites the rows came from; well above it
has no chance to tell rows apart, and finds some of the many that add up alike. A sum over sites is
no protection by itself: the number of rows in it is. And aggregation is not differential privacy:
who knows the other rows takes their gradients off the sum.

That a search fails does not prove that there is nothing to find: it bounds what leaks from below.

Sources: Zhu, Liu, Han, NeurIPS 2019 (squared distance); Geiping, Bauermeister, Dröge, Moeller,
NeurIPS 2020 (cosine distance; here without their smoothing of images).
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment, minimize

from securecomp.audit.draws import uniforms
from securecomp.audit.leak import Leak, grid
from securecomp.audit.network import Differentiable
from securecomp.audit.numbers import finite
from securecomp.audit.similarity import psnr, ssim
from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.errors import ParameterError
from securecomp.statistics.analysis import Grid

Floats = npt.NDArray[np.float64]
Distance = Literal["squared", "cosine"]
RECOGNISED = 20.0
"""Decibel from which a row counts as recovered: a root mean squared error of a tenth."""
_PERFECT = 100.0  # an error of a hundred-thousandth; beyond it is the arithmetic's


@dataclass(frozen=True, slots=True)
class Match:
    """Rows whose gradient is near the one that was seen.

    Attributes:
        rows: Shape (n, d), in the order of the targets.
        distance: Between the gradients, what was minimised: 0 is a perfect match.
        steps: Steps of the best search.
    """

    rows: Floats
    distance: float
    steps: int


def match(
    model: Differentiable,
    gradient: npt.ArrayLike,
    targets: npt.ArrayLike,
    *,
    low: float = 0.0,
    high: float = 1.0,
    distance: Distance = "squared",
    restarts: int = 1,
    steps: int = 1000,
    entropy: Entropy = entropy_.system,
) -> Match:
    """Search for rows with this gradient.

    Args:
        model: As the one that the gradient was computed with.
        gradient: The sum over the rows, shape (model.parameters,).
        targets: The rows' targets, one-hot, shape (n, K): an attacker that knows the labels, which
            of one row the gradient gives away (`gradients.recover`) and of a batch their number.
        low: Smallest value of the rows.
        high: Largest.
        distance: "squared", relative to the gradient's square; or "cosine", which takes no account
            of a factor.
        restarts: Searches from different random rows, of which the nearest is kept.
        steps: Most steps of one search.
        entropy: Source of where searches begin.

    Raises:
        ParameterError: Wrong shapes, NaN, or a gradient of zero.
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
        raise ParameterError("low must be below high; restarts and steps are at least 1")
    if distance not in ("squared", "cosine"):
        raise ParameterError(f'distance is "squared" or "cosine", not {distance!r}')
    shape = (len(aims), model.features)
    between = _squared if distance == "squared" else _cosine

    def goal(flat: Floats) -> tuple[float, Floats]:
        rows = flat.reshape(shape)
        far, slope = between(model.gradient(rows, aims), seen)
        return far, model.pull(rows, aims, slope).reshape(-1)

    best = None
    for _ in range(restarts):
        start = low + (high - low) * uniforms(shape, entropy)
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


def _squared(gradient: Floats, seen: Floats) -> tuple[float, Floats]:
    """Return the distance, relative to what was seen, and its slope by the gradient."""
    size, off = float(seen @ seen), gradient - seen
    return float(off @ off) / size, 2 / size * off


def _cosine(gradient: Floats, seen: Floats) -> tuple[float, Floats]:
    length = float(np.linalg.norm(gradient))
    if length == 0:  # no direction: as far as a right angle, and no way down
        return 1.0, np.zeros_like(gradient)
    aim, now = seen / np.linalg.norm(seen), gradient / length
    cosine = float(now @ aim)
    return 1 - cosine, (cosine * now - aim) / length


def paired(found: Floats, rows: Floats) -> Floats:
    """Return the found rows in the order of the true ones that they are nearest to, all in all.

    A sum has no order, so the attacker is given the best one.
    """
    squares = (rows**2).sum(axis=1)[:, None] - 2 * rows @ found.T + (found**2).sum(axis=1)
    order = linear_sum_assignment(squares)[1]
    return np.asarray(found[order], np.float64)


@dataclass(frozen=True, slots=True, repr=False)
class MatchingLeak(Leak):
    """Rows that were searched for, beside the true ones.

    Attributes:
        rows: What was found, shape (n, d), in the order of the true rows.
        distance: Between the gradients.
        steps: Steps of the search.
        parameters: Numbers in the gradient.
        psnr: Of each row, in decibel.
        ssim: Of each row.
        baseline: The decibels of the guess without the gradient.
        baseline_ssim: Its structural similarity.
    """

    rows: Floats
    distance: float
    steps: int
    parameters: int
    psnr: Floats
    ssim: Floats
    baseline: Floats
    baseline_ssim: Floats
    knows: ClassVar[str] = (
        "the model, the gradient summed over the rows, how many rows there are and their labels"
    )

    @property
    def recovered(self) -> int:
        """How many rows came out at `RECOGNISED` decibel or more."""
        return int((self.psnr >= RECOGNISED).sum())

    @property
    def guessed(self) -> int:
        """How many rows the guess without the gradient is as near to."""
        return int((self.baseline >= RECOGNISED).sum())

    @property
    def title(self) -> str:
        """The attack in words."""
        return f"Gradient matching: {self.rows.size} numbers out of {self.parameters} sums"

    def grids(self) -> list[Grid]:
        """Return the table that people read."""
        n = len(self.rows)
        rows = [
            (f"rows recovered, of {n}", str(self.recovered), str(self.guessed)),
            ("decibel, median row", decibel(self.psnr), decibel(self.baseline)),
            (
                "structural similarity, median row",
                f"{np.median(self.ssim):.2f}",
                f"{np.median(self.baseline_ssim):.2f}",
            ),
        ]
        return [grid("", ("", "attack", "guess"), rows)]

    def facts(self) -> dict[str, Any]:
        """Return the result as plain objects; an infinite ratio, of rows that are equal, as None."""
        return {
            "rows": len(self.rows),
            "unknowns": self.rows.size,
            "parameters": self.parameters,
            "distance": self.distance,
            "steps": self.steps,
            "recovered": self.recovered,
            "guessed": self.guessed,
            "psnr": _plain(float(np.median(self.psnr))),
            "ssim": float(np.median(self.ssim)),
            "baseline": _plain(float(np.median(self.baseline))),
            "baseline_ssim": float(np.median(self.baseline_ssim)),
        }

    def remarks(self) -> list[str]:
        """Return what a reader must know."""
        found = ["the rows of one sum are no independent trials, so there is no interval"]
        if self.recovered <= self.guessed:
            found.append("a search that fails does not prove that there was nothing to find")
        return found


def _plain(value: float) -> float | None:
    return value if np.isfinite(value) else None


def decibel(values: Floats) -> str:
    """Return the median as text."""
    middle = float(np.median(values))
    return f"{middle:.1f}" if middle < _PERFECT else f"> {_PERFECT:g}"


def gradient_matching(
    model: Differentiable,
    rows: npt.ArrayLike,
    targets: npt.ArrayLike,
    guess: npt.ArrayLike,
    *,
    gradient: npt.ArrayLike | None = None,
    distance: Distance = "squared",
    restarts: int = 1,
    steps: int = 1000,
    entropy: Entropy = entropy_.system,
) -> MatchingLeak:
    """Search for rows by their gradient, and compare with the true ones.

    Args:
        model: Which has the gradient.
        rows: The true rows, values from 0 to 1, shape (n, d).
        targets: One-hot, shape (n, K).
        guess: What one would guess without the gradient: a row, or one for each row, such as the
            mean of other rows of the same class.
        gradient: What the attacker saw; by default the exact sum over the rows.
        distance: As for `match`.
        restarts: As for `match`.
        steps: As for `match`.
        entropy: As for `match`.

    Raises:
        ParameterError: Wrong shapes, NaN, values beyond 0 to 1, or a gradient of zero.
    """
    true = finite(rows, "rows", 2)
    aims = finite(targets, "targets", 2)
    if true.min() < 0 or true.max() > 1:
        raise ParameterError("rows: values must be from 0 to 1; scale them")
    if true.shape[1] != model.features or aims.shape != (len(true), model.classes):
        raise ParameterError(
            f"rows {true.shape} and targets {aims.shape} do not go with {model.features} features "
            f"and {model.classes} classes"
        )
    seen = model.gradient(true, aims) if gradient is None else gradient
    found = match(
        model, seen, aims, distance=distance, restarts=restarts, steps=steps, entropy=entropy
    )
    ordered = paired(found.rows, true)
    try:
        guesses = np.broadcast_to(np.asarray(guess, np.float64), true.shape)
    except ValueError:
        raise ParameterError(f"the guess has shape {np.shape(guess)}, rows {true.shape}") from None
    return MatchingLeak(
        rows=ordered,
        distance=found.distance,
        steps=found.steps,
        parameters=model.parameters,
        psnr=psnr(ordered, true),
        ssim=ssim(ordered, true),
        baseline=psnr(guesses, true),
        baseline_ssim=ssim(guesses, true),
    )
