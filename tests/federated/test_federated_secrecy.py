"""What crosses: sealed and masked messages, totals, and nothing of a site."""

import numpy as np
import pytest
from federated.cohort import Recorder, model, sites

from securecomp.federated import base
from securecomp.federated.local_update import ScaledRows, change
from securecomp.paillier.encrypted_sum import Paillier
from securecomp.secagg.masked_sum import Masking
from securecomp.sharing.additive_sum import Sharing

SCHEMES = {
    "sharing": Sharing(),
    "masking": Masking(),
    "paillier": Paillier(bits=512, insecure_for_tests=True),
}


@pytest.fixture
def recorded(monkeypatch):
    """The carrier of the next training, which keeps all that crosses."""
    carriers = []

    def make(entropy):
        carriers.append(Recorder(entropy))
        return carriers[-1]

    monkeypatch.setattr(base, "LocalCarrier", make)
    return carriers


def patterns(values, bits=30):
    """How a site's change times rows, or its rows, would look if they crossed as they are."""
    for value in np.ravel(values):
        whole = int(np.rint(np.ldexp(value, bits)))
        yield np.float64(value).tobytes()
        yield whole.to_bytes(8, "little", signed=True)
        yield whole.to_bytes(8, "big", signed=True)
        yield (whole % ((1 << 61) - 1)).to_bytes(8, "little")


def proposals(data, found):
    """What each site adds in the first round, computed apart."""
    terms = base.TrainingTerms(rounds=4)
    for x, y in data.values():
        rows = ScaledRows(np.column_stack([x, np.ones(len(x))]), y[:, None].astype(float))
        loss = found._loss(1)
        yield len(x) * change(terms, loss, rows, np.zeros((1, 4)), True, bytes(32))


@pytest.mark.parametrize("name", SCHEMES)
def test_no_sites_change_crosses(name, recorded):
    data = sites()
    found = model(SCHEMES[name]).fit(data)
    crossed = b"".join(message for *_, message in recorded[0].record)
    for proposal in proposals(data, found):
        assert not any(pattern in crossed for pattern in patterns(proposal))


def test_in_the_clear_all_of_it_crosses(recorded):
    """The same search finds it where nothing is protected: it can fail."""
    data = sites()
    found = model("clear").fit(data)
    crossed = b"".join(message for *_, message in recorded[0].record)
    for proposal in proposals(data, found):
        for value in proposal.ravel():
            whole = int(np.rint(np.ldexp(value, 30)))
            assert whole.to_bytes(8, "little", signed=True) in crossed


@pytest.mark.parametrize("name", SCHEMES)
def test_messages_of_equal_length_whatever_a_site_has(name, recorded):
    """Nothing but who takes part determines what is sent, and how much."""
    data = sites()
    model(SCHEMES[name]).fit(data)
    other = {site: (x[: 5 + i] / 2, y[: 5 + i]) for i, (site, (x, y)) in enumerate(data.items())}
    other["north"] = (np.tile(data["north"][0], (9, 1)), np.tile(data["north"][1], 9))
    model(SCHEMES[name]).fit(other)
    one, two = ([(s, r, len(m)) for s, r, m in carrier.record] for carrier in recorded)
    assert one == two


def test_what_is_opened_is_totals_and_each_is_named():
    found = model(track_loss=True, scaling="moments").fit(sites())
    columns = ("x0", "x1", "x2")
    assert found.run_.opened == (
        "rows",
        "rows of class 0",
        "rows of class 1",
        *(f"sum of {c}" for c in columns),
        *(f"sum of squares of {c}" for c in columns),
        *(f"rows * change of {c}" for c in (*columns, "Intercept")),
        "loss",
    )
    assert found.run_.sums == 1 + 4
    everybody = found.learned_["everybody"]
    assert "model after each round" in everybody
    assert "losses" in everybody
    assert "losses" not in model().fit(sites()).learned_["everybody"]


def test_two_trainings_of_one_total_look_alike():
    """The sums over two halves of the sites: who holds which rows does not show in the model."""
    data = sites()
    swapped = dict(zip(data, reversed(data.values()), strict=True))
    how = {"strategy": "sgd", "rounds": 3}
    one, two = model(**how).fit(data), model(**how).fit(swapped)
    assert one.coef_.tobytes() == two.coef_.tobytes()
    assert [r.examples for r in one.history_] == [r.examples for r in two.history_]


def test_a_public_number_of_rows_hides_those_of_every_set_of_sites():
    """Rows over different sets of sites would give away a site's own number."""
    data = sites()
    how = {"fraction": 0.75, "rounds": 6, "strategy": "sgd"}
    shown = model(**how).fit(data)
    sets = {done.sites: done.examples for done in shown.history_}
    matrix = np.array([[name in names for name in data] for names in sets], float)
    assert len(sets) == 4
    found = np.linalg.solve(matrix, list(sets.values()))
    assert np.allclose(found, [len(y) for _, y in data.values()])
    assert "how many rows single sites have" in shown.learned_["everybody"]
    hidden = model(examples=160, **how).fit(data)
    assert {done.examples for done in hidden.history_} == {160 * 3 / 4}
    assert "how many rows" not in hidden.learned_["everybody"]
    clear = model("clear", examples=160, **how).fit(data)
    assert hidden.coef_.tobytes() == clear.coef_.tobytes()
    rounds = [name for name in hidden.run_.opened if "class" not in name]
    assert rounds == ["rows", *(f"rows * change of {c}" for c in ("x0", "x1", "x2", "Intercept"))]


def test_a_public_number_that_is_right_changes_nothing():
    data = sites()
    summed, given = model().fit(data), model(examples=159).fit(data)
    assert summed.coef_.tobytes() == given.coef_.tobytes()
    assert "how many rows" not in summed.learned_["everybody"]


def test_a_round_over_some_beside_the_first_sum_over_all_tells_rows_too():
    late = model(dropouts=1, absent=lambda *_: {"start": ["west"]}).fit(sites())
    assert {done.examples for done in late.history_} == {159 - 33}
    assert "how many rows single sites have" in late.learned_["everybody"]
