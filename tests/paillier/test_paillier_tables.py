"""Tables as files: CSV in, encrypted in between, CSV out."""

import csv
import json
import os
import stat
import struct
from decimal import Decimal

import pytest
from cases import each_case, examples
from hypothesis import given
from hypothesis import strategies as st

from securecomp.core.fixedpoint import FixedPoint
from securecomp.errors import DecodeError, KeyMismatchError, ParameterError, RangeError
from securecomp.paillier import decrypt, encrypt, paillier_files
from securecomp.paillier.paillier_files import EncryptedTable, Frame
from securecomp.protocol import storage

FRAME = Frame(("los", "cost"), {"ward": ["a", "b", "c"]}, 3)
VALUES = [1, 250, -3, 40000, 5, 0]


@pytest.fixture
def table(public, replay):
    """`table(...)` is an encrypted table of the frame."""

    def table(values=VALUES, frame=FRAME, scale=100, **options):
        options = {"bound": 10**6, "additions": 10, "entropy": replay("table")} | options
        return EncryptedTable(frame, encrypt(public, values, **options), scale)

    return table


@pytest.fixture
def written(tmp_path):
    """`written(text)` is the path of a CSV file."""

    def written(text, name="in.csv"):
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return written


class TestFormat:
    def test_what_is_written(self, table):
        data = table().encode()
        magic, version, size = struct.unpack_from(">4sBI", data)
        assert (magic, version) == (b"SCPT", 1)
        header = json.loads(data[9 : 9 + size])
        assert header == {
            "columns": ["los", "cost"],
            "labels": {"ward": ["a", "b", "c"]},
            "rows": 3,
        }
        assert data[9 + size : 9 + size + 4] == b"SCPV"

    @each_case(
        "frame, values",
        [
            (FRAME, VALUES),
            (Frame(("x",), {}, 0), []),
            (Frame(("x",), {}, 1), [7]),
            (Frame(("é", "x,\n"), {"ü": ["\t", '"']}, 2), [1, 2, 3, 4]),
        ],
    )
    def test_round_trip(self, private, table, frame, values):
        first = table(values, frame)
        read = paillier_files.decode_table(first.encode(), private.public, "here")
        assert read.frame == frame
        assert read.scale == 100
        assert decrypt(private, read.vector).tolist() == values
        assert read.encode() == first.encode()

    def test_every_truncation(self, public, table):
        data = table().encode()
        for size in range(len(data)):
            with pytest.raises(DecodeError, match=r"^a.enc: "):
                paillier_files.decode_table(data[:size], public, "a.enc")
        with pytest.raises(DecodeError, match=r"^a.enc: too short for an encrypted table$"):
            paillier_files.decode_table(data[:8], public, "a.enc")
        with pytest.raises(DecodeError, match=r"^a.enc: the header is cut off$"):
            paillier_files.decode_table(data[:9], public, "a.enc")

    @each_case(
        "change, reason",
        [
            (lambda d: b"SCPV" + d[4:], "^a.enc: not an encrypted table$"),
            (lambda d: b"PK\3\4" + d[4:], "^a.enc: not an encrypted table$"),
            (lambda d: d[:4] + b"\2" + d[5:], "^a.enc: version 2; this software reads version 1$"),
            (lambda d: d + b"\0", "^a.enc: 1 ciphertexts take 128 bytes, not 129$"),
            (lambda d: d[:5] + b"\xff" * 4 + d[9:], "^a.enc: the header is cut off$"),
            (lambda d: d[:9] + b"[" + d[10:], "^a.enc: the header is malformed$"),
            (lambda d: d[:-128] + bytes(128), r"^a.enc: ciphertexts: number 1 is not in \[1, n\^2"),
        ],
    )
    def test_other_bytes(self, public, table, change, reason):
        with pytest.raises(DecodeError, match=reason):
            paillier_files.decode_table(change(table().encode()), public, "a.enc")

    @each_case(
        "header, reason",
        [
            (b"", "malformed"),
            (b"null", "malformed"),
            (b"{}", "malformed"),
            (b'{"columns": ["a", "b"], "labels": {}, "rows": 3, "more": 1}', "malformed"),
            (b'{"columns": ["a", "b"], "labels": {}, "rows": 3.5}', "malformed"),
            (b'{"columns": ["a", "b"], "labels": {}, "rows": "3"}', "malformed"),
            (b'{"columns": ["a", 5], "labels": {}, "rows": 3}', "malformed"),
            (b'{"columns": ["\xff", "b"], "labels": {}, "rows": 3}', "malformed"),
            (b'{"columns": ["a", "b"], "labels": {"w": 5}, "rows": 3}', "malformed"),
            (b"[" * 10_000, "malformed"),
            (b'{"columns": ["a", "b"], "labels": {}, "rows": 2}', "does not fit"),
            (b'{"columns": ["a", "b"], "labels": {}, "rows": 4}', "does not fit"),
            (b'{"columns": ["a", "b"], "labels": {}, "rows": -3}', "does not fit"),
            (b'{"columns": ["a"], "labels": {}, "rows": 3}', "does not fit"),
            (b'{"columns": [], "labels": {}, "rows": 3}', "does not fit"),
            (b'{"columns": ["a", "b"], "labels": {"w": []}, "rows": 3}', "does not fit"),
            (b'{"columns": ["a", "b"], "labels": {"w": ["", ""]}, "rows": 3}', "does not fit"),
        ],
    )
    def test_a_header_that_cannot_be(self, public, table, header, reason):
        data = table().encode()
        (size,) = struct.unpack_from(">I", data, 5)
        forged = data[:5] + struct.pack(">I", len(header)) + header + data[9 + size :]
        text = {
            "malformed": "the header is malformed",
            "does not fit": "the header does not fit the encrypted values",
        }[reason]
        with pytest.raises(DecodeError, match=f"^a.enc: {text}$"):
            paillier_files.decode_table(forged, public, "a.enc")

    @each_case("rows", [-5, 1, 10**15])
    def test_rows_without_columns(self, public, table, rows):
        forged = table([], Frame((), {}, rows)).encode()
        with pytest.raises(DecodeError, match=r"^a.enc: the header does not fit"):
            paillier_files.decode_table(forged, public, "a.enc")

    def test_columns_of_one_name(self, public, table):
        for frame in (Frame(("x", "x"), {}, 1), Frame(("x", "y"), {"x": ["1"]}, 1)):
            with pytest.raises(DecodeError, match=r"^a.enc: "):
                paillier_files.decode_table(table([1, 2], frame).encode(), public, "a.enc")

    @each_case("scale", [2, 3, 300, 10**23, 1 << 500_000])
    def test_a_scale_that_is_no_power_of_ten(self, public, table, scale):
        with pytest.raises(DecodeError, match=r"^a.enc: "):
            paillier_files.decode_table(table(scale=scale).encode(), public, "a.enc")

    def test_a_file_under_another_key(self, stranger, table):
        with pytest.raises(KeyMismatchError, match=r"^a.enc: encrypted under key "):
            paillier_files.decode_table(table().encode(), stranger.public, "a.enc")

    def test_another_key(self, stranger, table):
        with pytest.raises(KeyMismatchError, match=r"encrypted under key [0-9a-f]{16}, and this"):
            paillier_files.decode_table(table().encode(), stranger.public, "a.enc")

    @examples(300)
    @given(draw=st.data())
    def test_mutations(self, public, mutated_from, draw):
        mutated = bytearray(mutated_from)
        for _ in range(draw.draw(st.integers(1, 3))):
            at = draw.draw(st.integers(0, 160) | st.integers(0, len(mutated) - 1))
            mutated[at] = draw.draw(st.integers(0, 255))
        try:
            read = paillier_files.decode_table(bytes(mutated), public, "a.enc")
        except DecodeError as error:
            assert str(error).startswith("a.enc: ")  # noqa: PT017 - either is fine
        except KeyMismatchError:
            pass
        else:
            assert read.vector.length == read.frame.rows * len(read.frame.columns)


@pytest.fixture(scope="module")
def mutated_from(public, replay):
    vector = encrypt(public, VALUES, bound=10**6, additions=10, entropy=replay("table"))
    return EncryptedTable(FRAME, vector, 100).encode()


GRID = FixedPoint.decimal(Decimal("1000"), 2)


class TestReading:
    def test_columns_and_labels(self, written):
        path = written("ward,los,cost\na,1,2.50\nb, 3 ,-0.01\n\nc,1e2,1000.00\n")
        frame, integers = paillier_files.read_csv(path, (), ("ward",), GRID)
        assert frame == Frame(("los", "cost"), {"ward": ["a", "b", "c"]}, 3)
        assert integers == [100, 250, 300, -1, 10000, 100000]
        frame, integers = paillier_files.read_csv(path, ("cost",), (), GRID)
        assert frame == Frame(("cost",), {}, 3)
        assert integers == [250, -1, 100000]
        frame, integers = paillier_files.read_csv(path, ("cost", "los"), ("ward",), GRID)
        assert frame.columns == ("cost", "los")
        assert integers[:2] == [250, 100]

    def test_other_ways_to_write_csv(self, written):
        text = '\ufeff"x","a ""b"""\r\n"1","2"\r\n"3","4"'
        frame, integers = paillier_files.read_csv(written(text), (), (), GRID)
        assert frame.columns == ("x", 'a "b"')
        assert integers == [100, 200, 300, 400]

    def test_a_site_without_rows(self, written):
        frame, integers = paillier_files.read_csv(written("x,y\n"), (), ("y",), GRID)
        assert frame == Frame(("x",), {"y": []}, 0)
        assert integers == []

    @each_case(
        "text, columns, labels, reason",
        [
            ("", (), (), ": is empty; a header is needed$"),
            ("x,y\n1,2\n", ("z",), (), ": there must be one column 'z'; it has: x, y$"),
            ("x,y\n1,2\n", (), ("z",), ": there must be one column 'z'; it has: x, y$"),
            ("x,x\n1,2\n", ("x",), (), ": there must be one column 'x'; it has: x, x$"),
            ("x,x\n1,2\n", (), (), ": there must be one column 'x'; it has: x, x$"),
            ("x,y\n1,2\n", (), ("x", "y"), ": no column is left to encrypt$"),
            ("x,y\n1,2\n3\n", (), (), ": row 2 has 1 cells, not 2$"),
            ("x,y\n1,2,3\n", (), (), ": row 1 has 3 cells, not 2$"),
            ('x,y\n1,"2\n', (), (), ": cannot be read: "),
            ('x,y\n1,"2"3\n', (), (), ": cannot be read: "),
            (b"x\n\xff\n", (), (), ": cannot be read: "),
            ("x\n5\nlow\n", (), (), ": column 'x', row 2: is not a number; fill it in or correct"),
            ("x\n5\n \n", (), (), ": column 'x', row 2: is not a number; fill it in or correct"),
            ("x,y\n1,\n", (), (), ": column 'y', row 1: is not a number; fill it in or correct"),
            ("x\n1,5\n", (), (), ": row 1 has 2 cells, not 1$"),
            ("x;y\n1;2\n", (), (), ": column 'x;y', row 1: is not a number"),
        ],
    )
    def test_files_that_cannot_be(self, written, text, columns, labels, reason):
        path = written(text)
        with pytest.raises(ParameterError, match=f"^{path}{reason}"):
            paillier_files.read_csv(path, columns, labels, GRID)

    @each_case(
        "cell, reason",
        [
            ("1000.01", "the value is beyond the agreed bound 1000;"),
            ("-1001", "the value is beyond the agreed bound 1000;"),
            ("0.001", "the value is not a number with 2 decimals;"),
            ("NaN", "the value is NaN or infinite; correct it"),
            ("sNaN", "the value is NaN or infinite; correct it"),
            ("-inf", "the value is NaN or infinite; correct it"),
            ("Infinity", "the value is NaN or infinite; correct it"),
        ],
    )
    def test_cells_that_are_off_the_grid(self, written, cell, reason):
        path = written(f"x,y\n1,2\n3,{cell}\n")
        with pytest.raises(RangeError, match=f"^{path}: column 'y', row 2: {reason}") as caught:
            paillier_files.read_csv(path, (), (), GRID)
        assert cell == "NaN" or cell not in str(caught.value).replace("1000;", "")

    def test_a_file_that_is_not_there(self, tmp_path):
        for path in (tmp_path / "none.csv", tmp_path):
            with pytest.raises(ParameterError, match=f"^{path}: cannot be read: "):
                paillier_files.read_csv(path, (), (), GRID)

    def test_a_column_that_is_encrypted_and_in_clear(self, written):
        with pytest.raises(ParameterError, match="los"):
            paillier_files.read_csv(written("los,ward\n1,2\n"), ("los",), ("los",), GRID)

    def test_a_column_that_is_named_twice(self, written):
        with pytest.raises(ParameterError, match="los"):
            paillier_files.read_csv(written("los,ward\n1,2\n"), ("los", "los"), (), GRID)


class TestWriting:
    def rows(self, path):
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.reader(file))

    @pytest.mark.parametrize(
        ("scale", "values", "cells"),
        [
            (1, [0, -5, 10**30, 7], ["0", "-5", "1" + "0" * 30, "7"]),
            (100, [0, -1, 250, 12345], ["0.00", "-0.01", "2.50", "123.45"]),
            (
                10,
                [10**26 + 1, -(10**26), 9, -9],
                ["1" + "0" * 25 + ".1", "-1" + "0" * 25 + ".0", "0.9", "-0.9"],
            ),
            (
                10**22,
                [1, 10**22, 0, -1],
                ["0." + "0" * 21 + "1", "1." + "0" * 22, "0." + "0" * 22, "-0." + "0" * 21 + "1"],
            ),
        ],
    )
    def test_numbers(self, tmp_path, scale, values, cells):
        path = tmp_path / "out.csv"
        path.write_bytes(
            paillier_files.format_csv(Frame(("x", "y"), {"w": ["é,", "b"]}, 2), values, scale)
        )
        assert self.rows(path) == [
            ["w", "x", "y"],
            ["é,", *cells[:2]],
            ["b", *cells[2:]],
        ]

    @pytest.mark.parametrize("value", [10**30 + 1, -(10**28) - 1, 12345678901234567890123456789012])
    def test_numbers_of_many_digits_are_exact(self, tmp_path, value):
        path = tmp_path / "out.csv"
        path.write_bytes(paillier_files.format_csv(Frame(("x",), {}, 1), [value], 10))
        assert Decimal(self.rows(path)[1][0]).as_tuple() == Decimal(f"{value}e-1").as_tuple()

    def test_no_rows(self, tmp_path):
        path = tmp_path / "out.csv"
        path.write_bytes(paillier_files.format_csv(Frame(("x",), {"w": []}, 0), [], 1))
        assert self.rows(path) == [["w", "x"]]

    @pytest.mark.parametrize("name", ["nowhere/out.csv", "."])
    def test_where_nothing_can_be_written(self, tmp_path, name):
        with pytest.raises(ParameterError, match="cannot be written"):
            storage.write_output(tmp_path / name, b"x", [])


class TestSums:
    def test_tables_of_one_shape(self, private, table):
        tables = [(f"{i}.enc", table([v * i for v in VALUES])) for i in (1, -2, 3)]
        total = paillier_files.add_tables(tables)
        assert (total.frame, total.scale, total.vector.weight) == (FRAME, 100, 3)
        assert decrypt(private, total.vector).tolist() == [2 * v for v in VALUES]
        assert paillier_files.add_tables(tables[:1]).encode() == tables[0][1].encode()

    @each_case(
        "other",
        [
            {"frame": Frame(("cost", "los"), FRAME.labels, 3)},
            {"frame": Frame(("los", "x"), FRAME.labels, 3)},
            {"frame": Frame(FRAME.columns, {"ward": ["a", "c", "b"]}, 3)},
            {"frame": Frame(FRAME.columns, {"war": ["a", "b", "c"]}, 3)},
            {"frame": Frame(FRAME.columns, {}, 3)},
            {"frame": Frame(FRAME.columns, {"ward": ["a", "b"]}, 2), "values": VALUES[:4]},
            {"frame": Frame(("los",), FRAME.labels, 3), "values": VALUES[:3]},
            {"scale": 10},
            {"scale": 1},
        ],
    )
    def test_another_shape(self, table, other):
        reason = "^b.enc: its columns, labels, rows or decimals are not those of the first file$"
        with pytest.raises(ParameterError, match=reason):
            paillier_files.add_tables([("a.enc", table()), ("b.enc", table(**other))])

    @each_case("options", [{"bound": 10**6 + 1}, {"additions": 11}])
    def test_another_layout(self, table, options):
        reason = "^b.enc: .* has another layout or length than "
        with pytest.raises(ParameterError, match=reason):
            paillier_files.add_tables([("a.enc", table()), ("b.enc", table(**options))])

    def test_too_many(self, table):
        tables = [(f"{i}.enc", table()) for i in range(11)]
        assert paillier_files.add_tables(tables[:10]).vector.left == 0
        reason = r"^10.enc: 11 additions where the slots have room for 10; encrypt with more"
        with pytest.raises(RangeError, match=reason):
            paillier_files.add_tables(tables)


class TestKeyFiles:
    def test_a_secret_is_its_owners(self, tmp_path):
        old = os.umask(0)
        try:
            path = tmp_path / "x.key"
            storage.write_new(path, "secret", 0o600)
        finally:
            os.umask(old)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert path.read_text() == "secret\n"

    def test_nothing_is_overwritten(self, tmp_path):
        path = tmp_path / "x.key"
        path.write_text("precious")
        link = tmp_path / "link.key"
        link.symlink_to(tmp_path / "elsewhere")
        for there in (path, link, tmp_path):
            with pytest.raises(ParameterError, match=f"^{there}: cannot be written: "):
                storage.write_new(there, "secret", 0o600)
        assert path.read_text() == "precious"
        assert not (tmp_path / "elsewhere").exists()
        with pytest.raises(ParameterError, match=r"cannot be written: No such file or directory$"):
            storage.write_new(tmp_path / "no" / "x.key", "secret", 0o600)

    def test_reading(self, tmp_path, real):
        secret, public = tmp_path / "x.key", tmp_path / "x.pub"
        secret.write_text(real.to_json())
        public.write_text(real.public.to_json() + "\n")
        assert paillier_files.read_private(secret).to_json() == real.to_json()
        assert paillier_files.read_public(public) == real.public
        assert paillier_files.read_public(secret) == real.public

    @pytest.mark.parametrize("read", [paillier_files.read_public, paillier_files.read_private])
    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (b"", "not a key file: it is not JSON|Expecting value"),
            (b"{", "JSON|Expecting"),
            (b"[]", "not a key file: it is not a JSON object"),
            (b'{"pub": {}}', "not a Paillier (public|private) key file"),
            (b'{"pub": []}', "not a Paillier (public|private) key file"),
            (b"[" * 100_000, ""),
            (b"\xff", "cannot be read: "),
        ],
        ids=["empty", "cut", "list", "pub", "pub list", "deep", "binary"],
    )
    def test_what_is_no_key(self, tmp_path, read, content, reason):
        path = tmp_path / "x"
        path.write_bytes(content)
        with pytest.raises((DecodeError, ParameterError), match=f"^{path}: .*({reason})"):
            read(path)

    @pytest.mark.parametrize("read", [paillier_files.read_public, paillier_files.read_private])
    def test_what_is_not_there(self, tmp_path, read):
        for path in (tmp_path / "none", tmp_path):
            with pytest.raises(ParameterError, match=f"{path}: cannot be read: "):
                read(path)

    def test_the_path_is_said_once(self, tmp_path):
        for read in (paillier_files.read_public, paillier_files.read_private):
            with pytest.raises(ParameterError) as caught:
                read(tmp_path / "none")
            assert str(caught.value).count(str(tmp_path)) == 1

    def test_short_keys(self, tmp_path, private):
        path = tmp_path / "x"
        path.write_text(private.to_json())
        for read in (paillier_files.read_public, paillier_files.read_private):
            with pytest.raises(
                (DecodeError, ParameterError), match="a key of 512 bits is not safe"
            ):
                read(path)
