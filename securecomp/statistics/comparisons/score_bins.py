"""Bins of a score that are narrow where cases and controls mix, chosen from opened totals.

One sum after the other counts the rows in bins, and those that hold most pairs of a case and a
control are split for the next: by 2 and by 5, so that borders are round numbers. Bins of an earlier
sum are unions of those of a later one, so that what is opened is the counts in the narrowest. Of a
few bins none can be spared for round numbers, and they are halved.
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil

_PIECES = 1000  # bins that one sum counts, if no more are asked for
_FEW = 20
Counter = Callable[[Sequence[Sequence[float]], float], tuple[list[int], list[int]]]
"""Counts cases and controls in the bins between the edges of each list, by one secure sum; a bin
is [a, b), but for one that ends at the number beside."""


@dataclass(frozen=True, slots=True)
class _Bin:
    """A bin [start, start + width).

    Attributes:
        start: Its lower border.
        width: 10^j, or 2 * 10^j, unless bins are halved.
        steps: Into how many bins it is split, and each of these.
        cases: Rows in it with the event.
        controls: Rows without.
    """

    start: Fraction
    width: Fraction
    steps: tuple[int, int]
    cases: int = 0
    controls: int = 0

    @property
    def rows(self) -> int:
        return self.cases + self.controls

    @property
    def pairs(self) -> int:
        """Pairs of a case and a control of which nobody knows whose score is larger."""
        return self.cases * self.controls

    def split(self, depth: int) -> "list[_Bin]":
        """Return the bins that it consists of, of as many widths below."""
        count = self.count(depth)
        width, steps = self.width / count, self.steps
        if depth % 2:
            steps = steps[1], steps[0]
        return [_Bin(self.start + i * width, width, steps) for i in range(count)]

    def count(self, depth: int) -> int:
        """Return of how many of these it consists."""
        first, second = self.steps
        return int(first ** ((depth + 1) // 2) * second ** (depth // 2))

    def separates(self, unit: Fraction, depth: int) -> bool:
        """Whether one more split tells scores apart that so many splits do not."""
        # Far from zero, floats are as coarse as their last digit.
        coarse = max(abs(self.start), abs(self.start + self.width)) / (1 << 50)
        now, then = self.width / self.count(depth), self.width / self.count(depth + 1)
        return now > unit and then > coarse


@dataclass(frozen=True, slots=True)
class ScoreBins:
    """Bins, and the rows in each.

    Attributes:
        edges: Their borders; every bin but the last is [a, b).
        cases: Rows with the event, in each.
        controls: Rows without.
        narrow: Whether all scores in a bin are within one unit.
    """

    edges: tuple[float, ...]
    cases: tuple[int, ...]
    controls: tuple[int, ...]
    narrow: tuple[bool, ...]

    @classmethod
    def given(
        cls, edges: tuple[float, ...], unit: Fraction, counts: tuple[list[int], list[int]]
    ) -> "ScoreBins":
        """Return bins between given edges."""
        first = [ceil(Fraction(repr(edge)) / unit) for edge in edges]
        narrow = [b - a <= 1 for a, b in pairwise(first)]
        narrow[-1] = first[-1] == first[-2]  # the last bin is closed
        cases, controls = counts
        return cls(edges, tuple(cases), tuple(controls), tuple(narrow))


def chosen_bins(bound: Fraction, unit: Fraction, most: int, count: Counter) -> ScoreBins:
    """Choose bins by sums over the sites, each of which says where the next looks closer.

    Args:
        bound: No absolute score is more.
        unit: Scores are its multiples: bins need not be narrower.
        most: So many bins hold rows, at most.
        count: Runs one sum; it refuses if there are no cases, or no controls.
    """
    reach = _power_of_ten(bound)
    whole, depth = _Bin(-reach, 2 * reach, (2, 2) if most < _FEW else (2, 5)), 0
    while whole.separates(unit, depth) and whole.count(depth + 1) <= min(most, _PIECES):
        depth += 1
    bins, depths = [whole], [depth]
    done: list[_Bin] = []
    while bins:
        parts = [b.split(depth) for b, depth in zip(bins, depths, strict=True)]
        edges = [[*(float(b.start) for b in part), _end(part[-1])] for part in parts]
        cases, controls = count(edges, float(reach))
        pieces = zip([b for part in parts for b in part], cases, controls, strict=True)
        found = [_Bin(b.start, b.width, b.steps, p, n) for b, p, n in pieces]
        done += [b for b in found if b.rows]
        splits = _next(done, unit, most)
        bins, depths = list(splits), list(splits.values())
        done = [b for b in done if b not in splits]
    done.sort(key=lambda b: b.start)
    borders = (*(float(b.start) for b in done), _end(done[-1]))
    return ScoreBins(
        borders,
        tuple(b.cases for b in done),
        tuple(b.controls for b in done),
        tuple(b.width <= unit and b.start + b.width < reach for b in done),
    )


def _power_of_ten(bound: Fraction) -> Fraction:
    """Return the least power of ten that is not below a bound."""
    power = Fraction(1)
    while bound and power / 10 >= bound:
        power /= 10
    while power < bound:
        power *= 10
    return power


def _end(last: _Bin) -> float:
    return float(last.start + last.width)


def _next(bins: Sequence[_Bin], unit: Fraction, most: int) -> dict[_Bin, int]:
    """Return which bins are split next, and how often: where most pairs share a bin.

    Args:
        bins: Those with rows.
        unit: No bin need be narrower.
        most: So many bins may hold rows.
    """
    room = most - len(bins)
    # Half of the room: the next sum shows where the rest is needed most.
    return _split(bins, unit, -(-room // 2), most) or _split(bins, unit, room, most)


def _split(bins: Sequence[_Bin], unit: Fraction, room: int, most: int) -> dict[_Bin, int]:
    pieces, depths = max(_PIECES, 2 * most), dict[_Bin, int]()
    queue = [(Fraction(-b.pairs), b.start, b, 0) for b in bins if b.pairs]
    heapq.heapify(queue)
    while queue:
        _, _, b, depth = heapq.heappop(queue)
        now, then = b.count(depth), b.count(depth + 1)
        more_rows = min(then, b.rows) - min(now, b.rows)
        if more_rows <= room and then - now <= pieces and b.separates(unit, depth):
            room, pieces = room - more_rows, pieces - (then - now)
            depths[b] = depth + 1
            # Of the pairs that share a bin, about one in as many bins as it becomes still does.
            heapq.heappush(queue, (Fraction(-b.pairs, then), b.start, b, depth + 1))
    return depths
