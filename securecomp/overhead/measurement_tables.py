"""Tables of a run, and of two runs compared, 100 columns wide. Every figure is from the run."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from securecomp.overhead import machine, views
from securecomp.overhead.comparison import RunComparison
from securecomp.overhead.measurement import Row
from securecomp.overhead.published_claims import verdict
from securecomp.overhead.quantities import figures, interval, memory, seconds, size


def text(report: dict[str, Any]) -> str:
    """Return a run's tables as plain text."""
    screen = Console(width=100, highlight=False, color_system=None)
    with screen.capture() as captured:
        for part in parts(report):
            screen.print(part)
    return captured.get()


def parts(report: dict[str, Any]) -> Iterator[Any]:
    """Yield a run's tables and sentences, for a screen."""
    rows = [row for row in report["rows"] if "failure" not in row]
    yield Text("\n".join(machine.told(report)))
    if report["quick"]:
        yield Text("Quick: small sizes and few rounds, which support no claim.")
    jobs = [row for row in rows if not row["series"]]
    series = [row for row in rows if row["series"]]
    if jobs:
        yield from _cost(jobs)
        yield from _ratios(report, jobs)
        yield from _roles(jobs)
    if series:
        yield from _series(series)
        yield from _growth(report["fits"])
    for row in report["rows"]:
        if "failure" in row:
            yield Text(f"failed: {row['case']}: {row['failure']}")
    for skipped in report.get("skipped", ()):
        yield Text(f"skipped: {skipped['case']}: {skipped['reason']}")
    noisy = [row["case"] for row in rows if views.noisy(row)]
    if noisy:
        yield Text(
            f"Noisy (*): other work kept more than {views.NOISE} cores busy; do not rely on "
            f"{len(noisy)} of {len(rows)} cases."
        )


def _cost(rows: Iterable[Row]) -> Iterator[Any]:
    header = ("job", "plain", "set-up", "online", "decode", "ratio", "bytes", "rounds", "memory")
    yield _table(
        "",
        (*header, "error"),
        (
            (
                _name(row),
                seconds(row["plain"]["median"]),
                seconds(row["setup"]["median"]) if row["setup"] else "-",
                seconds(row["online"]["median"]),
                seconds(row["decode"]["median"]) if row.get("decode") else "-",
                f"{figures(row['ratio']['median'])}x",
                size(row["bytes_total"]) if "bytes_total" in row else "-",
                str(row.get("rounds", "-")),
                memory(row["peak_memory"]).replace("below ", "<"),
                f"{row['error']:.1g}",
            )
            for row in rows
        ),
    )
    yield Text(
        "Medians. Ratio: set-up and online time against plaintext, sample by sample in turns. "
        "Decode: a receiver's part of the online time. Bytes by all. Error: against plaintext, "
        "checked before and after the timing."
    )


def _ratios(report: dict[str, Any], rows: Sequence[Row]) -> Iterator[Any]:
    claims = {claim["family"]: claim for claim in report.get("claims", ())}
    lines = []
    for row in rows:
        claim = claims.get(row.get("family", ""))
        lines.append(
            (
                _name(row),
                views.sizes(row),
                f"{figures(row['ratio']['median'])}x",
                interval(row["ratio"]),
                verdict(row["ratio"], claim) if claim else "-",
            )
        )
    yield Text()
    yield Text(
        "Published claims: " + "; ".join(f'"{claim["text"]}"' for claim in claims.values()) + "."
    )
    yield _table("", ("job", "sizes", "ratio", "95 % interval", "to the claim"), lines, left=2)


def _roles(rows: Iterable[Row]) -> Iterator[Any]:
    lines = []
    for row in rows:
        sent = row.get("bytes_by_role", {})
        for name in dict.fromkeys((*row.get("parts", {}), *sent)):
            part = row.get("parts", {}).get(name)
            lines.append(
                (
                    row["title"],
                    name,
                    seconds(part["median"]) if part else "-",
                    size(sent[name]) if name in sent else "-",
                )
            )
    if lines:
        yield Text()
        yield _table("", ("job", "role", "one of them, online", "sent by one"), lines, left=2)


def _series(rows: Iterable[Row]) -> Iterator[Any]:
    yield Text()
    yield _table(
        "One size varies",
        ("scheme", "with", "size", "plain", "set-up", "online", "ratio", "95 % interval", "bytes"),
        (
            (
                row.get("scheme", "-"),
                row["series"],
                f"{row['sizes'][row['series']]:,}",
                seconds(row["plain"]["median"]),
                seconds(row["setup"]["median"]) if row["setup"] else "-",
                seconds(row["online"]["median"]),
                f"{figures(row['ratio']['median'])}x",
                interval(row["ratio"]),
                size(row["bytes_total"]) if "bytes_total" in row else "-",
            )
            for row in rows
        ),
        left=2,
    )


def _growth(fits: Iterable[dict[str, Any]]) -> Iterator[Any]:
    yield Text()
    yield _table(
        "Growth: cost = c size^e",
        ("scheme", "of", "with", "sizes", "e", "e of the last two"),
        (
            (
                fit.get("scheme", "-"),
                fit["quantity"],
                fit["series"],
                ", ".join(f"{n:,}" for n in fit["sizes"]),
                f"{fit['exponent']:.2f}",
                f"{fit['last']:.2f}",
            )
            for fit in fits
        ),
        left=4,
    )


def compared(found: RunComparison) -> Iterator[Any]:
    """Yield the table and the remarks of a comparison."""
    if found.changes:
        yield _table(
            "New over old",
            (
                "job",
                "secure",
                "95 % interval",
                "",
                "plain",
                "ratio",
                "95 % interval",
                "bytes",
                "memory",
            ),
            (
                (
                    change.title,
                    f"{change.secure['median']:.3g}",
                    _ends(change.secure),
                    change.mark + "*" * change.doubtful,
                    f"{change.plain['median']:.3g}",
                    f"{change.ratio['median']:.3g}",
                    _ends(change.ratio),
                    "-" if change.sent is None else f"{change.sent:.3g}",
                    "-" if change.memory is None else f"{change.memory:.3g}",
                )
                for change in found.changes
            ),
        )
        yield Text(
            "A change is marked if its interval excludes 1. ?: too few samples for an interval. "
            "*: the ratio to plaintext, which takes turns with it, changed otherwise; the machine "
            "may be the cause. The intervals cover the variation within a run, not between two "
            "starts of a process."
        )
    for remark in found.remarks:
        yield Text(remark)


def _ends(ratio: dict[str, Any]) -> str:
    return "-" if ratio["low"] is None else f"{ratio['low']:.3g} - {ratio['high']:.3g}"


def _name(row: Row) -> str:
    return str(row["title"]) + "*" * views.noisy(row)


def _table(
    title: str, header: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1
) -> Table:
    """Return a table whose first columns are words."""
    table = Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
        show_edge=False,
    )
    for index, name in enumerate(header):
        words = index < left
        table.add_column(name, justify="left" if words else "right", no_wrap=not words)
    for row in rows:
        table.add_row(*map(Text, row))
    return table
