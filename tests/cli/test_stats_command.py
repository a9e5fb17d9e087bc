"""`securecomp stats`: every option, what it prints, and the JSON object."""

import gzip
import io
import json
import re
import statistics
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cases import named

NORTH = "los,ward,died,cost\n4,a,no,10.50\n9,b,yes,0.25\n2,a,no,1.00\n"
SOUTH = "los,ward,died,cost\n7,b,no,3.10\n30,b,yes,-2.00\n"
LOS = [4, 9, 2, 7, 30]


@pytest.fixture
def files(write):
    return [write("north.csv", NORTH), write("south.csv", SOUTH)]


def values(report):
    return [row["value"] for row in report["results"]]


class TestOptions:
    def test_count_sum_mean_variance(self, stats, files):
        report = stats(*files, "--count", "--sum", "los", "--mean", "los", "--variance", "los")
        variance = statistics.variance(map(Fraction, LOS))
        assert values(report) == [5, 52, 52 / 5, float(variance)]
        assert [row["statistic"] for row in report["results"]] == [
            *("count", "sum", "mean", "variance"),
        ]
        assert report["results"][3]["sd"] == float(variance) ** 0.5

    def test_decimals_are_exact(self, stats, files):
        report = stats(*files, "--sum", "cost", "--mean", "cost")
        assert values(report) == [12.85, 2.57]

    def test_by(self, stats, files):
        report = stats(*files, "--count", "--mean", "los", "--by", "ward")
        assert report["results"] == [
            {"statistic": "count", "column": None, "by": "ward", "group": "a", "value": 2},
            {"statistic": "count", "column": None, "by": "ward", "group": "b", "value": 3},
            {
                "statistic": "mean",
                "column": "los",
                "by": "ward",
                "group": "a",
                "n": 2,
                "value": 3.0,
            },
            {
                "statistic": "mean",
                "column": "los",
                "by": "ward",
                "group": "b",
                "n": 3,
                "value": 46 / 3,
            },
        ]

    def test_histogram(self, stats, files):
        report = stats(*files, "--histogram", "los", "--edges", "2,5,9")
        assert report["results"] == [
            {
                "statistic": "histogram",
                "column": "los",
                "by": None,
                "edges": [2.0, 5.0, 9.0],
                "below": 0,
                "above": 1,
                "value": np.histogram(LOS, [2, 5, 9])[0].tolist(),
            }
        ]

    def test_crosstab(self, stats, files):
        report = stats(*files, "--crosstab", "ward", "died")
        assert report["results"] == [
            {
                "statistic": "crosstab",
                "column": None,
                "by": None,
                "row": "ward",
                "col": "died",
                "row_levels": ["a", "b"],
                "col_levels": ["no", "yes"],
                "value": [[2, 0], [1, 2]],
            }
        ]

    def test_repeated_in_the_order_of_the_help(self, stats, files):
        report = stats(
            *files,
            *("--crosstab", "died", "ward", "--mean", "cost", "--sum", "los", "--sum", "cost"),
            *("--sum", "los", "--count", "--crosstab", "ward", "died", "--variance", "los"),
        )
        assert [(r["statistic"], r["column"]) for r in report["results"]] == [
            ("count", None),
            ("sum", "los"),
            ("sum", "cost"),
            ("sum", "los"),
            ("mean", "cost"),
            ("variance", "los"),
            ("crosstab", None),
            ("crosstab", None),
        ]
        assert [r["value"] for r in report["results"][-2:]] == [[[2, 1], [0, 2]], [[2, 0], [1, 2]]]

    def test_edges_once_for_all_histograms(self, stats, files):
        report = stats(*files, "--histogram", "los", "--histogram", "cost", "--edges", "0,5,10")
        assert values(report) == [[2, 2], [3, 0]]

    def test_edges_once_for_each_histogram(self, stats, files):
        report = stats(
            *files, *("--histogram", "los", "--edges", "0,50"), *("--histogram", "cost"),
            *("--edges", "-2.5,0,1"),
        )  # fmt: skip
        assert values(report) == [[5], [1, 2]]

    def test_negative_edges(self, stats, files):
        for edges in [["--edges", "-3,-2,0"], ["--edges=-3,-2,0"]]:
            with named(edges):
                report = stats(*files, "--histogram", "cost", *edges)
                assert values(report) == [[0, 1]]
                assert (report["results"][0]["below"], report["results"][0]["above"]) == (0, 4)

    def test_edges_with_blanks_and_exponents(self, stats, files):
        report = stats(*files, "--histogram", "los", "--edges", " 0 , 1e1,2.5e1 ")
        assert values(report) == [[4, 0]]

    def test_servers(self, stats, files):
        for servers, given, messages in [
            ("2", 2, 8),
            ("3", 3, 12),
            ("5", 5, 20),
            ("all", "all", 4),
        ]:
            with named(servers, given, messages):
                report = stats(*files, "--sum", "los", "--servers", servers)
                assert (values(report), report["servers"], report["messages"]) == (
                    [52],
                    given,
                    messages,
                )

    def test_protocol(self, stats, files, write):
        files.append(write("west.csv", "los,ward,died,cost\n1,b,no,0\n"))
        for options, messages in [
            (["sharing"], 18),
            (["masking"], 24),
            (["masking", "--security", "active"], 30),
        ]:
            with named(options, messages):
                report = stats(
                    *files, "--sum", "los", "--count", "--by", "ward", "--protocol", *options
                )
                assert values(report) == [2, 4, 6, 47]
                assert (report["protocol"], report["messages"]) == (options[0], messages)

    def test_an_option_of_another_protocol_is_refused(self, run, files, write):
        files.append(write("west.csv", "los,ward,died,cost\n1,b,no,0\n"))
        for options in [
            ["--security", "active"],
            ["--protocol", "sharing", "--security", "active"],
            ["--protocol", "masking", "--servers", "all"],
            ["--protocol", "masking", "--servers", "5"],
        ]:
            with named(options):
                result = run("stats", *files, "--count", *options)
                assert (result.exit_code, result.stdout) == (1, "")
                assert result.stderr.startswith(f"error: {options[-2].removeprefix('--')} is for ")
                assert result.stderr.count("\n") == 1

    def test_missing_drop(self, stats, files, write):
        files.append(write("west.csv", "los,ward,died,cost\n,a,no,NA\n5,,yes,1\n"))
        report = stats(*files, "--mean", "los", "--count", "--missing", "drop")
        assert values(report) == [7, 57 / 6]
        report = stats(*files, "--mean", "los", "--by", "ward", "--missing", "drop")
        assert values(report) == [3.0, 46 / 3]

    def test_declared_facts(self, stats, files):
        facts = ["--bound", "los=365", "--decimals", "los=0", "--levels", "ward=b,a,c"]
        report = stats(*files, "--sum", "los", "--by", "ward", *facts)
        assert report["taken_from_data"] == {}
        assert [(r["group"], r["value"]) for r in report["results"]] == [
            ("b", 46),
            ("a", 6),
            ("c", 0),
        ]

    def test_declared_facts_of_several_columns(self, stats, files):
        facts = ["--bound", "los=365", "--bound", "cost=10.5", "--decimals", "cost=2"]
        report = stats(*files, "--sum", "los", "--sum", "cost", *facts)
        assert report["taken_from_data"] == {"grid of los": "integers"}

    def test_levels_that_are_integers(self, stats, write):
        files = [write("a.csv", "k,x\n10,1\n9,1\n"), write("b.csv", "k,x\n9,1\n")]
        report = stats(*files, "--count", "--by", "k", "--levels", "k=10, 9 ,8")
        assert [(r["group"], r["value"]) for r in report["results"]] == [(10, 1), (9, 2), (8, 0)]

    def test_more_decimals_than_there_are(self, stats, files):
        assert values(stats(*files, "--sum", "los", "--decimals", "los=3")) == [52.0]

    def test_version(self, run):
        from importlib.metadata import version

        result = run("--version")
        assert (result.exit_code, result.stdout.split()[-1]) == (0, version("securecomp"))


class TestSmallCells:
    @pytest.fixture
    def many(self, write):
        rows = [f"{ward},{i}" for ward, n in (("a", 40), ("b", 30), ("c", 4)) for i in range(n)]
        lines = ["ward,los", *rows]
        return [
            write("north.csv", "\n".join([*lines[:1], *lines[1::2]])),
            write("south.csv", "\n".join([*lines[:1], *lines[2::2]])),
        ]

    def test_they_are_suppressed(self, run, many):
        result = run("stats", *many, "--count", "--mean", "los", "--by", "ward")
        assert (result.exit_code, result.stderr) == (0, "")
        lines = result.stdout.splitlines()
        assert "│    b │     * │" in lines
        assert "│    c │   <11 │" in lines
        assert sum(line.startswith("suppressed: <11: at least one row") for line in lines) == 1

    def test_json(self, run, many):
        result = run("stats", *many, "--count", "--by", "ward", "--json")
        found = json.loads(result.stdout)["results"]
        assert [row["value"] for row in found] == [40, None, None]
        assert [row.get("suppressed") for row in found] == [None, {"value": "*"}, {"value": "<11"}]

    def test_other_minima(self, run, many):
        shown = json.loads(
            run("stats", *many, "--count", "--by", "ward", "--min-count", "4", "--json").stdout
        )
        assert values(shown) == [40, 30, 4]
        asked = ("--count", "--by", "ward", "--min-count", "0", "--min-sites", "2", "--json")
        assert values(json.loads(run("stats", *many, *asked).stdout)) == [40, 30, 4]

    def test_bad_minima(self, run, many):
        for options, words in [
            (("--min-count", "-1"), "--min-count"),
            (("--min-sites", "0"), "--min-sites"),
        ]:
            with named(options, words):
                result = run("stats", *many, "--count", *options)
                assert result.exit_code == 2
                assert words in result.stderr

    def test_more_sites_than_files(self, run, many):
        result = run("stats", *many, "--count", "--min-sites", "3")
        assert result.exit_code == 1
        assert "lower minimum_sites (--min-sites)" in result.stderr


class TestFiles:
    def test_any_number(self, stats, write):
        files = [write(f"site{i}.csv", f"x\n{i}\n") for i in range(40)]
        report = stats(*files, "--sum", "x", "--count")
        assert values(report) == [40, sum(range(40))]
        assert report["sites"] == [f"site{i}" for i in range(40)]

    def test_all_kinds_together(self, stats, write, files):
        buffer = io.BytesIO()
        pq.write_table(pa.table({"los": [1], "ward": ["c"]}), buffer)
        files += [
            write("west.parquet", buffer.getvalue()),
            write("east.tsv", "los\tward\n2\ta\n"),
            write("zip.csv.gz", gzip.compress(b"ward,los\nb,3\n")),
            write("crlf.csv", "los,ward\r\n1,a\r\n"),
            write("bom.csv", b"\xef\xbb\xbflos,ward\n1,a\n"),
            write("empty.csv", "los,ward\n"),
        ]
        report = stats(*files, "--sum", "los", "--by", "ward")
        assert [(r["group"], r["value"]) for r in report["results"]] == [
            ("a", 10),
            ("b", 49),
            ("c", 1),
        ]
        assert report["parties"] == 8

    def test_semicolons_and_decimal_commas(self, stats, write):
        files = [write("a.csv", "x;g\n1,5;u\n"), write("b.csv", "x;g\n-0,25;u\n")]
        report = stats(*files, "--sum", "x", "--delimiter", ";", "--decimal-comma")
        assert values(report) == [1.25]

    def test_quoted_cells(self, stats, write):
        group = 'a, ""b""\nc'
        files = [write("a.csv", f'g,x\n"{group}",1\n'), write("b.csv", f'g,x\n"{group}",2\n')]
        report = stats(*files, "--sum", "x", "--by", "g")
        assert [(r["group"], r["value"]) for r in report["results"]] == [('a, "b"\nc', 3)]

    def test_integers_beyond_int64(self, stats, write):
        cells = [2**63, -(10**25), 12345678901234567891]
        files = [write("a.csv", f"x\n{cells[0]}\n{cells[1]}\n"), write("b.csv", f"x\n{cells[2]}\n")]
        report = stats(*files, "--sum", "x", "--variance", "x")
        assert values(report) == [sum(cells), float(statistics.variance(map(Fraction, cells)))]

    def test_a_site_without_rows(self, stats, files, write):
        files.append(write("empty.csv", "los,ward,died,cost\n"))
        report = stats(*files, "--count", "--mean", "los", "--crosstab", "ward", "died")
        assert values(report) == [5, 10.4, [[2, 0], [1, 2]]]

    def test_only_sites_without_rows(self, stats, write):
        files = [write("a.csv", "x\n"), write("b.csv", "x\n")]
        report = stats(*files, "--count", "--sum", "x", "--mean", "x", "--variance", "x")
        assert values(report) == [0, 0, None, None]

    def test_a_large_file_whose_last_row_differs(self, stats, write):
        long = "x\n" + "1\n" * 700_000
        report = stats(write("a.csv", long + "0.5\n"), write("b.csv", "x\n"), "--sum", "x")
        assert values(report) == [700_000.5]

    def test_codes_that_are_numbers_at_one_site_only(self, stats, write):
        files = [write("a.csv", "ward\n101\n102\n"), write("b.csv", "ward\n101\nA3\n")]
        report = stats(*files, "--count", "--by", "ward", "--levels", "ward=101,102,A3")
        assert values(report) == [2, 1, 1]

    def test_levels_that_are_true_and_false(self, stats, write):
        files = [write("a.csv", "x\ntrue\nfalse\n"), write("b.csv", "x\ntrue\n")]
        report = stats(*files, "--count", "--by", "x", "--levels", "x=true,false")
        assert values(report) == [2, 1]

    def test_codes_with_leading_zeros_stay_apart(self, stats, write):
        files = [write("a.csv", "k\n01\n1\n"), write("b.csv", "k\n01\n")]
        assert [r["group"] for r in stats(*files, "--count", "--by", "k")["results"]] == ["01", "1"]


class TestJson:
    """One object; its keys and their types are what other programs rely on."""

    TYPES = {  # noqa: RUF012
        "results": list,
        "analyses": list,
        "parties": int,
        "sites": list,
        "protocol": str,
        "servers": int,
        "rounds": int,
        "messages": int,
        "bytes_sent": int,
        "seconds": float,
        "learned": dict,
        "taken_from_data": dict,
    }

    def test_keys_and_types(self, stats, files):
        report = stats(*files, "--mean", "los", "--by", "ward")
        assert {key: type(value) for key, value in report.items()} == self.TYPES
        assert (report["parties"], report["sites"]) == (2, ["north", "south"])
        assert (report["protocol"], report["servers"], report["rounds"]) == ("sharing", 3, 2)
        assert report["messages"] == 12
        assert report["bytes_sent"] > 0
        assert report["seconds"] > 0
        assert set(report["learned"]) == {"hospital", "server"}
        assert report["taken_from_data"] == {
            "bound of los": "30",
            "grid of los": "integers",
            "levels of ward": "a, b",
        }

    def test_every_row_says_what_it_is(self, stats, files):
        report = stats(
            *files,
            *("--count", "--sum", "los", "--mean", "los", "--variance", "los"),
            *("--histogram", "los", "--edges", "0,9", "--crosstab", "died", "died"),
            *("--by", "ward"),
        )
        assert len(report["results"]) == 6 * 2
        for row in report["results"]:
            assert {"statistic", "column", "by", "group", "value"} <= set(row)
        keys = {row["statistic"]: sorted(row) for row in report["results"]}
        common = {"statistic", "column", "by", "group", "value"}
        assert keys == {
            "count": sorted(common),
            "sum": sorted(common),
            "mean": sorted(common | {"n"}),
            "variance": sorted(common | {"n", "sd"}),
            "histogram": sorted(common | {"edges", "below", "above"}),
            "crosstab": sorted(common | {"row", "col", "row_levels", "col_levels"}),
        }

    def test_nothing_but_the_object(self, run, files):
        result = run("stats", *files, "--count", "--json")
        assert result.stdout.endswith("}\n")
        assert result.stdout.count("\n") == 1

    def test_no_value_is_null_and_not_nan(self, run, write):
        files = [write("a.csv", "x,g\n1,u\n"), write("b.csv", "x,g\n1,u\n")]
        result = run("stats", *files, "--mean", "x", "--by", "g", "--levels", "g=v,u", "--json")
        assert json.loads(result.stdout, parse_constant=pytest.fail)["results"][0]["value"] is None

    def test_all_servers(self, stats, files):
        report = stats(*files, "--count", "--servers", "all")
        assert report["servers"] == "all"
        assert set(report["learned"]) == {"hospital"}


class TestText:
    def test_what_is_printed(self, run, files):
        result = run(
            "stats",
            *files,
            *("--count", "--mean", "los", "--by", "ward", "--bound", "los=365"),
            *("--min-count", "0"),
        )
        assert (result.exit_code, result.stderr) == (0, "")
        lines = result.stdout.splitlines()
        assert "│    a │     2 │" in lines
        assert "│    b │ 15.3333 │ 3 │" in lines
        assert lines[-3].startswith("each hospital learned: the result")
        assert lines[-2].startswith("each server learned: nothing but sizes; any 2 of the 3 ")
        assert lines[-1] == (
            "public, taken from the data: levels of ward: a, b; grid of los: integers"
        )
        assert re.search(
            r"^sharing, 2 sites, 3 servers: 12 messages, 2 rounds, at most \d+ bytes sent by a ",
            result.stdout,
            re.MULTILINE,
        )

    def test_nothing_is_listed_that_was_declared(self, run, files):
        result = run("stats", *files, "--sum", "los", "--bound", "los=365", "--decimals", "los=0")
        assert "taken from the data" not in result.stdout

    def test_no_value_is_a_dash(self, run, write):
        files = [write("a.csv", "x\n"), write("b.csv", "x\n")]
        assert re.search(r"│\s+- │ 0 │", run("stats", *files, "--mean", "x").stdout)

    def test_the_title_stands_on_one_line(self, run, files):
        output = run("stats", *files, "--sum", "los").stdout
        assert output.splitlines()[0].rstrip() == "sum of los"

    def test_brackets_in_the_data_are_shown(self, run, write):
        for text in ["[red]", "[bold]x", "[/]", "[link=x]y"]:
            with named(text):
                files = [write(f"{n}.csv", f"{text}c,g\n1,{text}g\n") for n in "ab"]
                output = run("stats", *files, "--sum", f"{text}c", "--by", "g", "--count").stdout
                assert f"{text}g" in output

    def test_json_is_not_markup(self, stats, write):
        files = [write(f"{n}.csv", "x,g\n1,[/]\n") for n in "ab"]
        assert stats(*files, "--count", "--by", "g")["results"][0]["group"] == "[/]"
