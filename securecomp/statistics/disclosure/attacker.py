"""Attacker who works out hidden counts from the counts that are shown.

The attacker knows every published count exactly, what the marks of the others say, and that counts
are whole numbers and not negative. The unknowns are the counts of the finest cells that the
questions can tell apart; every count that anybody asked for is a sum of them. An integer program
then gives what values a count can have.

Columns that no question combines need no common table: the unknowns are one table for each clique
of the columns' (triangulated) graph, tied at what neighbours share. For such decomposable sets of
margins that is exactly as much as the full joint table says.

Sources: Hundepohl et al., Statistical Disclosure Control (Wiley 2012), 4.4 (the attacker's
problem); Lauritzen, Graphical Models (1996), 2.1.3 (decomposable margins).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

Cell = tuple[tuple[str, frozenset[int]], ...]
"""Rows whose class of each named column is in a set; columns in order of their names."""
Range = tuple[float, float]
_WHOLE = 1e-6
_PUSH = 1e-5
_FAR = 1 << 40
_INFEASIBLE = 2  # scipy's status of a program without a solution


def cell(where: Mapping[str, frozenset[int]], classes: Mapping[str, int]) -> Cell:
    """Return a cell in its one form: without columns of which all classes count."""
    return tuple(sorted((c, s) for c, s in where.items() if len(s) < classes[c]))


def within(inner: Cell, outer: Cell) -> bool:
    """Whether every row of one cell is in another, whatever the data."""
    mine = dict(inner)
    return all(column in mine and mine[column] <= chosen for column, chosen in outer)


class UnknownCounts:
    """The unknown counts.

    Attributes:
        classes: Column to number of classes that its values fall into.
        cliques: Columns of each table of unknowns.
        size: Number of unknowns.
    """

    def __init__(self, classes: Mapping[str, int], together: Iterable[Iterable[str]]) -> None:
        """Take the columns, and which of them a question combines."""
        self.classes = dict(classes)
        self.cliques = _cliques(list(self.classes), [frozenset(t) for t in together])
        self._tables: list[npt.NDArray[np.int64]] = []
        start = 0
        for clique in self.cliques:
            shape = [self.classes[column] for column in clique]
            count = math.prod(shape)
            self._tables.append(np.arange(start, start + count).reshape(shape))
            start += count
        self.size = start

    def members(self, cell: Cell) -> npt.NDArray[np.int64]:
        """Return the unknowns whose sum is the count of a cell."""
        chosen = dict(cell)
        place = next(i for i, clique in enumerate(self.cliques) if set(chosen) <= set(clique))
        return self._select(place, chosen)

    def _select(self, place: int, chosen: Mapping[str, Iterable[int]]) -> npt.NDArray[np.int64]:
        axes = [sorted(chosen.get(c, range(self.classes[c]))) for c in self.cliques[place]]
        return self._tables[place][np.ix_(*axes)].reshape(-1)

    def ties(self) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """Return pairs of sets of unknowns whose sums are equal: what two tables share."""
        pairs = []
        for one, two in _tree(self.cliques):
            shared = [c for c in self.cliques[one] if c in self.cliques[two]]
            for index in np.ndindex(*(self.classes[c] for c in shared)):
                where = {c: (i,) for c, i in zip(shared, index, strict=True)}
                pairs.append((self._select(one, where), self._select(two, where)))
        return pairs


def _cliques(columns: list[str], together: Sequence[frozenset[str]]) -> list[tuple[str, ...]]:
    """Return the maximal cliques of a triangulation of the columns' graph (least fill first)."""
    near: dict[str, set[str]] = {c: set() for c in columns}
    for group in together:
        for c in group:
            near[c] |= group - {c}
    left = {c: set(n) for c, n in near.items()}
    found: list[frozenset[str]] = []
    while left:
        fill = {c: sum(b not in left[a] for a, b in combinations(sorted(left[c]), 2)) for c in left}
        column = min(left, key=lambda c: (fill[c], c))
        around = left.pop(column)
        for other in around:
            left[other] |= around - {other}
            left[other].discard(column)
        found.append(frozenset(around | {column}))
    kept = [c for c in found if not any(c < other for other in found)]
    return [tuple(sorted(c)) for c in dict.fromkeys(kept)] or [()]


def _tree(cliques: Sequence[tuple[str, ...]]) -> list[tuple[int, int]]:
    """Return a junction tree: the spanning tree whose neighbours share the most."""
    edges = []
    joined = {0}
    while len(joined) < len(cliques):
        pairs = [(i, j) for i in joined for j in range(len(cliques)) if j not in joined]
        best = max(pairs, key=lambda p: (len(set(cliques[p[0]]) & set(cliques[p[1]])), p))
        edges.append(best)
        joined.add(best[1])
    return edges


class Attacker:
    """Whoever sees the published counts, and can compute."""

    def __init__(self, space: UnknownCounts, cells: Sequence[Cell]) -> None:
        """Take the cells of which something may be known, or be asked."""
        from scipy import sparse  # takes a while to load; few results have small cells

        def rows(chosen: Sequence[npt.NDArray[np.int64]]) -> Any:
            lengths = [len(members) for members in chosen]
            places = (
                np.repeat(np.arange(len(chosen)), lengths),
                np.concatenate([*chosen, np.zeros(0, np.int64)]),
            )
            values = np.ones(sum(lengths))
            return sparse.csr_array((values, places), shape=(len(chosen), space.size))

        self.cells = tuple(cells)
        self._sums = rows([space.members(c) for c in cells])
        ties = space.ties()
        self._ties = rows([a for a, _ in ties]) - rows([b for _, b in ties])
        self.size = space.size

    def interval(self, known: Sequence[Range], index: int, cap: int = 1 << 31) -> tuple[int, int]:
        """Return the least and the greatest value that a cell's count can have.

        Args:
            known: For each cell, the range that its count is known to be in.
            index: Which cell.
            cap: The greatest value that is looked for.
        """
        low, high = (
            self._solve(known, self._sums[[index]].toarray()[0] * sign, {}, (index, (0, cap)))
            for sign in (1, -1)
        )
        if low is None or high is None:
            raise ValueError("no counts are as it is said that they are")
        return round(low[index]), round(high[index])

    def extremes(
        self, known: Sequence[Range], indices: Sequence[int]
    ) -> tuple[npt.NDArray[Any] | None, npt.NDArray[Any] | None]:
        """Return counts at which some cells have the fewest rows together, and the most."""
        ranges = [(low, min(high, _FAR)) for low, high in known]
        weights = np.asarray(self._sums[list(indices)].sum(axis=0)).reshape(-1)
        return self._solve(ranges, weights, {}, None), self._solve(ranges, -weights, {}, None)

    def move(
        self,
        known: Sequence[Range],
        index: int,
        target: Range,
        costs: Mapping[int, tuple[int, float]] | None = None,
        push: Sequence[int] = (),
    ) -> npt.NDArray[Any] | None:
        """Return counts that have one cell in a range, and move others as little as can be.

        Args:
            known: For each cell, its range; of one that may move, how far.
            index: The cell.
            target: Where its count shall be.
            costs: Cells that should keep their count and may leave it: index to count, and cost of
                moving by one, at least 1.
            push: Cells that shall be as small or as large as the target is, if it costs nothing.

        Returns:
            A count for each cell, checked; None if there are no such counts, or none was found.
        """
        weights = np.zeros(self.size)
        if len(push):
            sign = 1 if target[0] == 0 else -1
            weights = sign * _PUSH * np.asarray(self._sums[list(push)].sum(axis=0)).reshape(-1)
        # What is pushed must not run away.
        ranges = [(low, min(high, _FAR)) for low, high in known]
        return self._solve(ranges, weights, costs or {}, (index, target))

    def _solve(
        self,
        known: Sequence[Range],
        weights: npt.NDArray[Any],
        costs: Mapping[int, tuple[int, float]],
        target: tuple[int, Range] | None,
    ) -> npt.NDArray[Any] | None:
        from scipy import optimize, sparse

        low, high = (np.array(side, np.float64) for side in zip(*known, strict=True))
        if target is not None:
            index, (least, most) = target
            low[index], high[index] = max(low[index], least), min(high[index], most)
            if low[index] > high[index]:
                return None
        moving = list(costs)
        pull = sparse.eye_array(len(moving), format="csr")
        blank = sparse.csr_array((len(known), 2 * len(moving)))
        kept = np.array([value for value, _ in costs.values()], np.float64)
        matrix = sparse.vstack(
            [
                sparse.hstack([self._sums, blank]),
                sparse.hstack(
                    [self._ties, sparse.csr_array((self._ties.shape[0], 2 * len(moving)))]
                ),
                sparse.hstack([self._sums[moving], pull, -pull]),
            ]
        ).tocsr()
        none = np.zeros(self._ties.shape[0])
        limits = optimize.LinearConstraint(
            matrix, np.concatenate([low, none, kept]), np.concatenate([high, none, kept])
        )
        price = np.array([cost for _, cost in costs.values()] * 2, np.float64)
        objective = np.concatenate([weights, price])
        # Most of these programs are flows, whose vertices are whole numbers as they are.
        for whole in (0, 1):
            integrality = np.concatenate([np.full(self.size, whole), np.zeros(2 * len(moving))])
            found = optimize.milp(
                objective,
                constraints=limits,
                integrality=integrality,
                bounds=optimize.Bounds(0, np.inf),
            )
            if found.x is None:
                if found.status == _INFEASIBLE:
                    return None
                continue
            counts = found.x[: self.size]
            near = whole or np.abs(counts - np.rint(counts)).max(initial=0) < _WHOLE
            if near and (moved := self._possible(np.rint(counts), low, high)) is not None:
                return moved
        return None

    def _possible(
        self, counts: npt.NDArray[Any], low: npt.NDArray[Any], high: npt.NDArray[Any]
    ) -> npt.NDArray[Any] | None:
        """Return the cells' counts for whole unknowns, if these are as everything says.

        An optimiser's answer proves something only if it is one: it works in floats, within
        tolerances, and its versions differ.
        """
        moved: npt.NDArray[Any] = self._sums @ counts
        tied = not (self._ties @ counts).any()
        right = (counts >= 0).all() and (low <= moved).all() and (moved <= high).all()
        return moved if tied and right else None
