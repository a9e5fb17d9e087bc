"""Rows searched for whose gradient is the one that was seen.

Where no formula gives a row (several rows in one gradient, other layers than dense ones), an
attacker searches: it starts anywhere and moves rows until their gradient is near the seen one. Of
n rows it looks for n times d numbers, and a gradient has as many equations as the model has
parameters: well below that it mostly succeeds, however many sites the rows came from; well above it
finds some of the many rows that add up alike. A sum over sites is no protection by itself: the
number of rows in it helps, and does not bound what leaks. Aggregation is not differential privacy:
who knows the other rows takes their gradients off the sum.

What is found resembles the true rows also because all rows of a class do. So it is compared with
rows that were not in the sum, too: the difference is the leak. That a search fails does not prove
that there is nothing to find.

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
"""Decibel from which a row counts as recovered: a root mean squared error of a tenth."""
_APART = 0.02
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
        model: As the one that the gradient was computed with.
        gradient: The sum over the rows, shape (model.parameters,).
        targets: The rows' targets, one-hot, shape (n, K): an attacker that knows the labels, which
            of one row the gradient gives away (`gradients.recover`) and of a batch their number.
        guess: Where to begin: a row, or one for each row, such as the mean of other people's rows
            of the class. By default anywhere.
        low: Smallest value of the rows.
        high: Largest.
        distance: "squared", relative to the gradient's square; or "cosine", which takes no account
            of a factor.
        restarts: Searches from different random places, of which the nearest is kept.
        steps: Most steps of one search.
        entropy: Source of where searches begin.

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
        raise ParameterError("low must be below high; restarts and steps are at least 1")
    if distance not in ("squared", "cosine"):
        raise ParameterError(f'distance is "squared" or "cosine", not {distance!r}')
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
        if begin is not None:  # rows that begin as equals would stay so
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


@dataclass(frozen=True, slots=True)
class Nearness:
    """How near some rows are to others.

    Attributes:
        psnr: Of each row, in decibel.
        ssim: Of each row.
    """

    psnr: Floats
    ssim: Floats

    @classmethod
    def of(cls, found: Floats, true: Floats) -> "Nearness":
        """Compare rows, one by one."""
        return cls(psnr(found, true), ssim(found, true))

    @property
    def recovered(self) -> int:
        """How many rows are as near as `RECOGNISED`."""
        return int((self.psnr >= RECOGNISED).sum())

    @property
    def decibel(self) -> str:
        """The median row's decibels, as text."""
        middle = float(np.median(self.psnr))
        return f"{middle:.1f}" if middle < _PERFECT else f"> {_PERFECT:g}"

    def facts(self) -> dict[str, Any]:
        """Return plain values: medians; the decibels of rows that are equal, infinite, as None."""
        middle = float(np.median(self.psnr))
        return {
            "recovered": self.recovered,
            "psnr": middle if np.isfinite(middle) else None,
            "ssim": float(np.median(self.ssim)),
        }


@dataclass(frozen=True, slots=True, repr=False)
class MatchingLeak(AttackResult):
    """Rows that were searched for, beside the true ones and beside other people's.

    Attributes:
        rows: What was found, shape (n, d), in the order of the true rows.
        distance: Between the gradients.
        steps: Steps of the search.
        parameters: Numbers in the gradient.
        members: How near what was found is to the rows in the sum.
        others: How near it is to as many rows that are not: what is common to all people's.
        guess: How near the guess without the gradient is to the rows in the sum.
    """

    rows: Floats
    distance: float
    steps: int
    parameters: int
    members: Nearness
    others: Nearness
    guess: Nearness
    knows: ClassVar[str] = (
        "the model, the gradient summed over the rows, how many rows there are and their labels, "
        "the guess"
    )

    @property
    def title(self) -> str:
        """The attack in words."""
        return f"Gradient matching: {self.rows.size} numbers out of {self.parameters} sums"

    def grids(self) -> list[TextTable]:
        """Return the table that people read."""
        columns = (self.members, self.others, self.guess)
        rows = [
            (f"rows recovered, of {len(self.rows)}", *(str(c.recovered) for c in columns)),
            ("decibel, median row", *(c.decibel for c in columns)),
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
        """Return what a reader must know."""
        return [
            "a leak is what is nearer to the rows in the sum than to other rows; the rows of one "
            "sum are no independent trials, so there is no interval",
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
        model: Which has the gradient.
        rows: The true rows, values from 0 to 1, shape (n, d).
        targets: One-hot, shape (n, K).
        others: As many rows of the same population that are not in the sum, best of the same
            classes. What is found is compared with them in the same way.
        gradient: What the attacker saw; by default the exact sum over the rows.
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
            f"rows {true.shape} and targets {aims.shape} do not go with {model.features} features "
            f"and {model.classes} classes"
        )
    if beside.shape != true.shape:
        raise ParameterError(f"others {beside.shape} are as many as rows {true.shape}")
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
