"""The text of a formula to its terms, by `formulaic`, which evaluates nothing here.

Names in back quotes may hold anything. Identifiers that are nowhere else in the formula stand for
them while it is read, so that a factor's text is what it means: the column "I(x > 0)" is not the
comparison.
"""

import keyword
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from securecomp.errors import BackendUnavailableError, ParameterError, brief

MAX_TERMS = 2000
_LONGEST = 20_000
_QUOTED = re.compile(r"""('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")|`([^`]+)`""")
"""Text, in which a back quote is one, or a name."""
Side = list[list[tuple[str, str]]]
"""Of each term, its factors and how they are read; none for the intercept."""


@dataclass(frozen=True, slots=True)
class Names:
    """Columns' names that are in back quotes.

    Attributes:
        stand_in: What all identifiers that stand for one begin with.
        columns: Identifier to the name that it stands for.
    """

    stand_in: str
    columns: Mapping[str, str]

    def column(self, name: str) -> str:
        """Return the column that a name or an identifier means."""
        return self.columns.get(name, name)

    def shown(self, text: str) -> str:
        """Return a text as the formula has it, with names in back quotes."""
        return re.sub(rf"{self.stand_in}\d+_", lambda found: f"`{self.columns[found[0]]}`", text)


def plain(text: str) -> str:
    """Return a factor's text without white space, but that of names and texts in it."""
    found = re.split(r"""('[^']*'|"[^"]*"|`[^`]*`)""", text)
    return "".join(part if i % 2 else re.sub(r"\s", "", part) for i, part in enumerate(found))


def read(text: str, *, one_side: bool = False) -> tuple[Side, Side, Names]:
    """Return the two sides of a formula, and what its identifiers stand for.

    Args:
        text: The formula.
        one_side: It is what explains alone, with or without ~ before it; the first side is "_".

    Raises:
        ParameterError: Not a formula of two sides, or of one.
        BackendUnavailableError: `formulaic` is not installed.
    """
    if not isinstance(text, str) or not text.strip():
        raise ParameterError(
            f"a formula is text such as 'died ~ los + hmo', not {brief(repr(text))}"
        )
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
    named, names = _named(text)
    if one_side:
        named = named.strip().removeprefix("~")
        if "~" in plain(re.sub(r"""'[^']*'|"[^"]*\"""", "", named)):
            raise ParameterError(
                f"formula {brief(text)!r}: it is what explains alone, as in '~ age + C(ward)'; "
                "what is explained is given beside it"
            )
        named = f"_ ~ {named}"
    try:
        if _size(DefaultFormulaParser().get_ast(named)) > MAX_TERMS:
            raise ParameterError(f"formula {brief(text)!r}: it has more than {MAX_TERMS} terms")
        parsed = Parsed(named)
    except (FormulaicError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, ParameterError):
            raise
        reason = re.sub(r"\x1b\[[0-9;]*m|[⧛⧚]", "", str(error)).strip().splitlines()
        why = brief(names.shown(reason[0]), 200) if reason else "not a formula"
        if isinstance(error, RecursionError | MemoryError):
            why = "it is nested too deeply; write it in fewer operations"
        raise ParameterError(f"formula {brief(text)!r}: {why}") from None
    sides = [getattr(parsed, side, None) for side in ("lhs", "rhs")]
    if any(isinstance(side, tuple) for side in sides):
        raise ParameterError(
            f"formula {brief(text)!r}: it has several parts, divided by |; write one model, with + "
            "between its terms"
        )
    if any(not hasattr(side, "__iter__") or hasattr(side, "rhs") for side in sides):
        raise ParameterError(f"formula {brief(text)!r}: it has one ~, with the response before it")
    left, right = ([_factors(text, term, names) for term in side] for side in sides)  # type: ignore[union-attr]
    return left, right, names


def _named(text: str) -> tuple[str, Names]:
    """Return a formula with identifiers for the names that are in back quotes."""
    stand_in = "quoted_"
    while stand_in in unicodedata.normalize("NFKC", text):
        stand_in += "_"
    known: dict[str, str] = {}

    def named(match: re.Match[str]) -> str:
        if match[1] is not None:
            return match[1]
        name = match[2]
        # Python reads names in Unicode's form NFKC.
        if (
            name.isidentifier()
            and not keyword.iskeyword(name)
            and unicodedata.normalize("NFKC", name) == name
        ):
            return f" {name} "
        return f" {known.setdefault(name, f'{stand_in}{len(known)}_')} "

    found = _QUOTED.sub(named, text)
    return found, Names(stand_in, {identifier: name for name, identifier in known.items()})


def _factors(text: str, term: Any, names: Names) -> list[tuple[str, str]]:
    factors = [(str(f.expr), str(f.eval_method.value)) for f in term.factors]
    if factors == [("1", "literal")]:
        return []
    if any(how == "literal" for _, how in factors):
        raise ParameterError(
            f"formula {brief(text)!r}: {brief(names.shown(str(term)))} scales a term, which only "
            "scales its coefficient; leave the number out"
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
