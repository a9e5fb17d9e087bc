"""Trainings that die, and go on: to the same bits, and never with more than was paid for."""

from decimal import Decimal

import numpy as np
import pytest
from federated.cohort import CrashError, Mortal, model, sites
from replaying import Replay

from securecomp import Privacy
from securecomp.errors import (
    BudgetError,
    DecodeError,
    KeyMismatchError,
    LocalProtocolError,
    ParameterError,
)
from securecomp.paillier.encrypted_sum import Paillier
from securecomp.privacy.distributed import NoisePlan
from securecomp.privacy.ledger import Ledger
from securecomp.privacy.sensitivity import Neighbours

ROUNDS = 5
HOW = {"rounds": ROUNDS, "batch_size": 9, "local_epochs": 2, "fraction": 0.75, "track_loss": True}
NOISY = {"strategy": "sgd", "rounds": ROUNDS, "classes": [0, 1], "examples": 150}


class StopError(Exception):
    pass


def stopping(at):
    def progress(done, total):
        assert total == ROUNDS
        if done == at:
            raise StopError

    return progress


def noised(path, ledger=None, protocol="sharing", progress=None, privacy=None, **more):
    terms = privacy or Privacy(2, 1e-5, ledger=ledger)
    return model(protocol, privacy=terms, checkpoint=path, progress=progress, **(NOISY | more))


def same(one, other):
    assert one.coef_.tobytes() == other.coef_.tobytes()
    assert one.intercept_.tobytes() == other.intercept_.tobytes()
    assert one.history_ == other.history_


@pytest.fixture
def path(tmp_path):
    return tmp_path / "training"


@pytest.fixture
def ledger(tmp_path):
    return Ledger.create(tmp_path / "budget", "hospitals", 5, "1e-4")


@pytest.mark.parametrize("at", range(ROUNDS + 1))
def test_after_any_round_it_goes_on_to_the_same_bits(path, at):
    whole = model(**HOW).fit(sites())
    with pytest.raises(StopError):
        model(checkpoint=path, progress=stopping(at), **HOW).fit(sites())
    # Another process, with other randomness.
    same(model(seed="later", checkpoint=path, **HOW).fit(sites()), whole)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(1, ROUNDS + 1))
def test_within_any_round_it_goes_on_to_the_same_bits(path, at, after):
    whole = model(**HOW).fit(sites())
    with pytest.raises(CrashError):
        # The first sum is of rows and classes.
        model(Mortal(at + 1, after), checkpoint=path, **HOW).fit(sites())
    same(model(seed="later", checkpoint=path, **HOW).fit(sites()), whole)


def test_a_finished_training_is_not_run_again(path):
    first = model(checkpoint=path, **HOW).fit(sites())
    counting = Mortal()
    same(model(counting, checkpoint=path, **HOW).fit(sites()), first)
    assert counting.calls == 0


def test_a_round_that_may_have_been_opened_is_not_opened_over_other_sites(path):
    how = {"rounds": ROUNDS, "dropouts": 1}
    with pytest.raises(CrashError):
        model(Mortal(3, after=True), checkpoint=path, **how).fit(sites())
    counting = Mortal()
    found = model(
        counting, checkpoint=path, absent=lambda n, s: {"start": ["east"]} if n == 2 else {}, **how
    ).fit(sites())
    assert [r.lost for r in found.history_] == [False, True, False, False, False]
    assert counting.calls == ROUNDS - 2
    assert len(found.history_) == ROUNDS


# With noise.


@pytest.mark.parametrize("at", range(ROUNDS + 1))
def test_a_noised_training_goes_on_with_the_rounds_that_are_left(path, at, monkeypatch):
    with pytest.raises(StopError):
        noised(path, progress=stopping(at)).fit(sites())
    draws, draw = [], NoisePlan.draw
    monkeypatch.setattr(NoisePlan, "draw", lambda *a: draws.append(1) or draw(*a))
    found = noised(path, seed="later").fit(sites())
    assert len(draws) == 4 * (ROUNDS - at)
    assert len(found.history_) == ROUNDS
    assert not any(r.lost for r in found.history_)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(1, ROUNDS + 1))
def test_a_noised_round_is_opened_once_or_lost(path, ledger, at, after):
    dying = Mortal(at, after)
    with pytest.raises(CrashError):
        noised(path, ledger, dying).fit(sites())
    going = Mortal()
    found = noised(path, ledger, going, seed="later").fit(sites())
    assert [r.number for r in found.history_ if r.lost] == [at]
    assert len(dying.totals) + len(going.totals) == ROUNDS - (not after)
    assert len(found.history_) == ROUNDS
    assert ledger.state().spent.epsilon == 2
    assert not ledger.state().open


def test_all_rounds_are_paid_before_the_first_and_once(path, ledger):
    spent = []

    def progress(done, total):
        state = ledger.state()
        spent.append((state.spent.epsilon, len(state.open)))

    noised(path, ledger, progress=progress).fit(sites())
    assert spent == [(2, 1)] * (ROUNDS + 1)
    state = ledger.state()
    assert (state.spent.epsilon, len(state.open)) == (2, 0)
    noised(path, ledger).fit(sites())  # finished: nothing more
    assert ledger.state().spent.epsilon == 2
    with pytest.raises(BudgetError, match="nothing was computed or spent"):
        noised(path.with_name("other"), ledger, privacy=Privacy(4, 1e-5, ledger=ledger)).fit(
            sites()
        )


def test_nothing_is_sent_that_the_ledger_does_not_cover(path, ledger):
    asked = Mortal()
    with pytest.raises(BudgetError):
        noised(path, protocol=asked, privacy=Privacy(6, 1e-5, ledger=ledger)).fit(sites())
    assert asked.calls == 0
    assert not path.exists()
    other = Ledger.create(path.with_name("sites"), "sites", 9, "1e-4", Neighbours(unit="site"))
    with pytest.raises(Exception, match="protects add/remove of one site"):
        noised(path, protocol=asked, privacy=Privacy(1, 1e-5, ledger=other)).fit(sites())
    assert asked.calls == 0


def test_a_crash_has_spent_all_and_going_on_spends_no_more(path, ledger):
    with pytest.raises(StopError):
        noised(path, ledger, progress=stopping(2)).fit(sites())
    assert ledger.state().left.epsilon == 3
    noised(path, ledger).fit(sites())
    assert ledger.state().left.epsilon == 3


def test_a_copy_of_a_checkpoint_opens_no_round_again(path, ledger):
    with pytest.raises(StopError):
        noised(path, ledger, progress=stopping(2)).fit(sites())
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    noised(path, ledger).fit(sites())
    with pytest.raises(LocalProtocolError, match="not paid for by this ledger"):
        noised(copy, ledger).fit(sites())
    # While the reservation is open, the marks beside the ledger keep the copy from it.
    path.unlink()
    with pytest.raises(StopError):
        noised(path, ledger, progress=stopping(2), seed="b").fit(sites())
    copy.write_bytes(path.read_bytes())
    with pytest.raises(StopError):
        noised(path, ledger, progress=stopping(4), seed="c").fit(sites())
    counting = Mortal()
    found = noised(copy, ledger, counting, seed="d").fit(sites())
    assert [r.lost for r in found.history_] == [False, False, True, True, False]
    assert counting.calls == 1


def test_another_ledger_has_not_paid(path, ledger, tmp_path):
    with pytest.raises(StopError):
        noised(path, ledger, progress=stopping(2)).fit(sites())
    other = Ledger.create(tmp_path / "other", "others", 5, "1e-4")
    with pytest.raises(LocalProtocolError, match="not paid for by this ledger"):
        noised(path, other).fit(sites())


def test_a_noised_count_is_opened_once(path, ledger):
    with pytest.raises(CrashError):
        noised(path, ledger, Mortal(1, after=True), examples=None).fit(sites())
    with pytest.raises(Exception, match="interrupted while it counted"):
        noised(path, ledger, examples=None).fit(sites())
    path.unlink()
    with pytest.raises(StopError):
        noised(path, ledger, progress=stopping(0), examples=None, seed="b").fit(sites())
    counting = Mortal()
    found = noised(path, ledger, counting, examples=None).fit(sites())
    assert counting.calls == ROUNDS
    assert 0.5 < found.history_[0].examples / 159 < 1.5


# What is no checkpoint of this training.


@pytest.mark.parametrize("at", [0, 20, 33, 60, 70, 200, -1])
def test_a_damaged_file_is_one_clear_error(path, at):
    model(checkpoint=path, rounds=2).fit(sites())
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    with pytest.raises(DecodeError, match="training: is no checkpoint of a training, or damaged"):
        model(checkpoint=path, rounds=2).fit(sites())


@pytest.mark.parametrize("data", [b"", b"{}", b"securecomp training checkpoint 1\n", bytes(500)])
def test_a_file_that_is_no_checkpoint(path, data):
    path.write_bytes(data)
    with pytest.raises(DecodeError, match="put an untouched copy back, or name another file"):
        model(checkpoint=path).fit(sites())
    assert path.read_bytes() == data


def test_a_truncated_file(path):
    model(checkpoint=path, rounds=2).fit(sites())
    whole = path.read_bytes()
    for size in range(0, len(whole), 37):
        path.write_bytes(whole[:size])
        with pytest.raises(DecodeError):
            model(checkpoint=path, rounds=2).fit(sites())


@pytest.mark.parametrize(
    "other",
    [
        {"rounds": 6},
        {"learning_rate": 0.4},
        {"fraction": 0.5},
        {"bits": 29},
        {"l2": 0.1},
        {"protocol": "masking"},
        {"scaling": "moments"},
        {"classes": [1, 0]},
        {"bounds": [(-5, 4)] * 3},
        {"bounds": [(-4, 5)] * 3},
    ],
    ids=lambda other: next(iter(other)),
)
def test_another_training_goes_not_on_from_it(path, other):
    model(checkpoint=path).fit(sites())
    with pytest.raises(KeyMismatchError, match="is the checkpoint of another training"):
        model(checkpoint=path, **other).fit(sites())


def test_what_is_wrong_with_a_file_is_found_before_anything_is_sent(path):
    model(checkpoint=path).fit(sites())
    for wrong in ({"rounds": 9}, {}):
        if not wrong:
            path.write_bytes(b"damaged")
        asked = Mortal()
        with pytest.raises((KeyMismatchError, DecodeError)):
            model(asked, checkpoint=path, **wrong).fit(sites())
        assert asked.calls == 0


def test_what_was_opened_before_is_named_and_not_opened_again(path):
    how = {"rounds": ROUNDS, "scaling": "moments", "track_loss": True}
    whole = model(**how).fit(sites())
    with pytest.raises(StopError):
        model(checkpoint=path, progress=stopping(3), **how).fit(sites())
    found = model(checkpoint=path, **how).fit(sites())
    assert found.run_.opened == whole.run_.opened
    assert (whole.run_.sums, found.run_.sums) == (ROUNDS + 1, ROUNDS - 3)
    same(found, whole)


def test_other_sites_go_not_on_from_it(path):
    model(checkpoint=path).fit(sites())
    data = sites()
    data["south 2"] = data.pop("south")
    with pytest.raises(KeyMismatchError):
        model(checkpoint=path).fit(data)


def test_more_rounds_than_were_paid_for_are_another_training(path, ledger):
    noised(path, ledger).fit(sites())
    with pytest.raises(KeyMismatchError):
        noised(path, ledger, rounds=ROUNDS + 1).fit(sites())
    with pytest.raises(KeyMismatchError):
        noised(path, privacy=Privacy(Decimal("2.5"), 1e-5, ledger=ledger)).fit(sites())
    assert ledger.state().spent.epsilon == 2


def test_a_file_has_nothing_of_a_site(path):
    """Neither its rows, nor its change, nor how many rows it has."""
    model(checkpoint=path, rounds=3).fit(sites())
    data = path.read_bytes()
    for x, _ in sites().values():
        assert not any(np.float64(v).tobytes() in data for v in x.ravel())


@pytest.mark.parametrize("protocol", ["sharing", "masking", "paillier"])
def test_a_name_that_a_server_has_is_refused_before_anything_is_paid(path, ledger, protocol):
    server = {"sharing": "server 2", "masking": "server", "paillier": "aggregator"}[protocol]
    data = dict(zip(["a", "b", server, "c"], sites().values(), strict=True))
    scheme = Paillier(bits=512, insecure_for_tests=True) if protocol == "paillier" else protocol
    with pytest.raises(ParameterError, match=f"a site is named '{server}'"):
        noised(path, ledger, scheme).fit(data)
    assert ledger.state().spent.epsilon == 0


@pytest.mark.parametrize("place", ["nowhere/training", "."])
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_paid(place, tmp_path, ledger):
    asked = Mortal()
    with pytest.raises(ParameterError, match="cannot be written"):
        noised(tmp_path / place, ledger, asked).fit(sites())
    assert asked.calls == 0
    assert ledger.state().spent.epsilon == 0


def test_an_earlier_file_stays_if_the_disk_is_full(path, monkeypatch):
    with pytest.raises(StopError):
        model(checkpoint=path, rounds=ROUNDS, progress=stopping(2)).fit(sites())
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("securecomp.protocol.storage.os.fsync", full)
    with pytest.raises(Exception, match="cannot be written"):
        model(checkpoint=path, rounds=ROUNDS).fit(sites())
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["training"]


def test_replayed_randomness_is_the_whole_of_it():
    one, other = (noised(None, entropy=Replay("same")).fit(sites()) for _ in range(2))
    same(one, other)
