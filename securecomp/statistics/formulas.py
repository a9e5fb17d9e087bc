"""Formulas, as R and Python write them: text to terms, and each factor to an `Expression`.

`formulaic` parses a formula into terms; it evaluates nothing here. A formula may come from somebody
else, so that its factors are read as syntax trees in which only columns, numbers, arithmetic,
comparisons and a few functions that act on a row alone have a meaning. What depends on all rows of
a site (a mean to subtract, the knots of a spline) is refused: each site would compute another.

Source: Wilkinson and Rogers, Applied Statistics 22 (1973) 392-399.
"""

import ast
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from securecomp.errors import BackendUnavailableError, ParameterError
from securecomp.statistics import expressions
from securecomp.statistics.expressions import FUNCTIONS, Expression
from securecomp.statistics.schema import Schema
from securecomp.statistics.tables import Level

MAX_TERMS = 2000
_LONGEST = 20_000
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
    """

    text: str
    column: str
    levels: tuple[Expression, ...]
    names: tuple[str, ...]
    reference: int


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
) -> Formula:
    """Read a formula.

    Args:
        text: Such as "died ~ los + C(type) * age".
        schema: The agreed grids and levels.
        bounds: Factors, as the formula has them, to the largest absolute value that is agreed.
        new_rows: Read it for rows that stay here: without the response, and without bounds.

    Raises:
        ParameterError: Not a formula, or something in it that has no meaning here.
        BackendUnavailableError: `formulaic` is not installed.
    """
    if bounds is not None and not isinstance(bounds, Mapping):
        raise ParameterError(f"bounds map a formula's factors to numbers, not {bounds!r}")
    reader = _Reader(schema, dict(bounds or {}), new_rows)
    left, right = _terms(text)
    if len(left) != 1 or len(left[0]) != 1:
        raise ParameterError(
            f"formula {text!r}: one response is before ~, as in 'died ~ los + hmo'"
        )
    response: Factor = expressions.constant("", 0)
    if not new_rows:
        response = reader.factor(*left[0][0])
    terms = tuple(tuple(reader.factor(*f) for f in term) for term in right)
    unused = set(reader.bounds) - reader.used
    if unused:
        raise ParameterError(
            f"bounds: there is no {min(unused)!r} in the formula; its factors are: "
            + ", ".join(dict.fromkeys(f.text for term in terms for f in term))
        )
    return Formula(text, response, terms, tuple(reader.numeric), tuple(reader.categorical))


def _terms(text: str) -> tuple[list[list[tuple[str, str]]], list[list[tuple[str, str]]]]:
    """Return the two sides of a formula: of each term, its factors and how they are read."""
    if not isinstance(text, str) or not text.strip():
        raise ParameterError(f"a formula is text such as 'died ~ los + hmo', not {text!r}")
    if len(text) > _LONGEST:
        raise ParameterError(f"a formula has at most {_LONGEST} characters")
    try:
        from formulaic import Formula as Parsed
        from formulaic.errors import FormulaicError
        from formulaic.parser import DefaultFormulaParser
    except ImportError:
        raise BackendUnavailableError(
            "formulas come with another package: pip install 'securecomp[models]'"
        ) from None
    try:
        if _size(DefaultFormulaParser().get_ast(text)) > MAX_TERMS:
            raise ParameterError(f"formula {text[:80]!r}: it has more than {MAX_TERMS} terms")
        parsed = Parsed(text)
    except (FormulaicError, SyntaxError, ValueError, RecursionError) as error:
        if isinstance(error, ParameterError):
            raise
        reason = re.sub(r"\x1b\[[0-9;]*m|[⧛⧚]", "", str(error)).strip().splitlines()
        raise ParameterError(
            f"formula {text!r}: {reason[0] if reason else 'not a formula'}"
        ) from None
    sides = [getattr(parsed, side, None) for side in ("lhs", "rhs")]
    if any(not hasattr(side, "__iter__") or hasattr(side, "rhs") for side in sides):
        raise ParameterError(f"formula {text!r}: it has one ~, with the response before it")
    left, right = ([_factors(text, term) for term in side] for side in sides)  # type: ignore[union-attr]
    return left, right


def _factors(text: str, term: Any) -> list[tuple[str, str]]:
    factors = [(str(f.expr), str(f.eval_method.value)) for f in term.factors]
    if factors == [("1", "literal")]:
        return []
    if any(how == "literal" for _, how in factors):
        raise ParameterError(
            f"formula {text!r}: {term} scales a term, which only scales its coefficient; leave "
            "the number out"
        )
    return factors


def _size(tree: Any) -> int:
    """Return a number of terms that a syntax tree does not pass; read without making them."""
    order, stack = [], [tree]
    while stack:
        node = stack.pop()
        order.append(node)
        stack += [arg for arg in getattr(node, "args", ()) if hasattr(arg, "operator")]
    sizes: dict[int, int] = {}
    for node in reversed(order):
        if not hasattr(node, "operator"):
            return 1
        args = [sizes.get(id(arg), 1) for arg in node.args]
        symbol = node.operator.symbol
        if symbol in ("**", "^"):
            shown = str(getattr(node.args[1], "token", "9"))
            # What is no number is refused by the parser.
            size = (args[0] + 1) ** min(int(shown), 100) if shown.isdigit() else 1
        elif symbol in ("*", ":", "/", "in"):
            size = (args[0] + 1) * (args[-1] + 1)
        else:
            size = sum(args)
        sizes[id(node)] = min(size, 1 << 60)
    return sizes[id(tree)]


@dataclass(slots=True)
class _Reader:
    """Reads factors; each column's expression is made once."""

    schema: Schema
    bounds: dict[str, float]
    new_rows: bool
    used: set[str] = field(default_factory=set)
    numeric: dict[str, Expression] = field(default_factory=dict)
    categorical: dict[str, None] = field(default_factory=dict)
    _factors: dict[str, Factor] = field(default_factory=dict)
    _quoted: dict[str, str] = field(default_factory=dict)

    def factor(self, text: str, how: str) -> Factor:
        if text not in self._factors:
            found = self._lookup(text) if how == "lookup" else self._read(text)
            self._factors[text] = self._bounded(text, found)
        return self._factors[text]

    def _bounded(self, text: str, found: Factor) -> Factor:
        # White space does not matter, and I(...) may be left out.
        names = {re.sub(r"\s", "", name): name for name in self.bounds}
        plain = re.sub(r"\s", "", text)
        name = names.get(plain, names.get(f"I({plain})"))
        if name is not None and isinstance(found, Expression):
            bound = self.bounds[name]
            if (
                isinstance(bound, bool)
                or not isinstance(bound, int | float)
                or not 0 < bound < 1e300
            ):
                raise ParameterError(f"bounds: {name!r} must be a positive number, not {bound!r}")
            self.used.add(name)
            return expressions.bounded(found, float(bound))
        if isinstance(found, Expression) and not self.new_rows and not found.largest < 1e300:
            raise ParameterError(
                f"{text} has no bound by the columns' bounds and grids; agree on the largest "
                f"absolute value: bounds={{{text!r}: ...}}"
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
        levels = self.schema.levels(name)
        if reference is not None and reference not in levels:
            known = ", ".join(map(repr, levels[:10]))
            raise ParameterError(
                f"{text}: {reference!r} is not one of the levels of {name!r}: {known}"
            )
        self.categorical[name] = None
        indicators = tuple(
            expressions.indicator(f"{text}[{level}]", name, i) for i, level in enumerate(levels)
        )
        first = 0 if reference is None else levels.index(reference)
        return Category(text, name, indicators, tuple(map(str, levels)), first)

    def _read(self, text: str) -> Factor:
        """Read a factor in Python's syntax."""
        self._quoted = {}

        def unquote(match: re.Match[str]) -> str:
            key = f"_quoted_{len(self._quoted)}"
            self._quoted[key] = match[1]
            return key

        try:
            tree = ast.parse(re.sub(r"`([^`]+)`", unquote, text).strip(), mode="eval").body
            if isinstance(tree, ast.Call) and self._called(tree) == "C":
                return self._coded(text, tree)
            return self._expression(text, tree)
        except (SyntaxError, RecursionError, MemoryError):
            raise ParameterError(f"{text}: not an expression that can be read") from None

    def _coded(self, text: str, call: ast.Call) -> Category:
        """Read C(column) or C(column, Treatment(level))."""
        if not call.args or not isinstance(call.args[0], ast.Name):
            raise ParameterError(f"{text}: C() takes a column's name")
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
                    f"{text}: categories are in treatment coding, C(x) or "
                    'C(x, Treatment("reference level")); no other coding is known'
                )
            reference = args[0].value if args else None
        return self._category(text, self._name(call.args[0]), reference)

    def _name(self, node: ast.Name) -> str:
        return self._quoted.get(node.id, node.id)

    def _called(self, call: ast.Call) -> str:
        name = ast.unparse(call.func)
        return name.removeprefix("np.").removeprefix("numpy.")

    def _expression(self, text: str, node: ast.expr) -> Expression:
        """Read an expression: whatever is not listed here is refused."""
        here = ast.unparse(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return expressions.constant(here, node.value)
        if isinstance(node, ast.Name):
            name = self._name(node)
            if self.schema.is_text(name):
                raise ParameterError(
                    f"{text}: column {name!r} holds text; compare it with a level, as in "
                    f"I({name} == 'level'), or use it as it is"
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
        raise ParameterError(f"{text}: {here} has no meaning in a formula; {_known()}")

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
            raise ParameterError(f"{text}: {here} is a number; write it out")
        if kind is ast.Pow and b.low == b.high and isinstance(b.low, Fraction):
            return expressions.power(here, a, b.low)
        if kind is ast.BitAnd and a.binary and b.binary:
            return expressions.multiply(here, a, b)
        if kind is ast.BitOr and a.binary and b.binary:
            both = expressions.multiply(here, a, b)
            either = expressions.add(here, expressions.add(here, a, b), both, -1)
            return Expression(here, Fraction(0), Fraction(1), Fraction(1), either.compute)
        raise ParameterError(f"{text}: {here} has no meaning in a formula; {_known()}")

    def _comparison(self, text: str, here: str, node: ast.Compare) -> Expression:
        found: Expression | None = None
        sides = [node.left, *node.comparators]
        for left, right, how in zip(sides[:-1], sides[1:], node.ops, strict=True):
            if type(how) not in _COMPARISONS:
                raise ParameterError(f"{text}: {here} has no meaning in a formula; {_known()}")
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
            same = expressions.level(here, self.schema, name, right.value)
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
            raise ParameterError(f"{text}: {here} has no meaning in a formula; {_known()}")
        return FUNCTIONS[name](here, self._expression(text, node.args[0]))


def _known() -> str:
    known = ", ".join(f"{name}()" for name in sorted(FUNCTIONS))
    return f"it may have columns, numbers, + - * / **, comparisons, & and |, C(column), {known}"
