"""Marks that are spent once, also after a crash."""

import os
import signal
import stat
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import pytest

from securecomp.errors import LocalProtocolError
from securecomp.protocol import storage
from securecomp.protocol.journal import FileJournal, MemoryJournal

MARKS = ["one", "two", "", " one", "one ", "ONE", "a/b", "../a", "\0", "é", "x" * 10_000]


@pytest.fixture(params=["memory", "file"])
def made(request, tmp_path):
    return MemoryJournal() if request.param == "memory" else FileJournal(tmp_path / "marks")


def spent(where, mark):
    with pytest.raises(LocalProtocolError, match="was done before, perhaps by a process") as error:
        where.spend(mark)
    assert str(error.value).startswith(f"{mark}: ")
    assert "start a new session" in str(error.value)


def test_a_mark_is_spent_once_and_is_one_of_its_own(made):
    for mark in MARKS:
        assert not made.has(mark)
        made.spend(mark)
        assert made.has(mark)
    for mark in MARKS:
        spent(made, mark)
    made.spend("three")


def test_a_memory_journal_is_for_itself():
    one, two = MemoryJournal(), MemoryJournal()
    one.spend("mark")
    two.spend("mark")
    spent(one, "mark")


def test_a_file_journal_outlives_its_object(tmp_path):
    folder = tmp_path / "deep" / "er"
    FileJournal(folder).spend("mark")
    spent(FileJournal(folder), "mark")
    spent(FileJournal(str(folder)), "mark")
    FileJournal(tmp_path / "other").spend("mark")


def test_nobody_else_reads_or_writes_it(tmp_path):
    old = os.umask(0)
    try:
        FileJournal(tmp_path / "marks").spend("mark")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "marks").stat().st_mode) == 0o700
    (file,) = (tmp_path / "marks").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_bytes() == b""
    assert "mark" not in file.name


def watched(monkeypatch):
    """What reaches the disk, in order: paths of what was synced."""
    synced, fsync = [], os.fsync

    def note(handle):
        synced.append(os.readlink(f"/proc/self/fd/{handle}"))
        fsync(handle)

    monkeypatch.setattr(storage.os, "fsync", note)
    return synced


needs_proc = pytest.mark.skipif(
    not os.path.isdir("/proc/self/fd"), reason="looks up open files in /proc"
)


@needs_proc
def test_the_file_and_its_folder_are_on_disk_before_spend_returns(tmp_path, monkeypatch):
    marks = FileJournal(tmp_path / "marks")
    synced = watched(monkeypatch)
    marks.spend("mark")
    (file,) = (tmp_path / "marks").iterdir()
    assert synced == [str(file), str(tmp_path / "marks")]
    synced.clear()
    spent(marks, "mark")
    assert synced == []


@needs_proc
def test_a_new_folder_is_on_disk_too(tmp_path, monkeypatch):
    synced = watched(monkeypatch)
    FileJournal(tmp_path / "new" / "marks").spend("mark")
    assert {str(tmp_path / "new"), str(tmp_path)} <= set(synced)


def test_a_journal_stays_where_it_is(tmp_path, monkeypatch):
    for place in ("one", "two"):
        (tmp_path / place / "marks").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "one")
    marks = FileJournal("marks")
    marks.spend("mark")
    monkeypatch.chdir(tmp_path / "two")
    spent(marks, "mark")


def test_open_files_are_closed(tmp_path, monkeypatch):
    closed, close = [], os.close
    monkeypatch.setattr(storage.os, "close", lambda handle: closed.append(handle) or close(handle))
    marks = FileJournal(tmp_path)
    marks.spend("mark")
    assert len(closed) == 2

    def broken(handle):
        raise OSError("no space left")

    monkeypatch.setattr(storage.os, "fsync", broken)
    with pytest.raises(OSError, match="no space left"):
        marks.spend("another")
    assert len(closed) == 3
    # It may have reached the disk or not: to be safe it counts as spent.
    spent(marks, "another")


def test_a_folder_that_cannot_be_one(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        FileJournal(tmp_path / "file")
    marks = FileJournal(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(FileNotFoundError):
        marks.spend("mark")


def test_one_of_many_at_once_gets_the_mark(tmp_path):
    def attempt(_):
        try:
            FileJournal(tmp_path / "marks").spend("mark")
        except LocalProtocolError:
            return 0
        return 1

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(64))) == 1


def test_a_killed_process_leaves_its_mark(tmp_path):
    script = """
        import os, signal, sys
        from securecomp.protocol.journal import FileJournal
        FileJournal(sys.argv[1]).spend("mark")
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path)], check=False
    )
    assert done.returncode == -signal.SIGKILL
    spent(FileJournal(tmp_path), "mark")
