"""`securecomp audit model`: a file against its members and a holdout."""

import json

import numpy as np
import pandas as pd
import pytest
from cases import named
from sklearn.linear_model import LogisticRegression

from securecomp.models import LogisticModel

CLAIM = ("--delta", "1e-5", "--unit", "record")


def frame(seed, rows):
    """Rows with a class that is half noise, and a person for each three."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 60)).round(6)
    made = pd.DataFrame(x, columns=[f"f{i}" for i in range(60)])
    sick = made.f0 + rng.normal(size=rows) > 0
    return made.assign(state=np.where(sick, "sick", "well"), who=np.arange(rows) // 3 + 1000 * seed)


@pytest.fixture
def files(folder):
    """A model that overfits in.csv; out.csv is as random."""
    members, others = frame(1, 90), frame(2, 1200)
    features = members.columns[:60]
    fitted = LogisticRegression(C=1e3, max_iter=5000).fit(members[features], members.state)
    (folder / "m.json").write_text(LogisticModel.from_sklearn(fitted).to_json())
    members.to_csv("in.csv", index=False)
    others.to_csv("out.csv", index=False)
    return members, others


@pytest.fixture
def audit(run, files):
    """`audit(...)` runs the command on the files."""

    def audit(*options, members="in.csv", holdout="out.csv", label=("--label", "state")):
        return run(
            *("audit", "model", "m.json", "--members", members, "--holdout", holdout),
            *(*label, *options),
        )

    return audit


def test_tables(audit):
    done = audit()
    assert (done.exit_code, done.stderr) == (0, "")
    for part in ("members", "1,200", "area under the ROC curve", "found at 0.1 %", "gap"):
        assert part in done.stdout
    tables = [line for line in done.stdout.splitlines() if line[:1] in "┏┃│└┡"]
    assert max(map(len, tables)) <= 100


def test_json(audit):
    found = json.loads(audit("--json").stdout)
    assert found["members"] == 90
    assert found["auc"]["low"] > 0.6
    assert found["gap"] > 0.2
    assert "claim" not in found


def test_a_refuted_claim_is_an_error(audit):
    done = audit("--epsilon", "0.1", *CLAIM)
    assert done.exit_code == 1
    assert done.stderr.startswith("error: the claim of epsilon 0.1, delta 1e-05 (add/remove of")
    assert "refuted" in done.stdout
    found = audit("--epsilon", "0.1", *CLAIM, "--json")
    assert found.exit_code == 1
    assert json.loads(found.stdout)["claim"]["refuted"] is True


def test_a_claim_that_stands(audit):
    done = audit("--epsilon", "9", *CLAIM, "--relation", "replace-one")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "not refuted" in done.stdout


def test_members_that_were_not_drawn_refute_nothing(audit):
    done = audit("--epsilon", "0.1", *CLAIM, "--chosen", "otherwise")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "exceeded" in done.stdout
    assert "refutes nothing" in " ".join(done.stdout.split())


def test_a_page_is_written_though_the_claim_is_refuted(audit, folder):
    done = audit("--epsilon", "0.1", *CLAIM, "--html", "a.html")
    assert done.exit_code == 1
    page = (folder / "a.html").read_text(encoding="utf-8")
    assert "does not hold" in page
    assert "<svg" in page


def test_persons(audit):
    done = audit("--identifier", "who", "--json", "--confidence", "0.9")
    found = json.loads(done.stdout)
    assert (found["unit"], found["records"], found["members"]) == ("patient", 3, 30)
    assert found["confidence"] == 0.9


def test_parquet_and_the_only_other_column(audit, files):
    members, others = (part.drop(columns="who") for part in files)
    members.to_parquet("in.parquet")
    others.to_parquet("out.parquet")
    done = audit("--json", members="in.parquet", holdout="out.parquet", label=())
    assert json.loads(done.stdout)["holdout"] == 1200


def test_other_ways_to_write_numbers(audit, files):
    for part, name in zip(files, ("in;.csv", "out;.csv"), strict=True):
        part.to_csv(name, sep=";", decimal=",", index=False)
    both = {"members": "in;.csv", "holdout": "out;.csv"}
    done = audit("--delimiter", ";", "--decimal-comma", "--json", **both)
    assert json.loads(done.stdout) == json.loads(audit("--json").stdout)


def refused(done, *parts, status=1):
    assert done.exit_code == status
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 or status == 2
    for part in parts:
        assert part in done.stderr


def test_terms_that_cannot_be(audit):
    for options, message in [
        (("--epsilon", "1"), "epsilon 1 without a delta promises nothing"),
        (("--epsilon", "1", "--delta", "0"), "epsilon 1 needs its unit"),
        (("--epsilon", "0", *CLAIM), "epsilon must be above 0"),
        (("--epsilon", "x", *CLAIM), "epsilon is a finite number"),
        (("--epsilon", "1", "--delta", "2", "--unit", "record"), "delta is a probability"),
        (("--epsilon", "1", "--delta", "0", "--unit", "patient"), "whose row each is"),
        (("--epsilon", "1", *CLAIM, "--identifier", "who"), "leave out identifiers"),
        (("--epsilon", "1", *CLAIM, "--records", "2"), "is a patient"),
        (("--chosen", "coins"), "fair coins would not give 90 members and 1,200 others"),
        (("--false-alarms", "0.0001"), "0.01 % needs at least 10,000 rows"),
        (("--false-alarms", "7"), "between 0 and 1"),
        (("--confidence", "95"), "confidence is between 0 and 1"),
        (("--identifier", "whom"), "there is no column 'whom'"),
    ]:
        with named(options, message):
            refused(audit(*options), message)


def test_parts_of_a_claim_without_one(audit):
    refused(audit("--delta", "1e-5"), "--delta belongs to a claim and needs --epsilon", status=2)
    refused(audit("--unit", "record"), "--unit belongs to a claim", status=2)
    refused(audit("--html", "no/where.html"), "there is no folder no", status=2)


def test_a_page_does_not_take_the_place_of_a_file(audit, folder):
    """`--html in.csv`, for `--members in.csv`, would leave nobody the data."""
    for name in ("in.csv", "m.json"):
        before = (folder / name).read_bytes()
        refused(audit("--html", name), f"{name} exists and is not a page", status=2)
        assert (folder / name).read_bytes() == before
    (folder / "new.html").touch()
    for _ in range(2):
        assert audit("--html", "new.html").exit_code == 0


def test_files_that_cannot_be(audit, files, write, run):
    members, others = files
    write("empty.csv", "")
    others[:0].to_csv("header.csv", index=False)
    others.drop(columns="f7").to_csv("without.csv", index=False)
    others.replace({"state": {"well": "ill"}}).to_csv("label.csv", index=False)
    others.assign(f3=others.f3.where(others.index != 4)).to_csv("hole.csv", index=False)
    others.assign(f3=others.f3.astype(object).where(others.index != 4, "?")).to_csv(
        "text.csv", index=False
    )
    others.assign(state="sick").to_csv("single.csv", index=False)
    pd.concat([others, members[5:7]]).to_csv("both.csv", index=False)
    others.assign(who=members.who[3]).to_csv("person.csv", index=False)
    for name, options, parts in (
        ("nowhere.csv", (), ("nowhere.csv: there is no such file",)),
        ("empty.csv", (), ("empty.csv",)),
        ("header.csv", (), ("header.csv", "no rows")),
        ("without.csv", (), ("without.csv", "'f7'")),
        ("label.csv", (), ("label.csv", "'state'", "the model does not know")),
        ("hole.csv", (), ("hole.csv", "'f3'", "row 5: is missing")),
        ("text.csv", (), ("text.csv", "'f3'", "row 5")),
        ("single.csv", (), ("single.csv", "all rows are of one")),
        ("both.csv", (), ("in.csv and both.csv overlap", "row 6 and row 1201", "--alike keep")),
        ("person.csv", ("--identifier", "who"), ("in.csv and person.csv", "same person")),
    ):
        refused(audit(*options, holdout=name), *parts)
        assert f"{others.f0[4]:.6f}" not in audit(*options, holdout=name).stderr
    assert audit("--alike", "keep", holdout="both.csv").exit_code == 0
    refused(audit(label=("--label", "nothing")), "there is no column 'nothing'")
    refused(audit(label=()), "2 columns are not features of the model")
    write("m.json", "{}")
    refused(audit(), "not a logistic model")
    refused(
        run("audit", "model", "n.json", "--members", "in.csv", "--holdout", "out.csv"), "n.json"
    )


def test_no_holdout(run):
    done = run("audit", "model", "m.json", "--members", "in.csv")
    refused(done, "Missing option '--holdout'", status=2)
