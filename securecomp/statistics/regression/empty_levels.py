"""Levels, and combinations of levels, that no row of any site has: what a model leaves out.

A column that is 0 in every row has no coefficient. Where a reference, or a combination with one,
has no rows, no column is 0, but one is a combination of others: the columns of the levels that
there are add up to one that is there already. Which columns these are follows from which cells of
each term's cross table are empty. The sizes of the cells with a reference in them are what the
other cells leave of the whole, so that nothing is summed beside the columns' own sizes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from securecomp.errors import RangeError
from securecomp.statistics.regression.designs import Design, Parts
from securecomp.statistics.regression.expressions import Expression, ExpressionRows
from securecomp.statistics.regression.formulas import Category

_NAMED = 5
_NOTHING = 1e-9  # of a column of zeros and ones, what others leave
_Key = frozenset[tuple[int, int | None]]


@dataclass(frozen=True, slots=True)
class UnseenCell:
    """Levels that no row of a fit has together.

    Attributes:
        levels: Columns, and the places of their levels.
        numbers: Factors by their texts; one of them is 0 in all rows with these levels.
    """

    levels: tuple[tuple[str, int], ...]
    numbers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EmptyLevels:
    """Parts that are left out of a design.

    Attributes:
        gone: Columns that are left out.
        unseen: Cells that no row has.
        words: A remark on them.
        references: Of each category with a reference, by its text, that level's place.
    """

    gone: frozenset[str]
    unseen: tuple[UnseenCell, ...]
    words: tuple[str, ...]
    references: Mapping[str, int]

    def left(self, design: Design) -> Design:
        """Return the design without what is left out."""
        kept = design.only([name for name in design.names if name not in self.gone])
        names = {}
        for parts in design.parts.values():
            for factor, _ in parts:
                if isinstance(factor, Category) and factor.text in self.references:
                    now = factor.called(self.references[factor.text])
                    names[factor.called(factor.reference)] = now
        references = {names[name]: others for name, others in kept.references.items()}
        return replace(kept, references=references)


@dataclass(frozen=True, slots=True)
class _Term:
    """The columns that are products of the same factors."""

    categories: tuple[Category, ...]
    numbers: tuple[Expression, ...]
    names: list[str]

    @property
    def factors(self) -> tuple[frozenset[int], frozenset[int]]:
        """Numbers and categories by their identity."""
        return frozenset(map(id, self.numbers)), frozenset(map(id, self.categories))

    def cells(self) -> list[tuple[int, ...]]:
        """Return the cells of the categories' cross table, as places of levels."""
        return list(product(*(range(len(c.levels)) for c in self.categories)))

    def key(self, cell: Sequence[int]) -> _Key:
        """Return what a column of a cell would be the product of."""
        levels = zip(map(id, self.categories), cell, strict=True)
        return frozenset([*((id(n), None) for n in self.numbers), *levels])

    def name(self, cell: Sequence[int]) -> str:
        """Return a cell's name."""
        levels = [c.called(i) for c, i in zip(self.categories, cell, strict=True)]
        return ":".join([*levels, *(n.text for n in self.numbers)])


def sized(design: Design) -> list[str]:
    """Return the columns whose sizes `find` uses: of levels, and of numbers they are taken with."""
    terms = _terms(design)
    taken = {term.factors[0] for term in terms if term.categories}
    return [name for term in terms if term.factors[0] in taken for name in term.names]


def find(
    design: Design, sizes: Mapping[str, Any], total: Any, *, constant: bool = False
) -> EmptyLevels:
    """Find what a design leaves out.

    Args:
        design: All columns.
        sizes: Of the columns that `sized` names, exact sums over rows of anything that is 0 where
            the column is, and else above it and the same for equal values: of squares, say.
        total: The same of a column of ones.
        constant: Whether the model has such a column, though the design does not.
    """
    terms = _terms(design)
    size = _sizes(design, sizes, total)
    zero = [n for t in terms if t.categories for n in t.names if sizes[n] == 0]
    gone = set(zero)
    unseen: list[UnseenCell] = []
    words: list[str] = []
    references: dict[str, int] = {}
    for term in terms:
        if not term.categories:
            continue
        first = term.categories[0]
        alone = len(term.categories) == 1 and not term.numbers
        alone = alone and first.called(first.reference) in design.references
        if alone:
            references[first.text] = first.reference
        found = [(cell, size(term.key(cell))) for cell in term.cells()]
        empty = [cell for cell, rows in found if rows is not None and rows == 0]
        unseen += [_unseen(term, cell) for cell in empty]
        own = {_key(design.parts[name]) for name in term.names}
        hidden = [term.name(cell) for cell in empty if term.key(cell) not in own]
        if not hidden or any(rows is None for _, rows in found):
            continue
        there = [cell for cell, rows in found if rows != 0]
        spare = _combinations(design, terms, term, there, gone, constant)
        gone.update(spare)
        if spare and alone:
            ((_, place),) = design.parts[spare[0]]
            references[first.text] = place or 0
            words.append(f"{hidden[0]} has no rows: {spare[0]} is the reference instead")
        elif spare:
            words.append(f"left out, because no row has {_listed(hidden)}: {_listed(spare)}")
    if zero:
        words.append(f"left out, because no row has them: {_listed(sorted(zero))}")
    return EmptyLevels(frozenset(gone), tuple(dict.fromkeys(unseen)), tuple(words), references)


def refuse_unseen(design: Design, rows: ExpressionRows, unseen: Sequence[UnseenCell]) -> None:
    """Refuse rows of levels that a fit had no row of: nothing is known of them.

    Raises:
        RangeError: It names the first.
    """
    factors = {f.text: f for parts in design.parts.values() for f, _ in parts}
    wrong = np.zeros(rows.count, bool)
    for cell in unseen:
        here = np.ones(rows.count, bool)
        for column, place in cell.levels:
            here &= rows.codes(column) == place
        for text in cell.numbers:
            number = factors[text]
            if isinstance(number, Expression):
                here &= rows.floats(number) != 0
        wrong |= here
    if wrong.any():
        raise RangeError(
            f"row {int(np.argmax(wrong)) + 1} has a level that no row of the fit had; leave "
            "such rows out"
        )


def _terms(design: Design) -> list[_Term]:
    found: dict[tuple[frozenset[int], frozenset[int]], _Term] = {}
    for name in design.names:
        parts = design.parts[name]
        term = _Term(
            tuple(f for f, _ in parts if isinstance(f, Category)),
            tuple(f for f, _ in parts if isinstance(f, Expression)),
            [],
        )
        found.setdefault(term.factors, term).names.append(name)
    return list(found.values())


def _sizes(design: Design, sizes: Mapping[str, Any], total: Any) -> Any:
    """Return the function from a cell to its size; None where that is not known."""
    known: dict[_Key, Any] = {_key(design.parts[n]): size for n, size in sizes.items()}
    known[frozenset()] = total
    categories = {
        id(f): f for parts in design.parts.values() for f, _ in parts if isinstance(f, Category)
    }

    def size(key: _Key) -> Any:
        if key in known:
            return known[key]
        for factor, place in key:
            if place is None or place != categories[factor].reference:
                continue
            rest = key - {(factor, place)}
            others = [i for i in range(len(categories[factor].levels)) if i != place]
            found = [size(rest), *(size(rest | {(factor, i)}) for i in others)]
            if all(v is not None for v in found):
                known[key] = found[0] - sum(found[1:])
                return known[key]
        return None

    return size


def _key(parts: Parts) -> _Key:
    return frozenset((id(factor), place) for factor, place in parts)


def _combinations(
    design: Design,
    terms: Sequence[_Term],
    term: _Term,
    there: Sequence[tuple[int, ...]],
    gone: set[str],
    constant: bool,
) -> list[str]:
    """Return columns of a term that are combinations of others in the cells that have rows.

    The first ones are, so that the first level with rows is what the others are compared with.
    """
    numbers, categories = term.factors
    below = [t for t in terms if t.factors[0] == numbers and t.factors[1] < categories]
    names = [n for t in below for n in t.names if n not in gone]
    # All levels of another category add up to a constant, too.
    before = terms[: terms.index(term)]
    full = [t for t in before if t.factors[0] == numbers and len(t.names) == len(t.cells())]
    own = [n for n in reversed(term.names) if n not in gone]
    places = {id(c): i for i, c in enumerate(term.categories)}
    cells = np.array(there, np.int64).reshape(len(there), len(places))
    basis = np.zeros((len(there), len(there)))
    rank, found = 0, []
    ones = [""] if full or (constant and not numbers) else []
    for name in [*ones, *names, *own]:
        column = np.ones(len(there))
        for factor, place in design.parts.get(name, ()):
            if place is not None:
                column *= cells[:, places[id(factor)]] == place
        length = float(np.linalg.norm(column))
        for _ in range(2):  # once more, for what rounding left
            column = column - basis[:, :rank] @ (basis[:, :rank].T @ column)
        left = float(np.linalg.norm(column))
        if left > _NOTHING * length:
            basis[:, rank] = column / left
            rank += 1
        elif name in own:
            found.append(name)
    return found[::-1]


def _unseen(term: _Term, cell: Sequence[int]) -> UnseenCell:
    levels = zip((c.column for c in term.categories), cell, strict=True)
    return UnseenCell(tuple(levels), tuple(n.text for n in term.numbers))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (" and more" if len(names) > _NAMED else "")
