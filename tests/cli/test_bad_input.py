"""Bad input: one line on stderr that names file, column and remedy; exit status 1; nothing sent."""

import gzip
import io

import pyarrow as pa
import pyarrow.parquet as pq
from cases import named

NORTH = "x,g,h\n1,a,u\n2,b,v\n"
SUM, BY = ["--sum", "x"], ["--count", "--by", "g"]
PARQUET = io.BytesIO()
pq.write_table(pa.table({"x": list(range(1000)), "g": ["a"] * 1000}), PARQUET)
PARQUET = PARQUET.getvalue()

# name of the case: file, its content, options, the error after the file's name
CASES = {
    "missing column": ("b.csv", "y,z\n1,2\n", SUM, "there is no column 'x'; it has: y, z"),
    "missing group": ("b.csv", "x\n1\n", BY, "there is no column 'g'; it has: x"),
    "missing crosstab": (
        "b.csv",
        "x,g\n1,a\n",
        ["--crosstab", "g", "h"],
        "there is no column 'h'; it has: x, g",
    ),
    "empty cell": (
        "b.csv",
        "x,g\n3,a\n,b\n",
        SUM,
        "column 'x': 1 empty or NaN cell, the first in row 2; fill them in, or drop such rows with "
        'missing="drop" (--missing drop)',
    ),
    "NaN and NA": (
        "b.csv",
        "x,g\n3,a\n4,a\nNaN,b\nNA,b\n",
        ["--histogram", "x", "--edges", "0,1"],
        "column 'x': 2 empty or NaN cells, the first in row 3; fill them in, or drop such rows "
        'with missing="drop" (--missing drop)',
    ),
    "empty group": (
        "b.csv",
        "x,g\n3,\n",
        BY,
        "column 'g': 1 empty or NaN cell, the first in row 1; fill them in, or drop such rows with "
        'missing="drop" (--missing drop)',
    ),
    "infinite": (
        "b.csv",
        "x\n3\n-inf\n",
        SUM,
        "column 'x': row 2 is NaN or infinite; correct it",
    ),
    "beyond the bound": (
        "b.csv",
        "x\n3\n987654\n",
        [*SUM, "--bound", "x=365"],
        "column 'x': row 2 is beyond the agreed bound 365; correct it, or agree on a larger bound",
    ),
    "beyond a decimal bound": (
        "b.csv",
        "x\n0.1\n-987654.5\n",
        [*SUM, "--bound", "x=2.5"],
        "column 'x': row 2 is beyond the agreed bound 2.5; correct it, or agree on a larger bound",
    ),
    "too many decimals": (
        "b.csv",
        "x\n0.987654\n",
        [*SUM, "--decimals", "x=1"],
        "column 'x': row 1 is not a number with 1 decimals; declare more decimals, or a binary "
        "grid to round",
    ),
    "outside the levels": (
        "b.csv",
        "x,g\n3,a\n3,987654\n",
        [*BY, "--levels", "g=a,b"],
        "column 'g': row 2 has a value that is not one of the agreed levels; correct it, or agree "
        "on one more level",
    ),
    "a date as a group": (
        "b.csv",
        "x,g\n3,2020-01-31\n",
        BY,
        "column 'g': row 1 cannot be a category; group by text or integers, or use a histogram",
    ),
    "fractions as a group": (
        "b.csv",
        "x,g\n3,1.0\n3,98.7654\n",
        BY,
        "column 'g': row 2 cannot be a category; group by text or integers, or use a histogram",
    ),
    "text in a numeric column": (
        "b.csv",
        "x\nPatient 987654\n",
        SUM,
        "column 'x': row 1 is text and not a number; correct it, or leave the cell empty and "
        "choose to drop missing values",
    ),
    "duplicate column names": (
        "b.csv",
        "x,g,x,g\n1,a,2,b\n",
        SUM,
        "two columns are named g, x; rename one",
    ),
    "duplicate names of other columns": (
        "b.csv",
        "x,y,y\n1,2,3\n",
        SUM,
        "two columns are named y; rename one",
    ),
    "semicolons": (
        "b.csv",
        "x;g\n1;a\n",
        SUM,
        'cannot be read: the columns are divided by ";"; say so with --delimiter ";"',
    ),
    "not UTF-8": (
        "b.csv",
        "x,g\n1,Zürich\n".encode("cp1252"),
        SUM,
        "cannot be read: the text is not UTF-8; save the file with that encoding",
    ),
    "0 bytes": ("b.csv", b"", SUM, "cannot be read: Empty CSV file"),
    "0 bytes, Parquet": ("b.parquet", b"", SUM, "cannot be read: Parquet file size is 0 bytes"),
    "truncated Parquet": ("b.parquet", PARQUET[:400], SUM, "cannot be read: Parquet magic bytes"),
    "not Parquet": ("b.parquet", b"x,g\n1,a\n" * 9, SUM, "cannot be read: Parquet magic bytes"),
    "truncated gz": (
        "b.csv.gz",
        gzip.compress(b"x\n" + b"12\n" * 9999)[:-20],
        SUM,
        "cannot be read: Truncated compressed stream",
    ),
    "not gz": ("b.csv.gz", b"x\n1\n", SUM, "cannot be read: "),
    "another ending": (
        "b.xlsx",
        b"PK",
        SUM,
        "expected a file that ends in .csv, .csv.gz, .tsv, .txt, .parquet, .pq",
    ),
    "ragged, too long": ("b.csv", "x,g\n1,a\n2,b,c\n", SUM, "cannot be read: "),
    "ragged, too short": ("b.csv", "x,g\n1,a\n2\n", SUM, "cannot be read: "),
}


def refused(result):
    """The one line that an error is."""
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("error: ").removesuffix("\n")


def test_one_line(run, write, made):
    for as_json in [[], ["--json"]]:
        for case in CASES:
            with named(as_json, case):
                name, content, options, text = CASES[case]
                good = write("good.csv", NORTH)
                for files in ([good, write(name, content)], [name, good]):
                    error = refused(run("stats", *files, *options, *as_json))
                    assert error.startswith(f"{name}: {text}")
                    assert "987654" not in error
                assert made == []


def test_the_good_file_is_good(run, write, made):
    """Or the cases above would be refused for another reason."""
    files = [write("good.csv", NORTH), write("b.csv", NORTH)]
    for options in (SUM, BY, ["--crosstab", "g", "h"], ["--histogram", "x", "--edges", "0,1"]):
        assert run("stats", *files, *options).exit_code == 0
    assert made != []


def test_a_header_without_rows_is_no_error(run, write):
    files = [write("good.csv", NORTH), write("b.csv", "x,g,h\n")]
    assert run("stats", *files, *SUM, *BY).exit_code == 0


def test_two_files_of_one_site(run, write, folder, made):
    (folder / "other").mkdir()
    files = [write("good.csv", NORTH), write("other/good.csv", NORTH)]
    assert refused(run("stats", *files, *SUM)) == (
        "other/good.csv: the site name 'good' is taken by good.csv; rename one of the files"
    )
    assert made == []


def test_no_such_file(run, write, made):
    for name in ("gone.csv", "gone.parquet"):
        error = refused(run("stats", write("good.csv", NORTH), name, *SUM))
        assert error == f"{name}: there is no such file"
    assert made == []


def test_a_folder(run, write, folder):
    (folder / "b.csv").mkdir()
    error = refused(run("stats", write("good.csv", NORTH), "b.csv", *SUM))
    assert error == "b.csv: is a folder; name one file a site"


def test_a_folder_without_an_ending(run, write, folder):
    (folder / "sites").mkdir()
    error = refused(run("stats", write("good.csv", NORTH), "sites", *SUM))
    assert error.startswith("sites: ")


def test_one_file(run, write, made):
    error = refused(run("stats", write("good.csv", NORTH), *SUM))
    assert "other sites to hide among" in error
    assert made == []


def test_servers(run, write):
    for servers, said in [("1", "1"), ("0", "0"), ("1001", "1001")]:
        with named(servers, said):
            files = [write("good.csv", NORTH), write("b.csv", NORTH)]
            error = refused(run("stats", *files, *SUM, "--servers", servers))
            assert error == f"servers must be from 2 to 1000, not {said}"


def test_an_impossible_request(run, write, made):
    for options, text in [
        (["--protocol", "none"], "there is no protocol 'none'; choose from: sharing"),
        (["--protocol", "masking"], "masking: with two clients each sees the other's vector"),
        (["--decimals", "x=99"], "decimals must be from 0 to 22, not 99"),
        (["--bound", "x=-5"], "a bound must be a finite number of at least 0, not "),
        (["--bound", "x=nan"], "a bound must be a finite number of at least 0, not "),
        (["--bound", "x=inf"], "a bound must be a finite number of at least 0, not "),
        (
            ["--histogram", "x", "--edges", "3,1"],
            "histogram of 'x': give at least two edges that increase",
        ),
        (["--histogram", "x", "--edges", "3"], "histogram of 'x': give at least two edges that"),
        (["--histogram", "x", "--edges", "0,inf"], "histogram of 'x': edges are finite;"),
        (["--by", "g", "--levels", "g=a,b,a"], "column 'g': the declared levels must be distinct"),
    ]:
        with named(options, text):
            files = [write("good.csv", NORTH), write("b.csv", NORTH)]
            assert text in refused(run("stats", *files, *SUM, *options))
            assert made == []


def test_two_codings(run, write):
    files = [write("a.csv", "g\n1\n"), write("b.csv", "g\nx\n")]
    error = refused(run("stats", *files, *BY))
    assert error.startswith("column 'g' is coded as int and str at different sites")
    assert error.endswith("; agree on one coding")


USAGE = {
    "nothing": ([], "Missing argument 'FILES...'"),
    "nothing asked": (["a.csv", "b.csv"], "ask for something: --count, --sum COL, --mean COL, ..."),
    "an unknown option": (["a.csv", "b.csv", "--mode", "x"], "No such option"),
    "one column of a crosstab": (["a.csv", "b.csv", "--crosstab", "g"], "requires 2 arguments"),
    "no edges": (
        ["a.csv", "b.csv", "--histogram", "x"],
        "give --edges once, or once for each --histogram",
    ),
    "edges for two of three": (
        ["a.csv", "b.csv", *["--histogram", "x"] * 3, *["--edges", "0,1"] * 2],
        "give --edges once, or once for each --histogram",
    ),
    "edges for two of one": (
        ["a.csv", "b.csv", "--histogram", "x", *["--edges", "0,1"] * 2],
        "give --edges once, or once for each --histogram",
    ),
    "edges without a histogram": (
        ["a.csv", "b.csv", "--count", "--edges", "0,1"],
        "--edges needs a --hist",
    ),
    "edges of text": (
        ["a.csv", "b.csv", "--histogram", "x", "--edges", "0,a"],
        "Invalid value for --edges: expected numbers with commas between them, got '0,a'",
    ),
    "no edge": (
        ["a.csv", "b.csv", "--histogram", "x", "--edges", ""],
        "Invalid value for --edges: expected numbers with commas between them, got ''",
    ),
    "servers of text": (
        ["a.csv", "b.csv", "--count", "--servers", "some"],
        "Invalid value for --servers: a number or \"all\", not 'some'",
    ),
    "negative servers": (
        ["a.csv", "b.csv", "--count", "--servers", "-1"],
        "Invalid value for --servers: a number or \"all\", not '-1'",
    ),
    "another missing": (["a.csv", "b.csv", "--count", "--missing", "skip"], "'error', 'drop'"),
    "a bound of no column": (
        ["good.csv", "b.csv", "--count", "--bound", "365"],
        "Invalid value for --bound: expected COL=VALUE, got '365'",
    ),
    "a bound of no value": (
        ["good.csv", "b.csv", "--count", "--bound", "x="],
        "Invalid value for --bound: expected COL=VALUE, got 'x='",
    ),
    "levels of no column": (
        ["good.csv", "b.csv", "--count", "--levels", "=a"],
        "Invalid value for --levels: expected COL=VALUE, got '=a'",
    ),
    "decimals of no column": (
        ["good.csv", "b.csv", "--count", "--decimals", "2"],
        "Invalid value for --decimals: expected COL=VALUE, got '2'",
    ),
    "a bound of text": (
        ["good.csv", "b.csv", "--count", "--bound", "x=much"],
        "x: expected a number",
    ),
    "decimals of text": (["good.csv", "b.csv", "--count", "--decimals", "x=2.5"], "x: expected a"),
}


def test_usage(run, write, made):
    for case in USAGE:
        with named(case):
            write("good.csv", NORTH)
            write("b.csv", NORTH)
            arguments, text = USAGE[case]
            result = run("stats", *arguments)
            assert (result.exit_code, result.stdout) == (2, "")
            assert text in result.stderr
            assert made == []


BETTER = {
    "the first cell that is no number": (
        {"b.csv": "x\n3\n4\nmany\n"},
        SUM,
        ["b.csv", "'x'", "row 3"],
    ),
    "a decimal comma": (
        {"a.csv": "x;g\n1,5;a\n", "b.csv": "x;g\n2,5;a\n"},
        [*SUM, "--delimiter", ";"],
        ["a.csv", "'x'", "--decimal-comma"],
    ),
    "tabs": ({"b.txt": "x\tg\n1\ta\n"}, SUM, ["b.txt", "--delimiter"]),
    "one file": ({}, SUM, ["two files"]),
    "one file twice": ({"good.csv": NORTH}, SUM, ["good.csv", "twice"]),
    "a column that is called otherwise": (
        {"b.csv": "x, g\n1,a\n"},
        BY,
        ["b.csv", "'g'", "' g'"],
    ),
    "levels given twice": (
        {"b.csv": NORTH},
        [*BY, "--levels", "g=a,b,a"],
        ["'g'", "twice"],
    ),
    "a bound on a column that no file has": (
        {"b.csv": NORTH},
        [*SUM, "--bound", "X=365"],
        ["'X'", "no column"],
    ),
    "two bounds on one column": (
        {"b.csv": NORTH},
        [*SUM, "--bound", "x=365", "--bound", "x=10"],
        ["--bound", "x", "twice"],
    ),
    "decimals that are a fraction": (
        {"b.csv": NORTH},
        [*SUM, "--decimals", "x=2.5"],
        ["--decimals", "integer"],
    ),
    "a bound in plain digits": (
        {"b.csv": NORTH},
        [*SUM, "--bound", "x=-5"],
        ["'x'", "not -5"],
    ),
    "a file without a name": ({".csv": NORTH}, SUM, [".csv"]),
    "a delimiter of two characters": (
        {"b.csv": NORTH},
        [*SUM, "--delimiter", "||"],
        ["--delimiter", "one character"],
    ),
    "another character as delimiter": (
        {"b.csv": NORTH},
        [*SUM, "--delimiter", "§"],
        ["--delimiter", "one character"],
    ),
    "two codings": ({"a.csv": "g\n1\n", "b.csv": "g\nx\n"}, BY, ["a.csv", "b.csv", "'g'"]),
    "very many servers": ({"b.csv": NORTH}, [*SUM, "--servers", "9" * 5000], ["1000"]),
}


def test_what_a_person_needs_to_know(run, write):
    for case in BETTER:
        with named(case):
            files, options, words = BETTER[case]
            names = [] if "a.csv" in files else [write("good.csv", NORTH)]
            names += [write(name, content) for name, content in files.items()]
            result = run("stats", *names, *options)
            assert result.exit_code in (1, 2)
            error = result.stderr.strip().splitlines()[-1]
            assert all(word in error for word in words)


def test_no_row_is_quoted(run, write):
    for case in ["ragged, too long", "ragged, too short"]:
        with named(case):
            content = CASES[case][1].replace("2", "987654")
            files = [write("good.csv", NORTH), write("b.csv", content)]
            error = refused(run("stats", *files, *SUM))
            assert "987654" not in error
            assert "row 2" in error


def test_no_traceback_whatever_the_file_holds(run, write):
    """Bytes of all kinds under every ending: an answer or one line."""
    import random

    draw = random.Random(3)  # noqa: S311
    contents = [draw.randbytes(size) for size in (1, 7, 50, 300)]
    contents += [
        b"\x00" * 20,
        b"\n" * 5,
        b",,,\n,,,\n",
        b"x\n" + b'"' * 7,
        b'x\n"open',
        b"\xff\xfe",
    ]
    contents += [NORTH.encode() * 2, b"x\n1\x00\n", b"x,g\r1,a\r"]
    good = write("good.csv", NORTH)
    for ending in ("csv", "csv.gz", "tsv", "parquet"):
        for content in contents:
            result = run("stats", good, write(f"b.{ending}", content), *SUM)
            assert result.exit_code in (0, 1)
            assert result.exit_code == 0 or refused(result).startswith(f"b.{ending}: ")
