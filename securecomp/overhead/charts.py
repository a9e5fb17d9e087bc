"""Charts of a run, as SVG for a page: ratios beside claims, growth, and the fastest protocol.

Every curve and region has its name beside it, in words, so that no reader depends on colours. Needs
matplotlib (`pip install 'securecomp[report]'`).
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from securecomp.overhead.line_model import Line
from securecomp.overhead.quantities import figures, seconds, size
from securecomp.overhead.scheme_choice import FEWEST, MOST, ProtocolCost
from securecomp.show.figures import COLOURS, DASHES, INK, drawn, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKS = "osD^v<"
_HATCHES = ("", "//", "..", "\\\\", "xx", "++")
_ROW = 0.24  # inches
_GRID = (60, 72)  # jobs of the decision chart: sites, values
_VALUES = (1, 10**7)
_TIMES = {0.1: "100 ms", 1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", 3600: "1 h"}
_SMALLEST = 0.004  # share of the map; a smaller region gets no name
_APART = 0.062  # of an axis's height, between the names of two curves


@dataclass(frozen=True, slots=True)
class Band:
    """A claimed range of ratios."""

    text: str
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Dot:
    """A measured ratio, with the ends of its interval."""

    name: str
    low: float
    middle: float
    high: float


def ratios(dots: Sequence[Dot], bands: Sequence[Band], title: str) -> str:
    """Return dots with their intervals on a logarithmic axis, over the claimed ranges."""

    def paint(figure: "Figure") -> None:
        from matplotlib.ticker import LogLocator

        axes = figure.add_subplot()
        axes.set_xscale("log")
        top = len(dots) - 0.4
        for index, band in enumerate(bands):
            axes.axvspan(band.low, band.high, color=COLOURS[index + 1], alpha=0.18, linewidth=0)
            middle = math.sqrt(band.low * band.high)
            axes.text(middle, top + 0.2, plain(band.text), ha="center", va="bottom", fontsize=8)
        axes.axvline(1, color=INK, linewidth=0.8, linestyle=":")
        for place, dot in enumerate(reversed(dots)):
            axes.plot([dot.low, dot.high], [place, place], color=COLOURS[0], linewidth=2)
            axes.plot([dot.middle], [place], "o", color=COLOURS[0], markersize=5)
            axes.annotate(
                f"{figures(dot.middle)}x",
                (dot.high, place),
                (6, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
            )
        axes.set_yticks(range(len(dots)), [plain(dot.name) for dot in reversed(dots)], fontsize=8.5)
        axes.set_ylim(-0.7, top)
        ends = [1.0, *(b.low for b in bands), *(b.high for b in bands)]
        ends += [end for dot in dots for end in (dot.low, dot.high)]
        axes.set_xlim(min(ends) / 2, max(ends) * 8)
        axes.set_xlabel("times plaintext")
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.xaxis.set_major_locator(LogLocator(100))
        _in_words(axes.xaxis, lambda value: f"{value:,.0f}x" if value >= 1 else f"{value:g}x")

    return drawn(paint, title, 5.2, 1.15 + _ROW * len(dots))


def order(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Return the exponent e of cost = c size^e, fitted to all points."""
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> str:
    """Return the order as text, without the sign of a zero."""
    return f"{round(order(sizes, costs), 2) + 0.0:.2f}"


def growth(
    sizes: Sequence[int],
    curves: Mapping[str, Sequence[float]],
    series: str,
    title: str,
    *,
    of_bytes: bool = False,
) -> str:
    """Return curves over sizes on logarithmic axes, each with its name and fitted order beside it.

    Args:
        sizes: Positive, at least two.
        curves: Name to positive costs, seconds or bytes.
        series: Name of the size that grows.
        title: Of the figure.
        of_bytes: Whether the costs are bytes.
    """

    def paint(figure: "Figure") -> None:
        axes = figure.add_subplot()
        for index, costs in enumerate(curves.values()):
            look: dict[str, Any] = {"color": COLOURS[index % 6], "linestyle": DASHES[index % 4]}
            axes.loglog(sizes, costs, marker=_MARKS[index % 6], markersize=4, **look)
        _names(axes, sizes[-1], curves, {n: exponent(sizes, c) for n, c in curves.items()})
        axes.set_xlabel(plain(series))
        axes.set_xticks(sizes, [f"{n:,}" for n in sizes], fontsize=8)
        axes.minorticks_off()
        _in_words(axes.yaxis, _size if of_bytes else seconds)
        axes.grid(alpha=0.25)

    return drawn(paint, title, 5.2, 3.4)


def _names(
    axes: "Axes", last: float, curves: Mapping[str, Sequence[float]], orders: Mapping[str, str]
) -> None:
    """Write the curves' names at their ends, moved apart where they would touch."""
    low, high = (math.log(end) for end in axes.get_ylim())
    ends = {name: (math.log(costs[-1]) - low) / (high - low) for name, costs in curves.items()}
    place = -math.inf
    places = {}
    for name in sorted(ends, key=ends.__getitem__):
        place = places[name] = max(ends[name], place + _APART)
    over = max(0.0, place - 1)
    for index, name in enumerate(curves):
        axes.annotate(
            plain(f"{name}: order {orders[name]}"),
            (last, curves[name][-1]),
            (1.03, places[name] - over),
            textcoords="axes fraction",
            va="center",
            fontsize=8.5,
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": COLOURS[index % 6], "linewidth": 0.7},
        )


def decision(
    protocols: Sequence[ProtocolCost],
    line: Line,
    title: str,
    look: Callable[[ProtocolCost], int] | None = None,
) -> str:
    """Return the map of the fastest protocol, by sites and values, with lines of equal time.

    Args:
        protocols: Protocols to choose from.
        line: The line of every party.
        title: Title of the figure.
        look: Returns the number of a protocol's colour and hatching, for maps that are read
            together.
    """

    def paint(figure: "Figure") -> None:
        axes = figure.add_subplot()
        sites, values, times = _map(protocols, line)
        axes.set_xscale("log")
        axes.set_yscale("log")
        for index, protocol in enumerate(protocols):
            # Above zero where this protocol is ahead of all others; regions meet on the same line.
            others = np.delete(times, index, 0).min(0) if len(protocols) > 1 else times[index] + 1
            ahead = np.log(others / times[index])
            if (ahead <= 0).all():
                continue
            number = (index if look is None else look(protocol)) % 6
            style: dict[str, Any] = {"colors": [COLOURS[number]], "hatches": [_HATCHES[number]]}
            axes.contourf(sites, values, ahead, [0.0, np.inf], alpha=0.3, **style)
            axes.contour(sites, values, ahead, [0.0], colors=[INK], linewidths=0.8)
            for x, y in _centres(ahead > 0):
                _name(axes, protocol.name, sites[x], values[y])
        _times(axes, sites, values, times.min(0))
        axes.set_xlabel("sites")
        axes.set_ylabel("values")
        ticks = [n for n in (3, 10, 30, 100, 300, 1000) if FEWEST <= n <= MOST]
        axes.set_xticks(ticks, [f"{n:,}" for n in ticks])
        axes.xaxis.minorticks_off()
        _in_words(axes.yaxis, lambda value: f"{value:,.0f}")

    return drawn(paint, title, 4.6, 3.9)


def _map(
    protocols: Sequence[ProtocolCost], line: Line
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return sites, values, and each protocol's seconds, shape (protocols, values, sites)."""
    sites = np.unique(np.geomspace(FEWEST, MOST, _GRID[0]).round().astype(np.int64))
    values = np.unique(np.geomspace(*_VALUES, _GRID[1]).round().astype(np.int64))
    times = [
        [[protocol.seconds(n, d, line) for n in sites.tolist()] for d in values.tolist()]
        for protocol in protocols
    ]
    return sites, values, np.array(times)


def _centres(region: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the point farthest from the edge, for each part of a region that is large enough."""
    from scipy import ndimage

    parts, count = ndimage.label(region)
    found = []
    for part in range(1, count + 1):
        inside = parts == part
        if inside.mean() < _SMALLEST:
            continue
        # A name is wider than high, so distances across count less.
        depth = ndimage.distance_transform_edt(np.pad(inside, 1), sampling=(1.0, 0.3))[1:-1, 1:-1]
        y, x = np.unravel_index(int(depth.argmax()), depth.shape)
        found.append((int(x), int(y)))
    return found


def _name(axes: "Axes", name: str, x: float, y: float) -> None:
    box = {"boxstyle": "round,pad=0.15", "facecolor": "white", "alpha": 0.0, "linewidth": 0}
    axes.text(x, y, plain(name.replace(", ", ",\n")), ha="center", va="center", bbox=box)


def _times(
    axes: "Axes",
    sites: npt.NDArray[np.int64],
    values: npt.NDArray[np.int64],
    best: npt.NDArray[np.float64],
) -> None:
    """Draw lines of equal time of the fastest protocol, each with its time on it."""
    levels = [level for level in _TIMES if best.min() < level < best.max()]
    if levels:
        drawn_lines = axes.contour(
            sites, values, best, levels, colors=[INK], linewidths=0.5, linestyles=":"
        )
        axes.clabel(drawn_lines, fmt={level: _TIMES[level] for level in levels}, fontsize=7.5)


def _size(value: float) -> str:
    return size(round(value))


def _in_words(axis: Any, said: Callable[[float], str]) -> None:
    """Write an axis's numbers without powers of ten."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: re.sub(r"\.0+ ", " ", said(value))))
    axis.set_minor_formatter(NullFormatter())
