"""The demonstration of training: real sites, and what it prints."""

import json

import numpy as np
import pytest
from cases import named
from click.testing import CliRunner

from securecomp.cli.main import main
from securecomp.demos import training


@pytest.fixture
def quick(monkeypatch):
    """One data set, two epsilons, few rounds."""
    monkeypatch.setattr(training, "_ROUNDS", 6)
    monkeypatch.setattr(training, "_NOISY_ROUNDS", 3)
    run = training.run
    sets = (training.preterm, training.tumours)
    monkeypatch.setattr(training, "run", lambda progress: run(sets, (8.0, 0.5), progress))


def test_the_table(quick):
    done = CliRunner().invoke(main, ["demo", "training"])
    assert done.exit_code == 0, done.output
    assert done.output.count("equal, bit for bit") == 2
    assert "NOT" not in done.output
    assert "4 real sites" in done.output
    assert "epsilon 0.5" in done.output
    assert max(map(len, done.output.splitlines())) <= 100


def test_the_numbers(quick):
    done = CliRunner().invoke(main, ["demo", "training", "--json"])
    births, tumours = map(json.loads, done.output.splitlines())
    assert (births["sites"], births["rows"], births["columns"]) == (4, 570, 10)
    assert births["majority"] > 0.8
    assert [s["how"] for s in births["scores"]] == [
        "pooled", "federated", "secure sums", "epsilon 8", "epsilon 0.5"
    ]  # fmt: skip
    pooled, clear, secret = tumours["scores"][:3]
    assert secret["accuracy"] == clear["accuracy"] > 0.9
    assert pooled["auc"] > 0.95
    assert tumours["equal"] is True


def test_the_sites():
    for make, sites, rows in [
        ("medpar", 54, 1495),
        ("preterm", 4, 814),
        ("tumours", 6, 569),
        ("digits", 10, 1797),
    ]:
        with named(make, sites, rows):
            data = getattr(training, make)()
            assert len(data.sites) == sites
            assert data.rows + len(data.test[1]) == rows
            low, high = np.array(data.bounds).T
            for x, y in [*data.sites.values(), data.test]:
                assert len(x) == len(y) > 0
                assert (x >= low).all()
                assert (x <= high).all()
            again = getattr(training, make)()
            assert all(np.array_equal(again.sites[n][0], own[0]) for n, own in data.sites.items())


def test_dealt_sites_differ_in_what_they_have():
    shares = [y.mean() for _, y in training.tumours().sites.values()]
    assert min(shares) < 0.4
    assert max(shares) > 0.8
    sizes = [len(y) for _, y in training.digits().sites.values()]
    assert max(sizes) > 1.5 * min(sizes)
