"""Figures of analyses as SVG, readable on light and dark pages, and without colours.

Needs matplotlib (`pip install 'securecomp[report]'`).
"""

import html
import io
import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from securecomp.errors import BackendUnavailableError
from securecomp.show.exhibit import Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which people with any colour vision tell apart, and marks beside them.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ("-", "--", "-.", ":")
INK = "#010203"
"""Colour of text and axes. It becomes the page's own text colour."""
_WIDTH, _HEIGHT = 7.0, 4.0
_LINE = 0.32
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: it can be read aloud, searched and scaled
    "svg.hashsalt": "securecomp",
    "font.family": "sans-serif",
    "font.size": 10.0,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "hatch.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
}
_NO_FACTS = dict.fromkeys(("Creator", "Date", "Format", "Type"))  # the same figure, the same text


def svg(plot: Plot) -> str:
    """Return a figure as an `svg` element, for a page.

    Raises:
        BackendUnavailableError: matplotlib is not installed.
    """

    def paint(figure: "Figure") -> None:
        axes = figure.add_subplot()
        {"forest": _forest, "steps": _steps, "bars": _bars, "line": _line}[plot.kind](axes, plot)
        axes.set_xlabel(plain(plot.x))
        axes.set_ylabel(plain(plot.y))

    height = 1.1 + _LINE * len(plot.series) if plot.kind == "forest" else _HEIGHT
    return drawn(paint, plot.title, _WIDTH, height)


def drawn(
    paint: "Callable[[Figure], None]", title: str, width: float = _WIDTH, height: float = _HEIGHT
) -> str:
    """Return a painted figure as an `svg` element, for a page.

    Args:
        paint: Draws on an empty figure, in this module's style.
        title: Text for a screen reader.
        width: Width in inches; the page scales the figure.
        height: Height in inches.

    Raises:
        BackendUnavailableError: matplotlib is not installed.
    """
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise BackendUnavailableError(
            "figures need matplotlib; pip install 'securecomp[report]'"
        ) from error
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        paint(figure)
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata=_NO_FACTS)
    return _for_a_page(out.getvalue(), title)


def plain(text: str) -> str:
    """Return text that matplotlib does not read as mathematics."""
    return text.replace("$", r"\$")


def _forest(axes: "Axes", plot: Plot) -> None:
    if plot.logarithmic:
        axes.set_xscale("log")
    if plot.reference is not None:
        axes.axvline(plot.reference, color=INK, linewidth=0.8, linestyle=":")
    names = list(plot.series)
    for place, name in enumerate(reversed(names)):
        columns = plot.series[name]
        low, middle, high = (float(columns[k][0]) for k in ("low", "estimate", "high"))
        if all(map(math.isfinite, (low, high))):
            axes.plot([low, high], [place, place], color=COLOURS[0], linewidth=2)
        axes.plot([middle], [place], "s", color=COLOURS[0], markersize=6)
    axes.set_yticks(range(len(names)), [plain(name) for name in reversed(names)])
    axes.set_ylim(-0.7, len(names) - 0.3)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    if plot.logarithmic:
        _plain_ticks(axes.xaxis)


def _plain_ticks(axis: "Axis") -> None:
    """Write 0.5, 1, 2 on a logarithmic axis, not powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    few = high / low > 100
    axis.set_major_locator(LogLocator(subs=(1.0,) if few else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _steps(axes: "Axes", plot: Plot) -> None:
    for index, (name, columns) in enumerate(plot.series.items()):
        look = line_style(index)
        axes.step(columns["x"], columns["y"], where="post", label=plain(name), **look)
        if "low" in columns:
            ends = (columns["low"], columns["high"])
            axes.fill_between(columns["x"], *ends, step="post", color=look["color"], alpha=0.15)
    axes.set_ylim(0, 1.02)
    axes.set_xlim(left=0)
    _legend(axes, plot)


def _bars(axes: "Axes", plot: Plot) -> None:
    for index, (name, columns) in enumerate(plot.series.items()):
        pairs = list(zip(columns["from"], columns["to"], strict=True))
        share = 1 / len(plot.series)
        left = [a + (b - a) * share * index for a, b in pairs]
        widths = [(b - a) * share for a, b in pairs]
        look: dict[str, Any] = {"color": COLOURS[index % 6], "edgecolor": INK, "linewidth": 0.5}
        axes.bar(left, columns["count"], widths, align="edge", label=plain(name), **look)
        for place, width, count in zip(left, widths, columns["count"], strict=True):
            if math.isnan(count):  # suppressed, which is not 0
                axes.text(place + width / 2, 0, "*", ha="center", va="bottom")
    shown = [n for columns in plot.series.values() for n in columns["count"] if not math.isnan(n)]
    axes.set_ylim(0, 1.05 * max(shown, default=0) or 1)
    ends = [end for columns in plot.series.values() for end in (columns["from"], columns["to"])]
    axes.set_xlim(min(map(min, ends)), max(map(max, ends)))
    _legend(axes, plot)


def _line(axes: "Axes", plot: Plot) -> None:
    if plot.logarithmic:
        axes.set_xscale("log")
        axes.set_yscale("log")
    elif plot.reference is not None:
        axes.axline((0, 0), slope=plot.reference, color=INK, linewidth=0.8, linestyle=":")
    for index, (name, columns) in enumerate(plot.series.items()):
        look = line_style(index)
        axes.plot(columns["x"], columns["y"], label=plain(name), **look)
        if "low" in columns:
            ends = (columns["low"], columns["high"])
            axes.fill_between(columns["x"], *ends, color=look["color"], alpha=0.15)
    if plot.logarithmic:
        if plot.reference is not None:  # a line through 0 is a diagonal here
            left, right = axes.get_xlim()
            heights = [plot.reference * left, plot.reference * right]
            axes.plot([left, right], heights, color=INK, linewidth=0.8, linestyle=":")
            axes.set_xlim(left, right)
        _plain_ticks(axes.xaxis)
        _plain_ticks(axes.yaxis)
    _legend(axes, plot)


def line_style(index: int) -> dict[str, Any]:
    """Return the colour and the dashes of the curve of this number."""
    return {"color": COLOURS[index % 6], "linestyle": DASHES[index % 4]}


def _legend(axes: "Axes", plot: Plot) -> None:
    if len(plot.series) > 1:
        axes.legend()


def _for_a_page(text: str, title: str) -> str:
    """Return the element alone, with the width of its place, the page's colours and a name."""
    element = text[text.index("<svg") :].replace(INK, "currentColor")
    size = re.search(r'viewBox="([^"]+)"', element)
    box = size.group(1) if size else "0 0 504 288"
    name = html.escape(title, quote=True)
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="{box}" role="img" aria-label="{name}">'
    )
    element = re.sub(r"<svg[^>]*>", lambda _: opening, element, count=1)  # a name may have a \1
    # Drop unused names, which a second figure of the page would repeat.
    used = set(re.findall(r"#([\w-]+)", element))
    return re.sub(r' id="([^"]*)"', lambda name: name[0] if name[1] in used else "", element)
