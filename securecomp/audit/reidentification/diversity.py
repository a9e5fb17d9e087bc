"""Diversity: values of a sensitive column that a group gives away though nobody in it is alone.

Source: Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam, "l-diversity: privacy beyond
k-anonymity" (TKDD 1(1), 2007), definitions 3.1, 4.1 and 4.2; Li, Li, Venkatasubramanian,
"t-closeness" (ICDE 2007), sections 3 and 4.
"""

from dataclasses import dataclass
from decimal import Decimal
from numbers import Real

import numpy as np
import numpy.typing as npt

from securecomp.audit.reidentification.equivalence import Coded, Groups, joined

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Diversity:
    """A sensitive column within the groups; people whose cell is empty are left out.

    Attributes:
        column: Name of the column.
        distinct: Fewest distinct values in a group: distinct l-diversity. 0 without any value.
        entropy: Smallest exp(entropy) of a group: entropy l-diversity.
        recursive: For l from 2 to `distinct`, the largest r1 / (rl + ... + rm) of a group, with r
            the counts of its values in falling order. The groups are (c, l)-diverse for every
            larger c.
        closeness: Largest distance of a group's distribution from the overall one: t-closeness.
        ordered: Whether the distance uses an order (of more than two numbers), or takes all values
            to be equally far apart.
        given_away: Number of people in groups of at least two in which all have a value in common.
        missing: Number of rows with an empty cell.
    """

    column: str
    distinct: int
    entropy: float
    recursive: tuple[tuple[int, float], ...]
    closeness: float
    ordered: bool
    given_away: int
    missing: int


def diversity(groups: Groups, column: Coded) -> Diversity:
    """Measure a sensitive column. A person counts once in a group for each value."""
    there = column.codes > 0
    width = len(column.values) + 1
    values = groups.of_row[there] * width + column.codes[there]
    if groups.people < groups.rows:
        keys, count = joined([values, groups.person[there]])
        one = np.empty(count, np.int64)
        one[keys] = values
        values = one
    cells, counts = np.unique(values, return_counts=True)
    ordered = len(column.values) > 2 and all(isinstance(v, Real | Decimal) for v in column.values)
    missing = int(np.count_nonzero(~there))
    if not len(cells):
        return Diversity(column.name, 0, 0.0, (), 0.0, ordered, 0, missing)
    group, value = np.divmod(cells, width)
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    of = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(group)))
    totals = np.add.reduceat(counts, starts)
    kinds = np.diff(starts, append=len(group))
    share = counts / totals[of]
    entropies = np.add.reduceat(-share * np.log(share), starts)
    distinct = int(kinds.min())
    pairs = np.unique(groups.of_row[there] * groups.people + groups.person[there])
    having = np.bincount(pairs // groups.people, minlength=len(groups.sizes))
    same = group[counts == having[group]]
    alike = np.zeros(len(groups.sizes), bool)
    alike[same] = groups.sizes[same] > 1
    found = np.zeros(groups.people, bool)
    found[groups.person[alike[groups.of_row] & there]] = True
    return Diversity(
        column.name,
        distinct,
        float(np.exp(entropies.min())),
        _recursive(of, counts, totals, starts, distinct),
        _closeness(of, value - 1, counts, share, column if ordered else None, starts),
        ordered,
        int(np.count_nonzero(found)),
        missing,
    )


def _recursive(
    of: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
    totals: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    distinct: int,
) -> tuple[tuple[int, float], ...]:
    falling = counts[np.lexsort((-counts, of))]
    before = np.concatenate([[0], np.cumsum(falling)])
    first = falling[starts]
    found = []
    for l in range(2, min(distinct, _DEEPEST) + 1):  # noqa: E741 - the paper's letter
        tail = totals - (before[starts + l - 1] - before[starts])
        found.append((l, float((first / tail).max())))
    return tuple(found)


_DEEPEST = 5
"""Largest l for which recursive diversity is given."""


def _closeness(
    of: npt.NDArray[np.int64],
    value: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
    share: Floats,
    numbers: Coded | None,
    starts: npt.NDArray[np.int64],
) -> float:
    """Return the largest earth mover's distance of a group from the whole table."""
    if numbers is not None:
        rising = sorted(range(len(numbers.values)), key=numbers.values.__getitem__)
        value = np.argsort(rising)[value]
        order = np.lexsort((value, of))
        value, counts, share = value[order], counts[order], share[order]
    overall = np.bincount(value, counts)
    overall = overall / overall.sum()
    if numbers is None:
        return float(np.add.reduceat(np.maximum(share - overall[value], 0), starts).max())
    size = len(overall)
    # The sum over values of |P - Q|, both cumulated. P is constant between two values of a group,
    # and Q rises. On each such stretch Q is below P until it passes it.
    high = np.cumsum(overall)
    area = np.concatenate([[0.0], np.cumsum(high)])  # area[i]: sum of Q before i
    level = np.cumsum(share)
    level -= (level - share)[starts][of]
    to = np.append(value[1:], size)
    to[np.append(starts[1:], len(value)) - 1] = size
    turn = np.clip(np.searchsorted(high, level), value, to)
    below = level * (turn - value) - (area[turn] - area[value])
    above = area[to] - area[turn] - level * (to - turn)
    distance = np.add.reduceat(below + above, starts) + area[value[starts]]
    return float(distance.max() / (size - 1))
