"""Numbers as tables show them."""

from typing import Any


def show(value: Any) -> str:
    """Format a value for a table."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.6g}" if abs(value) < 1e15 else f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def show_exactly(value: Any) -> str:
    """Format a value with all digits that a float has for sure."""
    return f"{value:,.15g}" if isinstance(value, float) and abs(value) < 1e15 else show(value)
