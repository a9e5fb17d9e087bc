"""A run's rows as a reader sees them: each fact as text."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from securecomp.overhead.line_model import LINES, Line
from securecomp.overhead.quantities import figures, interval, memory, seconds, size

Row = Mapping[str, Any]
Spread = Mapping[str, Any]
_MEASURED = 4  # long work runs fewer times, and its memory is not measured
NOISE = 0.2
"""Cores busy with other work. Above it a row is marked as noisy."""
_OTHER = "other"


@dataclass(frozen=True, slots=True)
class Scheme:
    """A group of cases.

    Attributes:
        title: Heading.
        family: Family of the claim about it; empty for none.
        prefixes: First parts of its cases' names, for rows that do not state their scheme.
        series: Series of its `growth/...` cases.
    """

    title: str
    family: str
    prefixes: tuple[str, ...]
    series: tuple[str, ...] = ()


SCHEMES = {
    "sharing": Scheme(
        "Sums by secret sharing",
        "mpc",
        ("sum", "split", "study", "survival"),
        ("elements", "parties"),
    ),
    "masking": Scheme("Sums by masking", "mpc", ("masking",), ("clients",)),
    "paillier": Scheme("Sums by Paillier's encryption", "", ("paillier",), ("hospitals", "values")),
    "shares": Scheme("Computing on shares", "mpc", ("computing",), ("compared",)),
    "ckks": Scheme("Encrypted inference with CKKS", "fhe", ("ckks",), ("rows", "features")),
    "field": Scheme("The arithmetic underneath", "", ("field",)),
    _OTHER: Scheme("Other jobs", "", ()),
}


def scheme(row: Row) -> str:
    """Return a row's group, as the row states it or as its case's name implies."""
    said = row.get("scheme")
    if said:
        return str(said)
    first, *rest = row["case"].split("/")
    for name, group in SCHEMES.items():
        if first in group.prefixes or (first == "growth" and rest and rest[0] in group.series):
            return name
    return _OTHER


def heading(name: str) -> str:
    """Return a group's heading."""
    return SCHEMES[name].title if name in SCHEMES else name[:1].upper() + name[1:]


def family(row: Row) -> str:
    """Return the family of the claim about a row; empty for none."""
    group = SCHEMES.get(scheme(row), SCHEMES[_OTHER])
    return str(row.get("family") or group.family)


def ends(spread: Spread) -> tuple[float, float]:
    """Return the ends of the median's interval if a run has it, or the quartiles."""
    low, high = spread.get("low"), spread.get("high")
    if low is None or high is None:
        low, high = spread.get("q1", spread["median"]), spread.get("q3", spread["median"])
    return float(low), float(high)


def loads(row: Row) -> tuple[int, int] | None:
    """Return the least and the most bytes on the busiest line, all rounds together.

    Returns None if they are unknown. If a run did not count round by round, they lie between the
    bytes by one party and the bytes by all.
    """
    counted = row.get("bytes_on_line")
    if counted is not None:
        return counted, counted
    if "rounds" not in row:
        return None
    most = row["bytes_total"]
    return (most if row["messages"] == row["rounds"] else row["bytes_per_party"]), most


def on_line(row: Row, line: Line) -> tuple[float, float] | None:
    """Return the least and the most seconds of a row's secure side, its messages on a line."""
    found = loads(row)
    if found is None:
        return None
    low, high = (row["secure"]["median"] + line.seconds(row["rounds"], load) for load in found)
    return low, high


def time_of(spread: Spread | None) -> str:
    """Return a median time; a dash for none."""
    return "-" if spread is None else seconds(spread["median"])


def between(times: tuple[float, float] | None) -> str:
    """Return a time, or the two ends of its range."""
    if times is None:
        return "-"
    low, high = map(seconds, times)
    return low if low == high else f"{low} to {high}"


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """A measured row, each fact as text."""

    title: str
    case: str
    sizes: str
    noisy: bool
    plain: str
    setup: str
    online: str
    roles: Sequence[str]
    decode: str
    ratio: str
    spread: str
    lines: Sequence[str]
    most: str
    total: str
    rounds: str
    messages: str
    memory: str
    error: str
    targets: Sequence[tuple[str, bool]]
    floors: Sequence[str]


def job(row: Row) -> MeasuredRow:
    """Return a row's facts for the page."""
    parts = row.get("parts") or {}
    sent = "rounds" in row
    return MeasuredRow(
        title=row["title"],
        case=row["case"],
        sizes=sizes(row),
        noisy=noisy(row),
        plain=time_of(row["plain"]),
        setup=time_of(row["setup"]),
        online=time_of(row["online"]),
        roles=[f"{name} {time_of(spread)}" for name, spread in parts.items()],
        decode=time_of(row.get("decode")),
        ratio=f"{figures(row['ratio']['median'])}x",
        spread=interval(row["ratio"]),
        lines=[between(on_line(row, line)) for line in LINES],
        most=size(row["bytes_per_party"]) if sent else "-",
        total=size(row["bytes_total"]) if sent else "-",
        rounds=f"{row['rounds']:,}" if sent else "-",
        messages=f"{row['messages']:,}" if sent else "-",
        memory=_memory(row),
        error=f"{row['error']:.2g}",
        targets=targets(row),
        floors=[f"{f['name']}: {figures(f['ratio']['median'])}x" for f in row.get("floors", ())],
    )


def sizes(row: Row) -> str:
    """Return a row's sizes as a phrase."""
    return ", ".join(f"{name} {number:,}" for name, number in row["sizes"].items())


def noisy(row: Row) -> bool:
    """Whether other work disturbed the measurement."""
    return (row.get("elsewhere") or 0.0) > NOISE


def targets(row: Row) -> list[tuple[str, bool]]:
    """Return the targets of a row, and whether each is met."""
    listed = row.get("targets", [row["target"]] if "target" in row else [])
    return [(target["text"], target["met"]) for target in listed]


def points(rows: Iterable[Row], series: str) -> list[Row]:
    """Return the rows of a series, one for each size, by size."""
    found = {r["sizes"][series]: r for r in rows if r["series"] == series and "failure" not in r}
    return [found[n] for n in sorted(found)]


def _memory(row: Row) -> str:
    held = row.get("peak_memory")
    if held is None or (held == 0 and row["runs"] < _MEASURED):
        return "not measured"
    return memory(held)
