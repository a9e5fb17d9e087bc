"""Analyses on the command line: tables, the JSON object, and the page."""

import importlib.util
import re
import statistics
from html.parser import HTMLParser
from pathlib import Path

import pytest
from cases import named

NORTH = "los,ward,died\n4,a,0\n9,b,1\n2,a,0\n"
SOUTH = "los,ward,died\n7,b,0\n30,b,1\n"
LOS = [4, 9, 2, 7, 30]


@pytest.fixture
def files(write):
    return [write("north.csv", NORTH), write("south.csv", SOUTH)]


class Page(HTMLParser):
    """The tags of a page, checked for being closed, and what would load something."""

    VOID = ("meta", "br", "use", "path")

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.loads = [], [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)
        self.loads += [
            v for k, v in attrs if k in ("src", "href", "xlink:href") and not v.startswith("#")
        ]

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_medians_beside_sums(stats, files):
    report = stats(*files, "--count", "--median", "los", "--quantiles", "los", "--q", "0.5,1")
    assert report["results"][0]["value"] == 5
    median, quantiles = report["analyses"]
    assert median["values"] == [{"median": statistics.median(LOS)}]
    assert quantiles["values"] == [{"0.5": 7, "1": 30}]
    assert median["method"] == "shares"
    assert median["opened"] == []
    assert "two of the 3 together" in median["learned"]["server"]


def test_by_counts(stats, files):
    for protocol in ["sharing", "paillier"]:
        with named(protocol):
            report = stats(
                *files,
                "--median",
                "los",
                "--by",
                "ward",
                "--method",
                "counts",
                "--protocol",
                protocol,
            )
            assert report["protocol"] == protocol
            assert report["analyses"][0]["values"] == [
                {"group": "a", "median": 3},
                {"group": "b", "median": 9},
            ]
            assert "rows with los ward=a" in report["analyses"][0]["opened"]


def test_extremes_and_the_winner(run, files):
    result = run("stats", *files, "--extremes", "los", "--winner", "los", "--engine", "dealer")
    assert (result.exit_code, result.stderr) == (0, "")
    for words in ("minimum", "maximum", "30", "site with the largest mean of los", "south"):
        assert words in result.stdout
    assert max(map(len, result.stdout.splitlines()[:6])) <= 100


def test_a_page(run, files, folder):
    arguments = ["--histogram", "los", "--edges", "0,5,40", "--median", "los", "--html", "r.html"]
    result = run("stats", *files, *arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    text = Path("r.html").read_text(encoding="utf-8")
    page = Page(text)
    assert page.seen.count("svg") == 1
    assert page.loads == []
    assert "script" not in page.seen
    for words in ("histogram of los", "median of los", "What was revealed", "What it cost"):
        assert words in text
    assert "currentColor" in text
    assert "#010203" not in text


def test_names_cannot_write_into_the_page(run, write, folder):
    name = "<script>alert(1)</script>&$x_1$"
    table = f'"{name}"\n4\n9\n'
    files = [write("north.csv", table), write("south.csv", table)]
    result = run("stats", *files, "--histogram", name, "--edges", "0,5,9", "--html", "r.html")
    assert (result.exit_code, result.stderr) == (0, "")
    text = Path("r.html").read_text(encoding="utf-8")
    assert "script" not in Page(text).seen
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_the_same_page_twice(run, files, folder):
    """But for times, a page says the same: no date, no random ids."""

    def made():
        run("stats", *files, "--histogram", "los", "--edges", "0,5,40", "--html", "r.html")
        return re.sub(r"[\d.,]+ ms", "# ms", Path("r.html").read_text(encoding="utf-8"))

    assert made() == made()


def test_a_page_that_cannot_be_is_refused_before_anything_is_computed(
    run, files, made, monkeypatch
):
    result = run("stats", *files, "--count", "--html", "none/r.html")
    assert (result.exit_code, made) == (2, [])
    assert "there is no folder none" in result.stderr
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    result = run("stats", *files, "--count", "--html", "r.html")
    assert (result.exit_code, made) == (2, [])
    assert "--html needs jinja2 and matplotlib: pip install 'securecomp[report]'" in result.stderr


WIDE = """los,age,ward,died,drug,risk,name
4,50,a,0,0,0.1,p1
9,61,b,1,1,0.9,p2
2,45,a,0,1,0.3,p3
5,70,a,1,0,0.8,p4
"""
WIDER = """los,age,ward,died,drug,risk,name
7,66,b,0,1,0.2,p1
30,81,b,1,0,0.7,p5
12,58,a,1,1,0.4,p6
3,39,b,0,0,0.6,p7
"""


def test_every_analysis(run, stats, write, folder):
    """Each prints its tables within a terminal, has JSON, and goes into a page."""
    for arguments, words in [
        (["--correlation", "los,age"], "correlation"),
        (["--covariance", "los,age"], "covariance"),
        (["--t-test", "los", "died"], "Welch"),
        (["--anova", "los", "ward"], "F"),
        (["--chi-square", "ward", "died"], "Cram"),
        (["--fisher", "ward", "died"], "odds ratio"),
        (["--odds-ratio", "drug", "died"], "odds ratio"),
        (["--odds-ratio", "ward", "died", "--exposed", "b"], "odds ratio"),
        (["--relative-risk", "drug", "died"], "relative risk"),
        (["--risk-difference", "drug", "died"], "risk difference"),
        (["--mantel-haenszel", "drug", "died"], "odds ratio"),
        (["--mantel-haenszel", "drug", "died", "--strata", "ward"], "odds ratio"),
        (["--roc-auc", "risk", "died", "--bins", "10"], "AUC"),
        (["--distinct", "name", "--expected", "100"], "distinct"),
        (["--glm", "died ~ age"], "regression"),
        (["--glm", "los ~ age + C(ward)", "--family", "linear"], "regression"),
        (["--kaplan-meier", "los", "died"], "survival"),
        (["--kaplan-meier", "los", "died", "--by", "drug", "--times", "0:35:5"], "survival"),
        (["--logrank", "los", "died", "drug"], "chi"),
        (["--logrank", "los", "died", "drug", "--times", "5,10,31", "--strata", "ward"], "chi"),
        (["--cox", "los", "died", "age"], "Ties by Efron"),
        (["--cox", "los", "died", "age", "--ties", "breslow"], "Ties by Breslow"),
        (["--cox", "los", "died", "~ I(age - 60) + drug"], "I(age - 60)"),
    ]:
        with named(arguments, words):
            files = [write("north.csv", WIDE), write("south.csv", WIDER)]
            result = run("stats", *files, *arguments, "--html", "r.html")
            assert (result.exit_code, result.stderr) == (0, "")
            assert words.lower() in result.stdout.lower()
            tables = [line for line in result.stdout.splitlines() if line[:1] in "┏┃┡│└"]
            assert tables
            assert max(map(len, tables)) <= 100
            assert "What was revealed" in Path("r.html").read_text(encoding="utf-8")
            (facts,) = stats(*files, *arguments)["analyses"]
            assert facts["opened"]
            assert facts["learned"]


def test_bad_questions(run, files, made):
    for arguments, words in [
        (["--t-test", "los", "died", "--by", "ward"], "--by does not group --t-test"),
        (["--distinct", "ward"], "--distinct needs --expected N"),
        (["--kaplan-meier", "los", "died", "--times", "0:9"], "expected FROM:TO:STEP"),
        (["--kaplan-meier", "los", "died", "--times", "0:9:-1"], "expected FROM:TO:STEP"),
        (["--kaplan-meier", "los", "died", "--times", "a,b"], "--times"),
        (["--quantiles", "los", "--q", "a"], "expected numbers with commas"),
        (["--quantiles", "los", "--q", "2"], "from 0 to 1"),
        (["--median", "age"], "there is no column 'age'"),
        (["--median", "ward"], "column 'ward'"),
        (["--median", "los", "--engine", "slow"], "'slow' is not one of"),
        (["--median", "los", "--ties", "efron"], "--ties is for --cox"),
        (["--cox", "los", "died", "ward", "--ties", "exact"], "'exact' is not one of"),
        (["--cox", "los", "died", "~ scale(los)"], "scale() depends on all rows"),
        (["--cox", "los", "died", "~ died + ward"], "'died' is both event and covariate"),
    ]:
        with named(arguments, words):
            result = run("stats", *files, *arguments)
            assert result.exit_code in (1, 2)
            assert words in result.stderr
            assert made == []


def test_bins_that_are_not_shown_are_no_empty_bins(run, write, folder):
    rows = "los\n" + "1\n" * 30 + "6\n" * 3 + "12\n" * 4 + "17\n" * 20
    files = [write("north.csv", rows), write("south.csv", rows.replace("6", "7"))]
    arguments = ["--histogram", "los", "--edges", "0,5,10,15,20", "--html", "r.html"]
    result = run("stats", *files, *arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    text = Path("r.html").read_text(encoding="utf-8")
    svg = text[text.index("<svg") : text.index("</svg>")]
    bins = [line for line in result.stdout.splitlines() if "[" in line]
    hidden = sum("<11" in line or "*" in line for line in bins)
    assert len(bins) == 4
    assert svg.count(">*<") == hidden >= 2
    assert "bins with * are not shown" in text


def test_small_counts_of_analyses_are_remarked_on(run, files):
    result = run("stats", *files, "--crosstab", "ward", "died", "--chi-square", "ward", "died")
    assert "the analyses below show the counts that they are made of" in result.stdout
    assert "of the counts that became known are between 1 and 10" in result.stdout


def test_options_that_nothing_heeds(run, files, made):
    for arguments, words in [
        (["--count", "--weights", "los"], "--weights is for --glm, which is not asked for"),
        (["--mean", "los", "--times", "0:3:1"], "--times is for --kaplan-meier, --logrank, --cox"),
        (["--median", "los", "--family", "poisson"], "--family is for --glm"),
        (["--odds-ratio", "ward", "died", "--strata", "ward"], "--strata is for"),
    ]:
        with named(arguments, words):
            result = run("stats", *files, *arguments)
            assert (result.exit_code, made) == (2, [])
            assert words in result.stderr


def test_times_from_to_step_are_decimals():
    for text, times in [
        ("0:0.3:0.1", (0, 0.1, 0.2, 0.3)),
        ("0:2.8:0.7", (0, 0.7, 1.4, 2.1, 2.8)),
        ("0:10:3", (0, 3, 6, 9)),
        ("5:5:1", (5,)),
    ]:
        with named(text, times):
            from securecomp.cli.option_values import times as read

            assert read(text) == times


def test_terminal_commands_in_data_are_shown_and_not_obeyed(run, write, folder):
    evil = "\x1b[2J\x1b[31mevil"
    table = f"los,\u202egroup\n4,{evil}\n9,b\n"
    files = [write("north.csv", table), write("south.csv", table)]
    for arguments in (
        ["--count", "--by", "\u202egroup", "--min-count", "0"],
        ["--mean", "nothing"],
        ["--median", "los", "--by", "\u202egroup"],
    ):
        result = run("stats", *files, *arguments)
        for text in (result.stdout, result.stderr):
            assert "\x1b" not in text
            assert "\u202e" not in text
        assert "\\u202egroup" in result.stdout + result.stderr


def test_names_with_backslashes_in_figures(run, write, folder):
    table = "los,died,a\\1b\n4,1,x\n9,0,y\n"
    files = [write("north.csv", table), write("south.csv", table)]
    result = run(
        "stats", *files, "--kaplan-meier", "los", "died", "--by", "a\\1b", "--html", "r.html"
    )
    assert (result.exit_code, result.stderr) == (0, "")
    assert Path("r.html").read_text(encoding="utf-8").count("<svg") == 1


def test_a_page_that_cannot_be_written(run, files, folder):
    result = run("stats", *files, "--count", "--html", "/proc/r.html")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: /proc/r.html: cannot be written: ")
