"""Formulas, as R and Python write them: text to terms, and each factor to an `Expression`.

`terms` parses a formula into terms; nothing is evaluated there. A formula may come from somebody
else, so that its factors are read as syntax trees in which only columns, numbers, arithmetic,
comparisons and a few functions that act on a row alone have a meaning. What depends on all rows of
a site (a mean to subtract, the knots of a spline) is refused: each site would compute another.

Source: Wilkinson and Rogers, Applied Statistics 22 (1973) 392-399.
"""

import ast
import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from securecomp.errors import ParameterError, brief
from securecomp.statistics.regression import expressions, formula_terms
from securecomp.statistics.regression.expressions import FUNCTIONS, Expression
from securecomp.statistics.regression.formula_terms import Names
from securecomp.statistics.schema import Schema
from securecomp.statistics.site_table import Level

_TINY, _HUGE = 1e-140, 1e140  # squares, and coefficients' variances, must be floats
_OF_ALL_ROWS = {
    **dict.fromkeys(("bs", "cc", "cr", "cs", "ns", "te"), "knots"),
    "center": "mean",
    "cut": "borders",
    "hashed": "codes",
    "lag": "row before",
    "poly": "polynomials",
    "qcut": "borders",
    "rank": "ranks",
    "scale": "mean and standard deviation",
    "standardize": "mean and standard deviation",
}
_COMPARISONS: Mapping[type, Any] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


@dataclass(frozen=True, slots=True)
class Category:
    """A factor of levels, in treatment coding.

    Attributes:
        text: As the formula has it.
        column: The column.
        levels: Each level's indicator, in the agreed order.
        names: The levels as people read them.
        reference: Place of the level that the others are compared with.
        plain: Whether columns of it are called "ward=b", and not "ward[T.b]".
    """

    text: str
    column: str
    levels: tuple[Expression, ...]
    names: tuple[str, ...]
    reference: int
    plain: bool = False

    def called(self, place: int, mark: str = "") -> str:
        """Return the name of a level's column."""
        name = self.names[place]
        return f"{self.text}={name}" if self.plain else f"{self.text}[{mark}{name}]"


Factor = Expression | Category


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula's parts.

    Attributes:
        text: As it was given.
        response: What is explained.
        terms: What explains it: the factors of each term; none for the intercept.
        numeric: Columns that are read as numbers.
        categorical: Columns that are read as categories.
    """

    text: str
    response: Factor
    terms: tuple[tuple[Factor, ...], ...]
    numeric: tuple[str, ...]
    categorical: tuple[str, ...]


def parse(
    text: str,
    schema: Schema,
    bounds: Mapping[str, float] | None = None,
    *,
    new_rows: bool = False,
    one_side: bool = False,
) -> Formula:
    """Read a formula.

    Args:
        text: Such as "died ~ los + C(type) * age".
        schema: The agreed grids and levels.
        bounds: Factors, as the formula has them, to the largest absolute value that is agreed.
        new_rows: Read it for rows that stay here: without the response, and without bounds.
        one_side: It has no response: "~ age + C(ward)".

    Raises:
        ParameterError: Not a formula, or something in it that has no meaning here.
        BackendUnavailableError: `formulaic` is not installed.
    """
    if bounds is not None and not isinstance(bounds, Mapping):
        raise ParameterError(f"bounds map a formula's factors to numbers, not {bounds!r}")
    for name in bounds or ():
        if not isinstance(name, str):
            raise ParameterError(
                f"bounds: a factor is text, as the formula has it, such as 'exp(x)', not {name!r}"
            )
    left, right, names = formula_terms.read(text, one_side=one_side)
    reader = _Reader(schema, dict(bounds or {}), new_rows, names)
    if len(left) != 1 or len(left[0]) != 1:
        raise ParameterError(
            f"formula {brief(text)!r}: one response is before ~, as in 'died ~ los + hmo'"
        )
    response: Factor = expressions.constant("", 0)
    if not (new_rows or one_side):
        response = reader.factor(*left[0][0])
    found = tuple(tuple(reader.factor(*f) for f in term) for term in right)
    unused = set(reader.bounds) - reader.used
    if unused:
        known = list(dict.fromkeys(brief(f.text) for term in found for f in term))
        more = f" and {len(known) - 10} more" if len(known) > 10 else ""
        raise ParameterError(
            f"bounds: there is no {brief(min(unused))!r} in the formula; its factors are: "
            + ", ".join(known[:10])
            + more
        )
    return Formula(text, response, found, tuple(reader.numeric), tuple(reader.categorical))


def category(
    schema: Schema, text: str, column: str, reference: int = 0, *, plain: bool = False
) -> Category:
    """Return a column's levels as a factor; see `Category`."""
    levels = schema.levels(column)
    indicators = tuple(
        expressions.indicator(f"{text}[{level}]", column, i) for i, level in enumerate(levels)
    )
    return Category(text, column, indicators, tuple(map(str, levels)), reference, plain)


@dataclass(slots=True)
class _Reader:
    """Reads factors; each column's expression is made once."""

    schema: Schema
    bounds: dict[str, float]
    new_rows: bool
    names: Names
    used: set[str] = field(default_factory=set)
    numeric: dict[str, Expression] = field(default_factory=dict)
    categorical: dict[str, None] = field(default_factory=dict)
    _factors: dict[tuple[str, str], Factor] = field(default_factory=dict)

    def factor(self, text: str, how: str) -> Factor:
        """Return a factor: the same object each time that it is in the formula."""
        name = self.names.column(text) if how == "lookup" else text
        if (name, how) not in self._factors:
            shown = name if how == "lookup" else self.names.shown(text)
            found = self._lookup(name) if how == "lookup" else self._read(text, shown)
            self._factors[name, how] = self._bounded(shown, found)
        return self._factors[name, how]

    def _bounded(self, text: str, found: Factor) -> Factor:
        # White space does not matter, and I(...) may be left out.
        names = {formula_terms.plain(name): name for name in self.bounds}
        plain = formula_terms.plain(text)
        name = names.get(plain, names.get(f"I({plain})", names.get(f"`{text}`")))
        if text in self.bounds:
            name = text
        if name is not None and isinstance(found, Expression):
            bound = self.bounds[name]
            if (
                isinstance(bound, bool)
                or not isinstance(bound, int | float)
                or not 0 < bound < _HUGE
            ):
                raise ParameterError(
                    f"bounds: {brief(name)!r} must be a positive number below {_HUGE:g}"
                )
            self.used.add(name)
            found = expressions.bounded(found, float(bound))
        if isinstance(found, Expression) and not self.new_rows:
            if not found.largest < _HUGE:
                raise ParameterError(
                    f"{brief(text)} has no bound by the columns' bounds and grids; agree on the "
                    f"largest absolute value: bounds={{{brief(text)!r}: ...}}"
                )
            if 0 < found.largest < _TINY or (found.unit or 1) < _TINY**2:
                raise ParameterError(
                    f"{brief(text)} has values that are too small to be summed (below {_TINY:g}); "
                    "multiply it by a power of ten"
                )
        return found

    def _lookup(self, name: str) -> Factor:
        if self.schema.is_text(name):
            return self._category(name, name, None)
        return self._number(name)

    def _number(self, name: str) -> Expression:
        if name not in self.numeric:
            self.numeric[name] = expressions.column(self.schema, name)
        return self.numeric[name]

    def _category(self, text: str, name: str, reference: Level | None) -> Category:
        first = 0 if reference is None else self._place(text, name, reference)
        self.categorical[name] = None
        return category(self.schema, text, name, first)

    def _place(self, text: str, name: str, value: Level) -> int:
        """Return the place of a value among the agreed levels of a column."""
        levels = self.schema.levels(name)
        if value not in levels:
            known = ", ".join(map(repr, levels[:10]))
            raise ParameterError(
                f"{brief(text)}: {brief(repr(value))} is not one of the levels of "
                f"{brief(repr(name))}: {known}"
            )
        return levels.index(value)

    def _read(self, text: str, shown: str) -> Factor:
        """Read a factor in Python's syntax."""
        try:
            tree = ast.parse(text.strip(), mode="eval").body
            if isinstance(tree, ast.Call) and self._called(tree) == "C":
                return self._coded(shown, tree)
            return self._expression(brief(shown), tree)
        except (SyntaxError, RecursionError, MemoryError):
            raise ParameterError(f"{brief(shown)}: not an expression that can be read") from None

    def _coded(self, text: str, call: ast.Call) -> Category:
        """Read C(column) or C(column, Treatment(level))."""
        if not call.args or not isinstance(call.args[0], ast.Name):
            raise ParameterError(f"{brief(text)}: C() takes a column's name")
        coding = [*call.args[1:], *(k.value for k in call.keywords)]
        reference: Level | None = None
        if coding:
            (how,) = coding if len(coding) == 1 else (None,)
            names = ("Treatment", "treatment", "contr.treatment")
            args: list[Any] = []
            called = how
            if isinstance(how, ast.Call):
                called, args = how.func, [*how.args, *(k.value for k in how.keywords)]
            known = isinstance(called, ast.Name | ast.Attribute) and ast.unparse(called) in names
            if not known or len(args) > 1 or any(not isinstance(a, ast.Constant) for a in args):
                raise ParameterError(
                    f"{brief(text)}: categories are in treatment coding, C(x) or "
                    'C(x, Treatment("reference level")); no other coding is known'
                )
            reference = args[0].value if args else None
        return self._category(text, self._name(call.args[0]), reference)

    def _name(self, node: ast.Name) -> str:
        return self.names.column(node.id)

    def _text(self, node: ast.expr) -> str:
        return self.names.shown(ast.unparse(node))

    def _called(self, call: ast.Call) -> str:
        name = ast.unparse(call.func)
        return name.removeprefix("np.").removeprefix("numpy.")

    def _expression(self, text: str, node: ast.expr) -> Expression:
        """Read an expression: whatever is not listed here is refused."""
        here = self._text(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return expressions.constant(here, node.value)
        if isinstance(node, ast.Name):
            name = self._name(node)
            if self.schema.is_text(name):
                raise ParameterError(
                    f"{text}: column {name!r} holds text; compare it with a level, as in "
                    f"I({self._text(node)} == 'level'), or use it as it is"
                )
            return self._number(name)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            operand = self._expression(text, node.operand)
            sign = -1 if isinstance(node.op, ast.USub) else 1
            return expressions.add(here, expressions.constant("0", 0), operand, sign)
        if isinstance(node, ast.BinOp):
            return self._arithmetic(text, here, node)
        if isinstance(node, ast.Compare):
            return self._comparison(text, here, node)
        if isinstance(node, ast.Call):
            return self._call(text, here, node)
        raise ParameterError(f"{text}: {brief(here)} has no meaning in a formula; {_known()}")

    def _arithmetic(self, text: str, here: str, node: ast.BinOp) -> Expression:
        a = self._expression(text, node.left)
        b = self._expression(text, node.right)
        kind = type(node.op)
        if kind is ast.Add or kind is ast.Sub:
            return expressions.add(here, a, b, 1 if kind is ast.Add else -1)
        if kind is ast.Mult:
            return expressions.multiply(here, a, b)
        if kind is ast.Div:
            return expressions.divide(here, a, b)
        if kind is ast.Pow and a.low == a.high and b.low == b.high:
            raise ParameterError(f"{text}: {brief(here)} is a number; write it out")
        if kind is ast.Pow and b.low == b.high and isinstance(b.low, Fraction):
            return expressions.power(here, a, b.low)
        if kind is ast.BitAnd and a.binary and b.binary:
            return expressions.multiply(here, a, b)
        if kind is ast.BitOr and a.binary and b.binary:
            both = expressions.multiply(here, a, b)
            either = expressions.add(here, expressions.add(here, a, b), both, -1)
            return Expression(here, Fraction(0), Fraction(1), Fraction(1), either.compute)
        raise ParameterError(f"{text}: {brief(here)} has no meaning in a formula; {_known()}")

    def _comparison(self, text: str, here: str, node: ast.Compare) -> Expression:
        found: Expression | None = None
        sides = [node.left, *node.comparators]
        for left, right, how in zip(sides[:-1], sides[1:], node.ops, strict=True):
            if type(how) not in _COMPARISONS:
                raise ParameterError(
                    f"{text}: {brief(here)} has no meaning in a formula; {_known()}"
                )
            one = self._compared(text, here, left, right, _COMPARISONS[type(how)])
            found = one if found is None else expressions.multiply(here, found, one)
        return found  # type: ignore[return-value]

    def _compared(
        self, text: str, here: str, left: ast.expr, right: ast.expr, how: Any
    ) -> Expression:
        if isinstance(left, ast.Constant) and isinstance(left.value, str):
            left, right = right, left
        if isinstance(right, ast.Constant) and isinstance(right.value, str):
            if not isinstance(left, ast.Name) or how not in (operator.eq, operator.ne):
                raise ParameterError(f"{text}: text is compared by == or != with a column")
            name = self._name(left)
            self.categorical[name] = None
            at = self._place(here, name, right.value)
            same = expressions.indicator(here, name, at)
            if how is operator.eq:
                return same
            apart = expressions.add(here, expressions.constant("1", 1), same, -1)
            return Expression(here, apart.low, apart.high, Fraction(1), apart.compute)
        return expressions.compare(
            here, self._expression(text, left), self._expression(text, right), how
        )

    def _call(self, text: str, here: str, node: ast.Call) -> Expression:
        name = self._called(node)
        if name in _OF_ALL_ROWS:
            raise ParameterError(
                f"{text}: {name}() depends on all rows of a site, and each site would compute "
                f"other {_OF_ALL_ROWS[name]}; use agreed numbers, as in I((age - 60) / 10)"
            )
        if name not in FUNCTIONS or len(node.args) != 1 or node.keywords:
            raise ParameterError(f"{text}: {brief(here)} has no meaning in a formula; {_known()}")
        return FUNCTIONS[name](here, self._expression(text, node.args[0]))


def _known() -> str:
    known = ", ".join(f"{name}()" for name in sorted(FUNCTIONS))
    return f"it may have columns, numbers, + - * / **, comparisons, & and |, C(column), {known}"
