"""One file a site: what is read, what it is called, and what is said of a file that is broken."""

import gzip
import io
import os
import sys
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from cases import each_case
from sites import study

from securecomp.errors import ParameterError
from securecomp.statistics.table_files import name_sites, read_table, site_name


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a file and return its path, short: relative to a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def write(name, content):
        Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
        return Path(name)

    return write


@each_case(
    "path, name",
    [
        ("north.csv", "north"),
        ("data/north.CSV", "north"),
        ("north.csv.gz", "north"),
        ("north.tsv", "north"),
        ("north.txt", "north"),
        ("north.parquet", "north"),
        ("north.pq", "north"),
        ("St. Mary's.2024.csv", "St. Mary's.2024"),
        ("north.xlsx", "north.xlsx"),
        ("north", "north"),
    ],
)
def test_site_name(path, name):
    assert site_name(Path(path)) == name


def test_a_file_system_that_writes_accents_apart():
    """The site has one name, whatever the form of its file's; two forms are one name."""
    apart, bern = Path("Zu\u0308rich.csv"), Path("bern.csv")
    assert name_sites([apart, bern]) == {"Z\u00fcrich": apart, "bern": bern}
    with pytest.raises(ParameterError, match="is taken by"):
        name_sites([apart, bern, Path("Z\u00fcrich.csv")])


def test_name_sites_keeps_the_order():
    paths = [Path("b.csv"), Path("a/c.parquet"), Path("a.tsv")]
    assert list(name_sites(paths).items()) == list(zip("bca", paths, strict=True))


@each_case("second", ["x/north.csv", "north.parquet", "north.csv.gz"])
def test_two_files_of_one_name(second):
    with pytest.raises(ParameterError) as caught:
        name_sites([Path("north.csv"), Path("south.csv"), Path(second)])
    assert str(caught.value) == (
        f"{second}: the site name 'north' is taken by north.csv; rename one of the files"
    )


ROWS = {"x": [1, 2], "g": ["a", "ü"]}
WRITTEN = {
    "plain.csv": "x,g\n1,a\n2,ü\n",
    "no final newline.csv": "x,g\n1,a\n2,ü",
    "crlf.csv": "x,g\r\n1,a\r\n2,ü\r\n",
    "bom.csv": "\ufeffx,g\n1,a\n2,ü\n",
    "blank lines.csv": "x,g\n\n1,a\n\n2,ü\n\n",
    "quoted.csv": '"x","g"\n"1","a"\n2,ü\n',
    "tabs.tsv": "x\tg\n1\ta\n2\tü\n",
    "UPPER.CSV": "x,g\n1,a\n2,ü\n",
    "zipped.csv.gz": gzip.compress("x,g\n1,a\n2,ü\n".encode()),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_read(name, write):
    assert read_table(write(name, WRITTEN[name])).to_pydict() == ROWS


@pytest.mark.parametrize("name", ["north.parquet", "north.pq", "NORTH.PARQUET"])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_read_parquet(name, compression, write):
    buffer = io.BytesIO()
    pq.write_table(pa.table(ROWS), buffer, compression=compression)
    assert read_table(write(name, buffer.getvalue())).to_pydict() == ROWS


def test_commas_quotes_and_newlines_in_a_cell(write):
    path = write("q.csv", 'x,g\n1,"a, ""b""\nc"\n2,"d\r\n"\n')
    assert read_table(path)["g"].to_pylist() == ['a, "b"\nc', "d\r\n"]


@pytest.mark.parametrize("cell", ["", "NA", "N/A", "NaN", "nan", "NULL", "null", '""', '"NA"'])
def test_an_empty_cell(cell, write):
    table = read_table(write("m.csv", f"x,g\n1,a\n{cell},{cell}\n"))
    assert table.to_pydict() == {"x": [1, None], "g": ["a", None]}


@pytest.mark.parametrize("cell", ["-", "none", "None", "0", "n/a", "."])
def test_a_cell_that_is_not_empty(cell, write):
    assert read_table(write("m.csv", f"g\nab\n{cell}\n"))["g"].to_pylist() == ["ab", cell]


def test_a_header_without_rows(write):
    table = read_table(write("h.csv", "x,g\n"))
    assert (table.column_names, table.num_rows) == (["x", "g"], 0)


def test_a_header_without_rows_or_newline(write):
    assert read_table(write("h.csv", "x,g")).column_names == ["x", "g"]


def test_delimiter_and_decimal_comma(write):
    path = write("d.csv", "x;g\n1,5;a\n-2,25;b\n")
    table = read_table(path, delimiter=";", decimal_comma=True)
    assert table.to_pydict() == {"x": [1.5, -2.25], "g": ["a", "b"]}
    assert read_table(path, delimiter=";")["x"].to_pylist() == ["1,5", "-2,25"]
    assert read_table(write("t.tsv", "x|g\n1|a\n"), delimiter="|").column_names == ["x", "g"]


class TestWideIntegers:
    """Integers that float64 or int64 cannot hold stay exact."""

    def test_exact(self, write):
        for cells in (
            ["9223372036854775808"],
            ["-9223372036854775809", "1"],
            ["99999999999999999999999999", "", "-1"],
            ["+9223372036854775808", "0"],
            ["9007199254740993", "0.5"],
            ["9007199254740993", "1e3"],
            ["9007199254740993.0", "2"],
            ["12345678901234567890.5", "0.25"],
        ):
            table = read_table(write("w.csv", "id,x\n" + "".join(f"7,{cell}\n" for cell in cells)))
            exact = [Decimal(cell) if cell else None for cell in cells]
            assert table["x"].to_pylist() == exact, cells
            assert table["id"].to_pylist() == [7] * len(cells), cells

    def test_thirty_digits_and_more_reach_the_sum(self, write):
        """`abs` of a decimal once cut the agreed bound to 28 digits."""
        for text in ("123456789023456789023456789017", "-" + "8" * 39, "5" * 76):
            table = read_table(write("w.csv", f"x\n{text}\n1\n"))
            result = study(table, read_table(write("v.csv", "x\n1\n"))).sum("x")
            assert result.value == int(text) + 2, text
            assert result.equal, text
            assert result.run.from_data == {
                "bound of x": text.lstrip("-"),
                "grid of x": "integers",
            }, text

    def test_more_digits_than_a_decimal_holds_are_refused(self, write):
        for cells in (["7" * 77], ["9007199254740993", "1e-70"]):
            path = write("w.csv", "x\n2\n" + "".join(f"{cell}\n" for cell in cells))
            words = r"w.csv: .* column 'x' has .* the first in row 2, .* more than 76 digits"
            with pytest.raises(ParameterError, match=words):
                read_table(path)

    def test_int64_stays_int64(self, write):
        table = read_table(write("w.csv", "x\n9223372036854775807\n-9223372036854775808\n"))
        assert table["x"].type == pa.int64()
        assert table["x"].to_pylist() == [2**63 - 1, -(2**63)]

    def test_large_floats_stay_floats(self, write):
        table = read_table(write("w.csv", "x\n1e300\n2.5\n"))
        assert table["x"].to_pylist() == [1e300, 2.5]

    def test_beside_other_columns_of_the_name_order(self, write):
        table = read_table(write("w.csv", "a,x,b\n1.5,92233720368547758080,u\n2.5,2,v\n"))
        assert table.column_names == ["a", "x", "b"]
        assert table.to_pydict() == {
            "a": [1.5, 2.5],
            "x": [Decimal(92233720368547758080), Decimal(2)],
            "b": ["u", "v"],
        }

    def test_in_a_tsv_and_zipped(self, write):
        content = gzip.compress(b"x\n92233720368547758080\n")
        assert read_table(write("w.csv.gz", content))["x"].to_pylist() == [
            Decimal(92233720368547758080)
        ]
        assert read_table(write("w.tsv", "g\tx\na\t92233720368547758080\n"))["x"].to_pylist() == [
            Decimal(92233720368547758080)
        ]

    def test_beside_decimal_commas(self, write):
        path = write("w.csv", "x;g\n92233720368547758080;a\n1,5;b\n")
        table = read_table(path, delimiter=";", decimal_comma=True)
        assert table["x"].to_pylist() == [Decimal(92233720368547758080), Decimal("1.5")]


PARQUET = io.BytesIO()
pq.write_table(pa.table({"x": list(range(1000))}), PARQUET)
PARQUET = PARQUET.getvalue()

ENDINGS = ".csv, .csv.gz, .tsv, .txt, .parquet, .pq"
ENCODING = "cannot be read: the text is not UTF-8; save the file with that encoding"
BROKEN = {
    "a.xlsx": (b"PK", f"expected a file that ends in {ENDINGS}"),
    "a": (b"x\n1\n", f"expected a file that ends in {ENDINGS}"),
    "a.tsv.gz": (b"", f"expected a file that ends in {ENDINGS}"),
    "empty.csv": (b"", "cannot be read: Empty CSV file"),
    "empty.parquet": (b"", "cannot be read: Parquet file size is 0 bytes"),
    "empty.csv.gz": (b"", "cannot be read: Empty CSV file"),
    "cut.parquet": (PARQUET[: len(PARQUET) // 2], "cannot be read: Parquet magic bytes not found"),
    "text.parquet": (b"x\n1\n", "cannot be read: "),
    "damaged.parquet": (PARQUET[:-60] + b"\xff" * 40 + PARQUET[-20:], "cannot be read: "),
    "cut.csv.gz": (gzip.compress(b"x\n" + b"12\n" * 9999)[:-20], "cannot be read: Truncated"),
    "text.csv.gz": (b"x\n1\n", "cannot be read: "),
    "latin.csv": ("x,g\n1,Zürich\n".encode("latin-1"), ENCODING),
    "semicolon.csv": (
        b"x;g\n1;a\n",
        'cannot be read: the columns are divided by ";"; say so with --delimiter ";"',
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file(name, write):
    content, text = BROKEN[name]
    with pytest.raises(ParameterError) as caught:
        read_table(write(name, content))
    assert str(caught.value).startswith(f"{name}: {text}")
    assert "\n" not in str(caught.value)


def test_a_header_that_is_not_utf_8(write):
    with pytest.raises(ParameterError, match=r"latin.csv: cannot be read: the text is not UTF-8"):
        read_table(write("latin.csv", "x,gü\n1,a\n".encode("latin-1")))


def test_utf_16(write):
    with pytest.raises(ParameterError, match=r"wide.csv: cannot be read: the text is not UTF-8"):
        read_table(write("wide.csv", "x,g\n1,a\n".encode("utf-16")))


def test_gz_in_capitals(write):
    assert read_table(write("A.CSV.GZ", WRITTEN["zipped.csv.gz"])).to_pydict() == ROWS


RAGGED = [b"x,g\n1,a\n987654,Mrs Miller,C50.9\n", b"x,g\n1,a\n987654\n"]


@pytest.mark.parametrize("content", RAGGED)
def test_a_ragged_row(content, write):
    with pytest.raises(ParameterError, match=r"^ragged.csv: cannot be read: .*columns"):
        read_table(write("ragged.csv", content))


@pytest.mark.parametrize("content", RAGGED)
def test_a_ragged_row_is_not_shown_and_numbered(content, write):
    with pytest.raises(ParameterError) as caught:
        read_table(write("ragged.csv", content))
    text = str(caught.value)
    assert not any(secret in text for secret in ("987654", "Miller", "C50"))
    assert "row 2" in text


def test_no_such_file(write):
    for name in ("gone.csv", "gone.parquet", "gone.csv.gz"):
        with pytest.raises(ParameterError, match=f"^{name}: there is no such file$"):
            read_table(Path(name))


@pytest.mark.parametrize(
    "name",
    [
        "folder.csv",
        "folder.csv.gz",
        pytest.param(
            "folder.parquet",
        ),
    ],
)
def test_a_folder(name, write, tmp_path):
    (tmp_path / name).mkdir()
    with pytest.raises(ParameterError, match=f"^{name}: is a folder; name one file a site$"):
        read_table(Path(name))


def test_a_file_that_may_not_be_read(write, monkeypatch):
    def refuse(*args, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pa.csv, "read_csv", refuse)
    monkeypatch.setattr(pa.parquet, "ParquetFile", refuse)
    for name in ("locked.csv", "locked.parquet"):
        with pytest.raises(ParameterError, match=f"^{name}: no permission to read it$"):
            read_table(write(name, b"x\n1\n"))


@pytest.mark.skipif(sys.platform == "darwin", reason="its names are UTF-8")
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_name_that_is_not_utf8(write, ending):
    path = write(os.fsdecode(b"\xff." + ending.encode()), b"x\n1\n")
    with pytest.raises(ParameterError, match="its name is not UTF-8; rename it"):
        read_table(path)


@pytest.mark.parametrize("delimiter", ["||", "\\t", "ü", ""])
def test_a_delimiter_that_is_no_character(delimiter, write):
    with pytest.raises(ParameterError, match="one character"):
        read_table(write("a.csv", "x,g\n1,a\n"), delimiter=delimiter)


def test_two_columns_of_one_name_are_left_for_the_table_to_refuse(write):
    assert read_table(write("a.csv", "x,x\n92233720368547758080,1\n")).column_names == ["x", "x"]
