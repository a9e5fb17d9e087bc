"""Distinct patients: each counted once, though several sites have them.

Every site marks its patients in a bitmap, by a keyed hash of their identifiers, and what is opened
is which cells of the union of the bitmaps are empty. From their number the number of patients is
estimated: linear counting. What is known besides holds for certain: together the sites have no more
patients than their own numbers add up to, and no fewer than one of them has, which is at least the
average.

A cell that k sites marked must not show k. In a marked cell a site sends a random residue modulo
2^w, so that the total of any number of them is uniform too, and on top, in every cell, a random
multiple of 2^w of 40 bits, which hides how often the residues wrapped. The total of an empty cell
is a multiple of 2^w; that of a marked one is so by chance with probability 2^-w, which the estimate
accounts for. What is opened is within cells x sites x 2^-40 of what follows from the empty cells
alone.

A site could subtract its own residue from a cell's total, and see whether others marked the cell
too. So the totals go to the analyst, who is no site and does not have the key; the sites hear what
is reported. Another key is drawn for each inquiry: over a network by the first site, which sends it
to the others, sealed.

Source: Whang, Vander-Zanden and Taylor, ACM Trans. Database Syst. 15 (1990) 208-229.
"""

import hmac
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.core import prg
from securecomp.core.entropy import Entropy
from securecomp.core.limbs import HIDING_BITS
from securecomp.errors import ParameterError, RangeError
from securecomp.show.exhibit import TextTable
from securecomp.show.numbers import show
from securecomp.statistics.adder import IntegerBlock
from securecomp.statistics.analysis import Analysis
from securecomp.statistics.distributions import check_confidence, half_width
from securecomp.statistics.inquiry import Asks, Inquiry
from securecomp.statistics.measures import kept_rows
from securecomp.statistics.moments import check_columns
from securecomp.statistics.results import Run
from securecomp.statistics.schema import MAX_ROWS
from securecomp.statistics.site_table import Level, Table

MAX_CELLS = 1 << 22
_ANALYST = "analyst"
_LEAST_WIDTH = 8
_LEAST_EMPTY = 10
_SPARE = 5.0  # standard deviations between the expected number of empty cells and none
_KINDS = {str: "text", int: "integers", bool: "truth values"}


@dataclass(frozen=True, slots=True)
class Distinct(Analysis):
    """The number of distinct patients over all sites, estimated.

    Attributes:
        columns: What identifies a patient.
        estimate: Distinct patients over all sites: what linear counting gives, but at least
            `per_site` by the number of sites, and at most `per_site`.
        counted: What linear counting gives.
        bse: Its standard error.
        low: Lower end of the confidence interval, within the same limits.
        high: Upper end.
        confidence: Of the intervals.
        per_site: The sites' own numbers of distinct patients, added up; exact.
        overlap: `per_site` less the estimate: how often a patient is at one more site; an
            estimate with the same standard error, and never below 0.
        overlap_low: Lower end of its confidence interval.
        overlap_high: Upper end.
        cells: Size of the bitmap.
        empty: Cells that no site marked, as opened.
        run: What it took.
    """

    columns: tuple[str, ...]
    estimate: float
    counted: float
    bse: float
    low: float
    high: float
    confidence: float
    per_site: int
    overlap: float
    overlap_low: float
    overlap_high: float
    cells: int
    empty: int
    run: Run

    @property
    def title(self) -> str:
        """The question in words."""
        return f"distinct {', '.join(self.columns)} over all sites"

    def conf_int(self) -> tuple[float, float]:
        """Return the interval of the estimate."""
        return self.low, self.high

    def grids(self) -> list[TextTable]:
        """Return the estimates of the number and of the overlap, each with its interval."""
        level = f"{self.confidence * 100:g} %"
        numbers = (self.estimate, self.bse, self.low, self.high)
        overlap = (self.overlap, self.overlap_low, self.overlap_high)
        return [
            TextTable(
                "",
                ("distinct, about", "std err", f"{level} from", "to"),
                (tuple(f"{v:,.1f}" for v in numbers),),
            ),
            TextTable(
                "",
                ("sum of the sites'", "overlap, about", f"{level} from", "to"),
                ((show(self.per_site), *(f"{v:,.1f}" for v in overlap)),),
            ),
        ]

    def facts(self) -> dict[str, Any]:
        """Return all numbers by name."""
        names = ("estimate", "counted", "bse", "low", "high", "confidence", "per_site")
        more = ("overlap", "overlap_low", "overlap_high", "cells", "empty")
        return {
            "columns": list(self.columns),
            **{name: getattr(self, name) for name in (*names, *more)},
        }

    def remarks(self) -> list[str]:
        """Return how it was estimated."""
        limit = "the most" if self.counted > self.estimate else "the fewest"
        bounded = [
            f"linear counting gives {self.counted:,.1f}; {self.estimate:,.1f} are {limit} that the "
            "sites' own numbers allow"
        ]
        return [
            *bounded * (self.counted != self.estimate),
            f"an estimate, not a count, by linear counting: {self.empty:,} of {self.cells:,} cells "
            f"are empty; relative standard error {self.bse / max(self.estimate, 1.0):.2%}",
            "identifiers were compared as they are written: text with all its white space and "
            "capitals",
        ]


def distinct(
    study: Asks,
    columns: str | Sequence[str],
    *,
    expected: int,
    error: float = 0.01,
    confidence: float = 0.95,
) -> Distinct:
    """Estimate how many distinct patients the sites have together, and how far they overlap.

    Both come with an interval, and lie within what the sum of the sites' own numbers allows. No
    identifier leaves a site. Opened, to an analyst who has no site's key: which cells of a bitmap
    of keyed hashes are marked by any site, and the sum of the sites' own numbers of distinct
    patients. The sites hear the estimate.

    Args:
        columns: What identifies a patient: text or integers, compared as they are written.
        expected: The largest number of patients that is expected over all sites; public.
        error: Relative standard error with so many patients.
        confidence: Of the interval.

    Raises:
        ParameterError: Identifiers are text at one site and numbers at another.
        RangeError: There are far more patients than expected.
    """
    ask = study.inquiry()
    names = check_columns((columns,) if isinstance(columns, str) else columns, 1, "distinct")
    check_confidence(confidence)
    cells = bitmap_cells(expected, error)
    hearers = _hearers(ask)
    width = (ask.protocol.limit // len(ask.sites)).bit_length() - 1 - HIDING_BITS
    if width < _LEAST_WIDTH:
        raise RangeError(
            f"distinct: with {len(ask.sites)} sites a cell's total has no room for a mask; "
            "use fewer sites"
        )
    _check_kinds(ask, names)
    key = ask.carrier.sites_key()
    marked: dict[str, npt.NDArray[np.bool_]] = {}
    counts: dict[str, list[int]] = {}
    for table in ask.tables:
        marked[table.site], count = _bitmap(ask, table, names, key, cells)
        counts[table.site] = [count]
    entropy = ask.carrier.entropy
    parts = {site: masked(bits, width, entropy) for site, bits in marked.items()}
    totals, (per_site,), *kinds = ask.adder.add(
        IntegerBlock(
            [f"whether any site marked cell {i + 1}" for i in range(cells)],
            1 << (width + HIDING_BITS),
            parts,
        ),
        IntegerBlock([f"sum of each site's distinct {', '.join(names)}"], MAX_ROWS, counts),
        *_kinds_at_sites(ask, names),
        receivers=hearers,
    )
    _compare_kinds(names, kinds)
    empty = sum(total % (1 << width) == 0 for total in totals)
    found, bse = counted(empty, cells, width)
    margin = half_width(confidence) * bse
    # As many as one site has, at least, and one of them has no fewer than the average.
    fewest = -(-per_site // len(ask.sites))
    estimate, low, high = (
        min(max(v, fewest), per_site) for v in (found, found - margin, found + margin)
    )
    ask.also_learned(
        {
            "hospital": "what is reported here, and what that implies beside its own data",
            _ANALYST: "which cells of the bitmap are marked by any site, and the sum of the sites' "
            "own numbers; without the sites' key it cannot tell whose cells they are; together "
            "with a site it could: whether an identifier's cell is marked anywhere",
            **_hears_too(ask),
        }
    )
    return Distinct(
        columns=names,
        estimate=estimate,
        counted=found,
        bse=bse,
        low=low,
        high=high,
        confidence=confidence,
        per_site=per_site,
        overlap=per_site - estimate,
        overlap_low=per_site - high,
        overlap_high=per_site - low,
        cells=cells,
        empty=empty,
        run=ask.done(),
    )


def bitmap_cells(expected: int, error: float) -> int:
    """Return the fewest cells that count so many patients to a relative standard error.

    Whang et al., eq. (11), and enough cells that it is not full by chance.

    Raises:
        ParameterError: Not a number of patients, not an error, or too many cells.
    """
    if isinstance(expected, bool) or not isinstance(expected, int) or expected < 1:
        raise ParameterError(
            f"distinct: expected is the agreed largest number of patients, not {expected!r}"
        )
    if isinstance(error, bool) or not isinstance(error, int | float) or not 0 < error < 1:
        raise ParameterError(f"distinct: error is between 0 and 1, say 0.01; not {error!r}")
    low, high = 1, MAX_CELLS
    if not _suffices(high, expected, error):
        raise ParameterError(
            f"distinct: {expected} patients to a relative error of {error} take more than "
            f"{MAX_CELLS} cells; allow a larger error"
        )
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _suffices(middle, expected, error) else (middle + 1, high)
    return low


def _suffices(cells: int, expected: int, error: float) -> bool:
    load = expected / cells
    if load > 20:
        return False
    empty = cells * math.exp(-load)
    # Var(empty) = m e^-t (1 - (1 + t) e^-t).
    spread = math.sqrt(empty * (1 - (1 + load) * math.exp(-load)))
    enough = empty - _SPARE * spread >= _LEAST_EMPTY
    return enough and _standard_error(expected, cells) <= error * expected


def _standard_error(patients: float, cells: int) -> float:
    """Return the standard error of linear counting: sqrt(m (e^t - t - 1)), t = n / m."""
    load = patients / cells
    return math.sqrt(cells * (math.expm1(load) - load))


def counted(empty: int, cells: int, width: int) -> tuple[float, float]:
    """Return the estimate from the number of empty cells, and its standard error.

    Raises:
        RangeError: So few cells are empty that the number is not known.
    """
    chance = 2.0**-width  # of a marked cell to look empty
    really = (empty - cells * chance) / (1 - chance)
    if really < _LEAST_EMPTY and empty < cells:
        raise RangeError(
            f"distinct: fewer than {_LEAST_EMPTY} of {cells} cells are empty; there are more "
            "patients than expected: ask again with a larger expected"
        )
    estimate = max(0.0, -cells * math.log(min(1.0, really / cells)))
    load = estimate / cells
    # What looks empty by chance has a variance too, seen where masks are short.
    looks = cells * math.expm1(load) * math.exp(load) * chance / (1 - chance)
    return estimate, math.hypot(_standard_error(estimate, cells), math.sqrt(looks))


def masked(bits: npt.NDArray[np.bool_], width: int, entropy: Entropy) -> list[int]:
    """Return what a site sends: a random residue in marked cells, on top of random wraps."""
    residues = np.frombuffer(entropy(8 * len(bits)), np.uint64) & np.uint64((1 << width) - 1)
    wraps = np.frombuffer(entropy(8 * len(bits)), np.uint64) & np.uint64((1 << HIDING_BITS) - 1)
    sent = (wraps << np.uint64(width)) + np.where(bits, residues, np.uint64(0))
    return [int(value) for value in sent.tolist()]


def _bitmap(
    ask: Inquiry, table: Table, columns: tuple[str, ...], key: bytes, cells: int
) -> tuple[npt.NDArray[np.bool_], int]:
    """Return a site's marked cells, and its number of distinct patients."""
    keep = kept_rows(table, (), columns, ask.missing)
    found = [table.categories(column) for column in columns]
    codes = np.stack([part.codes[keep] for part in found])
    patients = np.unique(codes, axis=1).T.tolist() if codes.size else []
    bits = np.zeros(cells, bool)
    for patient in patients:
        values = [part.present[code] for part, code in zip(found, patient, strict=True)]
        digest = hmac.digest(key, prg.join("securecomp distinct", *map(_written, values)), "sha256")
        bits[int.from_bytes(digest[:16]) % cells] = True
    return bits, len(patients)


def _written(value: Level) -> str:
    """Write an identifier, as itself; its kind is the same at all sites."""
    return value if isinstance(value, str) else str(int(value))


def _is_apart(ask: Inquiry) -> bool:
    """Whether other sites' rows are elsewhere."""
    return len(ask.tables) < len(ask.sites)


def _hearers(ask: Inquiry) -> tuple[str, ...] | None:
    """Return who hears the bitmap; None for those that the carrier names.

    Raises:
        ParameterError: It would be a site.
    """
    if not _is_apart(ask):
        if _ANALYST in ask.sites:
            raise ParameterError(
                f"a site is named {_ANALYST!r}, as who hears the bitmap is; rename the site"
            )
        return (_ANALYST,)
    if set(ask.sites) & set(ask.carrier.receivers or ask.sites):
        raise ParameterError(
            "distinct: over a network an analyst hears the totals, and no site; name one under "
            "[analysts], and let it be asked by the analyst or in the study file"
        )
    return None


def _kinds_at_sites(ask: Inquiry, columns: Sequence[str]) -> list[IntegerBlock]:
    """Return, where sites cannot be compared here, how many have each kind of identifier."""
    if not _is_apart(ask):
        return []
    parts = {
        table.site: [
            int(any(type(value) is kind for value in table.categories(column).present))
            for column in columns
            for kind in _KINDS
        ]
        for table in ask.tables
    }
    labels = [f"sites where {column} has {kind}" for column in columns for kind in _KINDS.values()]
    return [IntegerBlock(labels, 1, parts)]


def _compare_kinds(columns: Sequence[str], kinds: Sequence[Sequence[int]]) -> None:
    """Refuse a column that has one kind of values at some sites and another at others."""
    for numbers in kinds:
        for i, column in enumerate(columns):
            found = numbers[i * len(_KINDS) : (i + 1) * len(_KINDS)]
            if sum(number > 0 for number in found) > 1:
                raise ParameterError(
                    f"column {column!r} identifies patients by different kinds of values at "
                    "different sites; write them all as text, in one form"
                )


def _check_kinds(ask: Inquiry, columns: Sequence[str]) -> None:
    """Refuse a column that is text at one site and numbers at another: 7 is not "07"."""
    for column in columns:
        kinds: dict[type, str] = {}
        for table in ask.tables:
            for kind in {type(value) for value in table.categories(column).present}:
                kinds.setdefault(kind, table.source)
        if len(kinds) > 1:
            where = ", ".join(f"{_KINDS[kind]} in {source}" for kind, source in kinds.items())
            raise ParameterError(
                f"column {column!r} identifies patients by different kinds of values ({where}); "
                "write them all as text, in one form"
            )
        found = next((_KINDS[kind] for kind in kinds), "none")
        ask.schema.from_data[f"kind of {column}"] = found


def _hears_too(ask: Inquiry) -> dict[str, str]:
    """Say what the parties learn that know a total as soon as the analyst does."""
    learned = ask.protocol.learned()
    return {
        party: f"as the {_ANALYST}: {what}"
        for party, what in learned.items()
        if party != "hospital" and what.startswith("the result")
    }
