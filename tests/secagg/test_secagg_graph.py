"""Degree and threshold as published, tails as scipy has them, and graphs that are what they say."""

import math
from collections import Counter

import numpy as np
import pytest
from cases import each_case
from scipy.stats import chisquare, hypergeom
from secagg.cohort import Cohort

from securecomp.errors import ParameterError
from securecomp.protocol.session import Layout
from securecomp.secagg import Parameters, graph, masking
from securecomp.secagg.graph import GraphPlan, neighbours, plan

# Bell et al., CCS 2020, from the tool that goes with section 3: sigma 40, eta 20.
# (active, corrupt, dropout): {clients: (degree, threshold)}
PUBLISHED = {
    (False, 0.33, 0.33): {10: (8, 4), 100: (68, 34), 1000: (286, 150), 10_000: (422, 221)},
    (False, 0.45, 0.45): {100: (92, 46), 1000: (822, 417)},
    (False, 0.05, 0.33): {10: (4, 2), 100: (28, 6), 1000: (72, 24), 10_000: (86, 29)},
    (False, 0.33, 0.05): {100: (34, 29), 1000: (78, 60)},
    (True, 0.30, 0.30): {100: (92, 62), 1000: (872, 584)},
    (True, 0.05, 0.33): {10: (8, 5), 100: (72, 39), 1000: (398, 223)},
    (True, 0.33, 0.05): {100: (42, 37), 1000: (132, 109)},
}
CASES = [(*key, n, *want) for key, row in PUBLISHED.items() for n, want in row.items()]


@each_case("active, corrupt, dropout, clients, degree, threshold", CASES)
def test_published_plans(active, corrupt, dropout, clients, degree, threshold):
    assert plan(clients, corrupt, dropout, active=active) == GraphPlan(degree, threshold)


def by_scipy(clients, corrupt, dropout, active, sigma=40, eta=20):
    """The plan from scipy's distributions, trying every degree."""
    bad = math.floor(corrupt * clients + 1e-9)
    gone = math.floor(dropout * clients + 1e-9)
    for degree in range(2, clients - 1, 2):
        gaps = clients * (clients - degree - 1) / 2
        apart = gaps * hypergeom(clients, bad + gone, degree).pmf(degree)
        if apart >= 2.0 ** -(sigma + 1):
            continue
        corrupted = hypergeom(clients, bad, degree)
        alive = hypergeom(clients, clients - gone, degree)
        most = next(x for x in range(degree + 1) if corrupted.sf(x) <= 2 ** -(sigma + 1) / clients)
        least = max(x for x in range(degree + 1) if alive.cdf(x - 1) < 2**-eta / clients)
        if active:  # twice the threshold is above the neighbours and the corrupt among them
            most = math.ceil((most + degree - 1.25) / 2)
        if least > most:
            return GraphPlan(degree, max(most + 1, 2))
    return None


@each_case("active", [False, True])
@each_case("clients", [10, 33, 53, 60, 150])
@each_case(
    "corrupt, dropout", [(0.05, 0.05), (0.1, 0.3), (0.2, 0.2), (0.3, 0.1), (0.4, 0.2), (0.1, 0.4)]
)
def test_plans_by_scipy(clients, corrupt, dropout, active):
    assert plan(clients, corrupt, dropout, active=active) == by_scipy(
        clients, corrupt, dropout, active
    )


@each_case("sigma, eta", [(20, 10), (40, 30), (60, 20)])
def test_plans_for_other_security(sigma, eta):
    found = plan(120, 0.2, 0.2, sigma=sigma, eta=eta)
    assert found == by_scipy(120, 0.2, 0.2, False, sigma, eta)


HYPERGEOMETRIC = [
    (total, marked, drawn)
    for total in (5, 50, 400)
    for marked in (0, 1, total // 3, total - 1, total)
    for drawn in (1, 2, total // 2, total - 1)
]


@each_case("total, marked, drawn", HYPERGEOMETRIC)
def test_tails_by_scipy(total, marked, drawn):
    law = hypergeom(total, marked, drawn)
    for x, probability in graph._probabilities(total, marked, drawn):
        assert probability == pytest.approx(law.pmf(x), rel=1e-9, abs=1e-300)
    assert sum(p for _, p in graph._probabilities(total, marked, drawn)) == pytest.approx(1)
    for chance in (0.3, 0.01, 1e-5, 1e-12):
        upper = graph._upper_quantile(total, marked, drawn, chance)
        assert law.sf(upper) <= chance * (1 + 1e-9)
        assert upper == 0 or law.sf(upper - 1) > chance * (1 - 1e-9)
        lower = graph._lower_quantile(total, marked, drawn, chance)
        assert law.cdf(lower - 1) < chance * (1 + 1e-9)
        # A certain number stays within what is drawn.
        assert lower == drawn or law.cdf(lower) >= chance * (1 - 1e-9)


@each_case("clients, degree, removed", [(10, 4, 5), (100, 20, 60), (1000, 50, 400), (64, 8, 8)])
def test_the_chance_to_fall_apart(clients, degree, removed):
    gaps = clients * (clients - degree - 1) / 2
    all_gone = hypergeom(clients, removed, degree).pmf(degree)
    got = math.exp(graph._log_disconnected(clients, degree, removed))
    assert got == pytest.approx(gaps * all_gone, rel=1e-9)
    assert graph._log_disconnected(clients, removed + 2, removed) == -math.inf


def components(adjacent, alive):
    """How many pieces the graph has among those who are alive."""
    left, pieces = set(alive), 0
    while left:
        pieces += 1
        queue = [left.pop()]
        while queue:
            near = left & set(adjacent[queue.pop()])
            left -= near
            queue += near
    return pieces


def test_it_takes_two_gaps_to_cut_the_ring():
    """The union bound is over pairs of gaps of half the degree: one clients fewer, no cut."""
    clients, degree = 40, 6
    adjacent = neighbours(clients, degree, bytes(32))
    assert components(adjacent, range(clients)) == 1
    # Walk along the ring: the order in which the neighbourhoods overlap the most.
    order = ring(adjacent, degree)
    first, second = set(order[5:8]), set(order[20:23])
    assert components(adjacent, set(order) - first) == 1
    assert components(adjacent, set(order) - first - second) == 2
    for spared in first | second:
        assert components(adjacent, (set(order) - first - second) | {spared}) == 1


def ring(adjacent, degree):
    """The order of a Harary graph's clients: who is next has the most neighbours in common."""
    order, seen = [0], {0}
    while len(order) < len(adjacent):
        here = order[-1]
        common = {
            v: len(set(adjacent[v]) & set(adjacent[here])) for v in adjacent[here] if v not in seen
        }
        # At the start both directions are as good; afterwards only one is left.
        order.append(max(common, key=lambda v: (common[v], -v)))
        seen.add(order[-1])
    assert max(Counter(common.values())) <= degree
    return order


@each_case("clients", [5, 10, 51, 200])
def test_graphs_are_regular_symmetric_and_without_loops(clients):
    for degree in range(2, min(clients - 1, 40), 2):
        adjacent = neighbours(clients, degree, b"seed" * 8)
        assert len(adjacent) == clients
        for client, near in enumerate(adjacent):
            assert near == sorted(set(near))
            assert len(near) == degree
            assert client not in near
            assert all(client in adjacent[other] for other in near)
        assert components(adjacent, range(clients)) == 1


@each_case("degree", [9, 10, 100])
def test_the_complete_graph(degree):
    assert neighbours(10, degree, bytes(32)) == [
        [v for v in range(10) if v != u] for u in range(10)
    ]


def test_graphs_are_reproducible_and_random():
    one = neighbours(60, 10, b"1" * 32)
    assert one == neighbours(60, 10, b"1" * 32)
    assert one != neighbours(60, 10, b"2" * 32)
    # Over many seeds every other client is as often a neighbour as any.
    found = Counter(
        other for seed in range(600) for other in neighbours(31, 6, seed.to_bytes(32))[0]
    )
    assert set(found) == set(range(1, 31))
    assert chisquare([found[v] for v in range(1, 31)]).pvalue > 0.01


def test_everyone_has_the_same_graph_and_another_session_another():
    cohort = Cohort(60, corrupt=0.05, dropout=0.05)
    p = cohort.parameters
    assert not p.complete
    mine = {n: cohort.clients[n]._neighbours for n in cohort}
    assert list(mine.values()) == cohort.server._graph == masking.graph_of(cohort.session, p)
    other = Cohort(60, corrupt=0.05, dropout=0.05, seed="another")
    assert other.parameters == p
    assert other.server._graph != cohort.server._graph
    later = cohort.session.next(Layout(9, 3))
    assert masking.graph_of(later, p) == cohort.server._graph
    # Who takes part counts too, not only the id.
    names = [f"d{i}" for i in range(60)]
    renamed = Cohort(60, names=names, corrupt=0.05, dropout=0.05)
    assert renamed.session.id == cohort.session.id
    assert renamed.server._graph != cohort.server._graph


@each_case(
    "arguments, reason",
    [
        ((2, 0.1, 0.1), "the clients of a graph must be at least 3, not 2"),
        ((100, -0.1, 0.1), "at least 0 and below 1"),
        ((100, 0.1, 1.0), "at least 0 and below 1"),
        ((100, 0.5, 0.41), "no graph is safe with 50% corrupt and 41% dropped out; lower one"),
        ((100, float("nan"), 0.1), "at least 0 and below 1"),
    ],
)
def test_impossible_plans(arguments, reason):
    with pytest.raises(ParameterError, match=reason):
        plan(*arguments)


def test_an_active_server_counts_the_dropouts_twice():
    assert plan(1000, 0.4, 0.3) is not None
    with pytest.raises(ParameterError, match="no graph is safe"):
        plan(1000, 0.4, 0.3, active=True)


def test_where_no_sparse_graph_is_safe_there_is_none():
    assert plan(15, 0.4, 0.4) is None
    assert Parameters.choose(15, 5, corrupt=0.4, dropout=0.4).complete
    # With one more client there is one.
    assert plan(16, 0.4, 0.4) == by_scipy(16, 0.4, 0.4, False) is not None


def test_a_plan_needs_no_more_for_fewer_dropouts():
    degrees = [plan(500, 0.2, rate / 20).degree for rate in range(10)]
    assert degrees == sorted(degrees)
    assert np.diff(degrees).max() > 0
