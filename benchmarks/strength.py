"""An attack's strength as noise in training grows: `python -m benchmarks strength`.

500 members and 500 others have 500 features, normal over the root of 500, ten of which inform with
a weight of 1; to their sum noise of .5 is added, and the label is its sign. The model: sampling
rate .1, 1000 steps of size 4, clipped at 1. Nothing here is timed.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from securecomp.audit.membership.claims import Claim
from securecomp.audit.membership.membership_audit import membership_inference
from securecomp.audit.membership.membership_report import MembershipReport
from securecomp.audit.membership.strength import Strength
from securecomp.show.figures import svg

PAGE = Path(__file__).resolve().parent / "results" / "strength.md"
EPSILONS = (None, 8.0, 2.0, 0.5)
"""None trains without noise."""
DELTA = 1e-5
MEMBERS, FEATURES, INFORMATIVE, NOISE = 500, 500, 10, 0.5

Part = tuple[Any, Any]


def data(seed: int) -> tuple[Part, Part]:
    """Return members and others."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2 * MEMBERS, FEATURES)) / np.sqrt(FEATURES)
    score = x[:, :INFORMATIVE].sum(axis=1) * np.sqrt(FEATURES / INFORMATIVE)
    y = (score + NOISE * rng.normal(size=2 * MEMBERS) > 0).astype(int)
    return (x[:MEMBERS], y[:MEMBERS]), (x[MEMBERS:], y[MEMBERS:])


def estimator(epsilon: float | None) -> Any:
    """Return what trains, not fitted yet."""
    from securecomp.federated.dp_models import DPLogisticRegression

    terms: dict[str, Any] = {"clip": 1.0, "rate": 0.1, "steps": 1000, "learning_rate": 4.0}
    if epsilon is None:
        return DPLogisticRegression(noise_multiplier=0, **terms)
    return DPLogisticRegression(epsilon=epsilon, delta=DELTA, **terms)


def audited(epsilon: float | None, seed: int = 0) -> MembershipReport:
    """Train a model and attack it.

    Raises:
        RefutedError: It leaks more than it promises.
    """
    members, others = data(seed)
    found = membership_inference(estimator(epsilon).fit(*members), members, others)
    if epsilon is not None:
        found.check(Claim(epsilon, DELTA, "record"))
    return found


def strength(epsilons: Sequence[float | None] = EPSILONS) -> Strength:
    """Return the audits of all models."""
    named = {"no noise" if e is None else f"epsilon {e:g}": e for e in epsilons}
    return Strength({name: audited(epsilon) for name, epsilon in named.items()})


def write() -> None:
    """Write the table and the figures."""
    found = strength()
    (grid,) = found.grids()
    lines = [f"# {found.title}", "", *(__doc__ or "").split("\n\n")[1:]]
    lines += ["| " + " | ".join(grid.header) + " |", "| --- " * len(grid.header) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in grid.rows]
    lines += [""]
    for plot, name in zip(found.plots(), ("strength-area.svg", "strength-curve.svg"), strict=True):
        PAGE.with_name(name).write_text(svg(plot).replace("currentColor", "#808080"))
        lines += [f"![{plot.title}]({name})", ""]
    PAGE.write_text("\n".join([*lines, *(f"- {remark}" for remark in found.remarks()), ""]))
