"""Sites that are late, and sites that vanish in the middle of a sum."""

import numpy as np
import pytest
from cases import each_case
from federated.cohort import Mortal, averaged, model, sites

from securecomp import Privacy
from securecomp.errors import ParameterError, ThresholdError
from securecomp.protocol.local_carrier import LocalCarrier
from securecomp.protocol.session import Layout
from securecomp.secagg.masked_sum import STEPS, Masking

SIZES = {f"site {i}": 20 + i for i in range(6)}
DATA = sites(sizes=SIZES)


def once(number, step, *names):
    return lambda n, _: {step: names} if n == number else {}


def weights(found):
    return np.append(found.coef_[0], found.intercept_)


def over(*left_out):
    return averaged(DATA, 1, 0.5, names=[n for n in DATA if n not in left_out])


@each_case("protocol", ["sharing", "masking", "clear"])
def test_a_late_site_is_left_out_of_the_round(protocol):
    found = model(protocol, rounds=1, dropouts=2, absent=once(1, "start", "site 2")).fit(DATA)
    assert np.allclose(weights(found), over("site 2"), atol=1e-8)
    assert found.history_[0].sites == tuple(n for n in DATA if n != "site 2")
    assert found.history_[0].examples == sum(SIZES.values()) - 22


@pytest.mark.parametrize("security", ["semi-honest", "active"])
@pytest.mark.parametrize("step", STEPS)
def test_masking_goes_on_without_those_who_vanish_at_any_step(step, security):
    if step == "consent" and security != "active":
        pytest.skip("to consent is for active security")
    protocol = Masking(security)
    found = model(protocol, rounds=2, dropouts=1, absent=once(1, step, "site 2")).fit(DATA)
    # Who vanished after its vector had come is in the sum.
    gone = ["site 2"] if step in ("advertise", "share", "mask") else []
    first = tuple(n for n in DATA if n not in gone)
    assert found.history_[0].sites == first
    assert found.history_[1].sites == tuple(DATA)
    clear = model("clear", rounds=2, dropouts=1, absent=once(1, "start", *gone)).fit(DATA)
    assert found.coef_.tobytes() == clear.coef_.tobytes()


@each_case("step", STEPS)
def test_too_few_survivors_open_nothing_and_the_round_begins_again(step):
    """The first sum needs all six; after it fails, five are enough if five were agreed."""
    at = "mask" if step == "consent" else step
    gone = once(1, at, "site 2", "site 3", "site 4")
    with pytest.raises(ThresholdError, match="round 1: too few sites are left"):
        model("masking", rounds=2, dropouts=2, absent=gone).fit(DATA)


def test_where_all_are_needed_the_round_begins_again_with_the_others():
    protocol = Mortal()
    found = model(protocol, rounds=2, dropouts=1, absent=once(1, "mask", "site 2")).fit(DATA)
    assert found.history_[0].sites == tuple(n for n in DATA if n != "site 2")
    clear = model("clear", rounds=2, dropouts=1, absent=once(1, "start", "site 2")).fit(DATA)
    assert found.coef_.tobytes() == clear.coef_.tobytes()


@pytest.mark.parametrize("protocol", ["sharing", "masking"])
@pytest.mark.parametrize("step", ["start", "mask"])
def test_a_sum_over_fewer_than_agreed_is_never_opened(protocol, step, tmp_path):
    path = tmp_path / "training"
    how = {"rounds": 3, "checkpoint": path}
    with pytest.raises(ThresholdError) as caught:
        model(protocol, absent=once(2, step, "site 5"), **how).fit(DATA)
    assert (caught.value.needed, caught.value.got) == (6, 5)
    assert "can go on from its checkpoint when they are back" in str(caught.value)
    # It does, to the same bits as if nobody had been away.
    found = model(protocol, seed="later", **how).fit(DATA)
    whole = model(protocol, rounds=3).fit(DATA)
    assert found.coef_.tobytes() == whole.coef_.tobytes()
    assert not any(r.lost for r in found.history_)


def test_with_noise_dropouts_are_planned_for(tmp_path):
    path = tmp_path / "training"
    how = {
        "strategy": "sgd", "rounds": 3, "classes": [0, 1], "examples": 130, "checkpoint": path
    }  # fmt: skip
    terms = Privacy(5, 1e-4, dropouts=1, colluding=1)
    found = model("masking", privacy=terms, absent=once(1, "mask", "site 1"), **how).fit(DATA)
    assert len(found.history_[0].sites) == 5
    path.unlink()
    two = once(2, "mask", "site 1", "site 2")
    with pytest.raises(ThresholdError):
        model("masking", privacy=terms, absent=two, seed="anew", **how).fit(DATA)
    # Nothing was opened, so that the round is not lost.
    found = model("masking", privacy=terms, seed="later", **how).fit(DATA)
    assert [len(r.sites) for r in found.history_] == [6, 6, 6]


def test_noise_for_dropouts_is_more():
    how = {"strategy": "sgd", "rounds": 3, "classes": [0, 1], "examples": 130}
    one, other = (
        model(privacy=Privacy(5, 1e-4, dropouts=d), **how).fit(DATA).guarantee_ for d in (0, 3)
    )
    assert np.isclose((other.scale / one.scale) ** 2, 5 / 2, rtol=0.01)


@each_case(
    "gone, message",
    [
        ({"lunch": ["site 1"]}, "there is no step 'lunch'"),
        ({"start": ["site 9"]}, "there is no site 'site 9'"),
        ({"start": "site 1"}, "several names, not one text"),
    ],
)
def test_absences_that_cannot_be(gone, message):
    with pytest.raises(ParameterError, match=message):
        model(absent=lambda n, s: gone).fit(DATA)


def test_maskings_own_sum_says_who_is_in_it():
    names = [f"c{i}" for i in range(7)]
    readers = {n: lambda i=i: np.array([1 << i]) for i, n in enumerate(names)}
    gone = {"share": ["c1"], "mask": ["c4"], "unmask": ["c6"]}
    found = Masking().aggregate(LocalCarrier(), Layout(1, 64), readers, gone=gone)
    assert found.values.tolist() == [127 - 2 - 16]
    assert found.survivors == ("c0", "c2", "c3", "c5", "c6")
    with pytest.raises(ParameterError, match="there is no step 'start'"):
        Masking().aggregate(LocalCarrier(), Layout(1, 64), readers, gone={"start": []})
    with pytest.raises(ThresholdError):
        Masking().aggregate(LocalCarrier(), Layout(1, 64), readers, gone={"mask": names[:4]})
    with pytest.raises(ThresholdError):
        Masking(minimum=7).aggregate(LocalCarrier(), Layout(1, 64), readers, gone={"mask": ["c1"]})


@each_case("security", ["semi-honest", "active"])
def test_who_is_gone_stays_gone_and_nobody_opens_what_nobody_receives(security):
    """Also from a step on that there is not, as semi-honest clients do not consent."""
    names = [f"c{i}" for i in range(5)]
    readers = {n: lambda: np.array([1]) for n in names}

    def total(gone, receivers=None):
        carrier = LocalCarrier()
        try:
            return Masking(security).aggregate(carrier, Layout(1, 9), readers, receivers, gone)
        except ThresholdError:
            nonlocal sent
            sent = carrier.transcript.messages
            raise

    sent = None
    with pytest.raises(ThresholdError):
        total({"consent": names[1:]})
    with pytest.raises(ThresholdError, match="nobody is left to receive"):
        total({"consent": ["registry"]}, ("registry",))
    assert sent == 0
    with pytest.raises(ParameterError, match="'c9' cannot vanish: it does not take part"):
        total({"mask": ["c1", "c9"]})
