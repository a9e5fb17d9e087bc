"""Cases in processes of their own: what breaks one does not break the next."""

import pytest

from securecomp.overhead import runner
from securecomp.overhead.worker import cases

MODULE = """
import os
from securecomp.overhead.job import Case, Job, WrongResultError

def job(secure, check=lambda a, b: 0.0):
    return Job(sizes={"elements": 1}, plain=lambda: os.getpid(), secure=secure, check=check)

def crash(_):
    os._exit(7)

def wrong(*_):
    raise WrongResultError("two is not three")

def case(name, secure=lambda _: os.getpid(), check=lambda a, b: float(os.getpid()), **facts):
    return Case(name, name, lambda _: job(secure, check), 1, 1, 1, **facts)

def listed(extra=0):
    return (
        case("good"),
        case("crash", crash),
        case("wrong", check=wrong),
        case("blas", lambda _: None, lambda *_: float(os.environ["OMP_NUM_THREADS"]),
             blas_threads=3),
        case("absent", needs=("no_such_module",), install="pip install no-such"),
        case("x/1", batch="x", series="elements", scheme="s"),
        case("x/2", batch="x"),
        case("y/1", batch="y"),
        case("y/2", crash, batch="y"),
        case("y/3", batch="y"),
        *(case(f"extra/{i}") for i in range(extra)),
    )
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suite")
    (folder / "fake_suite.py").write_text(MODULE)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        suite = runner.Suite("fake_suite", {"extra": 1}, folder)
        told = []
        report = runner.run(
            suite,
            cases(suite.module, suite.sizes),
            quick=True,
            told=lambda case, row: told.append((case.name, row and "failure" in row)),
        )
    return report, told


def rows(found):
    return {row["case"]: row for row in found[0]["rows"]}


def test_a_report_has_all_in_order(found):
    assert list(rows(found)) == [
        *("good", "crash", "wrong", "blas", "x/1", "x/2", "y/1", "y/2", "y/3", "extra/0")
    ]
    report = found[0]
    assert report.keys() >= {"format", "machine", "versions", "fits", "peers", "claims"}
    assert report["quick"] is True
    assert report["machine"]["cores"] >= 1
    assert runner.failures(report) == ["crash", "wrong", "y/2", "y/3"]


def test_a_crash_is_a_failure_and_the_next_case_goes_on(found):
    assert rows(found)["crash"]["failure"] == "its process ended with code 7"
    assert rows(found)["y/2"]["failure"] == rows(found)["y/3"]["failure"]
    assert "failure" not in rows(found)["y/1"]


def test_a_wrong_result_is_a_failure(found):
    assert rows(found)["wrong"]["failure"] == "wrong result: two is not three"
    assert "secure" not in rows(found)["wrong"]


def test_what_is_missing_is_skipped_with_the_command(found):
    assert found[0]["skipped"] == [
        {"case": "absent", "title": "absent", "reason": "needs no_such_module: pip install no-such"}
    ]


def test_a_batch_has_one_process_and_others_their_own(found):
    process = {name: row.get("error") for name, row in rows(found).items()}
    assert process["x/1"] == process["x/2"]
    assert process["good"] != process["extra/0"]
    assert rows(found)["x/1"]["scheme"] == "s"


def test_threads_of_blas(found):
    assert rows(found)["blas"]["error"] == 3


def test_progress_is_told(found):
    assert found[1][:4] == [("good", None), ("good", False), ("crash", None), ("crash", True)]
    assert sum(row is None for _, row in found[1]) <= len(rows(found))


def test_fits_are_for_each_scheme():
    def row(scheme, size, seconds):
        facts = {"secure": {"median": seconds}, "bytes_total": size, "bytes_per_party": 5}
        return {"scheme": scheme, "series": "n", "sizes": {"n": size}, **facts}

    found = runner.report(
        [row("a", 10, 1.0), row("b", 10, 1.0), row("a", 100, 10.0), row("b", 100, 100.0)]
    )["fits"]
    slopes = {(f["scheme"], f["quantity"]): f["exponent"] for f in found}
    assert slopes["a", "seconds"] == pytest.approx(1)
    assert slopes["b", "seconds"] == pytest.approx(2)
    assert slopes["a", "bytes by all"] == pytest.approx(1)
    assert slopes["b", "bytes by a party"] == pytest.approx(0)
    # A quick run may have a size twice; what sent nothing, or failed, has no order.
    silent = {**row("c", 20, 4.0), "bytes_total": 0, "bytes_per_party": None}
    twice = [row("c", 10, 1.0), row("c", 10, 2.0), silent, {"series": "n", "failure": "x"}]
    (fit,) = runner.report(twice)["fits"]
    assert (fit["quantity"], fit["sizes"]) == ("seconds", [10, 20])
    assert (fit["exponent"], fit["last"]) == (pytest.approx(1), pytest.approx(1))
    assert runner.report([row("d", 10, 1.0), row("d", 20, 2.0) | {"series": "m"}])["fits"] == []
    bent = runner.report([row("e", 1, 1.0), row("e", 10, 10.0), row("e", 100, 1000.0)])["fits"]
    assert [f["last"] for f in bent if f["quantity"] == "seconds"] == [pytest.approx(2)]
    alone = runner.report([row("a", 10, 1.0), row("b", 10, 1.0)])
    assert alone["fits"] == []
