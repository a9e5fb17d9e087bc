"""The marks of what was opened: where they are not found, no training goes on."""

import shutil

import numpy as np
import pandas as pd
import pytest
from federated.cohort import CrashError, Mortal, model, sites

from securecomp import Column, Privacy, Study
from securecomp.errors import KeyMismatchError, LocalProtocolError
from securecomp.federated import FederatedLinearRegression, FederatedLogisticRegression
from securecomp.privacy.ledger import Ledger

ROUNDS = 4
NOISY = {"strategy": "sgd", "rounds": ROUNDS, "classes": [0, 1], "examples": 150}


def until(at):
    def progress(done, _total):
        if done == at:
            raise CrashError

    return progress


def noised(path, ledger=None, protocol="sharing", **more):
    privacy = Privacy(2, 1e-5, ledger=ledger)
    return model(protocol, privacy=privacy, checkpoint=path, **(NOISY | more))


def begun(path, ledger=None, at=2, **more):
    with pytest.raises(CrashError):
        noised(path, ledger, progress=until(at), **more).fit(sites())


def ledger(folder, name):
    return Ledger.create(folder / name, name, 5, "1e-4")


def refused(path, paid, message):
    asked = Mortal()
    with pytest.raises(LocalProtocolError, match=message):
        noised(path, paid, asked, seed="copy").fit(sites())
    assert asked.calls == 0


@pytest.mark.parametrize("at", range(ROUNDS))
def test_a_copy_elsewhere_goes_not_on(tmp_path, at):
    """Else its rounds would be opened twice, with noise that is drawn anew."""
    path, copy = tmp_path / "training", tmp_path / "copy"
    begun(path, at=at)
    shutil.copy(path, copy)
    refused(copy, None, "it is a copy, was moved without its folder")
    refused(copy, None, "it is a copy, was moved without its folder")  # asking leaves no mark
    assert len(noised(path, seed="later").fit(sites()).history_) == ROUNDS


def test_a_file_that_is_moved_with_its_marks_goes_on(tmp_path):
    path, moved = tmp_path / "training", tmp_path / "moved"
    begun(path)
    path.rename(moved)
    (tmp_path / "training.rounds").rename(tmp_path / "moved.rounds")
    found = noised(moved, seed="later").fit(sites())
    assert not any(done.lost for done in found.history_)


def test_another_ledgers_reservation_of_one_number_and_cost_pays_for_nothing(tmp_path):
    mine, other = ledger(tmp_path, "mine"), ledger(tmp_path, "other")
    path, copy = tmp_path / "training", tmp_path / "copy"
    begun(path, mine)
    begun(tmp_path / "others", other, seed="others")
    shutil.copy(path, copy)
    assert mine.state().open == other.state().open
    refused(copy, other, "not paid for by this ledger")
    refused(copy, None, "is paid for by a ledger")


def test_a_ledger_that_did_not_pay_is_not_beside_the_marks(tmp_path):
    path, later = tmp_path / "training", ledger(tmp_path, "later")
    begun(path, at=0)
    refused(path, later, "not paid for by this ledger")
    assert later.state().spent.epsilon == 0


def test_no_other_ledgers_reservation_is_settled(tmp_path):
    mine, other = ledger(tmp_path, "mine"), ledger(tmp_path, "other")
    path = tmp_path / "training"
    begun(path, mine, at=ROUNDS)  # all rounds are done, and nothing is settled
    begun(tmp_path / "others", other, seed="others")
    noised(path, other).fit(sites())
    assert len(other.state().open) == 1
    noised(path, mine).fit(sites())
    assert not mine.state().open


def test_another_response_is_another_training(tmp_path):
    rng = np.random.default_rng(4)
    frames = {}
    for name in "abc":
        x = rng.integers(0, 9, 30)
        frames[name] = pd.DataFrame({"x": x, "died": x > 5, "smokes": x < 3}).astype(int)
    one = Column(bound=1, decimals=0)
    study = Study(frames, columns={"x": Column(bound=9), "died": one, "smokes": one})
    fit = FederatedLogisticRegression(rounds=2, checkpoint=tmp_path / "training")
    fit.fit(study, "died ~ x")
    with pytest.raises(KeyMismatchError, match="is the checkpoint of another training"):
        fit.fit(study, "smokes ~ x")


@pytest.mark.parametrize("classes", [["0", "1"], [0.0, 1.0]])
def test_labels_of_another_type_are_another_training(tmp_path, classes):
    model(checkpoint=tmp_path / "training", classes=[0, 1]).fit(sites())
    own = {name: (x, np.array(classes)[y]) for name, (x, y) in sites().items()}
    with pytest.raises(KeyMismatchError):
        model(checkpoint=tmp_path / "training", classes=classes).fit(own)


def test_a_noised_count_that_was_opened_is_named_after_going_on(tmp_path):
    path = tmp_path / "training"
    begun(path, at=0, examples=None)
    found = noised(path, examples=None, seed="later").fit(sites())
    assert found.run_.opened[0] == "noised number of records"


def test_only_what_paid_is_named_in_the_guarantee(tmp_path):
    path = tmp_path / "training"
    noised(path).fit(sites())
    assert noised(path, ledger(tmp_path, "later")).fit(sites()).guarantee_.spent is None


def test_an_old_file_opens_no_round_over_other_sites(tmp_path):
    """Without noise: the difference of the two totals would be one site's change."""
    path, old = tmp_path / "training", tmp_path / "old"
    how = {"rounds": 3, "dropouts": 1, "checkpoint": path}
    with pytest.raises(CrashError):
        model(progress=until(0), **how).fit(sites())
    shutil.copy(path, old)
    with pytest.raises(CrashError):
        model(progress=until(1), **how).fit(sites())
    shutil.copy(old, path)
    going = Mortal()
    late = {"absent": lambda number, _: {"start": ["east"]} if number == 1 else {}}
    found = model(going, seed="later", **late, **how).fit(sites())
    assert [done.lost for done in found.history_] == [True, False, False]
    assert going.calls == 2
    with pytest.raises(LocalProtocolError, match="it is a copy"):
        model(going, **(how | {"checkpoint": old})).fit(sites())
    assert going.calls == 2


def test_where_nobody_may_drop_out_there_are_no_marks(tmp_path):
    """A sum that is done again is the same sum."""
    model(checkpoint=tmp_path / "training").fit(sites())
    assert [path.name for path in tmp_path.iterdir()] == ["training"]


def test_other_bounds_of_the_response_are_another_training(tmp_path):
    """They say to where its values are moved."""
    rng = np.random.default_rng(5)
    frames = {
        s: pd.DataFrame({"x": rng.uniform(0, 9, 9), "y": rng.uniform(0, 9, 9)}) for s in "abc"
    }
    study = Study(frames, columns={"x": Column(bound=9, bits=20), "y": Column(bound=9, bits=20)})

    def fit(most):
        privacy = Privacy(2, 1e-5, bounds={"y": (0, most)})
        how = {"strategy": "sgd", "rounds": 1, "examples": 27, "checkpoint": tmp_path / "training"}
        return FederatedLinearRegression(privacy=privacy, **how).fit(study, "y ~ x")

    fit(5)
    fit(5)
    with pytest.raises(KeyMismatchError):
        fit(6)
