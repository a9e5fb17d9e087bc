"""A sparse graph with dropouts, and what it protects when more drop out than it was made for."""

import numpy as np
import pytest
from secagg.cohort import Cohort
from secagg.lying import finishes

from securecomp.errors import ThresholdError
from securecomp.protocol import wire
from securecomp.protocol.role import State
from securecomp.secagg import Parameters, masking
from securecomp.secagg.keyring import public_of

RATES = {"corrupt": 0.05, "dropout": 0.2}


def test_sixty_clients_with_dropouts_at_every_step():
    cohort = Cohort(60, length=40, max_weight=7, **RATES)
    p = cohort.parameters
    assert 2 < p.degree < 59
    drops = {"advertise": {"c3", "c50"}, "share": {"c8"}, "mask": {"c20", "c21", "c59"},
             "unmask": {"c0", "c33"}}  # fmt: skip
    result = finishes(cohort, drops)
    gone = set().union(*(drops[s] for s in ("advertise", "share", "mask")))
    assert set(result.survivors) == set(cohort) - gone
    assert result.weight == sum(cohort.weights[n] for n in result.survivors)


def test_messages_are_for_the_neighbours_alone():
    cohort = Cohort(60, **RATES)
    degree = cohort.parameters.degree
    cohort.reach("share")
    for i, name in enumerate(cohort):
        near = sorted([*cohort.server._graph[i], i])
        assert cohort.said(name).clients == near
    cohort.step("share")
    assert all(len(cohort.said(n).senders) == degree for n in cohort)
    cohort.step("mask")
    for name in cohort:
        data = cohort.do("unmask", name)
        assert len(cohort.read(data)[1].owners) == degree + 1
        # Two shares of five residues, a tag, and little else for each neighbour.
        assert len(data) < 200 + 45 * (degree + 1)


def test_a_hole_in_the_ring_ends_the_run():
    """A client drops out with all its neighbours: of those at the edge too few shares are left."""
    cohort = Cohort(71, corrupt=0.05, dropout=0.5)
    assert cohort.parameters.degree + 1 == 35  # half of 71 may be gone
    gone = {cohort.names[i] for i in (0, *cohort.server._graph[0])}
    cohort.reach("unmask", {"mask": gone})
    with pytest.raises(ThresholdError, match=r"too few shares of c\d+'s secret came back"):
        cohort.step("unmask")
    assert cohort.server.state is State.ABORTED
    assert not any(owner == "c0" for _, owner in cohort.revealed)


def parts(cohort, alive):
    """The pieces of the graph among those who are alive."""
    left, found = set(alive), []
    while left:
        queue, piece = [left.pop()], set()
        while queue:
            here = queue.pop()
            piece.add(here)
            near = left & set(cohort.server._graph[here])
            left -= near
            queue += near
        found.append(piece)
    return found


def ring(cohort):
    """The clients in the order of the ring, from the graph alone."""
    graph = [set(near) for near in cohort.server._graph]
    order = [0]
    while len(order) < len(graph):
        here = order[-1]
        rest = graph[here] - set(order)
        order.append(max(rest, key=lambda v: (len(graph[v] & graph[here]), -v)))
    return order


def test_a_graph_that_fell_apart_gives_no_partial_sums():
    """With two gaps in the ring the server learns the sum on either side, not only the total.

    For the planned dropouts that has probability below 2^-40. Here 16 of 60 drop out, where a
    tenth was planned for: every client sees that these are too many.
    """
    plan = Parameters.choose(60, 1000, corrupt=0.05, dropout=0.1)
    cohort = Cohort(60, parameters=plan)
    half = plan.degree // 2
    order = ring(cohort)
    cut = {*order[5 : 5 + half], *order[30 : 30 + half]}
    gone = {cohort.names[i] for i in cut}
    assert len(gone) == plan.degree > 6
    cohort.reach("mask")
    seen = {}
    for i, name in enumerate(cohort):
        if name not in gone:
            data = cohort.do("mask", name)
            cohort.server.receive(data)
            message, payload = cohort.read(data)[1:]
            lanes = wire.unpack(message.vector, payload, 4, plan.bits)
            seen[i] = lanes.astype(np.uint32)
    sides = parts(cohort, seen)
    assert len(sides) == 2
    try:
        cohort.inbox = cohort.server.close()
        cohort.step("unmask")
    except ThresholdError:
        return
    # The server has the seeds of all survivors and the mask keys of those who dropped.
    for side in sides:
        opened = open_side(cohort, seen, side, cut)
        assert opened != cohort.total([cohort.names[i] for i in side])


def open_side(cohort, seen, side, cut):
    """What the server can take off the sum of one side."""
    agreement = cohort.session.agreement
    kept = {i: cohort.clients[cohort.names[i]]._ring for i in cut}
    total = masking.Accumulator(4, cohort.parameters.bits)
    for i in side:
        total._lanes += seen[i]
    plus, minus = [], []
    for owner in side:
        minus.append(masking.self_key(seed_of(cohort, owner), agreement, owner))
    for owner, ring_ in kept.items():
        assert public_of(ring_.mask_key) == cohort.server._keys[owner].mask_key
        peers = [i for i in cohort.server._graph[owner] if i in side]
        add, subtract = ring_.mask_keys(owner, peers, agreement)
        plus += add[1:]
        minus += subtract
    total.unmask(plus, minus)
    return masking.decode(total.result(), cohort.parameters.bits).tolist()


def seed_of(cohort, owner):
    """A survivor's seed from the shares that the server was given."""
    from securecomp.sharing import shamir

    name = cohort.names[owner]
    held = {h: rows[0] for (h, o), rows in cohort.revealed.items() if o == name}
    holders = list(held)[: cohort.parameters.threshold]
    points = [cohort.names.index(h) + 1 for h in holders]
    rows = np.array([held[h] for h in holders], np.uint64)
    return shamir.to_bytes(shamir.reconstruct(points, rows), 32)


@pytest.mark.slow
def test_three_hundred_clients_with_dropouts():
    cohort = Cohort(300, length=5, **RATES)
    drops = {
        "advertise": {f"c{i}" for i in range(0, 300, 30)},
        "mask": {f"c{i}" for i in range(7, 300, 15)},
        "unmask": {f"c{i}" for i in range(3, 300, 25)},
    }
    result = finishes(cohort, drops)
    assert len(result.survivors) == 270
