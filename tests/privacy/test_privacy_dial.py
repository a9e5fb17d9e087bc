"""What a count of 40 looks like: published values, simulation, and the page in a browser."""

import base64
import hashlib
import itertools
import math
import re
import sys

import numpy as np
import pytest
from cases import each_case
from chromium import running
from scipy.integrate import quad

from securecomp.errors import BackendUnavailableError, ParameterError
from securecomp.privacy.epsilon_explorer import (
    ANSWERS,
    COUNT,
    EPSILONS,
    SliderPosition,
    page,
    percent,
    row,
    size,
    weights,
)


@each_case(
    "epsilon, answers, right, error",
    [
        (1, 1, "69.7 %", "1.00"),
        (0.1, 1, "52.4 %", "10"),
        (3, 1, "88.8 %", "0.33"),
        (1, 10, "87.3 %", "0.35"),
        (0.1, 10, "54.6 %", "3.52"),
    ],
)
def test_a_count_of_40(epsilon, answers, right, error):
    assert row(SliderPosition(epsilon, answers))[2::2] == [right, error]
    assert percent(SliderPosition(1, 1).cap) == "73.1 %"


@each_case("epsilon, answers", [(1, 1), (0.3, 5), (2, 3), (0.5, 30)])
def test_against_a_simulation(epsilon, answers):
    means = np.random.default_rng(9).laplace(0, 1 / epsilon, (400_000, answers)).mean(axis=1)
    setting = SliderPosition(epsilon, answers)
    assert setting.accuracy == pytest.approx(np.mean(means < 0.5), abs=3e-3)
    assert setting.error == pytest.approx(np.abs(means).mean(), rel=5e-3)


@each_case("epsilon, answers", list(itertools.product((0.05, 1, 7), (1, 2, 10, 100))))
def test_density_accuracy_and_error_agree(epsilon, answers):
    setting = SliderPosition(epsilon, answers)
    far = 40 / epsilon / math.sqrt(answers)
    integral = quad(setting.density, 0, 0.5)[0] + 0.5
    assert setting.accuracy == pytest.approx(integral, abs=1e-7)
    assert 2 * quad(setting.density, 0, far, limit=200)[0] == pytest.approx(1, abs=1e-6)
    error = 2 * quad(lambda x: x * setting.density(x), 0, far, limit=200)[0]
    assert setting.error == pytest.approx(error, rel=1e-5)
    assert 0.5 < setting.accuracy <= setting.cap <= 1
    assert sum(weights(answers)) == pytest.approx(0.5)


@each_case("epsilon, answers", [(0, 1), (-1, 1), (math.nan, 1), (1, 0)])
def test_positions_that_are_none(epsilon, answers):
    with pytest.raises(ParameterError):
        SliderPosition(epsilon, answers)


def test_numbers_as_text():
    assert [size(x) for x in (100, 10, 3.524, 0.3333, 0.0354)] == [
        "100", "10", "3.52", "0.33", "0.035",
    ]  # fmt: skip
    assert percent(0.99999) == "> 99.9 %"


def test_the_page_needs_nothing_else():
    text = page()
    script = re.search(r"<script>(.*?)</script>", text, re.S).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in text
    assert len(re.findall("<script", text)) == 1
    assert not re.search(r"\b(src|href|style|on\w+)=", text)
    assert set(re.findall(r"https?://[^\"' ]+", text)) == {"http://www.w3.org/2000/svg"}
    assert 'value="9"' in page(1)
    assert f'value="{EPSILONS.index(0.1)}"' in page(0.1, 10)
    assert f'value="{ANSWERS.index(10)}"' in page(0.1, 10)


def test_a_page_without_jinja(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(BackendUnavailableError, match=r"pip install 'securecomp\[report\]'"):
        page()


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dial")
    (folder / "dial.html").write_text(page(), encoding="utf-8")
    with running(folder / "profile") as found:
        found.address = (folder / "dial.html").as_uri()
        found.open(found.address)
        yield found


OUTPUTS = (
    "['epsilon-value', 'answers-value', 'accuracy', 'cap', 'error']"
    ".map((id) => document.getElementById(id).textContent)"
)


def test_all_positions_show_what_python_says(shown):
    moved = (
        "((e, n) => { for (const [id, at] of [['epsilon', e], ['answers', n]]) {"
        " const slider = document.getElementById(id); slider.value = at;"
        " slider.dispatchEvent(new Event('input')); } return OUTPUTS; })"
    ).replace("OUTPUTS", OUTPUTS)
    both = f"Array.from({{length: {len(EPSILONS)}}}, (_, e) => " + (
        f"Array.from({{length: {len(ANSWERS)}}}, (_, n) => ({moved})(e, n)))"
    )
    found = shown.value(both)
    assert found == [[row(SliderPosition(e, n)) for n in ANSWERS] for e in EPSILONS]
    assert shown.complaints == []


def test_the_curves_are_the_densities(shown):
    shown.open(f"{shown.address}#epsilon=0.5&answers=3")
    assert shown.value(OUTPUTS) == row(SliderPosition(0.5, 3))
    setting = SliderPosition(0.5, 3)
    for name, centre in (("with", COUNT), ("without", COUNT - 1)):
        d = shown.value(f"document.querySelector('#curves .{name}').getAttribute('d')")
        points = np.array([list(map(float, p.split())) for p in d[1:].split("L")])
        width = shown.value("document.getElementById('curves').viewBox.baseVal.width")
        half = 0.5 + 4 * setting.error
        x = COUNT - 0.5 - half + (points[:, 0] - 16) / (width - 32) * 2 * half
        y = (260 - points[:, 1]) / (260 - 16) * setting.density(0)
        wanted = [setting.density(value - centre) for value in x]
        assert y == pytest.approx(wanted, abs=setting.density(0) * 3e-3)
    assert len(points) > 200


def test_by_keyboard(shown):
    shown.open(shown.address)
    shown.value("document.getElementById('epsilon').focus()")
    shown.press("ArrowRight", 39)
    assert shown.value(OUTPUTS) == row(SliderPosition(1.5, 1))
    assert shown.value("document.getElementById('epsilon').getAttribute('aria-valuetext')") == (
        "epsilon 1.5"
    )
    shown.press("Home", 36)
    assert shown.value(OUTPUTS) == row(SliderPosition(0.01, 1))
    shown.press("Tab", 9)
    assert shown.value("document.activeElement.id") == "answers"
    shown.press("End", 35)
    assert shown.value(OUTPUTS) == row(SliderPosition(0.01, 100))
    assert "100 answers" in shown.value("document.getElementById('words').textContent")


@each_case("width", [320, 400, 900])
def test_on_a_phone(shown, width):
    shown.open(shown.address, width=width)
    assert shown.value("document.documentElement.scrollWidth") <= width
    box = shown.value(
        "(({left, right, height}) => [left, right, height])"
        "(document.getElementById('epsilon').getBoundingClientRect())"
    )
    assert box[0] >= 0
    assert box[1] <= width
    assert box[2] >= 44  # a thumb finds it
    assert shown.value("document.getElementById('curves').getBoundingClientRect().width") <= width
    texts = shown.value(
        "[...document.querySelectorAll('#curves text')].map((t) => t.getBoundingClientRect())"
        ".map(({left, right, height}) => [left, right, height])"
    )
    assert len(texts) >= 3
    assert all(height >= 10 for _, _, height in texts)  # as large as it was meant
    ends = sorted((left, right) for left, right, _ in texts)
    assert all(right < left for (_, right), (left, _) in itertools.pairwise(ends))


def test_a_changed_script_does_not_run(shown, tmp_path):
    (tmp_path / "changed.html").write_text(
        page().replace("const HEIGHT = 300", "const HEIGHT = 301")
    )
    shown.open((tmp_path / "changed.html").as_uri())
    assert shown.value("document.getElementById('accuracy').textContent") == "-"
    assert any("Content Security Policy" in str(entry) for entry in shown.complaints)
