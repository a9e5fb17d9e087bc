"""A run as one HTML page: the measured cost of privacy beside published claims about it.

Needs jinja2 and matplotlib (`pip install 'securecomp[report]'`).
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from securecomp.overhead import charts, machine, views
from securecomp.overhead.charts import Band, Dot
from securecomp.overhead.line_model import LINES
from securecomp.overhead.published_claims import CLAIMS, PublishedClaim, verdict
from securecomp.overhead.quantities import figures, seconds, size
from securecomp.overhead.rates import BOUND
from securecomp.overhead.scheme_choice import CASES, ProtocolCost, fastest, protocol_costs
from securecomp.overhead.views import MeasuredRow, Row, Spread
from securecomp.paillier.encrypted_sum import Paillier
from securecomp.protocol.sum_protocols import SumProtocol
from securecomp.secagg.masked_sum import Masking
from securecomp.sharing.additive_sum import Sharing
from securecomp.show.pages import render

Report = Mapping[str, Any]
Figure = tuple[str, str]
"""An SVG, and its caption."""
_SITES = (3, 10, 100, 1000)
_VALUES = (1, 1_000, 1_000_000)
_SCHEMES: dict[str, SumProtocol] = {
    "Sharing, 3 servers": Sharing(3),
    "Sharing, all sites serve": Sharing("all"),
    "Masking": Masking(),
    "Paillier": Paillier(),
}


@dataclass(frozen=True, slots=True)
class SchemeSection:
    """The section of one scheme's cases."""

    title: str
    dots: str
    jobs: Sequence[MeasuredRow]
    decoded: bool
    growth: Sequence[tuple[str, Sequence[Figure]]]
    notes: Sequence[tuple[str, str]]


def page(
    report: Report | Sequence[Report], title: str = "The cost of privacy, against plaintext"
) -> str:
    """Return a self-contained page of a run, or of several runs together.

    Args:
        report: A run's JSON; or several, of different cases.
        title: The page's heading.

    Raises:
        BackendUnavailableError: jinja2 or matplotlib is not installed.
    """
    reports = [report] if isinstance(report, Mapping) else list(report)
    rows = [row for one in reports for row in one["rows"]]
    good = [row for row in rows if "failure" not in row]
    peers = [row for one in reports for row in one.get("peers", ())]
    groups = {name: [r for r in good if views.scheme(r) == name] for name in _order(good)}
    return render(
        "overhead.html",
        title=title,
        quick=any(one.get("quick") for one in reports),
        machines=_machines(reports),
        noise=_noise([*good, *peers]),
        promises=[kept for row in [*rows, *peers] for _, kept in views.targets(row)],
        overview=[_overview(name, some) for name, some in groups.items()],
        claims=[_claimed(claim, good) for claim in CLAIMS],
        sections=[_section(name, some) for name, some in groups.items()],
        bootstrap=any((row["ratio"].get("low") is not None) for row in good),
        peers=[_peer(row) for row in peers if "total" in row],
        how=dict.fromkeys(_used(row) for row in peers if "how" in row),
        failed=[(r["case"], r["title"], r["failure"]) for r in [*rows, *peers] if "failure" in r],
        skipped=_skipped(reports, peers),
        lines=LINES,
        decision=_decision(good),
    )


def _order(rows: Sequence[Row]) -> list[str]:
    """Return the schemes of the rows, the known ones first and in their order."""
    found = list(dict.fromkeys(map(views.scheme, rows)))
    known = [name for name in views.SCHEMES if name in found]
    return known + [name for name in found if name not in known]


def _machines(reports: Sequence[Report]) -> list[str]:
    return list(dict.fromkeys("; ".join(machine.told(one)) for one in reports))


def _noise(rows: Sequence[Row]) -> str:
    busy = sorted(row["elsewhere"] for row in rows if row.get("elsewhere") is not None)
    if not busy:
        return ""
    return f"{busy[len(busy) // 2]:.2f} cores during the median case, at most {busy[-1]:.2f}"


def _overview(name: str, rows: Sequence[Row]) -> dict[str, str]:
    medians = [row["ratio"]["median"] for row in rows]
    return {"title": views.heading(name), "jobs": str(len(rows)), **_ends(medians)}


def _ends(ratios: Sequence[float]) -> dict[str, str]:
    """Return the smallest, the median and the largest."""
    three = {"least": min(ratios), "middle": statistics.median(ratios), "most": max(ratios)}
    return {name: f"{figures(ratio)}x" for name, ratio in three.items()}


def _claimed(claim: PublishedClaim, rows: Sequence[Row]) -> dict[str, Any]:
    """Return a claim with its jobs: how many ratios are below it, within it and above it."""
    about = [row["ratio"] for row in rows if views.family(row) == claim.family]
    found = [verdict(ratio, claim.facts()) for ratio in about]
    return {
        "text": claim.text,
        "jobs": len(found),
        **(_ends([ratio["median"] for ratio in about]) if about else {}),
        **{place: found.count(place) for place in ("below", "within", "above")},
    }


def _section(name: str, rows: Sequence[Row]) -> SchemeSection:
    title = views.heading(name)
    dots = [
        Dot(row["case"], (ends := views.ends(row["ratio"]))[0], row["ratio"]["median"], ends[1])
        for row in rows
    ]
    bands = [Band(f"claimed of {c.family.upper()}", c.low, c.high) for c in CLAIMS]
    series = [s for s in dict.fromkeys(row["series"] for row in rows) if s]
    least, most = min(d.middle for d in dots), max(d.middle for d in dots)
    said = (
        f"{title}: ratios to plaintext of {len(dots)} jobs, {figures(least)}x to "
        f"{figures(most)}x; the table below has each."
    )
    grown = {s: _growth(title, views.points(rows, s), s) for s in series}
    return SchemeSection(
        title,
        charts.ratios(dots, bands, said),
        [views.job(row) for row in rows],
        any(row.get("decode") for row in rows),
        [(s, figure) for s, figure in grown.items() if figure],
        list(dict.fromkeys((r["case"], r["note"]) for r in rows if r.get("note"))),
    )


def _growth(title: str, rows: Sequence[Row], series: str) -> list[Figure]:
    """Return the figures of time and bytes over a series; none for fewer than two sizes."""
    if len(rows) < 2:
        return []
    sizes = [row["sizes"][series] for row in rows]
    times = {
        "plaintext": [row["plain"]["median"] for row in rows],
        "secure": [row["secure"]["median"] for row in rows],
    }
    sent, known = {}, True
    if all("rounds" in row for row in rows):
        loads = [views.loads(row) or (0, 0) for row in rows]
        known = all(low == high for low, high in loads)
        for line in LINES:
            ends = [views.on_line(row, line) or (0.0, 0.0) for row in rows]
            times[f"+ {line.name}"] = [high for _, high in ends]
        sent = {
            "by all": [row["bytes_total"] for row in rows],
            "most by a party": [row["bytes_per_party"] for row in rows],
        }
        sent = {name: counts for name, counts in sent.items() if min(counts) > 0}
    caption = "Time over {}" if known else "Time over {}; with a line, at most"
    found = [_curves(title, caption, sizes, times, series)]
    if sent:
        found.append(_curves(title, "Bytes over {}", sizes, sent, series))
    return found


def _curves(
    title: str,
    caption: str,
    sizes: Sequence[int],
    curves: Mapping[str, Sequence[float]],
    series: str,
) -> Figure:
    of_bytes = caption.startswith("Bytes")
    said: Callable[[Any], str] = size if of_bytes else seconds
    caption = caption.format(series)
    words = "; ".join(
        f"{name} from {said(costs[0])} to {said(costs[-1])}, order {charts.exponent(sizes, costs)}"
        for name, costs in curves.items()
    )
    told = f"{title}: {caption}, {sizes[0]:,} to {sizes[-1]:,}. {words}."
    drawn = charts.growth(sizes, curves, series, told, of_bytes=of_bytes)
    return drawn, caption


def _peer(row: Row) -> dict[str, Any]:
    def median(spread: Spread) -> str:
        return seconds(spread["median"])

    return {
        "title": row["title"],
        "case": row["case"],
        "sizes": ", ".join(f"{k} {v:,}" for k, v in row["sizes"].items() if v is not None),
        "noisy": views.noisy(row),
        "phases": [f"{name} {median(spread)}" for name, spread in row["phases"].items()],
        "total": median(row["total"]),
        "compared": row["compared_with"],
        "ours": median(row["ours"]),
        "faster": figures(row["times_faster"]),
        "with_setup": figures(row["with_setup"]) if "with_setup" in row else "",
        "targets": views.targets(row),
    }


def _used(row: Row) -> str:
    versions = ", ".join(f"{name} {number or 'absent'}" for name, number in row["versions"].items())
    return f"{row['peer']}: {row['how']} Versions: {versions}."


def _skipped(reports: Sequence[Report], peers: Sequence[Row]) -> list[tuple[str, str, str]]:
    """Return each thing that no run measured: its name, the reason, and the command that helps."""
    measured = {row["peer"] for row in peers if "total" in row}
    said = {
        row["peer"]: row["skipped"]
        for row in peers
        if "skipped" in row and row["peer"] not in measured
    }
    said |= {case["title"]: case["reason"] for one in reports for case in one.get("skipped", ())}
    found = []
    for name, reason in said.items():
        why, _, command = reason.partition(": ")
        found.append((name, why, command))
    return found


def _decision(rows: Sequence[Row]) -> dict[str, Any]:
    choice, missing = protocol_costs(rows)
    needed = [(name, CASES[name]) for name in missing]
    if len(choice) < 2:
        return {"missing": needed, "maps": []}
    staying = [protocol for protocol in choice if protocol.dropouts]
    maps = [("Where every site stays to the end", _maps(choice, choice))]
    if len(staying) > 1:
        maps.append(("Where a site may drop out", _maps(choice, staying)))
    return {
        "missing": needed,
        "maps": maps,
        "jobs": _jobs(choice),
        "rates": [
            (w.name, w.rounds, [(unit, seconds(rate)) for unit, rate in w.rates.items()])
            for w in choice
        ],
        "trust": [(name, scheme.learned().items()) for name, scheme in _SCHEMES.items()],
        "bits": BOUND.bit_length() - 1,
    }


def _maps(choice: Sequence[ProtocolCost], among: Sequence[ProtocolCost]) -> list[Figure]:
    names = ", ".join(protocol.name for protocol in among)
    return [
        (
            charts.decision(
                among,
                line,
                f"Fastest of {names}, on a {line.name}, by sites and values; the table below "
                "has the times.",
                choice.index,
            ),
            f"{line.name}: {line.facts}",
        )
        for line in LINES
    ]


def _jobs(choice: Sequence[ProtocolCost]) -> list[tuple[str, list[tuple[str, str, list[str]]]]]:
    """Return, for each line, jobs with the fastest protocol and all times in order of `choice`."""
    found = []
    for line in LINES:
        jobs = []
        for sites in _SITES:
            for values in _VALUES:
                ordered = fastest(choice, sites, values, line)
                times = {name: seconds(time) for time, name in ordered}
                sized = f"{sites:,} sites, {values:,} value{'s' * (values > 1)}"
                jobs.append((sized, ordered[0][1], [times[protocol.name] for protocol in choice]))
        found.append((line.name, jobs))
    return found
