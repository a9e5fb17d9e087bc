"""Rows that stand alone in a table of a million rows, against the sizes of its groups by pandas."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from securecomp.audit.reidentification.uniqueness import uniqueness
from securecomp.overhead.cases.synthetic_data import Synthetic
from securecomp.overhead.job import Case, Job, WrongResultError

_QUASI = ("age", "sex", "postcode", "admitted", "diagnosis")


def stays(rows: int) -> Any:
    """Return rows; columns have few, or thousands of distinct values."""
    import pandas as pd

    rng = Synthetic(1)
    return pd.DataFrame(
        {
            "age": rng.integers(0, 100, rows),
            "sex": np.where(rng.random(rows) < 0.5, "f", "m"),
            "postcode": [f"{n:05}" for n in rng.zipf(1.3, rows) % 5000],
            "admitted": rng.integers(0, 365, rows),
            "diagnosis": rng.zipf(1.2, rows) % 3000,
        }
    )


def job(rows: int) -> Job:
    """Return the job of finding the rows that stand alone."""
    frame = stays(rows)

    def check(sizes: Any, found: Any) -> float:
        alone = int((sizes == 1).sum())
        if (found.groups, found.alone) != (len(sizes), alone):
            raise WrongResultError(f"{found.alone} rows stand alone instead of {alone}")
        return 0.0

    return Job(
        sizes={"rows": rows, "columns": len(_QUASI)},
        plain=lambda: frame.groupby(list(_QUASI)).size(),
        secure=lambda _: uniqueness(frame, _QUASI),
        check=check,
        note=(
            "Nothing is encrypted. Plaintext: the groups' sizes by pandas; beside these, all sets "
            "of at most three columns, each column left out, and coarser columns."
        ),
    )


def for_developers() -> Iterator[Case]:
    """Yield the search over a million rows."""
    yield Case(
        "audit/uniqueness",
        "Who stands alone, 5 columns",
        job,
        size=1_000_000,
        quick=100_000,
        tiny=100,
        rounds=5,
        needs=("pandas",),
        install="pip install pandas",
    )
