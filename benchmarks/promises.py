"""What answers cost together, and what noise does to a mean: `python -m benchmarks promises`.

Nothing here is timed. Noise comes from numpy's seeded generator, at the package's scales, so that
any machine makes the same table; it tells of the scales, not of the package's samplers.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from securecomp.privacy import calibration
from securecomp.privacy.accounting import GaussianNoise, LaplaceNoise, Mechanism, Sampled, total
from securecomp.privacy.sensitivity import Bounds, Neighbours, mean, mean_parts

PAGE = Path(__file__).resolve().parent / "results" / "promises.md"
PICTURE = PAGE.with_name("promises.svg")
DELTA = 1e-6
ANSWERS = (1, 10, 100, 1_000, 10_000)
MECHANISMS: dict[str, Mechanism] = {
    "Laplace, epsilon 0.1 each": LaplaceNoise(10),
    "Gaussian, sigma 50 times the sensitivity": GaussianNoise(50),
    "Gaussian, sigma 4 times a contribution, of a sample of 1 %": Sampled(0.01, 4),
}
EPSILONS = (0.1, 0.5, 1, 5, 10)
VALUES, UPPER = 1_000, 100
RUNS = 10_000
_KNOWN, _PRIVATE = "the number of values is public", "it is private: sum and count are noised"


@dataclass(frozen=True, slots=True)
class Error:
    """How far a noised mean is off.

    Attributes:
        promised: Within this in 95 of 100 runs; nothing where it is a quotient.
        inside: The share of runs within it.
        typical: The mean absolute error over all runs.
    """

    promised: float | None
    inside: float
    typical: float


def errors(epsilon: float) -> dict[str, Error]:
    """Noise the mean of 1000 values in [0, 100] many times, under three promises."""
    generator = np.random.default_rng(9)
    bounds = Bounds(0, UPPER)
    values = bounds.clip(generator.lognormal(3, 0.8, VALUES))
    exact = values.mean()
    replaced = mean(bounds, VALUES, Neighbours("replace-one"))
    b = calibration.laplace_scale(replaced, epsilon)
    sigma = calibration.gaussian_scale(replaced, epsilon, DELTA)
    parts = mean_parts(bounds, Neighbours())
    both = [calibration.laplace_scale(part, epsilon / 2) for part in parts]
    middle = UPPER / 2
    sums = (values - middle).sum() + generator.laplace(0, both[0], RUNS)
    counts = np.maximum(VALUES + generator.laplace(0, both[1], RUNS), 1)
    found = {
        f"Laplace, {_KNOWN}": (generator.laplace(0, b, RUNS), calibration.laplace_error(b)),
        f"Gaussian, {_KNOWN}": (
            generator.normal(0, sigma, RUNS),
            calibration.gaussian_error(sigma),
        ),
        f"Laplace, {_PRIVATE}": (middle + sums / counts - exact, None),
    }
    return {
        name: Error(
            promised,
            float("nan") if promised is None else float((np.abs(off) <= promised).mean()),
            float(np.abs(off).mean()),
        )
        for name, (off, promised) in found.items()
    }


def _short(epsilon: float) -> str:
    return f"{epsilon:,.0f}" if epsilon >= 100 else f"{epsilon:.3g}"


def page() -> str:
    """Return the tables in Markdown."""
    lines = [
        "# What answers cost together",
        "",
        "Computed by `python -m benchmarks promises`; do not edit. Epsilon at delta "
        f"{DELTA:g} under add/remove; `plain` adds epsilons up and shares delta out.",
        "",
        "| mechanism | answers | plain | RDP | PLD | plain : best |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, mechanism in MECHANISMS.items():
        for answers in ANSWERS:
            found = total([(mechanism, answers)], DELTA)
            plain, rdp, pld = (found.bounds[key] for key in ("plain", "RDP", "PLD"))
            cells = f"{answers:,} | {_short(plain)} | {_short(rdp)} | {_short(pld)}"
            lines.append(f"| {name} | {cells} | {plain / found.epsilon:,.2f} |")
    lines += [
        "",
        "# What noise does to a mean",
        "",
        f"The mean of {VALUES:,} values in [0, {UPPER}], {RUNS:,} runs of numpy's generator at the "
        f"scales that the promise asks for; Gaussian at delta {DELTA:g}.",
        "",
        "| epsilon | promise | within, 95 of 100 | measured | typical error |",
        "| ---: | --- | ---: | ---: | ---: |",
    ]
    for epsilon in EPSILONS:
        for name, error in errors(epsilon).items():
            bar = ("-", "-")
            if error.promised is not None:
                bar = (f"{error.promised:.3g}", f"{100 * error.inside:.1f} %")
            lines.append(f"| {epsilon:g} | {name} | {bar[0]} | {bar[1]} | {error.typical:.3g} |")
    return "\n".join(lines) + "\n\n![Typical error of a mean by epsilon](promises.svg)\n"


def draw() -> None:
    """Draw the typical error of the mean against epsilon."""
    made = {epsilon: errors(epsilon) for epsilon in EPSILONS}
    with rc_context({"svg.hashsalt": "securecomp"}):  # the same table draws the same file
        figure = Figure(figsize=(7, 4), layout="constrained")
        axes = figure.add_subplot()
        for name, mark in zip(made[1], "os^", strict=True):
            typical = [found[name].typical for found in made.values()]
            axes.loglog(EPSILONS, typical, marker=mark, label=name)
        axes.set_xlabel("epsilon")
        axes.set_ylabel(f"typical error of a mean in [0, {UPPER}]")
        axes.legend(frameon=False)
        axes.grid(alpha=0.3)
        figure.savefig(PICTURE, metadata={"Date": None})
