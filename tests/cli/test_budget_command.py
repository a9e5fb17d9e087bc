"""`securecomp budget` and `securecomp dial`."""

import json
from pathlib import Path

import pytest
from cases import named

from securecomp.privacy.ledger import Ledger
from securecomp.privacy.privacy_amounts import PrivacyCost
from securecomp.privacy.sensitivity import Neighbours

PATIENT = Neighbours("add/remove", "patient", 5)
MADE = ("stays.ledger", "--dataset", "stays", "--epsilon", "3", "--delta", "1e-6")


@pytest.fixture
def ledger(run, folder):
    result = run("budget", "create", *MADE, "--unit", "patient", "--records", "5")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == (
        "stays.ledger: epsilon 3, delta 0.000001 for 'stays', "
        "add/remove of one patient with at most 5 records\n"
    )
    return Ledger("stays.ledger")


def test_show(run, ledger):
    ledger.settle(ledger.reserve("mean of los", PrivacyCost.of(0.1, "1e-7"), PATIENT))
    ledger.reserve("count", PrivacyCost.of(0.2), PATIENT)
    result = run("budget", "show", "stays.ledger")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "stays: add/remove of one patient with at most 5 records" in result.stdout
    assert "1 run was reserved and not settled; all of it counts" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100
    facts = json.loads(run("budget", "show", "stays.ledger", "--json").stdout)
    assert facts == {
        "dataset": "stays",
        "relation": "add/remove",
        "unit": "patient",
        "records": 5,
        "epsilon": "3",
        "epsilon_spent": "0.3",
        "epsilon_left": "2.7",
        "delta": "0.000001",
        "delta_spent": "1e-7",
        "delta_left": "9e-7",
        "open": 1,
        "entries": 4,
        "head": ledger.state().head,
    }


def test_history(run, ledger):
    ledger.settle(ledger.reserve("mean of los, [not markup]", PrivacyCost.of(0.1), PATIENT))
    result = run("budget", "history", "stays.ledger")
    assert "mean of los, [not markup]" in result.stdout
    assert "the budget of stays" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100
    entries = json.loads(run("budget", "history", "stays.ledger", "--json").stdout)["entries"]
    assert [entry["kind"] for entry in entries] == ["create", "reserve", "settle"]
    assert entries[1]["epsilon"] == "0.1"
    assert entries[2]["link"] == ledger.state().head


def test_verify(run, ledger):
    head = ledger.state().head
    result = run("budget", "verify", "stays.ledger", "--head", head, "--dataset", "stays")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"stays.ledger: 1 entries, as they were written; {head}\n"
    assert json.loads(run("budget", "verify", "stays.ledger", "--json").stdout) == {
        "entries": 1,
        "head": head,
    }
    for arguments, message in [
        (("--head", "0" * 64), "no entry has the link 0000000000000000..."),
        (("--dataset", "births"), "is the ledger of 'stays', not of 'births'"),
    ]:
        result = run("budget", "verify", "stays.ledger", *arguments)
        assert (result.exit_code, result.stdout) == (1, "")
        assert message in result.stderr
    Path("stays.ledger").write_text("x")
    for command in ("show", "history", "verify"):
        result = run("budget", command, "stays.ledger")
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr == (
            "error: stays.ledger: the ledger cannot be read, so nothing is answered: it is no "
            "ledger; name another file\n"
        )


def test_a_budget_that_cannot_be(run, folder):
    for arguments, message in [
        (("--epsilon", "0"), "a budget of epsilon 0 answers nothing"),
        (("--epsilon", "nan"), "epsilon is a finite number such as 0.5, not 'nan'"),
        (("--epsilon", "-1"), "epsilon must not be negative"),
        (("--delta", "1"), "delta is a probability"),
        (("--records", "3"), "say unit 'patient'"),
        (("--dataset", " "), "name it"),
    ]:
        with named(arguments, message):
            result = run("budget", "create", *MADE, *arguments)
            assert (result.exit_code, result.stdout) == (1, "")
            assert message in result.stderr
            assert not Path("stays.ledger").exists()


def test_a_delta_that_gives_somebody_away(run, folder):
    result = run("budget", "create", *MADE, "--delta", "0.01", "--persons", "500")
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: delta 0.01 is not below 1/500: publishing one of 500")
    Path("stays.ledger").unlink()
    assert run("budget", "create", *MADE, "--persons", "500").stderr == ""


def test_a_budget_is_set_once(run, ledger):
    result = run("budget", "create", *MADE)
    assert result.exit_code == 1
    assert "is there already, and a budget is set once" in result.stderr
    assert ledger.state().neighbours == PATIENT


def test_dial(run, folder):
    result = run("dial", "--html", "dial.html", "--epsilon", "0.1", "--answers", "10")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "dial.html: open it in a browser" in result.stdout
    assert "54.6 %" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100
    assert Path("dial.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    facts = json.loads(run("dial", "--epsilon", "0.1", "--json").stdout)
    assert facts["accuracy"] == pytest.approx(0.524, abs=5e-4)
    assert facts["error"] == 10


def test_dial_without_a_place(run, folder):
    result = run("dial", "--html", "none/dial.html")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "there is no folder none" in result.stderr
    for epsilon in ("0", "-1", "nan", "x"):
        result = run("dial", "--html", "dial.html", "--epsilon", epsilon)
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith("error: epsilon ")
    assert not Path("dial.html").exists()
