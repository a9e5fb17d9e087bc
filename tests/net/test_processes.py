"""A consortium of real processes: one command runs it, and kills do not change its result."""

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from cases import each_case
from click.testing import CliRunner
from consortium import COLUMNS, SITES, Consortium, rows
from test_over_a_network import TWO, documents, in_one_process

from securecomp.cli.main import main
from securecomp.net import simulation
from securecomp.statistics import Codebook, Study
from securecomp.statistics.codebook.entries import Entry


def test_simulate_is_one_command(tmp_path):
    files = []
    for site in SITES:
        files.append(str(tmp_path / f"{site}.csv"))
        rows(site).to_csv(files[-1], index=False)
    study = tmp_path / "study.toml"
    study.write_text(f'[study]\nprotocol = "masking"\nrows = 1000\n{COLUMNS}\n{TWO}')
    result = CliRunner().invoke(main, ["simulate", str(study), *files])
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)["results"]
    assert [one["ask"] for one in found] == ["mean(column='los')", "glm(formula='died ~ age')"]
    apart = Consortium(tmp_path, TWO, "masking")
    wanted = documents(in_one_process(apart.path))
    assert {one["ask"]: one["result"] for one in found} == json.loads(json.dumps(wanted))


def test_a_site_that_fails_ends_the_simulation_with_its_words(tmp_path):
    """Also one that fails before it is connected, of which no other party hears."""
    files = [str(tmp_path / f"{site}.csv") for site in SITES]
    for site, file in zip(SITES, files, strict=True):
        rows(site).to_csv(file, index=False)
    (tmp_path / "south.csv").write_text("")
    study = tmp_path / "study.toml"
    study.write_text(f"[study]\nrows = 1000\n{COLUMNS}\n{TWO}")
    result = CliRunner().invoke(main, ["simulate", str(study), *files])
    assert result.exit_code == 1
    assert result.stderr.startswith("error: south: ")
    assert result.stderr.endswith("south.csv: cannot be read: Empty CSV file\n")


def test_agents_an_analyst_and_a_person_as_commands(tmp_path):
    facts = '[questions]\nanswer = ["mean"]\nask = ["count"]\n'
    consortium = Consortium(tmp_path, facts, sites=("north", "south"), analysts=("alice",))
    for site in consortium.sites:
        rows(site).to_csv(tmp_path / f"{site}.csv", index=False)
    url = consortium.url

    def asking(*words):
        key = str(tmp_path / "alice.identity")
        return [
            sys.executable, "-m", "securecomp", "ask", str(consortium.path), "--analyst", "alice",
            "--identity", key, "--relay", url, *words,
        ]  # fmt: skip

    def asked(*words):
        return subprocess.run(  # noqa: S603 - our own command
            asking(*words), capture_output=True, text=True, timeout=90
        )

    with contextlib.ExitStack() as stack:
        stack.enter_context(consortium.relay())
        for name in consortium.servers:
            thread = threading.Thread(target=consortium.server, args=(name,), daemon=True)
            thread.start()
        agents = {}
        for site in consortium.sites:
            key, data = (tmp_path / f"{site}.{end}" for end in ("identity", "csv"))
            command = simulation.join_command(
                consortium.path, site, data, key, url, "--serve", "--json"
            )
            agents[site] = stack.enter_context(
                simulation.started(command, tmp_path / f"{site}.out")
            )
        first = asked("mean", "column=los", "--json")
        assert first.returncode == 0, first.stderr
        waiting = subprocess.Popen(  # noqa: S603 - our own command
            asking("count", "by=ward"), stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        states = {s: str(tmp_path / f"study.toml.{s}.1.state") for s in consortium.sites}
        for site, words in (("north", ["--allow"]), ("south", ["--refuse", "not this week"])):
            while "alice asks: count(by='ward')" not in (
                CliRunner().invoke(main, ["consent", states[site]]).output
            ):
                time.sleep(0.1)
            CliRunner().invoke(main, ["consent", states[site], "2", *words])
        words = waiting.communicate(timeout=90)[1]
        assert waiting.returncode == 1
        assert "south: refuses the question: not this week" in words
        assert asked("--done").returncode == 0
        assert {site: agent.wait(60) for site, agent in agents.items()} == {"north": 0, "south": 0}
    together = Study({s: rows(s) for s in consortium.sites}, rows=1000)
    (answer,) = json.loads(first.stdout)["results"]
    assert answer["result"] == json.loads(json.dumps(together.mean("los").to_json()))
    told = CliRunner().invoke(
        main, ["log", str(consortium.path), f"{states['north']}.log", "--site", "north"]
    )
    assert told.exit_code == 0, told.output
    assert "question 1 opened: receivers north, south, alice; totals " in told.output
    assert "refusals south: not this week" in told.output


@pytest.mark.slow
def test_kill_9_of_every_role_and_the_same_result(tmp_path):
    consortium = Consortium(tmp_path, TWO)
    for site in SITES:
        rows(site).to_csv(tmp_path / f"{site}.csv", index=False)
    url = consortium.url

    def command(name):
        key = tmp_path / f"{name}.identity"
        if name in consortium.servers:
            return simulation.server_command(consortium.path, name, key, url)
        data = tmp_path / f"{name}.csv"
        return simulation.join_command(consortium.path, name, data, key, url, "--json")

    wanted = documents(in_one_process(consortium.path))
    with contextlib.ExitStack() as stack:

        def start(name):
            running[name] = stack.enter_context(
                simulation.started(command(name), tmp_path / f"{name}.out")
            )

        running = {}
        consortium.start_relay()
        for name in (*SITES, *consortium.servers):
            start(name)
        victims = ("south", "server 2", "north", "server 1", "south", "west", "server 3")
        for victim in victims:
            time.sleep(2.5)
            process = running[victim]
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
                start(victim)
            consortium.stop_relay()
            consortium.start_relay()
        for site in SITES:
            code = running[site].wait(300)
            assert code == 0, (tmp_path / f"{site}.out.errors").read_text()
            out = (tmp_path / f"{site}.out").read_text()
            found = {one["ask"]: one["result"] for one in json.loads(out)["results"]}
            assert found == json.loads(json.dumps(wanted))
        consortium.stop_relay()
    assert Path(consortium.path).exists()


CODEBOOK = Codebook(
    "stays",
    "1",
    {
        "los": Entry("number", unit="days", lower=0, upper=60, decimals=0),
        "age": Entry("number", unit="years", lower=18, upper=110, decimals=0),
        "weight": Entry("number", unit="kg", lower=20, upper=160, decimals=1),
        "ward": Entry("category", levels={"medical": "medical", "surgical": "surgical"}),
        "arm": Entry("category", levels={"control": "control", "drug": "drug"}),
        "days": Entry("number", unit="days", lower=0, upper=400, decimals=0),
        "died": Entry("number", unit="1", lower=0, upper=1, decimals=0),
        "dead": Entry("category", levels={"0": "no", "1": "yes"}),
    },
)


@pytest.mark.slow
@each_case("old", [False, True])
def test_a_simulation_draws_the_paillier_key_and_the_ledgers(old, tmp_path):
    """With a codebook, and noise, by Paillier: all that a study file can ask for."""
    folder = tmp_path / str(old)
    folder.mkdir()
    files = []
    for site in SITES:
        files.append(str(folder / f"{site}.csv"))
        rows(site).to_csv(files[-1], index=False)
    book = folder / "stays.json"
    book.write_text(CODEBOOK.to_json())
    digest = hashlib.sha256(book.read_bytes()).hexdigest()
    key = "paillier_public = '''of somebody\nelse''' # gone\n" if old else ""
    study = folder / "study.toml"
    study.write_text(
        f'[study]\nprotocol = "paillier"\nrows = 1000\n{key}codebook = "stays.json"\n'
        f'codebook_sha256 = "{digest}"\n[privacy]\nepsilon = 2\ndelta = 1e-6\n'
        '[[analyses]]\nask = "count"\nby = "ward"\n[[analyses]]\nask = "mean"\ncolumn = "los"\n'
    )
    result = CliRunner().invoke(main, ["simulate", str(study), *files])
    assert result.exit_code == 0, result.output
    counts, mean = (one["result"] for one in json.loads(result.output)["results"])
    exact = sum(len(rows(site)) for site in SITES)
    assert abs(sum(row["value"] for row in counts) - exact) < 60
    assert 0 < mean[0]["value"] < 60
    assert {row["privacy"]["epsilon"] for row in (*counts, *mean)} == {2.0}
