"""`securecomp demo leakage`: its pictures, its page, and what it says without its packages."""

import importlib.util
import io
import json
import re
import sys

import numpy as np
import pytest
from cases import named
from chromium import running
from replaying import Replay
from rich.console import Console
from sklearn.datasets import load_digits

from securecomp.demos import leakage, leakage_report
from securecomp.errors import BackendUnavailableError
from securecomp.show.console import shades


@pytest.fixture(scope="module")
def found():
    return leakage.run(Replay("demonstration"))


def printed(found, colours, **how):
    screen = Console(file=io.StringIO(), width=100, highlight=False, **how)
    for part in found.parts(colours):
        screen.print(part)
    return screen.file.getvalue()


def test_images_come_out_of_gradients_and_small_sums_and_not_of_large_ones(found):
    assert found.divided == (200, 200)
    assert found.error < 1e-9
    alone, *sums, colluding, noised = (trial.leak for trial in found.trials)
    assert alone.members.recovered == 1
    assert sums[0].members.recovered == 10
    assert sums[-1].members.recovered < 20
    shares = [leak.members.recovered / len(leak.rows) for leak in sums]
    assert shares == sorted(shares, reverse=True)
    # Who knows the other sites' images gets the one site's, out of the same sum.
    assert len(colluding.rows) == 20
    assert colluding.members.recovered >= 12
    # With noise the search gets no nearer to who was in the sum than to others.
    assert len(noised.rows) == 10
    assert noised.members.recovered == 0
    assert abs(np.median(noised.members.psnr) - np.median(noised.others.psnr)) < 1
    assert abs(found.correlation) < 2 * found.chance
    # What the guess is as near to has not been found.
    header, (*_, many, _, _) = leakage_report.HEADER, [trial.row() for trial in found.trials]
    assert many[header.index("guessed")] == str(sums[-1].guess.recovered) != "0"


def test_the_pictures_are_what_they_are_called(found):
    images, digits = load_digits(return_X_y=True)
    for i, (true, read, searched, guess, seen) in enumerate(found.pictures):
        assert true == pytest.approx(images[3 * i].reshape(8, 8) / 16)
        assert found.labels[i] == digits[3 * i]
        assert read == pytest.approx(true, abs=1e-9)
        assert np.abs(searched - true).max() > 0.1
        kind = images[2::3][digits[2::3] == digits[3 * i]]
        assert guess == pytest.approx(kind.mean(axis=0).reshape(8, 8) / 16)
        assert 0 <= seen.min() < 0.2 < 0.8 < seen.max() <= 1


def test_no_image_is_in_two_parts_of_the_data():
    """Sites, other people, and those whose means are known."""
    images, digits = load_digits(return_X_y=True)
    labels = digits[::3][:200]
    beside = leakage._alike(images[1::3], digits[1::3], labels)
    own = {row.tobytes() for row in images[::3][:200]}
    assert not own & {row.tobytes() for row in beside}
    assert len({row.tobytes() for row in beside}) == 200
    classes = {row.tobytes(): digit for row, digit in zip(images, digits, strict=True)}
    assert [classes[row.tobytes()] for row in beside] == labels.tolist()


def test_in_shades_of_grey(found):
    text = printed(found, True, force_terminal=True, color_system="truecolor")
    assert text.count("▀") == 3 * 5 * 16 * 8
    plain = re.sub(r"\x1b\[[\d;]*m", "", text)
    assert max(map(len, plain.splitlines())) <= 100


def test_in_characters(found):
    text = printed(found, False)
    assert "▀" not in text
    assert text.isascii() or set(text) - set(map(chr, range(128))) <= set("┏━┳┓┃┡╇┩│└┴┘╷─╵├┼┤")
    assert max(map(len, text.splitlines())) <= 100
    pictures = text.split("From one image's gradient")[0].splitlines()[3:]
    # The image and what came out of its gradient are drawn alike, up to rounding.
    same = [line[:16] == line[19:35] for line in pictures if line.strip()]
    assert np.mean(same) > 0.5
    assert all(line.isascii() for line in pictures)


def test_on_screens_of_any_width_pictures_stay_whole(found):
    for width in [30, 40, 79, 80, 94, 95, 200]:
        for colours in [True, False]:
            with named(width, colours):
                screen = Console(file=io.StringIO(), width=width, highlight=False)
                for part in found.parts(colours, width):
                    screen.print(part)
                text = screen.file.getvalue()
                assert max(map(len, text.splitlines())) <= width
                if colours:
                    assert text.count("▀" * 16) == 3 * 5 * 8
                assert "…" not in text.split("From one image")[0]


def test_which_terminals_get_shades():
    for how, good in [
        ({"force_terminal": True, "color_system": "truecolor"}, True),
        ({"force_terminal": True, "color_system": "256"}, True),
        ({"force_terminal": True, "color_system": "standard"}, False),
        ({"force_terminal": True, "color_system": "truecolor", "no_color": True}, False),
        ({"force_terminal": True, "color_system": None}, False),
        ({"force_terminal": False, "color_system": "truecolor"}, False),
    ]:
        with named(how, good):
            utf, ascii_ = (io.TextIOWrapper(io.BytesIO(), encoding=e) for e in ("utf-8", "ascii"))
            assert shades(Console(file=utf, **how)) == good
            assert not shades(Console(file=ascii_, **how))


@pytest.fixture
def prepared(found, monkeypatch):
    monkeypatch.setattr(leakage, "run", lambda: found)


def test_the_command(run, prepared, folder):
    result = run("demo", "leakage", "--html", "leak.html")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "leak.html: open it in a browser" in result.stdout
    assert "10 sites, 20 images each" in result.stdout
    assert (folder / "leak.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_json(run, prepared, folder):
    result = run("demo", "leakage", "--json", "--html", "leak.html")
    facts = json.loads(result.stdout)
    assert facts["divided"] == 200
    assert [t["rows"] for t in facts["trials"]] == [1, 10, 20, 50, 200, 20, 10]
    assert np.shape(facts["pictures"]) == (3, 5, 8, 8)
    assert (folder / "leak.html").exists()


def test_a_page_that_cannot_be_written_is_refused_before_anything_is_computed(
    run, monkeypatch, folder
):
    monkeypatch.setattr(leakage, "run", lambda: pytest.fail("computed"))
    result = run("demo", "leakage", "--html", "missing/leak.html")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "there is no folder missing" in result.stderr
    (folder / "locked").mkdir()
    (folder / "locked" / "leak.html").mkdir()
    result = run("demo", "leakage", "--html", "locked/leak.html")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "is a directory" in result.stderr


def test_without_scikit_learn(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    result = run("demo", "leakage")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == (
        "error: the demonstration's images come with scikit-learn: pip install "
        "'securecomp[federated]'\n"
    )


def test_a_page_without_its_packages(found, monkeypatch):
    for package in ["jinja2", "matplotlib"]:
        with named(package):
            monkeypatch.setitem(sys.modules, package, None)
            with pytest.raises(
                BackendUnavailableError, match=r"pip install 'securecomp\[report\]'"
            ):
                found.page()


def test_without_the_pages_packages_nothing_is_computed(run, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "jinja2" else found(name)
    )
    monkeypatch.setattr(leakage, "run", lambda: pytest.fail("computed"))
    result = run("demo", "leakage", "--html", "leak.html")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--html needs jinja2: pip install 'securecomp[report]'" in result.stderr


def test_the_page_in_a_browser(found, tmp_path):
    page = tmp_path / "leak.html"
    page.write_text(found.page(), encoding="utf-8")
    assert "default-src 'none'" in page.read_text(encoding="utf-8")
    with running(tmp_path / "profile") as browser:
        for width, dark in ((900, False), (400, True)):
            browser.open(page, width=width, dark=dark)
            assert browser.complaints == []
            assert browser.requests == [page.as_uri()]
            wide = "document.documentElement.scrollWidth <= window.innerWidth"
            assert browser.value(wide)
            assert browser.value("document.querySelectorAll('.images svg').length") == 15
            assert browser.value("document.querySelectorAll('.images rect').length") == 15 * 64
        names = browser.value(
            "Array.from(document.querySelectorAll('svg'), (e) => e.getAttribute('aria-label'))"
        )
        assert all(names)
