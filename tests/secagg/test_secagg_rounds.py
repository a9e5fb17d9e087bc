"""Several rounds under one session's keys: exact sums, other masks, and an end with a dropout."""

import numpy as np
import pytest
from cases import each_case
from secagg.cohort import SERVER, Cohort
from secagg.lying import again, finishes

from securecomp.errors import LocalProtocolError, RangeError, RemoteProtocolError, ThresholdError
from securecomp.protocol import wire
from securecomp.protocol.role import State
from securecomp.protocol.session import Layout
from securecomp.sharing import shamir

SECURITY = ["semi-honest", "active"]


@each_case("choices", [{}, {"security": "active"}, {"max_weight": 5}])
def test_several_rounds_give_exact_sums(choices):
    cohort = Cohort(4, **choices)
    finishes(cohort)
    for number, layout in enumerate((Layout(4, 1000), Layout(70, 3), Layout(0, 1000)), 1):
        again(cohort, layout)
        assert (cohort.now.round, cohort.now.layout) == (number, layout)
        assert all(client._session == cohort.now for client in cohort.clients.values())
        for name in cohort:
            values = np.arange(layout.length) % (2 * layout.bound + 1) - layout.bound
            cohort.values[name] = values * (-1) ** number
        result = finishes(cohort)
        assert result.survivors == tuple(cohort.names)
        got = cohort.receiver().receive(cohort.inbox[SERVER])
        assert got.values.tolist() == result.values.tolist()


def test_a_sparse_graph_goes_on_too():
    cohort = Cohort(60, corrupt=0.05, dropout=0.05)
    finishes(cohort)
    graph = cohort.server._graph
    again(cohort)
    assert cohort.server._graph == graph
    finishes(cohort)


def masked(cohort):
    """What the server sees of everyone's vector in this round, as residues."""
    seen = {}
    for name in cohort:
        data = cohort.do("mask", name)
        cohort.server.receive(data)
        message, payload = cohort.read(data)[1:]
        residues = wire.unpack(message.vector, payload, message.vector.length, message.vector.bits)
        seen[name] = residues.astype(np.int64)
    cohort.inbox = cohort.server.close()
    return seen


def test_every_round_has_other_masks():
    """The same inputs twice: were a mask the same, the difference would show the inputs'."""
    cohort = Cohort(3, length=2000, bound=1000)
    rounds = []
    for number in range(3):
        if number:
            again(cohort)
        else:
            cohort.reach("mask")
        rounds.append(masked(cohort))
        finishes(cohort)
    size = 1 << cohort.parameters.bits
    for name in cohort:
        for one, other in ((0, 1), (0, 2), (1, 2)):
            difference = (rounds[one][name] - rounds[other][name]) % size
            # As good as uniform: 2000 draws of 8192 values, few equal and hardly any zero.
            assert len(np.unique(difference)) > 1600
            assert (difference == 0).sum() < 6


def test_every_rounds_keys_are_its_own():
    cohort = Cohort(3)
    cohort.reach("mask")
    seen = []
    for number in range(3):
        if number:
            again(cohort)
        client = cohort.clients["c1"]
        seed = client._ring.seed
        plus, minus = client._ring.mask_keys(1, [0, 2], client._agreement)
        client._ring.seed = seed
        seen += [seed, *plus, *minus]
        finishes(cohort)
    assert len(set(seen)) == len(seen) == 12


def recover(cohort, number, victim):
    """The secret of which shares came in with a round, from as many as the threshold."""
    shares = {
        holder: rows[number]
        for (holder, owner), rows in cohort.revealed.items()
        if owner == victim and len(rows) > number
    }
    holders = list(shares)[: cohort.parameters.threshold]
    points = [cohort.names.index(h) + 1 for h in holders]
    rows = np.array([shares[h] for h in holders], np.uint64)
    return shamir.to_bytes(shamir.reconstruct(points, rows), 32)


@each_case("security", SECURITY)
def test_a_dropout_does_not_open_an_earlier_round(security):
    """Every survivor's seed is known from then; with the mask key its vector would lie open."""
    cohort = Cohort(5, security=security)
    finishes(cohort)
    again(cohort)
    with pytest.raises(ThresholdError, match="after the first round"):
        finishes(cohort, {"mask": {"c2"}})
    assert cohort.server.state is State.ABORTED
    # A server that asks all the same gets no share of the mask key.
    asks = cohort.survivors(["c0", "c1", "c3", "c4"], "c0")
    answer = cohort.clients["c0"].consent if security == "active" else cohort.clients["c0"].unmask
    with pytest.raises(ThresholdError, match="after the first round"):
        answer(asks)


@pytest.mark.parametrize("security", SECURITY)
@pytest.mark.parametrize("step", ["advertise", "share", "mask", "consent", "unmask"])
def test_no_round_follows_a_dropout(security, step):
    cohort = Cohort(5, security=security)
    if step not in cohort.steps:
        pytest.skip("semi-honest clients do not consent")
    cohort.finish({step: {"c3"}})
    with pytest.raises(LocalProtocolError, match="somebody dropped out; start a new session"):
        cohort.server.next_round(cohort.session.layout)
    assert cohort.server.state is State.DONE
    revealed = step == "mask"
    for name in ("c0", "c1", "c2", "c4"):
        client = cohort.clients[name]
        if revealed:
            with pytest.raises(LocalProtocolError, match="mask keys were revealed; start a new"):
                client.next_round(cohort.session.layout)
            assert client.state is State.DONE
    with pytest.raises(LocalProtocolError, match=r"next_round\(\) is not allowed when"):
        cohort.clients["c3"].next_round(cohort.session.layout)


def test_a_dropout_in_a_later_round_ends_it_there():
    cohort = Cohort(5)
    finishes(cohort)
    again(cohort)
    with pytest.raises(ThresholdError, match="somebody dropped out after the first round"):
        finishes(cohort, {"mask": {"c3"}})
    with pytest.raises(LocalProtocolError, match="not allowed when aborted"):
        cohort.server.next_round(cohort.session.layout)


def test_who_does_not_come_to_the_next_round_has_dropped_out():
    cohort = Cohort(5)
    finishes(cohort)
    layout = cohort.session.layout
    cohort.server.next_round(layout)
    for name in ("c0", "c1", "c2", "c4"):
        cohort.server.receive(cohort.clients[name].next_round(layout)[1])
    assert cohort.server.missing == ["c3"]
    cohort.inbox = cohort.server.close()
    assert "c3" not in cohort.inbox
    assert finishes(cohort).survivors == ("c0", "c1", "c2", "c4")
    assert all(("c0", owner) in cohort.revealed for owner in ("c0", "c1"))
    # Its mask key is still secret: nobody has a share of this round of it.
    assert len(cohort.revealed["c0", "c3"]) == 1


@each_case("layout", [Layout(4, 2**62), Layout(4, 1639)])
def test_a_layout_that_does_not_fit_is_refused_and_another_is_taken(layout):
    """13 bits are for four clients with values up to 1023."""
    cohort = Cohort(4)
    finishes(cohort)
    for role in (cohort.server, *cohort.clients.values()):
        with pytest.raises(RangeError, match=r"could (pass|wrap)"):
            role.next_round(layout)
        assert role.state is State.DONE
        assert role._session == cohort.session
    again(cohort, Layout(9, 1023))
    cohort.values = dict.fromkeys(cohort, np.full(9, -1023))
    finishes(cohort)


@each_case("step", ["mask", "unmask"])
def test_messages_of_an_earlier_round_are_refused(step):
    cohort = Cohort(4)
    cohort.reach(step)
    old, sent = cohort.inbox["c1"], cohort.do(step, "c1")
    cohort.server.receive(sent)
    cohort.step(step, {"c1"})
    if step == "mask":
        cohort.step("unmask")
    again(cohort)
    if step == "unmask":
        cohort.step("mask")
    reason = "server: the message is of round 0 and this is round 1"
    honest, cohort.inbox = cohort.inbox, {"c1": old}
    with pytest.raises(RemoteProtocolError, match=reason):
        cohort.do(step, "c1")
    with pytest.raises(RemoteProtocolError, match="c1: the message is of round 0 and this is"):
        cohort.server.receive(sent)
    cohort.inbox = honest
    finishes(cohort)


def test_clients_that_expect_different_layouts_do_not_meet():
    cohort = Cohort(4)
    finishes(cohort)
    cohort.server.next_round(Layout(4, 1000))
    data = cohort.clients["c1"].next_round(Layout(5, 1000))[1]
    with pytest.raises(RemoteProtocolError, match=r"c1: .* for another layout or other parties"):
        cohort.server.receive(data)
