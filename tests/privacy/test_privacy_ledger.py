"""A budget that runs out: exact, before anything runs, also after a crash and among processes."""

import os
import signal
import subprocess
import sys
from fractions import Fraction

import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st

from securecomp.errors import BudgetError, ParameterError
from securecomp.privacy.ledger import Ledger, Reservation
from securecomp.privacy.privacy_amounts import NOTHING, PrivacyCost
from securecomp.privacy.sensitivity import Neighbours

RECORD = Neighbours()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "stays.ledger"


@pytest.fixture
def ledger(path):
    return Ledger.create(path, "stays", 1, "1e-5")


def spent(ledger):
    return Ledger(ledger._path).state().spent


def test_ten_times_a_tenth(ledger):
    for _ in range(10):
        with ledger.spending("count", PrivacyCost.of(0.1), RECORD):
            pass
    assert ledger.state().left == PrivacyCost.of(0, "1e-5")
    with pytest.raises(BudgetError, match=r"there is left epsilon 0, delta 0\.00001"):
        ledger.reserve("count", PrivacyCost.of("1e-30"), RECORD)


def test_rounding_alone_refuses_nothing(ledger):
    ledger.check(PrivacyCost.of(1.0000000000000002), RECORD)
    with pytest.raises(BudgetError):
        ledger.check(PrivacyCost.of("1.0000000000000002"), RECORD)
    ledger.settle(ledger.reserve("count", PrivacyCost.of(0.1 + 0.2), RECORD))
    ledger.settle(ledger.reserve("count", PrivacyCost.of(0.7), RECORD))
    assert ledger.state().left.epsilon == 0


def test_both_parts_must_fit(ledger):
    with pytest.raises(BudgetError, match=r"costs epsilon 0\.1, delta 0\.00002, and of epsilon 1"):
        ledger.reserve("count", PrivacyCost.of(0.1, "2e-5"), RECORD)
    with pytest.raises(BudgetError):
        ledger.reserve("count", PrivacyCost.of(1.1, "1e-6"), RECORD)


def test_nothing_is_spent_on_what_is_refused(ledger, path):
    before = path.read_bytes()
    for cost, neighbours, error in [
        (PrivacyCost.of(2), RECORD, BudgetError),
        (PrivacyCost.of(0.1, 0.1), RECORD, BudgetError),
        (PrivacyCost.of(0.1), Neighbours("replace-one"), ParameterError),
        (PrivacyCost.of(0.1), Neighbours("add/remove", "patient", 1), ParameterError),
        (NOTHING, RECORD, ParameterError),
    ]:
        for ask in (
            lambda c=cost, n=neighbours: ledger.reserve("q", c, n),
            lambda c=cost, n=neighbours: ledger.check(c, n),
            lambda c=cost, n=neighbours: ledger.spending("q", c, n).__enter__(),
        ):
            with pytest.raises(error):
                ask()
    assert path.read_bytes() == before
    assert spent(ledger) == NOTHING


def test_a_patient_is_not_paid_for_by_a_record(tmp_path):
    ledger = Ledger.create(tmp_path / "l", "stays", 1, 0, Neighbours("add/remove", "patient", 5))
    for poor in (RECORD, Neighbours("add/remove", "patient", 4)):
        with pytest.raises(ParameterError, match="protects add/remove of one patient with at most"):
            ledger.reserve("q", PrivacyCost.of(0.1), poor)
    ledger.reserve("q", PrivacyCost.of(0.1), Neighbours("add/remove", "patient", 6))


def test_settling_gives_the_rest_back(ledger):
    first = ledger.reserve("q", PrivacyCost.of(0.6, "1e-6"), RECORD)
    assert spent(ledger) == PrivacyCost.of(0.6, "1e-6")
    with pytest.raises(BudgetError):
        ledger.reserve("q", PrivacyCost.of(0.5), RECORD)
    ledger.settle(first, PrivacyCost.of(0.4, "5e-7"))
    assert spent(ledger) == PrivacyCost.of(0.4, "5e-7")
    second = ledger.reserve("q", PrivacyCost.of(0.6), RECORD)
    ledger.cancel(second)
    assert spent(ledger) == PrivacyCost.of(0.4, "5e-7")


def test_settling_more_than_was_reserved(ledger):
    reserved = ledger.reserve("q", PrivacyCost.of(0.5), RECORD)
    for cost in (PrivacyCost.of(0.6), PrivacyCost.of(0.5, "1e-9")):
        with pytest.raises(ParameterError, match=r"more than the epsilon 0\.5, delta 0 that"):
            ledger.settle(reserved, cost)
    assert spent(ledger) == PrivacyCost.of(0.5)


def test_settling_twice(ledger):
    reserved = ledger.reserve("q", PrivacyCost.of(0.5), RECORD)
    ledger.settle(reserved)
    for again in (ledger.settle, ledger.cancel):
        with pytest.raises(ParameterError, match="was settled before"):
            again(reserved)
    for strange in (Reservation(1, PrivacyCost.of(1)), Reservation(99, PrivacyCost.of(0.5))):
        with pytest.raises(ParameterError, match="of another ledger"):
            ledger.cancel(strange)


def test_an_error_within_a_run_spends(ledger):
    with pytest.raises(ZeroDivisionError), ledger.spending("q", PrivacyCost.of(0.5), RECORD):
        raise ZeroDivisionError
    assert spent(ledger) == PrivacyCost.of(0.5)
    assert len(ledger.state().open) == 1


def test_a_run_that_showed_nothing_is_given_back(ledger):
    def run():
        with ledger.spending("q", PrivacyCost.of(0.5), RECORD) as reserved:
            ledger.cancel(reserved)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run()
    assert spent(ledger) == NOTHING


def test_the_history(ledger):
    with ledger.spending("mean of los, clipped to [0, 365]", PrivacyCost.of(0.25), RECORD):
        pass
    create, reserve, settle = ledger.state().entries
    assert [e.kind for e in (create, reserve, settle)] == ["create", "reserve", "settle"]
    assert reserve.what == "mean of los, clipped to [0, 365]"
    assert settle.reservation == reserve.number == 2
    assert reserve.time.endswith("+00:00")
    assert len({e.link for e in (create, reserve, settle)}) == 3


def test_created_once(ledger, path):
    before = path.read_bytes()
    with pytest.raises(ParameterError, match="is there already, and a budget is set once"):
        Ledger.create(path, "stays", 100)
    assert path.read_bytes() == before
    assert oct(path.stat().st_mode & 0o777) == "0o600"


@pytest.mark.parametrize(
    "arguments", [("", 1), (" ", 1), ("stays", 0), ("stays", -1), ("stays", "x"), ("stays", 1, 1)]
)
def test_no_file_is_left_of_a_budget_that_cannot_be(path, arguments):
    with pytest.raises(ParameterError):
        Ledger.create(path, *arguments)
    assert not path.exists()


@examples(30)
@given(st.data())
def test_any_order_of_things(tmp_path_factory, data):
    """A model: what is spent is never above the budget, and is what the steps add up to."""
    ledger = Ledger.create(tmp_path_factory.mktemp("l") / "l", "stays", 1)
    opened, used = [], Fraction(0)
    amounts = st.floats(0.01, 0.7) | st.fractions(Fraction(1, 100), Fraction(7, 10))
    for step in data.draw(st.lists(st.sampled_from(["reserve", "settle", "cancel"]), max_size=12)):
        if step == "reserve":
            cost = PrivacyCost.of(data.draw(amounts))
            fits = used + cost.epsilon <= 1
            try:
                opened.append(ledger.reserve("q", cost, RECORD))
            except BudgetError:
                assert not fits
            else:
                assert fits
                used += cost.epsilon
        elif opened:
            ended = opened.pop()
            kept = Fraction(0)
            if step == "settle":
                kept = ended.cost.epsilon * data.draw(st.fractions(0, 1))
                ledger.settle(ended, PrivacyCost(kept, Fraction(0)))
            else:
                ledger.cancel(ended)
            used += kept - ended.cost.epsilon
        assert spent(ledger) == PrivacyCost(used, Fraction(0))


SPENDER = """
import sys
from securecomp.errors import BudgetError
from securecomp.privacy.privacy_amounts import PrivacyCost
from securecomp.privacy.ledger import Ledger
from securecomp.privacy.sensitivity import Neighbours
ledger = Ledger(sys.argv[1])
done = 0
for _ in range(15):
    try:
        with ledger.spending("q", PrivacyCost.of(0.05), Neighbours()):
            done += 1
    except BudgetError:
        pass
print(done)
"""


def test_processes_at_once(ledger, path):
    """Four processes ask for three times the budget: together they get it once."""
    runs = [
        subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", SPENDER, path], stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    assert sum(int(run.communicate(timeout=60)[0]) for run in runs) == 20
    assert spent(ledger) == PrivacyCost.of(1)
    assert len(ledger.verify().entries) == 41


KILLED = """
import os, signal, sys
from securecomp.privacy.privacy_amounts import PrivacyCost
from securecomp.privacy.ledger import Ledger
from securecomp.privacy.sensitivity import Neighbours
with Ledger(sys.argv[1]).spending("q", PrivacyCost.of(0.3), Neighbours()):
    os.kill(os.getpid(), signal.SIGKILL)
"""

KILLED_IN_WRITING = """
import os, signal, sys
from securecomp.privacy.privacy_amounts import PrivacyCost
from securecomp.privacy.ledger import Ledger
from securecomp.privacy.sensitivity import Neighbours
ledger = Ledger(sys.argv[1])
with ledger._connection(write=True) as connection:
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("PRAGMA cache_spill = 1")
    state = ledger._read(connection)
    for _ in range(200):  # more than the cache takes, so that some of it reaches the file
        ledger._append(connection, state, "reserve", None, PrivacyCost.of("0.001"), "q" * 200)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_crash_spends(ledger, path):
    run = subprocess.run([sys.executable, "-c", KILLED, path], check=False)  # noqa: S603
    assert run.returncode == -signal.SIGKILL
    assert spent(ledger) == PrivacyCost.of(0.3)
    with pytest.raises(BudgetError):
        ledger.reserve("q", PrivacyCost.of(0.8), RECORD)


def test_a_crash_in_the_middle_of_writing_changes_nothing(ledger, path):
    run = subprocess.run([sys.executable, "-c", KILLED_IN_WRITING, path], check=False)  # noqa: S603
    assert run.returncode == -signal.SIGKILL
    assert os.path.exists(f"{path}-journal")
    assert spent(ledger) == NOTHING
    ledger.settle(ledger.reserve("q", PrivacyCost.of(1), RECORD))


@pytest.mark.parametrize("zeros", [399, 1300])
def test_amounts_too_long_to_be_read_back_are_refused(tmp_path, zeros):
    text = "0.1" + "0" * zeros + "1"
    ledger = Ledger.create(tmp_path / "b.sqlite", "stays", 1, "1e-5")
    with pytest.raises(ParameterError, match="is a finite number"):
        PrivacyCost.of(text)
    with pytest.raises(ParameterError, match="is a finite number"):
        PrivacyCost.of(Fraction(1, 2**2000))
    assert PrivacyCost.of("0.1" + "0" * 390 + "1").epsilon > Fraction(1, 10)
    ledger.verify()


def test_negative_costs_are_refused_and_the_ledger_stays_readable(tmp_path):
    near = Neighbours("add/remove", "record", 1)
    ledger = Ledger.create(tmp_path / "b.sqlite", "stays", 1, "1e-5")
    with pytest.raises(ParameterError, match="a cost is not negative"):
        ledger.reserve("x", PrivacyCost(Fraction(-5), Fraction(0)), near)
    reservation = ledger.reserve("x", PrivacyCost.of("0.5"), near)
    with pytest.raises(ParameterError, match="a cost is not negative"):
        ledger.settle(reservation, PrivacyCost(Fraction(-5), Fraction(0)))
    ledger.settle(reservation)
    ledger.verify()
