"""Two runs side by side: what is marked, what is named, what is refused."""

import numpy as np
import pytest
from cases import named
from fakes import row, run
from rich.console import Console

from securecomp.errors import DecodeError, ParameterError
from securecomp.overhead import comparison, measurement_tables, runs


def noisy(median, seed, number=21):
    return tuple(median * np.random.default_rng(seed).lognormal(sigma=0.05, size=number))


def only(old, new):
    (change,) = comparison.compare(run(old), run(new)).changes
    return change


def test_a_mark_where_the_interval_excludes_1():
    for now, mark in [(1.0, ""), (1.01, ""), (1.3, "slower"), (0.7, "faster")]:
        with named(now, mark):
            change = only(row(samples=noisy(1.0, 1)), row(samples=noisy(now, 2)))
            assert change.secure["low"] <= change.secure["median"] <= change.secure["high"]
            assert change.secure["median"] == pytest.approx(now, rel=0.08)
            assert (change.mark, change.doubtful) == (mark, False)


def test_set_up_counts():
    old, new = row(), row()
    new["samples"]["setup"] = [1.0] * 7
    assert only(old, new).secure == {
        "median": 2.0,
        "low": pytest.approx(2),
        "high": pytest.approx(2),
    }


def test_a_change_that_the_ratio_does_not_show_is_doubtful():
    change = only(
        row(samples=noisy(1, 1), plain=noisy(1, 2)), row(samples=noisy(2, 3), plain=noisy(2, 4))
    )
    assert (change.mark, change.doubtful) == ("slower", True)
    other_way = only(
        row(samples=noisy(1, 1), plain=noisy(2, 2)), row(samples=noisy(2, 3), plain=noisy(1, 4))
    )
    assert (other_way.mark, other_way.doubtful) == ("slower", False)
    assert change.ratio["low"] < 1 < change.ratio["high"]
    assert other_way.ratio["median"] == pytest.approx(4, rel=0.1)


def test_bytes_and_memory_are_compared():
    change = only(row(), row(bytes_total=150, peak_memory=500))
    assert (change.sent, change.memory) == (1.5, 0.5)
    nothing = only(row(peak_memory=None), row())
    assert nothing.memory is None


def test_a_run_that_kept_no_samples_has_no_interval():
    old = row()
    del old["samples"]
    change = only(old, row(samples=(2.0,) * 7))
    assert change.secure == {"median": 2.0, "low": None, "high": None}
    assert change.mark == "?"


def test_what_cannot_be_compared_is_named():
    old = run(row("a"), row("b"), row("gone"), row("broke"), row("c", sizes={"elements": 20}))
    broken = {"case": "b", "title": "B", "series": "", "failure": "wrong result: x"}
    new = run(row("a"), broken, row("new"), row("broke"), row("c"))
    old["rows"][3] = {"case": "broke", "title": "", "series": "", "failure": "code -9"}
    found = comparison.compare(old, new)
    assert [change.case for change in found.changes] == ["a"]
    assert found.remarks == (
        "b: failed in the new run: wrong result: x",
        "new: not in the old run",
        "broke: failed in the old run: code -9",
        "c: other sizes: elements 20 in the old run, now elements 10",
        "gone: not in the new run",
    )


def test_another_machine_is_refused():
    for name, value in [("cpu", "D"), ("cores", 4), ("memory_bytes", 16)]:
        text = f"another machine .*{name}: .*--anyway"
        with named(name, value), pytest.raises(ParameterError, match=text):
            comparison.check_machines(run(), run(**{name: value}))


def test_other_software_is_named_and_not_refused():
    old, new = run(), run(python="Q")
    new["versions"] = {"securecomp": "2", "gmpy2": "2.3"}
    comparison.check_machines(old, new)
    assert comparison.software(old, new) == [
        "python: P, now Q",
        "gmpy2: absent, now 2.3",
        "numpy: 2, now absent",
        "securecomp: 1, now 2",
    ]
    new["quick"] = False
    remarks = comparison.compare(old, new).remarks
    assert remarks[0] == "also changed: python: P, now Q"
    assert remarks[4:] == ("one of the runs is quick, and has few samples",)


def test_the_table_fits_and_has_the_marks():
    old = run(*(row(name * 24, noisy(1, 1), noisy(1, 2)) for name in "ab"))
    new = run(
        row("a" * 24, noisy(2, 3), noisy(2, 4), bytes_total=123), row("b" * 24, noisy(0.5, 5))
    )
    screen = Console(width=100, color_system=None)
    with screen.capture() as captured:
        for part in measurement_tables.compared(comparison.compare(old, new)):
            screen.print(part)
    lines = captured.get().splitlines()
    assert max(map(len, lines)) <= 100
    page = " ".join(captured.get().split())
    assert "slower*" in page
    assert "faster" in page
    assert "1.23" in page


def test_a_run_in_a_file(tmp_path):
    report = run(row("a"), row("b"))
    runs.write(report, tmp_path / "run.json")
    assert runs.read(tmp_path / "run.json") == report
    lines = (tmp_path / "run.json").read_text().splitlines()
    assert sum(line.startswith('{"case"') for line in lines) == 2


def test_what_is_no_run(tmp_path):
    for content in ["", "nothing", "[]", "{}", '{"format": 2}', '{"format": 1, "rows": []}']:
        with named(content):
            file = tmp_path / "run.json"
            file.write_text(content)
            with pytest.raises(DecodeError, match=r"run\.json: "):
                runs.read(file)


def test_a_row_without_time_or_failure(tmp_path):
    report = run({"case": "a"})
    runs.write(report, tmp_path / "run.json")
    with pytest.raises(DecodeError, match="neither"):
        runs.read(tmp_path / "run.json")


def test_no_file(tmp_path):
    with pytest.raises(ParameterError, match="cannot be read"):
        runs.read(tmp_path / "none.json")


def test_claims():
    for low, high, said in [
        (10, 99, "below"),
        (70, 110, "within"),
        (200, 300, "within"),
        (900, 1500, "within"),
        (1001, 2000, "above"),
    ]:
        with named(low, high, said):
            from securecomp.overhead.published_claims import CLAIMS, verdict

            claim = CLAIMS[0].facts()
            assert verdict({"median": (low + high) / 2, "low": low, "high": high}, claim) == said
            middle = (low + high) / 2
            bare = verdict({"median": middle, "low": None, "high": None}, claim)
            assert bare == ("below" if middle < 100 else "above" if middle > 1000 else "within")
