"""Times, sizes and ratios as people read them: three figures, and never an exponent."""


def figures(value: float) -> str:
    """Return three significant figures, without an exponent."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def duration(seconds: float) -> str:
    """Return a time with its unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{figures(seconds / scale)} {unit}"
    return f"{figures(seconds / 1e-9)} ns"


def size(value: float) -> str:
    """Return a number of bytes with its unit."""
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if value >= scale:
            return f"{figures(value / scale)} {unit}"
    return f"{value:,.0f} B"


def exponent(value: float) -> str:
    """Return an order of growth, without the sign of a zero."""
    return f"{round(value, 2) + 0.0:.2f}"
