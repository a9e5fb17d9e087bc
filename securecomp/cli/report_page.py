"""Results as one HTML page: tables and figures beside what was revealed and what it cost.

The page needs nothing else: no script, no font, no network. Needs jinja2 and matplotlib
(`pip install 'securecomp[report]'`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from securecomp.show.exhibit import Exhibit, TextTable
from securecomp.show.figures import svg
from securecomp.show.pages import render
from securecomp.statistics.analysis import Analysis
from securecomp.statistics.results import Result, Run

Answer = Result | Analysis


@dataclass(frozen=True, slots=True)
class AnswerSection:
    """One answer, as the page shows it."""

    title: str
    grids: Sequence[TextTable]
    figures: Sequence[tuple[str, str]]
    remarks: Sequence[str]


def page(answers: Sequence[Answer], title: str = "What the sites computed together") -> str:
    """Return a self-contained page.

    Args:
        answers: Results of a study, in order.
        title: The page's heading.

    Raises:
        BackendUnavailableError: jinja2 or matplotlib is not installed.
    """
    runs = list({id(answer.run): answer.run for answer in answers}.values())
    return render(
        "report.html",
        title=title,
        sections=[_section(answer) for answer in answers],
        sites=runs[0].parties if runs else (),
        learned=_learned(runs),
        facts={name: fact for run in runs for name, fact in run.from_data.items()},
        opened=list(dict.fromkeys(name for run in runs for name in run.opened)),
        costs=[_cost(run) for run in runs],
    )


def exhibition(exhibits: Sequence[Exhibit], title: str, about: str) -> str:
    """Return a self-contained page of results that no sites computed.

    Args:
        exhibits: In order.
        title: The page's heading.
        about: The line below it.

    Raises:
        BackendUnavailableError: jinja2 or matplotlib is not installed.
    """
    sections = [_section(exhibit) for exhibit in exhibits]
    return render("exhibits.html", title=title, about=about, sections=sections)


def _section(answer: Exhibit) -> AnswerSection:
    figures = [(plot.title, svg(plot)) for plot in answer.plots()]
    return AnswerSection(answer.title, answer.grids(), figures, answer.remarks())


def _learned(runs: Sequence[Run]) -> list[tuple[str, str, str]]:
    """Return who learned what; by which protocol, where parties of one name differ in it."""
    found: dict[tuple[str, str], str] = {}
    for run in runs:
        for pair in run.learned.items():
            found.setdefault(pair, run.protocol)
    parties = [party for party, _ in found]
    return [
        (party, protocol if parties.count(party) > 1 else "", what)
        for (party, what), protocol in found.items()
    ]


def _cost(run: Run) -> dict[str, Any]:
    transcript = run.transcript
    most = max((transcript.sent[name] for name in run.parties), default=0)
    return {
        "protocol": run.protocol,
        "sums": run.sums,
        "rounds": f"{transcript.rounds:,}",
        "messages": f"{transcript.messages:,}",
        "bytes": f"{most:,}",
        "seconds": f"{run.seconds * 1e3:,.1f} ms",
    }
