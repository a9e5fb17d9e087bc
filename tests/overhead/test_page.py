import copy
import html
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest
from cases import named, some_or_all
from chromium import running

from securecomp.errors import BackendUnavailableError
from securecomp.overhead import views
from securecomp.overhead.line_model import LINES
from securecomp.overhead.page import page

_VOID = {"meta", "wbr", "br", "link", "img"}
_LOADS = {"src", "srcset", "data", "poster", "action", "formaction", "ping", "background"}


class Checked(HTMLParser):
    """Refuses tags that do not match; collects headings, texts, names, and what would be loaded."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.headings: list[str] = []
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.loads: list[str] = []
        self.unnamed: list[str] = []
        self.headers: list[dict[str, str | None]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        facts = dict(attrs)
        if tag not in _VOID:
            self.open.append(tag)
        if "id" in facts and "svg" not in self.open:
            self.ids.append(facts["id"])
        for name in ("href", "xlink:href"):
            if name in facts:
                (self.targets if facts[name].startswith("#") else self.loads).append(facts[name])
        self.loads += [f"{tag} {name}" for name in facts if name in _LOADS]
        if tag in ("script", "iframe", "object", "embed", "link", "base", "form", "image"):
            self.loads.append(tag)
        if tag == "svg" and not (facts.get("role") == "img" and facts.get("aria-label")):
            self.unnamed.append(tag)
        if tag == "th":
            self.headers.append(facts)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("h1", "h2", "h3"):
            self.headings.append(f"{self.open[-1]} {data}")
        if "style" in self.open:
            assert "url(http" not in data
            assert "@import" not in data
        else:
            self.words.append(data)


class Pages(dict[str, str]):
    """Each run's page, and that of all together, drawn when a test wants it."""

    def __init__(self, runs):
        self.runs = runs

    def __missing__(self, name):
        self[name] = page(list(self.runs.values()) if name == "all" else self.runs[name])
        return self[name]


@pytest.fixture(scope="module")
def pages(runs) -> Pages:
    return Pages(runs)


NAMES = ("sharing-masking", "paillier", "computing", "ckks", "all")
# All cases are on the last one.
some_pages = some_or_all("names", ("sharing-masking", "ckks", "all"), NAMES)


@some_pages
def test_a_page_is_well_formed_and_needs_nothing_else(pages, names):
    for name in names:
        with named(name):
            found = Checked(pages[name])
            assert found.loads == []
            assert found.unnamed == []
            assert len(found.ids) == len(set(found.ids))
            assert {target[1:] for target in found.targets if "scheme" in target} <= set(found.ids)
            assert all(header.get("scope") in ("row", "col") for header in found.headers)
            assert [h for h in found.headings if h.startswith("h1")] == [
                "h1 The cost of privacy, against plaintext"
            ]
            assert "default-src 'none'" in pages[name]
            assert "nan" not in " ".join(found.words).lower().split()


@some_pages
def test_what_is_said_stands_beside_what_was_measured(pages, names):
    for name in names:
        with named(name):
            text = " ".join("".join(Checked(pages[name]).words).split())
            assert "MPC is 100 to 1,000 times slower" in text
            assert "FHE is 10,000 to 1,000,000 times slower" in text


@some_pages
def test_every_case_is_there_with_its_figures(pages, runs, names):
    for name, run in runs.items():
        if name not in names:
            continue
        text = "".join(Checked(pages[name]).words)
        for row in run["rows"]:
            shown = views.job(row)
            assert row["title"] in text
            assert row["case"] in text
            for fact in (shown.plain, shown.online, shown.ratio, shown.spread, *shown.lines):
                assert fact in text, (row["case"], fact)


def test_all_runs_together_have_all_cases_once_and_the_choice(pages, runs):
    found = Checked(pages["all"])
    text = "".join(found.words)
    assert "h3 Where every site stays to the end" in found.headings
    assert "h3 Where a site may drop out" in found.headings
    for run in runs.values():
        for row in run["rows"]:
            assert row["case"] in text
    assert "paillier, 3072 bits" in text
    assert "This run cannot tell" not in text


def test_a_run_that_cannot_tell_which_way_is_fastest_says_what_to_run(pages):
    text = "".join(Checked(pages["ckks"]).words)
    assert "This run cannot tell" in text
    assert "securecomp bench sum/masking growth/masking" in text
    assert "Some protocols are left out" in "".join(Checked(pages["sharing-masking"]).words)


def test_a_peer_that_was_skipped_is_named_with_the_command_that_installs_it(run):
    command = "python3 -m venv ../mpyc && ../mpyc/bin/pip install mpyc==0.11"
    run["peers"] = [
        {
            "peer": "mpyc",
            "case": "mpyc",
            "title": "mpyc",
            "skipped": f"no environment was named; make one: {command}",
        }
    ]
    run["skipped"] = [
        {"case": "ckks/1", "title": "Inference", "reason": "needs tenseal: pip install tenseal"}
    ]
    text = page(run)
    assert f"<code>{html.escape(command)}</code>" in text
    assert "<code>pip install tenseal</code>" in text
    assert "h3 Skipped" in Checked(text).headings


def test_a_peer_measured_in_one_run_is_not_called_skipped_for_another(runs):
    skipping = copy.deepcopy(runs["ckks"])
    skipping["peers"] = [
        {"peer": name, "case": name, "title": name, "skipped": f"no {name}: make one"}
        for name in ("spu_aby3", "flwr")
    ]
    text = page([runs["computing"], skipping])
    assert "no spu_aby3" not in text
    assert "no flwr" in text
    assert "SPU ABY3, 3 parties: products" in text


def test_a_case_that_failed_is_named_and_has_no_time(run):
    run["rows"][0] = {
        "case": "computing/products/2",
        "title": "On shares, products",
        "series": "",
        "failure": "wrong result: the opened result is not numpy's",
    }
    found = Checked(page(run))
    assert "h3 Failed" in found.headings
    assert "wrong result: the opened result is not numpy's" in "".join(found.words)


def test_a_run_of_failures_alone_is_a_page(run):
    run["rows"] = [{"case": "x", "title": "X", "series": "", "failure": "broken"}]
    run["peers"] = []
    assert "broken" in "".join(Checked(page(run)).words)


def test_what_a_run_says_is_text_and_never_markup(run):
    bad = "<script>alert('&\"')</script>"
    for row in run["rows"]:
        row["title"] = row["note"] = bad
        row["case"] += bad
    run["machine"]["cpu"] = bad
    run["versions"][bad] = bad
    run["peers"] = [{"peer": bad, "case": bad, "title": bad, "failure": bad}]
    run["skipped"] = [{"case": bad, "title": bad, "reason": f"{bad}: {bad}"}]
    text = page(run, title=bad)
    found = Checked(text)
    assert found.loads == []
    assert "<script" not in text
    assert bad in "".join(found.words)


def test_intervals_are_the_bootstraps_where_a_run_has_them(run):
    row = run["rows"][0]
    row["ratio"] = {"median": 50.0, "q1": 40.0, "q3": 60.0, "low": 48.0, "high": 53.0}
    assert views.job(row).spread == "48.0 - 53.0"
    row["ratio"] |= {"low": None, "high": None}
    assert views.job(row).spread == "40.0 - 60.0 (quartiles)"
    run["rows"][1]["ratio"] |= {"low": 1.0, "high": 2.0}
    assert "bootstrap interval" in page(run)


def test_roles_and_decoding_are_apart(run):
    row = run["rows"][0]
    row["scheme"] = "sharing"
    row["parts"] = {name: {"median": 0.25} for name in ("hospital", "server")}
    row["decode"] = {"median": 0.25}
    shown = views.job(row)
    assert shown.roles == ["hospital 250 ms", "server 250 ms"]
    assert shown.decode == "250 ms"
    text = page(run)
    assert "of it, decoding" in text
    assert "Sums by secret sharing" in text


def test_the_bytes_on_a_line_are_known_or_between_two_bounds():
    for facts, wanted in [
        ({"rounds": 2, "messages": 2, "bytes_per_party": 70, "bytes_total": 100}, (100, 100)),
        ({"rounds": 2, "messages": 9, "bytes_per_party": 70, "bytes_total": 100}, (70, 100)),
        ({"rounds": 2, "messages": 9, "bytes_on_line": 81, "bytes_total": 100}, (81, 81)),
        (
            {"rounds": 2, "messages": 9, "bytes_on_line": None}
            | {"bytes_per_party": 70, "bytes_total": 100},
            (70, 100),
        ),
        ({}, None),
    ]:
        with named(facts, wanted):
            row = {"secure": {"median": 1.0}, **facts}
            assert views.loads(row) == wanted
            if wanted is None:
                assert views.on_line(row, LINES[0]) is None
            else:
                low, high = views.on_line(row, LINES[1])
                assert low == pytest.approx(1.04 + 8 * wanted[0] / 1e8)
                assert high == pytest.approx(1.04 + 8 * wanted[1] / 1e8)


def test_a_scheme_of_ones_own_has_a_section(run):
    for row in run["rows"]:
        row["case"], row["scheme"] = f"mine/{row['case']}", "our own"
    headings = Checked(page(run)).headings
    assert "h2 Our own" in headings
    for row in run["rows"]:
        del row["scheme"]
    assert "h2 Other jobs" in Checked(page(run)).headings


def test_a_quick_run_says_that_it_is_no_basis_for_a_claim(run):
    assert "supports no claim" not in page(run)
    run["quick"] = True
    assert "supports no claim" in page(run)


def test_the_same_run_is_the_same_page(run):
    assert page(run) == page(run)


def test_models_and_names_need_neither_matplotlib_nor_jinja2():
    code = (
        "import sys; sys.modules['matplotlib'] = sys.modules['jinja2'] = None\n"
        "import securecomp.overhead.line_model, securecomp.overhead.scheme_choice\n"
        "import securecomp.overhead.charts, securecomp.overhead.page\n"
        "try: securecomp.overhead.charts.ratios([], [], 't')\n"
        "except ImportError as error: print(error)\n"
        "import securecomp.show.pages\n"
        "try: securecomp.show.pages.render('overhead.html')\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert re.findall(r"pip install '(.*?)'", done.stdout) == ["securecomp[report]"] * 2
    assert issubclass(BackendUnavailableError, ImportError)


def test_pages_in_a_real_browser(pages, tmp_path):
    """No complaint, no request but the page, nothing wider than the window, in both colours."""
    with running(tmp_path / "profile") as chromium:
        for name in ("all", "ckks"):
            file = tmp_path / f"{name}.html"
            file.write_text(pages[name])
            colours = set()
            for width in (400, 1200):
                for dark in (False, True):
                    chromium.open(file, width=width, dark=dark)
                    opened = "document.querySelectorAll('details').forEach(d => { d.open = true })"
                    chromium.value(opened)
                    assert chromium.complaints == []
                    assert chromium.requests == [file.as_uri()]
                    assert chromium.value("innerWidth") == width
                    assert chromium.value("document.documentElement.scrollWidth") <= width
                    paper = chromium.value("getComputedStyle(document.body).backgroundColor")
                    ink = chromium.value(
                        "getComputedStyle(document.querySelector('svg text')).fill"
                    )
                    assert paper != ink
                    colours.add((dark, paper, ink))
                    cut = chromium.value(
                        "[...document.querySelectorAll('h1,h2,h3,p,li,dd,figcaption')].filter("
                        "e => e.getBoundingClientRect().right > innerWidth).length"
                    )
                    assert cut == 0
            assert len(colours) == 2  # the same in both widths, another in the dark
