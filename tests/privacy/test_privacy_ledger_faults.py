"""Ledgers that were edited, are another's, or cannot be written: one clear error, nothing spent."""

import contextlib
import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from securecomp.errors import BudgetError, KeyMismatchError, LocalProtocolError, ParameterError
from securecomp.privacy import ledger as ledgers
from securecomp.privacy.ledger import Ledger
from securecomp.privacy.ledger_history import LedgerBalance
from securecomp.privacy.privacy_amounts import PrivacyCost
from securecomp.privacy.sensitivity import Neighbours

RECORD = Neighbours()
ASK = ("count", PrivacyCost.of(0.1), RECORD)


def filled(path):
    ledger = Ledger.create(path, "stays", 1, "1e-5")
    for cost in (0.1, 0.2, 0.3):
        ledger.settle(ledger.reserve(f"count {cost}", PrivacyCost.of(cost), RECORD))
    ledger.reserve("last", PrivacyCost.of(0.1), RECORD)
    return ledger


@pytest.fixture
def path(tmp_path):
    return tmp_path / "stays.ledger"


@pytest.fixture
def ledger(path):
    return filled(path)


def edit(path, *statements):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


EDITS = {
    "less spent": "UPDATE history SET epsilon = '0.05' WHERE number = 3",
    "more budget": "UPDATE history SET epsilon = '100' WHERE number = 1",
    "a later budget": "INSERT INTO history SELECT 9, 'create', 9, '5', '0', what, time, link "
    "FROM history WHERE number = 1",
    "another unit": "UPDATE history SET what = replace(what, 'record\"', 'patient\"') "
    "WHERE number = 1",
    "no longer open": "UPDATE history SET kind = 'cancel' WHERE number = 3",
    "other words": "UPDATE history SET what = 'nothing' WHERE number = 4",
    "another time": "UPDATE history SET time = '2020-01-01' WHERE number = 4",
    "one taken out": "DELETE FROM history WHERE number = 4",
    "the first taken out": "DELETE FROM history WHERE number = 1",
    "all taken out": "DELETE FROM history",
    "exchanged": "UPDATE history SET epsilon = iif(number = 2, '0.2', '0.1') "
    "WHERE number IN (2, 4)",
    "negative": "UPDATE history SET epsilon = '-1' WHERE number = 8",
    "no number": "UPDATE history SET epsilon = 'much' WHERE number = 8",
    "written otherwise": "UPDATE history SET epsilon = '0.10' WHERE number = 8",
    "no words": "UPDATE history SET what = 'stays' WHERE number = 1",
    "a link of another": "UPDATE history SET link = (SELECT link FROM history WHERE number = 2) "
    "WHERE number = 3",
    "added": "INSERT INTO history VALUES (9, 'cancel', 8, '0', '0', '', '', 'x')",
    "bytes": "UPDATE history SET epsilon = cast(x'ff' AS TEXT) WHERE number = 2",
    "no table": "DROP TABLE history",
    "another table": "ALTER TABLE history RENAME COLUMN epsilon TO e",
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_file(ledger, path, name):
    edit(path, EDITS[name])
    before = path.read_bytes()
    for use in (
        ledger.state,
        ledger.verify,
        lambda: ledger.reserve(*ASK),
        lambda: ledger.check(*ASK[1:]),
    ):
        with pytest.raises(LocalProtocolError) as caught:
            use()
        assert str(caught.value).startswith(f"{path}: ")
        assert "\n" not in str(caught.value)
    assert path.read_bytes() == before


def test_the_message_says_where(ledger, path):
    edit(path, EDITS["less spent"])
    with pytest.raises(LocalProtocolError, match=r"entry 3 was changed.*nothing is spent"):
        ledger.reserve(*ASK)


def test_a_link_is_bound_to_all_before_it(ledger, path):
    """One entry with a new link of its own: the next one shows it."""
    entries = ledger.state().entries
    state = LedgerBalance()
    for entry in entries[:2]:
        cost = PrivacyCost.of("0.05") if entry.kind == "reserve" else entry.cost
        changed = state.next(entry.kind, entry.reservation, cost, entry.what, entry.time)
    link = changed.link
    edit(path, f"UPDATE history SET epsilon = '0.05', link = '{link}' WHERE number = 2")  # noqa: S608
    with pytest.raises(LocalProtocolError, match=r"entry 3 was changed.*does not fit"):
        ledger.state()


def test_a_chain_that_is_made_again(ledger, path):
    """Links that are made again, and old copies, are caught by a link that was noted."""
    old = path.read_bytes()
    ledger.settle(ledger.reserve(*ASK))
    head = ledger.state().head
    assert ledger.verify(head).head == head
    ledger.settle(ledger.reserve(*ASK))
    ledger.verify(head)  # an earlier link is still in it
    path.write_bytes(old)
    with pytest.raises(KeyMismatchError, match="no entry has the link"):
        ledger.verify(head)
    path.unlink()
    filled(path)
    with pytest.raises(KeyMismatchError, match="no entry has the link"):
        ledger.verify(head)


def test_entries_that_overdraw_are_no_history():
    state = LedgerBalance()
    state.next("create", None, PrivacyCost.of(1), '{"dataset": "a"}', "")
    with pytest.raises(ParameterError, match="more than is left"):
        state.next("reserve", None, PrivacyCost.of(2), "", "")
    with pytest.raises(ParameterError, match="not reserved"):
        state.next("settle", 7, PrivacyCost.of(1), "", "")
    with pytest.raises(ParameterError, match="set once"):
        state.next("create", None, PrivacyCost.of(1), '{"dataset": "a"}', "")
    state.next("reserve", None, PrivacyCost.of(1), "", "")
    with pytest.raises(ParameterError, match="not reserved"):
        state.next("settle", 2, PrivacyCost.of("1.1"), "", "")
    with pytest.raises(ParameterError, match="costs nothing"):
        state.next("cancel", 2, PrivacyCost.of(1), "", "")


def test_another_data_sets_ledger(ledger, path):
    before = path.read_bytes()
    other = Ledger(path, "births")
    for use in (other.state, lambda: other.reserve(*ASK)):
        with pytest.raises(KeyMismatchError, match="is the ledger of 'stays', not of 'births'"):
            use()
    assert path.read_bytes() == before
    assert Ledger(path, "stays").state().dataset == "stays"


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"SQLite format 3\0" + bytes(200)])
def test_a_file_that_is_no_ledger(path, content):
    path.write_bytes(content)
    with pytest.raises(LocalProtocolError, match=r"stays.ledger: .*(no ledger|damaged)"):
        Ledger(path).reserve(*ASK)
    assert path.read_bytes() == content


@pytest.mark.parametrize("size", [50, 4096, 5000])
def test_a_file_that_was_cut_off(ledger, path, size):
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(LocalProtocolError, match=r"untouched copy|no ledger"):
        ledger.reserve(*ASK)


def test_a_missing_file_is_not_made(path):
    with pytest.raises(LocalProtocolError, match="securecomp budget create"):
        Ledger(path).reserve(*ASK)
    assert not path.exists()
    with pytest.raises(ParameterError, match="cannot be written: No such file"):
        Ledger.create(path / "deeper", "stays", 1)


@contextlib.contextmanager
def ordinary_user():
    """Root may write anything; somebody else may not."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_read_only_file():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stays.ledger"
        ledger = filled(path)
        path.chmod(0o444)
        Path(folder).chmod(0o555)
        before = path.read_bytes()
        with ordinary_user():
            with pytest.raises(LocalProtocolError, match="read-only; make both writable"):
                ledger.reserve(*ASK)
            assert ledger.state().left == PrivacyCost.of(0.3, "1e-5")  # it can still be read
        assert path.read_bytes() == before
        Path(folder).chmod(0o700)


def test_a_folder_that_may_not_be_written():
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        with ordinary_user(), pytest.raises(ParameterError, match="Permission denied"):
            Ledger.create(Path(folder) / "l", "stays", 1)
        Path(folder).chmod(0o700)


def test_a_full_disk(ledger, path, monkeypatch):
    connect = sqlite3.connect

    def full(*arguments, **options):
        connection = connect(*arguments, **options)
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
        return connection

    monkeypatch.setattr(sqlite3, "connect", full)
    before = path.read_bytes()
    with pytest.raises(LocalProtocolError, match="the disk is full; make room"):
        ledger.reserve("q" * 10_000, *ASK[1:])
    assert path.read_bytes() == before
    monkeypatch.undo()
    assert len(ledger.verify().entries) == 8


LIMITED = """
import resource, sys
from securecomp.errors import LocalProtocolError
from securecomp.privacy.privacy_amounts import PrivacyCost
from securecomp.privacy.ledger import Ledger
from securecomp.privacy.sensitivity import Neighbours
ledger = Ledger(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
done = 0
try:
    for _ in range(1000):
        ledger.reserve("q" * 500, PrivacyCost.of("0.0001"), Neighbours())
        done += 1
except LocalProtocolError as error:
    print(done, error)
"""


def test_a_disk_that_takes_no_more(ledger, path):
    """The system itself refuses a write, in the middle of a transaction."""
    run = subprocess.run(  # noqa: S603
        [sys.executable, "-c", LIMITED, path, "20000"], capture_output=True, text=True, check=True
    )
    done, message = run.stdout.split(" ", 1)
    assert "the ledger cannot be written, so nothing is answered: the disk" in message
    assert 0 < int(done) < 100
    assert len(ledger.verify().entries) == 8 + int(done)


def test_a_ledger_that_another_process_holds(ledger, path, monkeypatch):
    monkeypatch.setattr(ledgers, "_WAIT", 0.05)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(LocalProtocolError, match="another process holds it"):
            ledger.reserve(*ASK)
        holder.execute("ROLLBACK")
    ledger.reserve(*ASK)


def test_creation_on_a_full_disk_leaves_nothing(path, monkeypatch):
    connect = sqlite3.connect

    def full(*arguments, **options):
        connection = connect(*arguments, **options)
        connection.execute("PRAGMA max_page_count = 1")
        return connection

    monkeypatch.setattr(sqlite3, "connect", full)
    with pytest.raises(LocalProtocolError, match="the disk is full"):
        Ledger.create(path, "stays", 1)
    assert not path.exists()
    monkeypatch.undo()
    with pytest.raises(BudgetError):
        Ledger.create(path, "stays", 1).reserve("q", PrivacyCost.of(2), RECORD)
