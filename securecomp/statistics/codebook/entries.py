"""One column of a codebook: what its values are and may be, and which of them mean missing."""

import math
from decimal import Decimal, InvalidOperation
from typing import Literal

import msgspec

from securecomp.core import checks
from securecomp.errors import ParameterError
from securecomp.statistics.schema import Column

Code = str | int | float
Kind = Literal["number", "category", "identifier"]
_MOST_DECIMALS = 22  # the last power of ten that float64 holds
_LARGEST = 308


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The agreement on one column.

    Attributes:
        kind: Numbers, categories, or what identifies a patient or a row and is never summed.
        description: What is measured, how, when; for people.
        unit: Of numbers: "kg", "mmol/L".
        lower: Least plausible number; what is below is refused.
        upper: Greatest plausible number.
        typical: Where the median of any site should be; a site whose median is elsewhere is warned
            that its unit may be another.
        decimals: Decimals of the numbers.
        levels: Each category as it is written, to what it means: {"1": "female"}.
        missing: Texts and numbers that mean that there is no value: "NA", -9, 999.
        required: Whether the column must be there. Where an optional one is not, all is missing.
    """

    kind: Kind
    description: str = ""
    unit: str = ""
    lower: int | float | None = None
    upper: int | float | None = None
    typical: tuple[float, float] | None = None
    decimals: int = 0
    levels: dict[str, str] = {}  # msgspec copies it for each entry
    missing: tuple[Code, ...] = ()
    required: bool = True

    def check(self, name: str) -> None:
        """Refuse an entry that cannot be meant.

        Raises:
            ParameterError: It names the column and what to correct.
        """
        where = f"codebook: column {name!r}"
        self._check_kinds(where)
        numbers = (self.lower, self.upper, *(self.typical or ()))
        numbers += tuple(c for c in self.missing if not isinstance(c, str))
        if any(v is not None and not _is_usual(v) for v in numbers):
            raise ParameterError(
                f"{where}: a number is not finite, or beyond any float; correct it"
            )
        texts = (name, self.unit, self.description, *self.levels, *map(str, self.missing))
        if not all(text.isprintable() for text in texts):
            raise ParameterError(
                f"{where}: its name, unit, description, levels and codes are text that prints, in "
                "one line; remove what does not"
            )
        written = [as_number(v) for v in (*self.levels, *self.missing)]
        if any(n is not None and abs(n.adjusted()) > _LARGEST for n in written):
            raise ParameterError(f"{where}: a level or code is beyond any float; correct it")
        if self.kind == "number":
            self._check_number(where)
        elif (self.lower, self.upper, self.typical, self.decimals) != (None, None, None, 0):
            raise ParameterError(
                f"{where}: only numbers have lower, upper, typical and decimals; remove them"
            )
        if (self.kind == "category") != bool(self.levels):
            raise ParameterError(
                f"{where}: list its levels" if self.kind == "category" else
                f"{where}: only a category has levels; remove them, or change its kind"
            )  # fmt: skip
        both = set(self.levels) & {str(code) for code in self.missing}
        if both:
            raise ParameterError(
                f"{where}: {min(both)!r} is a level and means missing too; remove one of the two"
            )

    def _check_kinds(self, where: str) -> None:
        """Refuse what is not a number before it is compared; files are checked when read."""
        checks.integer(self.decimals, f"{where}: decimals")
        checks.truth(self.required, f"{where}: required")
        if self.typical is not None and (type(self.typical) is not tuple or len(self.typical) != 2):
            raise ParameterError(f"{where}: typical is two numbers, not {self.typical!r}")
        ends = [self.lower, self.upper]
        for value in (*(v for v in ends if v is not None), *(self.typical or ())):
            if type(value) not in (int, float):
                raise ParameterError(f"{where}: {value!r} is no number of Python's; write one")
        for code in self.missing:
            if type(code) not in (str, int, float):
                raise ParameterError(f"{where}: a code for missing is text or a number")

    def _check_number(self, where: str) -> None:
        low, high = self.lower, self.upper
        if low is None or high is None or low > high:
            raise ParameterError(f"{where}: give lower and upper, the lesser one first")
        if not 0 <= self.decimals <= _MOST_DECIMALS:
            raise ParameterError(f"{where}: decimals are a number from 0 to {_MOST_DECIMALS}")
        if self.typical is not None:
            least, most = self.typical
            if not low <= least <= most <= high:
                raise ParameterError(
                    f"{where}: typical is two numbers, the lesser one first, within lower and upper"
                )
        for code in self.missing:
            number = as_number(code)
            if number is not None and low <= number <= high:
                raise ParameterError(
                    f"{where}: {code!r} means missing and lies within lower and upper; take a code "
                    "that no value can have, or a narrower range"
                )

    def column(self) -> Column:
        """Return what a computation has to know."""
        if self.kind == "number":
            bound = max(Decimal(str(v)).copy_abs() for v in (self.lower, self.upper))
            return Column(bound=bound, decimals=self.decimals)
        levels = tuple(self.levels)
        codes = [as_number(level) for level in levels]
        whole = [abs(int(c)) for c in codes if c is not None and c == int(c)]
        if levels and len(whole) == len(levels):  # zeros and ones are summed, too
            return Column(bound=max(whole), decimals=0, levels=levels)
        if set(levels) == {"false", "true"}:
            return Column(bound=1, decimals=0, levels=levels)
        return Column(levels=levels) if levels else Column()


def as_number(value: Code) -> Decimal | None:
    """Return the number that a text spells, or the number itself; None for anything else."""
    try:
        number = Decimal(str(value).strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _is_usual(number: float) -> bool:
    """Return whether a number is finite, and no integer beyond any float."""
    try:
        return math.isfinite(number)
    except OverflowError:
        return False
