"""`securecomp ckks`: models, keys, requests and answers as files; `securecomp demo inference`."""

import csv
import errno
import json
import os
import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from securecomp.ckks import LogisticModel, Offer
from securecomp.cli import ckks
from securecomp.protocol import storage


@pytest.fixture(scope="session")
def patients():
    rows, ill = load_breast_cancer(return_X_y=True, as_frame=True)
    return rows.iloc[:, :5], ill.map({0: "malignant", 1: "benign"})


@pytest.fixture(scope="session")
def fitted(patients):
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(*patients)


@pytest.fixture
def table(folder, patients, fitted):
    """A model, and a table with a column that is no feature."""
    Path("model.json").write_text(LogisticModel.from_sklearn(fitted).to_json())
    rows = patients[0].copy()
    rows.insert(0, "patient", [f"p{i}" for i in range(len(rows))])
    rows.to_csv("patients.csv", index=False)
    return rows


@pytest.fixture
def ok(folder, run):
    def ok(*arguments):
        result = run("ckks", *arguments)
        assert (result.exit_code, result.stderr.strip()) == (0, "")
        return result.stdout

    return ok


@pytest.fixture
def fails(folder, run):
    """The command must print one clear line, exit with 1 and write nothing."""

    def files():
        return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}

    def fails(*arguments):
        before = files()
        result = run("ckks", *arguments)
        assert (result.exit_code, result.stdout) == (1, "")
        assert files() == before
        (line,) = result.stderr.strip().splitlines()
        assert line.startswith("error: ")
        return line.removeprefix("error: ")

    return fails


@pytest.fixture
def keys(table, ok):
    ok("publish", "model.json", "risk")
    ok("keygen", "risk.offer", "north")


PREDICT = ("predict", "risk.server", "model.json", "north.pub", "request.enc", "-o", "answer.enc")
ENCRYPT = ("encrypt", "north.key", "patients.csv", "-o", "request.enc")
DECRYPT = ("decrypt", "north.key", "request.enc", "answer.enc", "-o", "risks.csv")


def mode(name):
    return stat.S_IMODE(os.stat(name).st_mode)


def risks():
    with open("risks.csv", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("backend", ["seal", "native"])
def test_the_whole_way(table, ok, patients, fitted, monkeypatch, backend):
    assert f"{backend}: " in ok("publish", "model.json", "risk", "--backend", backend)
    ok("keygen", "risk.offer", "north")
    monkeypatch.setattr(ckks, "_CHUNK", 200)  # several messages a file
    assert json.loads(ok(*ENCRYPT, "--json"))["rows"] == 569
    said = ok(*PREDICT)
    assert "for north, whose registration has the fingerprint" in said
    assert ok(*DECRYPT, "--table", "patients.csv") == "risks.csv: 569 rows\n"
    found = pd.read_csv("risks.csv")
    assert list(found.columns[-3:]) == [
        "prediction",
        "probability benign",
        "probability malignant",
    ]
    assert (found["patient"] == [f"p{i}" for i in range(569)]).all()
    assert (found["prediction"] == fitted.predict(patients[0])).all()
    expected = fitted.predict_proba(patients[0])
    assert np.abs(found.iloc[:, -2:].to_numpy() - expected).max() < 1e-4


def test_who_may_read_what(keys, ok):
    assert (mode("risk.server"), mode("north.key")) == (0o600, 0o600)
    ok(*ENCRYPT)
    ok(*PREDICT)
    assert mode("risk.server.ledger") == 0o700
    secrets = [json.loads(Path(name).read_text()) for name in ("north.key", "risk.server")]
    public = b"".join(Path(n).read_bytes() for n in ("north.pub", "risk.offer", "request.enc"))
    for file in secrets:
        for field in {"identity", "secret"} & set(file):
            assert file[field].encode() not in public


def test_fingerprints_are_those_of_the_other_side(table, ok):
    published = ok("publish", "model.json", "risk").splitlines()[-1]
    offer = Offer.from_json(Path("risk.offer").read_text())
    drawn = ok("keygen", "risk.offer", "north").splitlines()
    assert offer.fingerprint in published
    assert offer.fingerprint in drawn[-3]
    ok(*ENCRYPT)
    assert ok(*PREDICT).splitlines()[-1].split("fingerprint ")[1] in drawn[-1]


def test_a_plan_is_printed_and_nothing_written(table, ok, folder):
    before = sorted(folder.iterdir())
    said = ok("plan", "model.json", "--protect-model", "--precision", "0.01")
    assert "all but the logits, for 5 rows" in said
    said = ok("plan", "model.json", "--activation", "server", "--domain", "3", "--degree", "5")
    assert "a polynomial of degree 5 for +-3" in said
    assert sorted(folder.iterdir()) == before


def test_probabilities_by_the_server(table, ok, patients, fitted):
    ok("publish", "model.json", "risk", "--activation", "server", "--precision", "0.001")
    ok("keygen", "risk.offer", "north")
    ok(*ENCRYPT)
    ok(*PREDICT)
    ok(*DECRYPT)
    found = [float(row["probability malignant"]) for row in risks()]
    promised = Offer.from_json(Path("risk.offer").read_text()).plan.precision
    assert np.abs(np.array(found) - fitted.predict_proba(patients[0])[:, 1]).max() < promised


def test_rows_beyond_the_domain_are_finished_and_counted(table, ok, patients, fitted, monkeypatch):
    """Of three messages the second has one."""
    logits = np.abs(fitted.decision_function(patients[0]))
    inner = patients[0][logits < 5].head(12)
    order = [*inner.index[:8], logits.argmax(), *inner.index[8:]]
    patients[0].iloc[order].to_csv("patients.csv", index=False)
    monkeypatch.setattr(ckks, "_CHUNK", 5)
    ok("publish", "model.json", "risk", "--activation", "server", "--domain", "6")
    ok("keygen", "risk.offer", "north")
    ok(*ENCRYPT)
    ok(*PREDICT)
    said = ok(*DECRYPT)
    assert said == "risks.csv: 13 rows, 1 rows outside the polynomial, finished here\n"
    found = [float(row["probability malignant"]) for row in risks()]
    expected = fitted.predict_proba(patients[0].iloc[order])[:, 1]
    assert np.abs(np.array(found) - expected).max() < 1e-2


def test_rows_are_counted_across_commands(table, ok, fails, patients):
    ok("publish", "model.json", "risk", "--protect-model")
    ok("keygen", "risk.offer", "north")
    patients[0].head(4).to_csv("patients.csv", index=False)
    ok(*ENCRYPT)
    ok(*PREDICT)
    assert "a replay" in fails(*PREDICT)
    ok("encrypt", "north.key", "patients.csv", "-o", "second.enc")
    again = ("predict", "risk.server", "model.json", "north.pub", "second.enc", "-o", "b.enc")
    assert "4 more rows after 4 would pass the 5" in fails(*again)


class TestBudget:
    """`predict` spends rows only on what it answers, whatever its file is called."""

    @pytest.fixture
    def five(self, table, ok, patients, monkeypatch):
        ok("publish", "model.json", "risk", "--max-rows", "5")
        ok("keygen", "risk.offer", "north")
        patients[0].head(5).to_csv("patients.csv", index=False)
        monkeypatch.setattr(ckks, "_CHUNK", 2)  # three messages

    def test_more_rows_are_not_encrypted(self, five, fails, patients):
        patients[0].head(6).to_csv("six.csv", index=False)
        line = fails("encrypt", "north.key", "six.csv", "-o", "request.enc")
        assert line.startswith("six.csv: 6 rows, and the plan answers 5 in total for one client")

    def test_a_file_is_answered_or_spends_nothing(self, five, ok, fails, patients):
        patients[0].head(2).to_csv("two.csv", index=False)
        ok("encrypt", "north.key", "two.csv", "-o", "two.enc")
        ok(*ENCRYPT)
        answer = (*PREDICT[:4], "two.enc", "-o", "two.answer")
        ok(*answer)
        spent = {p: p.read_bytes() for p in Path("risk.server.ledger").iterdir()}
        assert "would pass the 5" in fails(*PREDICT)
        assert {p: p.read_bytes() for p in Path("risk.server.ledger").iterdir()} == spent
        patients[0].head(3).to_csv("patients.csv", index=False)
        ok(*ENCRYPT)
        ok(*PREDICT)

    def test_another_name_of_the_server_file_has_the_same(self, five, ok, fails):
        Path("elsewhere").mkdir()
        Path("alias.server").symlink_to("risk.server")
        Path("elsewhere/risk.server").symlink_to("../alias.server")
        ok(*ENCRYPT)
        ok(*PREDICT)
        for name in ("alias.server", "elsewhere/risk.server", "./elsewhere/../risk.server"):
            assert "a replay" in fails("predict", name, *PREDICT[2:])
        assert [str(p) for p in Path().rglob("*.ledger")] == ["risk.server.ledger"]

    def test_a_copy_of_the_server_file_answers_nothing(self, five, ok, fails):
        ok(*ENCRYPT)
        text = Path("risk.server").read_text()
        for name in ("copy.server", "elsewhere/risk.server"):
            Path("elsewhere").mkdir(exist_ok=True)
            Path(name).write_text(text)
            line = fails("predict", name, *PREDICT[2:])
            assert f"{name}.ledger: there is no log of answered rows here" in line
            assert "bring back what `publish` made beside" in line
            assert not Path(f"{name}.ledger").exists()

    def test_an_earlier_offers_ledger_is_not_taken_over(self, five, fails):
        for name in ("risk.server", "risk.offer"):
            Path(name).unlink()
        assert "risk.server.ledger: cannot be written: File exists" in fails(
            "publish", "model.json", "risk"
        )
        assert "cannot be written" in fails("publish", "model.json", "nowhere/risk")
        assert not Path("nowhere").exists()

    def test_an_earlier_answer_stays_on_a_full_disk(self, five, ok, fails, monkeypatch):
        ok(*ENCRYPT)
        ok(*PREDICT)
        ok(*DECRYPT)

        def full(*_):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(storage.os, "fsync", full)
        assert "risks.csv: cannot be written: No space left" in fails(*DECRYPT)


class TestBadFiles:
    def test_cells(self, keys, fails, patients):
        for change, text in (
            ({"mean area": "x"}, "feature 'mean area': holds String"),
            ({"mean area": 1e9}, "feature 'mean area', row 1: is beyond"),
            ({"mean area": np.nan}, "feature 'mean area', row 1: is missing"),
        ):
            patients[0].assign(**change).to_csv("bad.csv", index=False)
            line = fails("encrypt", "north.key", "bad.csv", "-o", "request.enc")
            assert line.startswith(f"bad.csv: {text}")
        text = patients[0].to_csv(index=False).splitlines()
        text[300] = "1,2,,4,5"
        Path("bad.csv").write_text("\n".join(text))
        line = fails("encrypt", "north.key", "bad.csv", "-o", "request.enc")
        assert line.startswith("bad.csv: feature 'mean perimeter', row 300: is missing")

    def test_a_missing_column(self, keys, fails, patients):
        patients[0].drop(columns="mean area").to_csv("bad.csv", index=False)
        assert "no column 'mean area'" in fails("encrypt", "north.key", "bad.csv", "-o", "x")

    def test_files_of_another_kind(self, keys, ok, fails):
        ok(*ENCRYPT)
        ok(*PREDICT)
        for arguments, text in (
            (("publish", "risk.offer", "b"), "risk.offer: not a logistic model"),
            (("keygen", "model.json", "b"), "model.json: not an offer"),
            (("encrypt", "risk.server", "patients.csv", "-o", "x"), "not a client's key"),
            (("decrypt", "north.key", "answer.enc", "answer.enc", "-o", "x"), "is for 'north'"),
            (("decrypt", "north.key", "request.enc", "request.enc", "-o", "x"), "is for 'risk'"),
            (("decrypt", "north.key", "request.enc", "model.json", "-o", "x"), "is not a request"),
            (("keygen", "none.offer", "b"), "none.offer: cannot be read"),
        ):
            assert text in fails(*arguments)
        whole = Path("answer.enc").read_bytes()
        for size in (0, 5, 20, len(whole) - 1):
            Path("cut.enc").write_bytes(whole[:size])
            assert "cut.enc" in fails("decrypt", "north.key", "request.enc", "cut.enc", "-o", "x")
        for place in (40, len(whole) // 2, len(whole) - 1):
            changed = bytearray(whole)
            changed[place] ^= 1
            Path("flipped.enc").write_bytes(changed)
            fails("decrypt", "north.key", "request.enc", "flipped.enc", "-o", "x")

    def test_a_server_with_another_model(self, keys, ok, fails, patients):
        ok(*ENCRYPT)
        other = make_pipeline(StandardScaler(), LogisticRegression(C=1e6, max_iter=10_000))
        other.fit(*patients)
        Path("model.json").write_text(LogisticModel.from_sklearn(other).to_json())
        assert "this server file was made for another model" in fails(*PREDICT)

    def test_nothing_is_overwritten(self, keys, ok, fails):
        assert "File exists" in fails("publish", "model.json", "risk")
        assert "File exists" in fails("keygen", "risk.offer", "north")
        ok(*ENCRYPT)
        assert "is an input" in fails("encrypt", "north.key", "patients.csv", "-o", "north.key")
        assert "is an input" in fails(*PREDICT[:-1], "request.enc")


def test_the_demonstration(run):
    found = json.loads(run("demo", "inference", "--json").stdout)
    assert [cost["backend"] for cost in found["backends"]] == ["seal", "native"]
    for cost in found["backends"]:
        assert (cost["equal"], found["patients"]) == (285, 285)
        assert 0 < cost["error"] < cost["promised"] == 1e-4
        assert cost["sent"] < 700
        assert cost["received"] < 60
    seal, native = found["backends"]
    assert seal["one_row"] > 10 * native["one_row"]
    shown = run("demo", "inference", "--protect-model").stdout
    assert "30 of 30" in shown
    assert "SEAL is not here" in shown
    assert max(map(len, shown.splitlines())) <= 100
