"""What your own function costs in private: the same work twice, put through the harness.

Three pharmacies add up what they sold of each of 1,000 drugs. Once in the clear; once so that none
shows its sales; and once more with a mistake, which gets no time.

python examples/measure_overhead.py
"""

from dataclasses import replace

import numpy as np

from securecomp import secure_sum
from securecomp.overhead import Communication, Job, WrongResultError, measure, report, text

SALES = np.random.default_rng(0).integers(0, 500, (3, 1000))
NAMES = ("pharmacy 1", "pharmacy 2", "pharmacy 3")


def plain():
    return np.add.reduce(SALES)


def private(_):
    return secure_sum(dict(zip(NAMES, SALES, strict=True)), bound=500)


def difference(expected, total):
    """Return the numeric error, 0 for an exact protocol; refuse a wrong total."""
    if not np.array_equal(expected, total.values):
        raise WrongResultError("the totals are not those of the clear sales")
    return 0.0


def forgetful(_):
    """Add up the first two pharmacies alone: fast, and wrong."""
    return secure_sum(dict(zip(NAMES[:2], SALES, strict=False)), bound=500)


def main() -> None:
    job = Job(
        sizes={"parties": 3, "elements": SALES.shape[1]},
        plain=plain,
        secure=private,
        check=difference,
        cost=lambda _, total: Communication.of(total.transcript),
    )
    # quick: a third of a second of measuring; leave it out for figures to rely on.
    rows = [
        measure(job, "sales", quick=True),
        measure(replace(job, secure=forgetful), "sales, one forgotten", quick=True),
    ]
    print(text(report(rows, quick=True)))


if __name__ == "__main__":
    main()
