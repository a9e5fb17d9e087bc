"""Turn a report into Markdown. Every figure comes from the report; nothing is typed here."""

from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.targets import measured, targets
from securecomp.overhead import machine, views
from securecomp.overhead.cases.paillier_steps import ASSUMES
from securecomp.overhead.quantities import figures, memory, seconds, size

Row = dict[str, Any]
Spread = dict[str, float]


def markdown(report: dict[str, Any]) -> str:
    """Return the whole page of a report."""
    good = [row for row in report["rows"] if "failure" not in row]
    parts = [
        "# Measured" + (" (quick run: small, and no basis for any claim)" * report["quick"]),
        "Generated from the run's JSON by `python -m benchmarks table FILE`; do not edit.",
        _machine(report),
        "## Time",
        "Median (quartiles; of a ratio, where there are enough samples, the median's 95 % "
        "bootstrap interval). Set-up and online time are apart; ratios are of both together, each "
        "the median of the ratios of samples that took turns. All sides run warm, as `timeit` "
        "would run them. A floor is work that no implementation avoids.",
        _time(good),
        "## Cost and correctness",
        "Memory: the most that the secure side held above its inputs. Error: largest relative "
        "deviation from plaintext.",
        _cost(good),
        *_growth(report["fits"]),
        *_peers(report["peers"]),
        *_failures((*report["rows"], *report["peers"])),
        *_notes((*good, *report["peers"])),
    ]
    return "\n\n".join(parts) + "\n"


def _machine(report: dict[str, Any]) -> str:
    lines = [f"- {line}" for line in machine.told(report)]
    rows = (*report["rows"], *report["peers"])
    elsewhere = [row["elsewhere"] for row in rows if row.get("elsewhere") is not None]
    if elsewhere:
        ordered = sorted(elsewhere)
        load = report["machine"]["load_before"]
        lines.append(
            f"- other processes kept {ordered[len(ordered) // 2]:.2f} cores busy during the "
            f"median case, at most {ordered[-1]:.2f}; load before the run: {load}"
        )
        if ordered[-1] > views.NOISE:
            lines.append(
                f"- **noisy**: do not rely on the cases marked \\*: more than {views.NOISE} cores "
                "did other work while they ran"
            )
    return "\n".join(lines)


def _time(rows: Iterable[Row]) -> str:
    header = (
        "case",
        "sizes",
        "plaintext",
        "set-up",
        "online",
        "ratio to plaintext",
        "floor, and ratio to it",
        "target",
    )
    return _table(
        header,
        (
            (
                _name(row),
                views.sizes(row),
                _seconds(row["plain"]),
                _seconds(row["setup"]) if row["setup"] else "-",
                _seconds(row["online"]),
                _times(row["ratio"]),
                "<br>".join(
                    f"{f['name']} {seconds(f['seconds']['median'])}: {_times(f['ratio'])}"
                    for f in row["floors"]
                )
                or "-",
                _target(row),
            )
            for row in rows
        ),
    )


def _cost(rows: Iterable[Row]) -> str:
    header = ("case", "most bytes by a party", "bytes by all", "rounds", "messages")
    return _table(
        (*header, "memory", "error"),
        (
            (
                row["title"],
                *(
                    (
                        size(row["bytes_per_party"]),
                        size(row["bytes_total"]),
                        str(row["rounds"]),
                        f"{row['messages']:,}",
                    )
                    if "rounds" in row
                    else ("-",) * 4
                ),
                memory(row["peak_memory"]),
                f"{row['error']:.2g}",
            )
            for row in rows
        ),
    )


def _growth(fits: Sequence[Row]) -> list[str]:
    if not fits:
        return []
    return [
        "## Growth",
        "Exponent e of cost = c size^e: fitted to all sizes, and between the last two.",
        _table(
            ("of", "with", "sizes", "fitted", "last two"),
            (
                (
                    fit["quantity"],
                    fit["series"],
                    ", ".join(f"{n:,}" for n in fit["sizes"]),
                    f"{fit['exponent']:.2f}",
                    f"{fit['last']:.2f}",
                )
                for fit in fits
            ),
        ),
    ]


def _peers(rows: Sequence[Row]) -> list[str]:
    measured = [row for row in rows if "total" in row]
    skipped = [f"{row['peer']} was skipped: {row['skipped']}" for row in rows if "skipped" in row]
    if not measured:
        return ["## Peers", *skipped] if skipped else []
    header = ("peer", "sizes", "phases", "together", "CPU of all parties", "most bytes by a party")
    table = _table(
        (*header, "ours", "times faster", "error", "target"),
        (
            (
                _name(row),
                views.sizes(row),
                "<br>".join(f"{name} {_seconds(s)}" for name, s in row["phases"].items()),
                _seconds(row["total"]),
                seconds(row["cpu"]["median"]),
                size(row["bytes_per_party"]),
                f"{row['compared_with']}: {seconds(row['ours']['median'])}",
                figures(row["times_faster"])
                + (f" ({figures(row['with_setup'])})" if "with_setup" in row else ""),
                f"{row['error']:.2g}" if "error" in row else "-",
                _target(row),
            )
            for row in measured
        ),
    )
    used = {
        f"{row['peer']}: {row['how']} Versions: "
        + ", ".join(f"{k} {v or 'absent'}" for k, v in row["versions"].items())
        + "."
        for row in measured
    }
    return ["## Peers", table, *sorted(used), *skipped]


def _failures(rows: Iterable[Row]) -> list[str]:
    failed = [f"- `{row['case']}`: {row['failure']}" for row in rows if "failure" in row]
    return ["## Failed", "\n".join(failed)] if failed else []


def _notes(rows: Sequence[Row]) -> list[str]:
    notes = [f"- `{row['case']}`: {row['note']}" for row in rows if row.get("note")]
    notes += [f"- {text}" for text in assumptions(rows)]
    return ["## Notes", "\n".join(notes)] if notes else []


def assumptions(rows: Iterable[Row]) -> list[str]:
    """Return the assumptions of our side that a peer in these rows does not make."""
    short = any(row.get("compared_with", "").startswith("paillier/encrypt/") for row in rows)
    text = (
        "phe and LightPHE encrypt by r^n with a full exponent; our `paillier/encrypt` computes "
        f"{ASSUMES['half']}. `paillier/encrypt-full` has the full exponent on both sides."
    )
    return [text] if short else []


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _name(row: Row) -> str:
    return f"{row['title']} (`{row['case']}`)" + " \\*" * views.noisy(row)


def _target(row: Row) -> str:
    return (
        "<br>".join(
            f"{t['text']}: {'met' if t['met'] else '**not met**'} ({measured(t)})"
            for t in targets(row)
        )
        or "-"
    )


def _seconds(s: Spread) -> str:
    return f"{seconds(s['median'])} ({seconds(s['q1'])} - {seconds(s['q3'])})"


def _times(s: Spread) -> str:
    ends = ("low", "high") if s.get("low") is not None else ("q1", "q3")
    low, high = (figures(s[end]) for end in ends)
    return f"{figures(s['median'])}x ({low} - {high})"
