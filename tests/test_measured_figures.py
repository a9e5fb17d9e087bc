"""The documentation's figures are those of the committed runs: `python -m benchmarks readme`."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from cases import named

from benchmarks import plot, runner, summary, targets
from benchmarks.table import markdown
from securecomp.overhead.worker import cases as found_by_worker

AGAIN = "run: python -m benchmarks readme"
DESCRIPTION = "{http://purl.org/dc/elements/1.1/}description"


@pytest.fixture(scope="module")
def kept():
    return summary.kept()


def test_every_committed_run_is_shown(kept):
    files = {path.stem for path in summary.RESULTS.glob("*.json")}
    assert files == set(kept)


def test_a_page_s_table(kept):
    for page in summary.PAGES:
        with named(page):
            text = (summary.ROOT / page).read_text()
            assert summary.filled(text, list(kept.values()), summary.PAGES[page]) == text, AGAIN


def test_the_readme_has_ten_rows(kept):
    lines = summary.table(list(kept.values()), summary.FEATURED).splitlines()
    assert sum(line.startswith("| ") for line in lines) - 2 == len(summary.FEATURED) == 10
    assert (summary.ROOT / "README.md").read_text().count("\n") <= 120


def test_the_tables(kept):
    for name in summary.RUNS:
        with named(name):
            assert (summary.RESULTS / f"{name}.md").read_text() == markdown(kept[name]), AGAIN


def test_the_plots_are_of_the_runs_numbers(kept):
    for series in summary.PLOTS:
        with named(series):
            root = ET.parse(summary.RESULTS / f"{series}.svg").getroot()  # noqa: S314 - our own file
            (shown,) = root.iter(DESCRIPTION)
            assert json.loads(shown.text) == plot.curves(kept[summary.PLOTS[series]], series), AGAIN


def test_a_plot_draws_what_it_describes(kept, tmp_path):
    for series in summary.PLOTS:
        with named(series):
            plot.draw(kept[summary.PLOTS[series]], series, tmp_path / "one.svg")
            plot.draw(kept[summary.PLOTS[series]], series, tmp_path / "two.svg")
            assert (tmp_path / "one.svg").read_text() == (tmp_path / "two.svg").read_text()
            # One tick a size, and a panel for time and one for bytes.
            assert (tmp_path / "one.svg").read_text().count('id="axes_') == 2


def test_the_measurements_show_every_plot():
    text = (summary.ROOT / "docs" / "measurements.md").read_text()
    shown = {Path(part.split(")")[0]).stem for part in text.split("](../benchmarks/results/")[1:]}
    assert shown >= set(summary.PLOTS)


def test_a_table_of_other_figures_would_be_noticed(kept):
    text = (summary.ROOT / "docs" / "measurements.md").read_text()
    ckks = json.loads(json.dumps(kept["ckks"]))
    row = next(row for row in ckks["rows"] if row.get("targets"))
    row["targets"][0]["value"] *= 1.5
    assert summary.filled(text, [*kept.values(), ckks]) != text


def test_the_developer_s_cases_are_found_by_their_process():
    found = found_by_worker(runner.SUITE.module, runner.SUITE.sizes)
    assert [case.name for case in found] == [case.name for case in targets.listed()]
