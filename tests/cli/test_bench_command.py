"""`securecomp bench`: what it lists, measures, writes, compares and refuses."""

import json
import sys
import types
from pathlib import Path

import pytest
from cases import named
from click.testing import CliRunner

from securecomp.cli.main import main


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    """One small case, measured: what was printed, and the run's JSON."""
    file = tmp_path_factory.mktemp("bench") / "run.json"
    sizes = ("--elements", "50", "--parties", "4")
    result = CliRunner().invoke(
        main, ["bench", "sum/sharing", "--quick", *sizes, "--json", str(file)]
    )
    assert (result.exit_code, result.stderr) == (0, "sum/sharing\n")
    return result.stdout.replace(str(file.parent) + "/", ""), file.read_text()


@pytest.fixture
def measured(once, write):
    """What was printed; the run is in run.json."""
    write("run.json", once[1])
    return once[0]


def report():
    return json.loads(Path("run.json").read_text())


def changed(**machine):
    found = report()
    found["machine"] |= machine
    return json.dumps(found)


def test_what_it_measures(measured):
    (row,) = report()["rows"]
    assert row["sizes"] == {"parties": 4, "elements": 50}
    assert row["error"] == 0
    assert row["parts"].keys() == row["bytes_by_role"].keys() == {"hospital", "server"}
    assert row["ratio"]["low"] <= row["ratio"]["median"] <= row["ratio"]["high"]
    lines = measured.splitlines()
    assert max(map(len, lines)) <= 100
    assert lines[-1] == "run.json: written"
    page = " ".join(measured.split())
    for word in ("plain set-up online decode ratio bytes rounds memory error", "95 % interval"):
        assert word in page
    assert (
        'Published claims: "MPC is 100 to 1,000 times slower"; "FHE is 10,000 to 1,000,000' in page
    )
    assert "Quick: small sizes" in page
    assert report()["machine"]["cpu"] in page


def test_the_list(run):
    result = run("bench", "--list")
    assert (result.exit_code, result.stderr) == (0, "")
    names = [line.split()[0] for line in result.stdout.splitlines()]
    assert {"sum/sharing", "sum/masking", "sum/paillier", "shares/compare"} <= set(names)
    assert not any(name.startswith("peer/") for name in names)
    with_peers = run("bench", "--list", "--peers").stdout
    assert "peer/phe" in with_peers
    few = run("bench", "--list", "shares", "statistics").stdout.splitlines()
    assert {line.split("/")[0] for line in few} == {"shares", "statistics"}


def test_the_page_gets_the_run(run, measured, monkeypatch):
    stub = types.ModuleType("securecomp.overhead.page")
    stub.page = lambda found: f"<p>{found['rows'][0]['case']}</p>"
    monkeypatch.setitem(sys.modules, stub.__name__, stub)
    result = run("bench", "--from", "run.json", "--html", "page.html")
    assert result.exit_code == 0
    assert Path("page.html").read_text() == "<p>sum/sharing</p>"
    assert result.stdout.endswith("page.html: written\n")


def test_a_page_that_cannot_be_drawn_is_refused_first(run, folder, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    refused = run("bench", "--html", "page.html")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "pip install 'securecomp[report]'" in refused.stderr


def test_a_run_is_shown_again(run, measured):
    again = run("bench", "--from", "run.json")
    assert again.stdout + "run.json: written\n" == measured
    refused = run("bench", "sum", "--from", "run.json")
    assert refused.exit_code == 1
    assert "leave out cases and sizes" in refused.stderr


def test_two_runs_compared(run, write, measured):
    # Times that were made up: a busy machine's own may differ by as much.
    for name, factor in (("run.json", 1), ("slow.json", 3)):
        made = report()
        count = len(made["rows"][0]["samples"]["online"])
        made["rows"][0]["samples"]["online"] = [factor * (1 + 0.001 * i) for i in range(count)]
        write(name, json.dumps(made))
    result = run("bench", "--from", "slow.json", "--compare", "run.json")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "New over old" in result.stdout
    assert "slower" in result.stdout.split("New over old")[1]
    same = run("bench", "--from", "run.json", "--compare", "run.json").stdout
    assert "slower" not in same.split("New over old")[1]


def test_a_new_run_is_compared(run, measured):
    command = ("bench", "sum/sharing", "--quick", "--elements", "60", "--compare", "run.json")
    result = run(*command)
    assert "other sizes: parties 4, elements 50 in the old run, now parties 3" in " ".join(
        result.stdout.split()
    )


def test_another_machine(run, write, measured):
    write("old.json", changed(cpu="another"))
    # Before anything is measured, so that no minute is lost.
    refused = run("bench", "sum/sharing", "--compare", "old.json")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "another machine" in refused.stderr
    assert "--anyway" in refused.stderr
    anyway = run("bench", "--from", "run.json", "--compare", "old.json", "--anyway")
    assert anyway.exit_code == 0
    assert anyway.stderr.startswith("warning: another machine: cpu: another, now ")
    assert "New over old" in anyway.stdout


def test_what_is_refused(run, write, folder):
    for arguments, said in [
        (["nothing"], "there is no case 'nothing'"),
        (["--parties", "2"], "--parties is from 3"),
        (["--elements", "0"], "--elements is from 4"),
        (["--elements", "-5"], "--elements is from 4"),
        (["--compare", "none.json"], "none.json: cannot be read"),
        (["--from", "bad.json"], "bad.json: is not JSON"),
        (["--json", "no/such/folder.json"], "cannot be written"),
        (["--from", "run.json", "--json", "run.json"], "is an input"),
    ]:
        with named(arguments, said):
            write("bad.json", "{")
            write("run.json", "{}")
            result = run("bench", *arguments)
            assert (result.exit_code, result.stdout) == (1, "")
            assert result.stderr.startswith("error: ")
            assert said in result.stderr


def test_a_wrong_result_ends_with_1(run, write, measured):
    broken = report()
    broken["rows"] = [
        {"case": "sum/x", "title": "X", "series": "", "failure": "wrong result: two is not three"}
    ]
    write("broken.json", json.dumps(broken))
    result = run("bench", "--from", "broken.json")
    assert result.exit_code == 1
    assert "failed: sum/x: wrong result: two is not three" in result.stdout


def test_runs_of_earlier_versions_are_shown(run):
    for name in ["ckks", "computing", "paillier", "sharing-masking"]:
        with named(name):
            file = Path(__file__).parents[2] / "benchmarks" / "results" / f"{name}.json"
            result = run("bench", "--from", str(file))
            assert (result.exit_code, result.stderr) == (0, "")
            assert max(map(len, result.stdout.splitlines())) <= 100
            compared = run("bench", "--from", str(file), "--compare", str(file))
            assert compared.exit_code == 0
            assert max(map(len, compared.stdout.splitlines())) <= 100
