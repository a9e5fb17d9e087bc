"""`securecomp paillier`: files that are encrypted, mailed around, added and decrypted."""

import csv
import os
import shutil
import stat
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from cases import named

from securecomp.paillier import PrivateKey, PublicKey, encrypt, paillier_files

NORTH = "ward,los,cost\na,4,10.50\nb,9,0.25\nc,0,-3.00\n"
SOUTH = "ward,los,cost\na,7,3.10\nb,30,-2.00\nc,1,0.01\n"
EAST = "ward,los,cost\na,1,0.00\nb,2,1.00\nc,3,999.99\n"
TEXT = "is not a number; fill it in or correct it"
NOT_FINITE = "the value is NaN or infinite; correct it"
COMMON = ("--bound", "1000", "--decimals", "2", "--label", "ward")


@pytest.fixture(scope="session")
def key(replay):
    return PrivateKey.generate(2048, entropy=replay("the consortium's key"))


@pytest.fixture(scope="session")
def other(replay):
    return PrivateKey.generate(2048, entropy=replay("another consortium's key"))


@pytest.fixture
def ok(folder, run):
    """`ok("encrypt", ...)` runs a command that must go well, and returns what it prints."""

    def ok(*arguments):
        result = run("paillier", *arguments)
        assert (result.exit_code, result.stderr.strip()) == (0, "")
        return result.stdout

    return ok


@pytest.fixture
def fails(folder, run):
    """`fails("encrypt", ...)` must print one clear line, exit with 1 and write nothing."""

    def fails(*arguments):
        before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
        result = run("paillier", *arguments)
        assert result.exit_code == 1
        assert result.stdout == ""
        assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before
        (line,) = result.stderr.strip().splitlines()
        assert line.startswith("error: ")
        return line.removeprefix("error: ")

    return fails


@pytest.fixture
def keys(folder, key):
    Path("c.key").write_text(key.to_json())
    Path("c.pub").write_text(key.public.to_json())


@pytest.fixture
def mailed(keys, write, ok):
    """Three encrypted tables, as they arrive by mail."""
    for name, text in (("north", NORTH), ("south", SOUTH), ("east", EAST)):
        ok("encrypt", "c.pub", write(f"{name}.csv", text), *COMMON, "-o", f"{name}.enc")
    return ["north.enc", "south.enc", "east.enc"]


def rows(name):
    with Path(name).open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


class TestAround:
    def test_from_the_key_to_the_total(self, ok, write, folder):
        """Everything that a consortium does, with a key that the command draws."""
        first, second = ok("keygen", "team", "--bits", "2048").splitlines()
        public = PublicKey.from_json(Path("team.pub").read_text())
        assert first == "team.key: keep it secret; its holder can decrypt everything"
        short = public.id.hex()[:16]
        assert second == f"team.pub: hand it out; key id {short}, compare it by phone"
        assert public.bits == 2048
        assert public.h_s is not None
        assert PrivateKey.from_json(Path("team.key").read_text()).public == public
        (folder / "safe").mkdir()
        Path("team.key").rename("safe/team.key")  # nobody else needs it
        tables = []
        for name, text in (("north", NORTH), ("south", SOUTH), ("east", EAST)):
            table = write(f"{name}.csv", text)
            printed = ok("encrypt", "team.pub", table, *COMMON, "-o", f"{name}.enc")
            size = Path(f"{name}.enc").stat().st_size
            shown = f"{name}.enc: 3 rows, 2 columns, 1 ciphertexts, {size:,} bytes"
            assert printed.startswith(shown)
            tables.append(f"{name}.enc")
        printed = ok("add", "team.pub", *tables, "-o", "total.enc")
        assert printed == "total.enc: the total of 3 tables\n"
        ok("decrypt", "safe/team.key", "total.enc", "-o", "total.csv")
        assert rows("total.csv")[3] == ["c", "4.00", "997.00"]

    def test_the_total(self, mailed, ok):
        ok("add", "c.pub", *mailed, "-o", "total.enc")
        printed = ok("decrypt", "c.key", "total.enc", "-o", "total.csv")
        assert printed == "total.csv: the total of 3 tables, 3 rows\n"
        assert rows("total.csv") == [
            ["ward", "los", "cost"],
            ["a", "12.00", "13.60"],
            ["b", "41.00", "-0.75"],
            ["c", "4.00", "997.00"],
        ]

    def test_sums_of_sums(self, mailed, ok):
        ok("add", "c.pub", *mailed[:2], "-o", "ab.enc")
        ok("add", "c.pub", "ab.enc", "east.enc", "-o", "total.enc")
        assert "of 3 tables" in ok("decrypt", "c.key", "total.enc", "-o", "total.csv")
        assert rows("total.csv")[1] == ["a", "12.00", "13.60"]

    def test_the_private_key_file_encrypts_and_adds_too(self, mailed, ok):
        ok("encrypt", "c.key", "north.csv", *COMMON, "-o", "again.enc")
        ok("add", "c.key", "again.enc", "south.enc", "-o", "total.enc")
        ok("decrypt", "c.key", "total.enc", "-o", "total.csv")
        assert rows("total.csv")[2] == ["b", "39.00", "-1.75"]

    def test_chosen_columns(self, keys, write, ok):
        write("in.csv", NORTH)
        ok("encrypt", "c.pub", "in.csv", "--bound", "9", "--column", "los", "-o", "x.enc")
        ok("decrypt", "c.key", "x.enc", "--minimum", "1", "-o", "x.csv")
        assert rows("x.csv") == [["los"], ["4"], ["9"], ["0"]]

    def test_every_column_without_labels(self, keys, write, ok):
        write("in.csv", "x,y\n1,-2\n3,4\n")
        ok("encrypt", "c.pub", "in.csv", "--bound", "4", "--exponent", "full", "-o", "x.enc")
        ok("decrypt", "c.key", "x.enc", "--minimum", "1", "-o", "x.csv")
        assert rows("x.csv") == [["x", "y"], ["1", "-2"], ["3", "4"]]

    def test_a_site_without_rows(self, keys, write, ok):
        write("in.csv", "x,y\n")
        assert ok("encrypt", "c.pub", "in.csv", "--bound", "4", "-o", "x.enc").startswith(
            "x.enc: 0 rows, 2 columns, 0 ciphertexts, "
        )
        ok("add", "c.pub", "x.enc", "-o", "t.enc")
        ok("decrypt", "c.key", "t.enc", "--minimum", "1", "-o", "t.csv")
        assert rows("t.csv") == [["x", "y"]]

    def test_several_sites_without_rows(self, keys, write, ok):
        write("in.csv", "x,y\n")
        for name in ("x.enc", "y.enc"):
            ok("encrypt", "c.pub", "in.csv", "--bound", "4", "-o", name)
        ok("add", "c.pub", "x.enc", "y.enc", "-o", "t.enc")
        assert "of 2 tables" in ok("decrypt", "c.key", "t.enc", "-o", "t.csv")

    def test_a_phe_key_without_h_s(self, folder, key, write, ok, fails):
        p, q = key.to_phe().p, key.to_phe().q
        bare = PrivateKey(p, q)
        Path("p.key").write_text(bare.to_json())
        Path("p.pub").write_text(bare.public.to_json())
        write("in.csv", "x\n5\n")
        assert "--exponent full" in fails(
            "encrypt", "p.pub", "in.csv", "--bound", "9", "-o", "x.enc"
        )
        for name in ("x.enc", "y.enc"):
            ok("encrypt", "p.pub", "in.csv", "--bound", "9", "--exponent", "full", "-o", name)
        ok("add", "p.pub", "x.enc", "y.enc", "-o", "t.enc")
        ok("decrypt", "p.key", "t.enc", "-o", "t.csv")
        assert rows("t.csv") == [["x"], ["10"]]

    def test_wide_numbers(self, keys, write, ok):
        value = "123456789012345678901234.5678"
        for name in ("a", "b"):
            write(f"{name}.csv", f"x\n{value}\n-{value}\n")
            ok(
                "encrypt",
                "c.pub",
                f"{name}.csv",
                "--bound",
                "1e24",
                "--decimals",
                "4",
                "-o",
                f"{name}.enc",
            )
        ok("add", "c.pub", "a.enc", "b.enc", "-o", "t.enc")
        ok("decrypt", "c.key", "t.enc", "-o", "t.csv")
        total = "246913578024691357802469.1356"
        assert rows("t.csv") == [["x"], [total], [f"-{total}"]]

    def test_very_wide_numbers(self, keys, write, ok):
        value = "12345678901234567890123456789.01234567"
        for name in ("a", "b"):
            write(f"{name}.csv", f"x\n{value}\n")
            ok(
                "encrypt",
                "c.pub",
                f"{name}.csv",
                "--bound",
                "1e29",
                "--decimals",
                "8",
                "-o",
                f"{name}.enc",
            )
        ok("add", "c.pub", "a.enc", "b.enc", "-o", "t.enc")
        ok("decrypt", "c.key", "t.enc", "-o", "t.csv")
        assert rows("t.csv") == [["x"], ["24691357802469135780246913578.02469134"]]

    def test_numbers_above_63_bits_beside_negative_ones(self, keys, write, ok):
        write("a.csv", f"x\n{2**63}\n-1\n")
        ok("encrypt", "c.pub", "a.csv", "--bound", "1e20", "-o", "a.enc")

    def test_many_values_in_other_processes(self, keys, write, ok):
        """More ciphertexts than are worth a process: two numbers of 900 bits in each."""
        numbers = [(-1) ** i * (10**270 - i) for i in range(258)]
        write("in.csv", "x\n" + "".join(f"{n}\n" for n in numbers))
        printed = ok(
            "encrypt", "c.pub", "in.csv", "--bound", "1e270", "--additions", "4", "-o", "x.enc"
        )
        assert printed.startswith("x.enc: 258 rows, 1 columns, 129 ciphertexts, ")
        ok("decrypt", "c.key", "x.enc", "--minimum", "1", "-o", "x.csv")
        assert rows("x.csv") == [["x"], *([str(n)] for n in numbers)]

    def test_what_leaves_is_fresh(self, mailed, key, ok):
        """The total of one table is not that table: nobody sees which were added."""
        ok("add", "c.pub", "north.enc", "-o", "one.enc")
        one, north = (
            paillier_files.decode_table(Path(n).read_bytes(), key.public, n)
            for n in ("one.enc", "north.enc")
        )
        assert one.vector.ciphertexts != north.vector.ciphertexts
        assert one.frame == north.frame

    def test_two_encryptions_differ(self, mailed, ok):
        ok("encrypt", "c.pub", "north.csv", *COMMON, "-o", "again.enc")
        a, b = Path("north.enc").read_bytes(), Path("again.enc").read_bytes()
        assert len(a) == len(b)
        assert a[-512:] != b[-512:]

    def test_nothing_in_clear_but_the_labels(self, keys, write, ok):
        write("in.csv", "ward,los\nsecret-ward,987654321\n")
        ok("encrypt", "c.pub", "in.csv", "--bound", "1e9", "--label", "ward", "-o", "x.enc")
        data = Path("x.enc").read_bytes()
        assert b"secret-ward" in data
        assert b"987654321" not in data
        assert (987654321).to_bytes(4) not in data
        assert (987654321).to_bytes(4, "little") not in data

    def test_nothing_on_standard_error(self, keys, write, run):
        write("in.csv", "x\n1\n")
        result = run("paillier", "encrypt", "c.pub", "in.csv", "--bound", "4", "-o", "x.enc")
        assert (result.exit_code, result.stderr) == (0, "")

    def test_the_key_id_is_shown_to_who_encrypts(self, keys, key, write, ok):
        write("in.csv", "x\n1\n")
        printed = ok("encrypt", "c.pub", "in.csv", "--bound", "4", "-o", "x.enc")
        assert key.public.id.hex()[:16] in printed


class TestKeygen:
    def test_modes(self, ok):
        old = os.umask(0)
        try:
            ok("keygen", "k", "--bits", "2048")
        finally:
            os.umask(old)
        assert stat.S_IMODE(Path("k.key").stat().st_mode) == 0o600

    def test_a_name_with_dots(self, ok):
        ok("keygen", "study.2024", "--bits", "2048")
        assert Path("study.2024.key").exists()
        assert Path("study.2024.pub").exists()

    def test_a_key_is_never_overwritten(self, fails, write):
        write("k.key", "precious")
        assert fails("keygen", "k", "--bits", "2048") == "k.key: cannot be written: File exists"

    def test_a_public_key_is_never_overwritten(self, fails, write):
        write("k.pub", "precious")
        assert fails("keygen", "k", "--bits", "2048").startswith("k.pub: cannot be written: ")

    def test_where_nothing_can_be_written(self, fails):
        line = fails("keygen", "no/k", "--bits", "2048")
        assert line == "no/k.key: cannot be written: No such file or directory"

    def test_a_name_that_is_none(self, fails):
        for name in [".", "/"]:
            with named(name):
                fails("keygen", name, "--bits", "2048")

    def test_lengths_that_cannot_be(self, fails):
        for bits in ["2049", "0", "-2048", "16386", "1"]:
            with named(bits):
                reason = f"a key has an even number of bits up to 16384, not {bits}"
                assert fails("keygen", "k", "--bits", bits) == reason

    def test_short_keys(self, fails):
        for bits in ["512", "2046"]:
            with named(bits):
                assert fails("keygen", "k", "--bits", bits) == (
                    f"a key of {bits} bits is not safe; use at least 2048, better 3072"
                )

    def test_a_length_that_is_no_number(self, folder, run):
        assert run("paillier", "keygen", "k", "--bits", "many").exit_code == 2
        assert not list(folder.iterdir())


class TestEncrypt:
    def encrypt(self, fails, *options, key="c.pub", table="in.csv", output="x.enc"):
        return fails("encrypt", key, table, "-o", output, *options)

    def test_a_table_that_cannot_be(self, keys, write, fails):
        for content, options, reason in [
            ("", (), "in.csv: is empty; a header is needed"),
            (
                "x\nlow\n",
                (),
                "in.csv: column 'x', row 1: is not a number; fill it in or correct it",
            ),
            ("x\n\n", ("--column", "y"), "in.csv: there must be one column 'y'; it has: x"),
            ("x\n1\n", ("--label", "y"), "in.csv: there must be one column 'y'; it has: x"),
            ("x\n1\n", ("--label", "x"), "in.csv: no column is left to encrypt"),
            ("x,x\n1,2\n", (), "in.csv: there must be one column 'x'; it has: x, x"),
            ("x,y\n1\n", (), "in.csv: row 1 has 1 cells, not 2"),
            (
                "x,y\n1,\n",
                (),
                "in.csv: column 'y', row 1: is not a number; fill it in or correct it",
            ),
            (
                "x\n1\n11\n",
                (),
                "in.csv: column 'x', row 2: the value is beyond the agreed bound 10; correct it, "
                "or agree on a larger bound",
            ),
            (
                "x\n1.5\n",
                (),
                "in.csv: column 'x', row 1: the value is not an integer; declare more decimals, or "
                "a binary grid to round",
            ),
            ("x\nNaN\n", (), f"in.csv: column 'x', row 1: {NOT_FINITE}"),
            (
                "x\n-inf\n",
                (),
                "in.csv: column 'x', row 1: the value is NaN or infinite; correct it",
            ),
        ]:
            with named(content, options, reason):
                write("in.csv", content)
                assert self.encrypt(fails, "--bound", "10", *options) == reason

    def test_a_table_that_cannot_be_read(self, keys, write, fails):
        for content in [b"x\n\xff\n", 'x\n"1\n', 'x\n"1"2\n']:
            with named(content):
                write("in.csv", content)
                line = self.encrypt(fails, "--bound", "10")
                assert line.startswith("in.csv: cannot be read: ")

    def test_a_table_that_is_not_there(self, keys, fails, folder):
        assert self.encrypt(fails, "--bound", "1").startswith("in.csv: cannot be read: ")
        (folder / "in.csv").mkdir()
        assert self.encrypt(fails, "--bound", "1").startswith("in.csv: cannot be read: ")

    def test_options_that_cannot_be(self, keys, write, fails):
        for options, reason in [
            (("--bound", "-1"), "a bound must be a finite number of at least 0, not "),
            (("--bound", "nan"), "a bound must be a finite number of at least 0, not "),
            (("--bound", "inf"), "a bound must be a finite number of at least 0, not "),
            (("--bound", "1", "--decimals", "23"), "decimals must be from 0 to 22, not 23"),
            (("--bound", "1", "--decimals", "-1"), "decimals must be from 0 to 22, not -1"),
            (
                ("--bound", "1", "--additions", "0"),
                "a bound is at least 0, and at least 1 ",
            ),
            (("--bound", "1e700"), "a slot of 2338 bits does not fit a key of 2048 bits; use a sm"),
        ]:
            with named(options, reason):
                write("in.csv", "x\n1\n")
                assert self.encrypt(fails, *options).startswith(reason)

    def test_a_bound_that_is_no_number(self, keys, write, run, folder):
        write("in.csv", "x\n1\n")
        result = run("paillier", "encrypt", "c.pub", "in.csv", "--bound", "ten", "-o", "x.enc")
        assert result.exit_code == 2
        assert "Invalid value for --bound: expected a number" in result.stderr
        result = run("paillier", "encrypt", "c.pub", "in.csv", "-o", "x.enc")
        assert result.exit_code == 2
        assert "Missing option '--bound'" in result.stderr
        assert not Path("x.enc").exists()

    def test_more_additions_than_the_format_has_room_for(self, keys, write, fails):
        write("in.csv", "x\n1\n")
        self.encrypt(fails, "--bound", "1", "--additions", str(2**64))

    def test_a_column_that_is_also_a_label(self, keys, write, fails):
        write("in.csv", "x,y\n1,2\n")
        assert "'x'" in self.encrypt(fails, "--bound", "9", "--column", "x", "--label", "x")

    def test_where_nothing_can_be_written(self, keys, write, fails):
        for output in ["no/x.enc", "."]:
            with named(output):
                write("in.csv", "x\n1\n")
                line = self.encrypt(fails, "--bound", "9", output=output)
                assert line.startswith(f"{output}: cannot be written: ")

    def test_an_output_that_is_an_input(self, keys, write, fails):
        for output in ["in.csv", "./in.csv", "c.pub"]:
            with named(output):
                write("in.csv", "x\n1\n")
                assert output.removeprefix("./") in self.encrypt(
                    fails, "--bound", "9", output=output
                )

    def test_a_key_file_that_is_none(self, keys, write, fails):
        for content, reason in [
            (b"", "c.pub: "),
            (b"{}", "c.pub: not a Paillier public key file (kty DAJ, alg PAI-GN1)"),
            (b"[]", "c.pub: not a key file: it is not a JSON object"),
            (b"\xff", "c.pub: cannot be read: "),
            (b"[" * 100_000, "c.pub: "),
            (b'"' + b"x" * 200_000 + b'"', "c.pub: too long for a key file"),
        ]:
            with named(content, reason):
                write("in.csv", "x\n1\n")
                write("c.pub", content)
                assert self.encrypt(fails, "--bound", "9").startswith(reason)

    def test_a_short_key(self, keys, write, fails, replay):
        write("in.csv", "x\n1\n")
        short = PrivateKey.generate(512, insecure_for_tests=True, entropy=replay("short"))
        write("c.pub", short.public.to_json())
        line = self.encrypt(fails, "--bound", "9")
        assert line == "c.pub: a key of 512 bits is not safe; use at least 2048, better 3072"

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("cell", "bound"), [("1e999999999", "9"), ("1e-999999999", "9"), ("1", "1e999999999")]
    )
    def test_a_number_with_a_gigabyte_of_digits(self, keys, write, cell, bound):
        """In a process of its own, that may use ten seconds of a processor."""
        write("in.csv", f"x\n{cell}\n")
        command = (
            "import resource; resource.setrlimit(resource.RLIMIT_CPU, (10, 10)); "
            "from securecomp.cli.main import main; main()"
        )
        options = ["paillier", "encrypt", "c.pub", "in.csv", "--bound", bound, "-o", "x.enc"]
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-c", command, *options], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert done.stderr.startswith("error: ")


class TestAdd:
    def test_a_file_that_is_named_twice(self, mailed, fails, folder):
        reason = "a file is named twice; its values would count twice"
        (folder / "link.enc").symlink_to("north.enc")
        for again in ("north.enc", "./north.enc", str(folder / "north.enc"), "link.enc"):
            assert fails("add", "c.pub", "north.enc", "south.enc", again, "-o", "t.enc") == reason

    def test_a_copy_of_a_file(self, mailed, fails):
        for copy in [shutil.copy, os.link]:
            with named(copy):
                Path("copy.enc").unlink(missing_ok=True)
                copy("north.enc", "copy.enc")
                line = fails("add", "c.pub", "north.enc", "south.enc", "copy.enc", "-o", "t.enc")
                assert "copy.enc" in line

    def test_another_shape(self, mailed, write, ok, fails):
        for text, options in [
            ("ward,los\na,1\nb,2\nc,3\n", COMMON),
            ("ward,cost,los\na,1,1\nb,2,2\nc,3,3\n", COMMON),
            ("ward,los,cost\na,1,1\nb,2,2\n", COMMON),
            ("ward,los,cost\na,1,1\nc,2,2\nb,3,3\n", COMMON),
            ("ward,los,cost\nA,1,1\nb,2,2\nc,3,3\n", COMMON),
            ("los,cost\n1,1\n2,2\n3,3\n", COMMON[:4]),
            ("ward,los,cost\na,1,1\nb,2,2\nc,3,3\n", ("--bound", "1000", "--label", "ward")),
            (
                "ward,los,cost\na,1,1\nb,2,2\nc,3,3\n",
                ("--bound", "100", "--decimals", "3", "--label", "ward"),
            ),
        ]:
            with named(text, options):
                ok("encrypt", "c.pub", write("other.csv", text), *options, "-o", "other.enc")
                reason = "its columns, labels, rows or decimals are not those of the first file"
                assert (
                    fails("add", "c.pub", *mailed, "other.enc", "-o", "t.enc")
                    == f"other.enc: {reason}"
                )
                assert (
                    fails("add", "c.pub", "other.enc", *mailed, "-o", "t.enc")
                    == f"north.enc: {reason}"
                )

    def test_another_layout(self, mailed, ok, fails):
        for options in [("--bound", "2000"), ("--additions", "1023")]:
            with named(options):
                ok("encrypt", "c.pub", "east.csv", *COMMON, *options, "-o", "other.enc")
                line = fails("add", "c.pub", "north.enc", "other.enc", "-o", "t.enc")
                assert line.startswith("other.enc: ")
                assert "has another layout or length than" in line

    def test_more_than_was_allowed(self, keys, write, ok, fails):
        write("in.csv", "x\n5\n")
        names = [f"{i}.enc" for i in range(3)]
        for name in names:
            ok("encrypt", "c.pub", "in.csv", "--bound", "9", "--additions", "2", "-o", name)
        ok("add", "c.pub", *names[:2], "-o", "two.enc")
        reason = "3 additions where the slots have room for 2; encrypt with more additions allowed"
        assert fails("add", "c.pub", *names, "-o", "t.enc") == f"2.enc: {reason}"
        assert fails("add", "c.pub", "two.enc", "2.enc", "-o", "t.enc") == f"2.enc: {reason}"

    def test_a_damaged_file(self, mailed, write, fails):
        for change, reason in [
            (lambda d: b"", "too short for an encrypted table"),
            (lambda d: d[:-1], "1 ciphertexts take 512 bytes, not 511"),
            (lambda d: d[:30], "the header is cut off"),
            (lambda d: d + b"\0", "1 ciphertexts take 512 bytes, not 513"),
            (lambda d: b"PK" + d, "not an encrypted table"),
            (lambda d: d[:4] + b"\7" + d[5:], "version 7; this software reads version 1"),
            (lambda d: d[:-512] + bytes(512), "ciphertexts: number 1 is not in [1, n^2)"),
            (lambda d: d[:-512] + b"\xff" * 512, "ciphertexts: number 1 is not in [1, n^2)"),
            (
                lambda d: d.replace(b'"rows":3', b'"rows":2'),
                "the header does not fit the encrypted values",
            ),
        ]:
            with named(change, reason):
                write("bad.enc", change(Path("south.enc").read_bytes()))
                assert (
                    fails("add", "c.pub", "north.enc", "bad.enc", "-o", "t.enc")
                    == f"bad.enc: {reason}"
                )

    def test_what_is_not_there(self, mailed, fails, folder):
        line = fails("add", "c.pub", "north.enc", "none.enc", "-o", "t.enc")
        assert line == "none.enc: cannot be read: No such file or directory"
        line = fails("add", "c.pub", "north.enc", ".", "-o", "t.enc")
        assert line == ".: cannot be read: Is a directory"
        assert fails("add", "none.pub", "north.enc", "-o", "t.enc").startswith(
            "none.pub: cannot be read: "
        )

    def test_another_key(self, mailed, write, ok, fails, other, key):
        write("o.pub", other.public.to_json())
        ok("encrypt", "o.pub", "east.csv", *COMMON, "-o", "other.enc")
        ours, theirs = key.public.id.hex()[:16], other.public.id.hex()[:16]
        line = fails("add", "c.pub", "north.enc", "other.enc", "-o", "t.enc")
        assert line.endswith(f"encrypted under key {theirs}, and this is key {ours}")

    def test_another_key_names_the_file(self, mailed, write, ok, fails, other):
        write("o.pub", other.public.to_json())
        ok("encrypt", "o.pub", "east.csv", *COMMON, "-o", "other.enc")
        line = fails("add", "c.pub", "north.enc", "other.enc", "-o", "t.enc")
        assert line.startswith("other.enc: encrypted under key ")

    def test_a_foreign_h_s_is_another_key(self, mailed, write, ok, fails, key):
        """With an h_s that is not the key holder's, what is encrypted could be read or traced."""
        n = int(key.public.n)
        foreign = PublicKey(n, pow(7, 3 * n, n * n))
        write("f.pub", foreign.to_json())
        ok("encrypt", "f.pub", "east.csv", *COMMON, "-o", "foreign.enc")
        for line in (
            fails("add", "c.pub", "north.enc", "foreign.enc", "-o", "t.enc"),
            fails("decrypt", "c.key", "foreign.enc", "--minimum", "1", "-o", "t.csv"),
        ):
            assert f"encrypted under key {foreign.id.hex()[:16]}" in line

    def test_nothing_to_add(self, keys, run):
        result = run("paillier", "add", "c.pub", "-o", "t.enc")
        assert result.exit_code == 2
        assert "Missing argument 'TABLES...'" in result.stderr

    def test_where_nothing_can_be_written(self, mailed, fails):
        line = fails("add", "c.pub", *mailed, "-o", "no/t.enc")
        assert line.startswith("no/t.enc: cannot be written: ")


class TestDecrypt:
    def test_too_few_tables(self, mailed, ok, fails):
        reason = "the total of too few tables ({} of at least {})"
        line = fails("decrypt", "c.key", "north.enc", "-o", "t.csv")
        assert line == "north.enc: " + reason.format(1, 2)
        ok("add", "c.pub", *mailed, "-o", "total.enc")
        line = fails("decrypt", "c.key", "total.enc", "--minimum", "4", "-o", "t.csv")
        assert line == "total.enc: " + reason.format(3, 4)
        ok("decrypt", "c.key", "total.enc", "--minimum", "3", "-o", "t.csv")

    def test_another_key(self, mailed, write, fails, other):
        write("o.key", other.to_json())
        line = fails("decrypt", "o.key", "north.enc", "-o", "t.csv")
        assert "encrypted under key" in line

    def test_the_public_key_does_not_decrypt(self, mailed, fails):
        line = fails("decrypt", "c.pub", "north.enc", "-o", "t.csv")
        assert line == ("c.pub: not a Paillier private key file (kty DAJ, key_ops decrypt)")

    def test_a_key_file_that_is_none(self, mailed, write, fails):
        for content in (b"", b"{}", b"\xff", b"[" * 100_000):
            line = fails("decrypt", write("bad.key", content), "north.enc", "-o", "t.csv")
            assert line.startswith("bad.key: ")

    def test_a_key_file_with_other_key_ops(self, mailed, write, fails, key):
        text = key.to_json().replace('["decrypt"]', "5")
        line = fails("decrypt", write("bad.key", text), "north.enc", "-o", "t.csv")
        assert line.startswith("bad.key: ")

    def test_what_is_not_there(self, mailed, fails):
        line = fails("decrypt", "c.key", "none.enc", "-o", "t.csv")
        assert line == "none.enc: cannot be read: No such file or directory"
        assert "none.key: cannot be read: " in fails(
            "decrypt", "none.key", "north.enc", "-o", "t.csv"
        )

    def test_where_nothing_can_be_written(self, mailed, fails):
        line = fails("decrypt", "c.key", "north.enc", "--minimum", "1", "-o", "no/t.csv")
        assert line.startswith("no/t.csv: cannot be written: ")

    def test_an_output_that_is_an_input(self, mailed, fails):
        for output in ["c.key", "./c.key", "north.enc"]:
            with named(output):
                fails("decrypt", "c.key", "north.enc", "--minimum", "1", "-o", output)

    def forged(self, key, values, scale=1, bound=9, additions=4, factor=1):
        vector = encrypt(key.public, values, bound=bound, additions=additions) * factor
        frame = paillier_files.Frame(("x",), {}, len(values))
        Path("f.enc").write_bytes(paillier_files.EncryptedTable(frame, vector, scale).encode())

    def test_one_table_times_two_passes_for_two(self, keys, key, ok):
        """What a minimum cannot do: the number of tables is what the file says. Who mails the
        total must be trusted with it, as SECURITY.md says."""
        self.forged(key, [5], factor=2)
        assert "of 2 tables" in ok("decrypt", "c.key", "f.enc", "-o", "t.csv")
        assert rows("t.csv") == [["x"], ["10"]]

    def test_a_table_that_multiplies_another(self, mailed, key, ok, fails):
        """Who sees north's mail sends 300 times north's table as its own, and reads north's cells
        off the total: 301 times what nobody may know, and less than 300 besides."""
        north = paillier_files.decode_table(Path("north.enc").read_bytes(), key.public, "north.enc")
        vector = (north.vector * 300).rerandomised()
        vector.weight = 1
        Path("south.enc").write_bytes(
            paillier_files.EncryptedTable(north.frame, vector, north.scale).encode()
        )
        ok("add", "c.pub", "north.enc", "south.enc", "-o", "total.enc")
        line = fails("decrypt", "c.key", "total.enc", "-o", "total.csv")
        assert "beyond" in line

    def test_a_scale_that_is_no_power_of_ten(self, keys, key, fails):
        for scale in [3, 250, 2**40]:
            with named(scale):
                self.forged(key, [5], scale=scale)
                line = fails("decrypt", "c.key", "f.enc", "--minimum", "1", "-o", "t.csv")
                assert line.startswith("f.enc: ")

    def test_a_scale_of_150_000_digits(self, keys, key, fails):
        self.forged(key, [5], scale=1 << 500_000)
        line = fails("decrypt", "c.key", "f.enc", "--minimum", "1", "-o", "t.csv")
        assert line.startswith("f.enc: ")

    def test_a_plaintext_of_no_layout(self, keys, key, fails):
        vector = encrypt(key.public, [5], bound=9)
        n = int(key.public.n)
        vector.ciphertexts = [(1 + n * (n // 2)) % (n * n)]
        Path("f.enc").write_bytes(
            paillier_files.EncryptedTable(paillier_files.Frame(("x",), {}, 1), vector, 1).encode()
        )
        line = fails("decrypt", "c.key", "f.enc", "--minimum", "1", "-o", "t.csv")
        assert line == "a plaintext does not fit its slots: not a sum of this layout"

    def test_decimals_are_exact(self, keys, write, ok):
        cells = ["0.1", "0.2", "0.3", "-0.7", "1.1", "999.9"]
        write("in.csv", "x\n" + "\n".join(cells) + "\n")
        for name in ("a.enc", "b.enc", "c.enc"):
            ok("encrypt", "c.pub", "in.csv", "--bound", "1000", "--decimals", "1", "-o", name)
        ok("add", "c.pub", "a.enc", "b.enc", "c.enc", "-o", "t.enc")
        ok("decrypt", "c.key", "t.enc", "-o", "t.csv")
        assert [r[0] for r in rows("t.csv")[1:]] == [str(3 * Decimal(c)) for c in cells]


def test_help(run):
    result = run("paillier", "--help")
    assert result.exit_code == 0
    for command in ("keygen", "encrypt", "add", "decrypt"):
        assert f"securecomp paillier {command}" in result.stdout
        assert run("paillier", command, "--help").exit_code == 0
