"""Numbers with units, short enough for a table."""

from typing import Any


def figures(value: float) -> str:
    """Return three significant figures, without an exponent."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def seconds(value: float) -> str:
    """Return a time."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= scale:
            return f"{figures(value / scale)} {unit}"
    return f"{figures(value / 1e-9)} ns"


def size(value: int) -> str:
    """Return a number of bytes."""
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if value >= scale:
            return f"{figures(value / scale)} {unit}"
    return f"{value} B"


def memory(value: int | None) -> str:
    """Return a process's memory. The system counts it in batches of pages."""
    if value is None:
        return "not known"
    return size(value) if value >= 10**6 else "below 1 MB"


def interval(spread: dict[str, Any]) -> str:
    """Return the median's interval; the quartiles of a run that has none."""
    if spread.get("low") is not None:
        return f"{figures(spread['low'])} - {figures(spread['high'])}"
    if "q1" in spread:
        return f"{figures(spread['q1'])} - {figures(spread['q3'])} (quartiles)"
    return "-"
