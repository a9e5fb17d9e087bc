"""Counts that outlive crashes, and two processes that share them."""

import errno
import hashlib
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from cases import each_case
from ckks.parties import Parties, linear_model, table

from securecomp.ckks import (
    FileRequestLog,
    InferenceServer,
    MemoryRequestLog,
    inference_server,
    request_log,
)
from securecomp.errors import (
    BudgetError,
    LocalProtocolError,
    ParameterError,
    RemoteProtocolError,
)
from securecomp.protocol import storage

ONE, TWO, THREE = (bytes([i]) * 16 for i in (1, 2, 3))


@pytest.fixture(params=["memory", "file"])
def book(request, tmp_path):
    return MemoryRequestLog() if request.param == "memory" else FileRequestLog(tmp_path / "a" / "b")


def file_of(folder, client="ann"):
    return Path(folder) / hashlib.sha256(client.encode()).hexdigest()


class TestBoth:
    def test_rows_add_up(self, book):
        book.spend("ann", ONE, 3, 5)
        book.spend("ann", TWO, 2, 5)
        with pytest.raises(BudgetError, match="ann: 1 more rows after 5 would pass the 5 that"):
            book.spend("ann", THREE, 1, 5)
        book.spend("ann", THREE, 1, 6)

    def test_a_request_counts_once(self, book):
        book.spend("ann", ONE, 3, 0)
        for call in (book.spend, book.check):
            with pytest.raises(RemoteProtocolError, match="ann: this request was answered before"):
                call("ann", ONE, 3, 0)

    def test_checking_records_nothing(self, book):
        for _ in range(3):
            book.check("ann", ONE, 5, 5)
        with pytest.raises(BudgetError):
            book.check("ann", ONE, 6, 5)
        book.spend("ann", ONE, 5, 5)

    def test_a_refusal_records_nothing(self, book):
        with pytest.raises(BudgetError):
            book.spend("ann", ONE, 6, 5)
        book.spend("ann", ONE, 5, 5)

    def test_clients_are_apart(self, book):
        for name in ("ann", "bob", "Ann", "東京", "a/../b", "."):
            book.spend(name, ONE, 5, 5)
            with pytest.raises(BudgetError):
                book.check(name, TWO, 1, 5)

    def test_without_a_limit(self, book):
        for i in range(5):
            book.spend("ann", bytes([i]) * 16, 10**6, 0)

    def test_threads_share_one_account(self, book):
        passed = []

        def work(i):
            for j in range(10):
                try:
                    book.spend("ann", bytes([i, j]) * 8, 1, 25)
                except BudgetError:
                    continue
                passed.append((i, j))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(passed) == 25


class TestFiles:
    def test_another_process_goes_on(self, tmp_path):
        FileRequestLog(tmp_path).spend("ann", ONE, 3, 5)
        again = FileRequestLog(str(tmp_path))
        with pytest.raises(RemoteProtocolError, match="answered before"):
            again.check("ann", ONE, 1, 5)
        with pytest.raises(BudgetError, match="3 more rows after 3"):
            again.check("ann", TWO, 3, 5)

    def test_what_is_written(self, tmp_path):
        book = FileRequestLog(tmp_path / "new")
        book.spend("ann", ONE, 3, 5)
        book.spend("ann", TWO, 1, 5)
        assert os.listdir(tmp_path / "new") == [file_of("", "ann").name]
        text = file_of(tmp_path / "new").read_text()
        assert text == f"{ONE.hex()} 3\n{TWO.hex()} 1\n"
        assert stat.S_IMODE(os.stat(tmp_path / "new").st_mode) == 0o700
        assert stat.S_IMODE(os.stat(file_of(tmp_path / "new")).st_mode) == 0o600

    @each_case("size", range(1, 36))
    def test_a_line_torn_by_a_crash(self, size, tmp_path):
        """It was not answered: the request may come again, and counts then."""
        tmp_path = tmp_path / str(size)
        book = FileRequestLog(tmp_path)
        book.spend("ann", ONE, 3, 9)
        line = f"{TWO.hex()} 4\n".encode()
        assert len(line) == 35
        with file_of(tmp_path).open("ab") as file:
            file.write(line[:size])
        if size == len(line):
            with pytest.raises(RemoteProtocolError):
                book.check("ann", TWO, 4, 9)
            return
        book.check("ann", TWO, 6, 9)
        book.spend("ann", TWO, 4, 9)
        assert file_of(tmp_path).read_text() == f"{ONE.hex()} 3\n{TWO.hex()} 4\n"

    @each_case("torn", [b"\x00" * 40, b"\xff\xfe", b"x" * 1000, b" "])
    def test_a_torn_end_of_anything(self, torn, tmp_path):
        tmp_path = tmp_path / str(len(torn))
        book = FileRequestLog(tmp_path)
        book.spend("ann", ONE, 3, 5)
        with file_of(tmp_path).open("ab") as file:
            file.write(torn)
        with pytest.raises(BudgetError):
            book.check("ann", TWO, 3, 5)
        book.spend("ann", TWO, 2, 5)

    @each_case(
        "damage",
        [
            b"\n",
            b"x\n",
            b"01 2 3\n",
            b"01 two\n",
            b"01 \n",
            b"\xff\xff 1\n",
            b"\x00\x00\x00\n",
            b"01 1.5\n",
            b"02 -3\n",
            b"02 0\n",
            ONE.hex().encode() + b" 0\n",
        ],
    )
    def test_a_damaged_file(self, damage, tmp_path):
        """Rather no answer than one too many."""
        tmp_path = tmp_path / damage.hex()
        book = FileRequestLog(tmp_path)
        book.spend("ann", ONE, 3, 5)
        with file_of(tmp_path).open("ab") as file:
            file.write(damage)
        before = file_of(tmp_path).read_bytes()
        for call in (book.check, book.spend):
            with pytest.raises(
                LocalProtocolError, match="is damaged, so it is unknown how many rows ann has"
            ):
                call("ann", TWO, 1, 5)
        assert file_of(tmp_path).read_bytes() == before
        book.spend("bob", TWO, 5, 5)

    def test_it_is_on_the_disk_before_the_answer_leaves(self, tmp_path, monkeypatch):
        done = []
        real = os.fsync

        def fsync(descriptor):
            found = os.fstat(descriptor)
            if stat.S_ISREG(found.st_mode):
                done.append(found.st_size)
            real(descriptor)

        monkeypatch.setattr(storage.os, "fsync", fsync)
        book = FileRequestLog(tmp_path)
        book.check("ann", ONE, 3, 5)
        assert done == []
        book.spend("ann", ONE, 3, 5)
        assert done == [35]

    def test_so_is_the_name_of_a_new_file(self, tmp_path, monkeypatch):
        folders = []
        real = os.fsync

        def fsync(descriptor):
            folders.append(stat.S_ISDIR(os.fstat(descriptor).st_mode))
            real(descriptor)

        book = FileRequestLog(tmp_path)
        monkeypatch.setattr(storage.os, "fsync", fsync)
        book.spend("ann", ONE, 3, 5)
        assert folders == [True, False]
        book.spend("ann", TWO, 1, 5)
        assert folders == [True, False, False]
        # A file that is empty was made by somebody who perhaps did not get to that.
        file_of(tmp_path, "bob").touch()
        book.spend("bob", ONE, 3, 5)
        assert folders == [True, False, False, True, False]

    def test_a_folder_that_must_exist(self, tmp_path):
        with pytest.raises(ParameterError, match="x: there is no log of answered rows here: No"):
            FileRequestLog(tmp_path / "x", create=False)
        assert not (tmp_path / "x").exists()
        FileRequestLog(tmp_path, create=False).spend("ann", ONE, 3, 5)

    @each_case("create", [True, False])
    def test_a_folder_that_is_none(self, create, tmp_path):
        (tmp_path / "file").touch()
        for wrong in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / ("x" * 300)):
            with pytest.raises(ParameterError, match="there is no log of answered rows here"):
                FileRequestLog(wrong, create=create)

    def test_a_folder_that_nobody_may_write(self, tmp_path, monkeypatch):
        def denied(*_, **__):
            raise PermissionError(errno.EACCES, "Permission denied")

        monkeypatch.setattr(storage.Path, "mkdir", denied)
        with pytest.raises(ParameterError, match="Permission denied"):
            FileRequestLog(tmp_path / "new")

    def test_a_full_disk(self, tmp_path, monkeypatch):
        book = FileRequestLog(tmp_path)
        book.spend("ann", ONE, 3, 5)

        def full(_):
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(storage.os, "fsync", full)
            for name in ("ann", "bob"):
                with pytest.raises(LocalProtocolError, match=f"{name} cannot be .*: No space left"):
                    book.spend(name, TWO, 2, 5)
        file_of(tmp_path, "eve").mkdir()
        for call in (book.check, book.spend):
            with pytest.raises(LocalProtocolError, match=r"eve cannot be counted, .*: Is a dir"):
                call("eve", ONE, 1, 5)

    def test_two_processes_take_turns(self, tmp_path):
        """Together they get as many rows as one."""
        program = (
            "import importlib.util as u, sys\n"
            "s = u.spec_from_file_location('ledger', sys.argv[1])\n"
            "m = u.module_from_spec(s); s.loader.exec_module(m)\n"
            "from securecomp.errors import BudgetError\n"
            "book, passed = m.FileRequestLog(sys.argv[2]), 0\n"
            "for i in range(60):\n"
            "    try:\n"
            "        book.spend('ann', bytes([int(sys.argv[3]), i]) * 8, 1, 80)\n"
            "        passed += 1\n"
            "    except BudgetError:\n"
            "        pass\n"
            "print(passed)\n"
        )
        path = str(Path(request_log.__file__))
        running = [
            subprocess.Popen(  # noqa: S603
                [sys.executable, "-c", program, path, str(tmp_path), str(i)],
                stdout=subprocess.PIPE,
                text=True,
            )
            for i in range(2)
        ]
        passed = [int(p.communicate()[0]) for p in running]
        assert sum(passed) == 80
        lines = file_of(tmp_path).read_text().splitlines()
        assert len(set(lines)) == 80


class TestServers:
    def test_a_server_that_comes_back(self, tmp_path):
        parties = Parties(linear_model(4), protect_model=True, ledger=FileRequestLog(tmp_path))
        request = bytes(parties.ann.encrypt(table(3, 4)))
        parties.server.predict(request)
        parties.server = InferenceServer(
            parties.offer,
            parties.identities["server"],
            parties.model,
            parties.server.salt,
            ledger=FileRequestLog(tmp_path),
        )
        parties.server.register(parties.ann.registration.encode())
        with pytest.raises(RemoteProtocolError, match="answered before"):
            parties.server.predict(request)
        with pytest.raises(BudgetError, match="2 more rows after 3 would pass the 4"):
            parties.ask(table(2, 4))
        parties.ask(table(1, 4))

    def test_a_request_counts_before_its_answer_leaves(self, tmp_path, monkeypatch):
        """A crash while it is sealed costs the client its rows, and gives it none twice."""
        parties = Parties(linear_model(4), protect_model=True, ledger=FileRequestLog(tmp_path))
        request = bytes(parties.ann.encrypt(table(3, 4)))

        def crash(*_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(inference_server.identity_, "seal", crash)
            with pytest.raises(KeyboardInterrupt):
                parties.server.predict(request)
        with pytest.raises(RemoteProtocolError, match="answered before"):
            parties.server.predict(request)

    def test_a_damaged_ledger_answers_nothing(self, tmp_path):
        parties = Parties(ledger=FileRequestLog(tmp_path), max_rows=10)
        parties.ask(table(1))
        file_of(tmp_path).write_text("nonsense\n")
        with pytest.raises(LocalProtocolError, match="is damaged"):
            parties.ask(table(1))

    def test_more_rows_than_are_ever_answered(self):
        """The client does not send them."""
        parties = Parties(max_rows=3)
        with pytest.raises(
            ParameterError, match="4 rows, and the plan answers 3 in total for one client"
        ):
            parties.ann.encrypt(table(4))
        parties.ask(table(3))

    def test_several_are_checked_together(self):
        parties = Parties(max_rows=5, clients=("ann", "bob"))
        two = [parties.ann.encrypt(table(2)) for _ in range(3)]
        other = parties.clients["bob"].encrypt(table(5))
        for _ in range(2):
            parties.server.check([*two[:2], other])
            with pytest.raises(BudgetError, match=r"ann: .* would pass the 5"):
                parties.server.check([other, *two])
            with pytest.raises(RemoteProtocolError, match="ann: sends the same request twice"):
                parties.server.check([two[0], two[0]])
        for request in (*two[:2], other):
            parties.server.predict(request)
        with pytest.raises(RemoteProtocolError, match="answered before"):
            parties.server.check([two[1]])
        with pytest.raises(BudgetError, match="2 more rows after 4"):
            parties.server.check([two[2]])
