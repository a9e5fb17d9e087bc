"""What is agreed on, and what neither a client nor the server agrees to."""

from dataclasses import fields, replace

import pytest
from cases import each_case
from secagg.cohort import SERVER, Cohort, identity, needed

from securecomp.errors import ParameterError, RangeError, SecureCompError, ThresholdError
from securecomp.protocol.session import Layout
from securecomp.secagg import PROTOCOL, Client, Parameters, Receiver, Server

CHOSEN = Parameters.choose(5, 1000)
SPARSE = Parameters.choose(60, 1000, corrupt=0.05, dropout=0.05)


@each_case("clients", [3, 4, 5, 6, 7, 20, 49])
@each_case("security", ["semi-honest", "active"])
def test_small_cohorts_get_the_complete_graph(clients, security):
    p = Parameters.choose(clients, 10, security=security)
    threshold = needed(clients, security == "active")
    assert p.complete
    assert p.degree == clients - 1
    assert p.threshold == threshold
    assert p.minimum == max(3, threshold)
    assert p.active is (security == "active")
    assert (p.corrupt, p.dropout) == (0, 0)


def test_thresholds_are_what_the_papers_ask_for():
    for clients in range(3, 200):
        assert 2 * Parameters.choose(clients, 1, complete=True).threshold > clients
        active = Parameters.choose(clients, 1, security="active").threshold
        corrupt = -(-clients // 3) - 1
        # Bonawitz et al., 6.2: no two sets of signers that have only corrupt clients in common.
        assert 2 * active - clients > corrupt
        assert active <= clients - corrupt


def test_fifty_clients_get_a_sparse_graph():
    assert Parameters.choose(49, 10).complete
    p = Parameters.choose(50, 10)
    assert not p.complete
    assert (p.corrupt, p.dropout) == (200, 200)
    assert Parameters.choose(50, 10, complete=True).complete
    assert Parameters.choose(500, 10, security="active").complete
    small = Parameters.choose(10, 10, corrupt=0.33, dropout=0.33, complete=False)
    assert (small.degree, small.threshold) == (8, 4)


@each_case("clients", [-1, 0, 1, 2])
def test_two_clients_are_too_few(clients):
    with pytest.raises(ThresholdError, match="each sees the other's vector") as error:
        Parameters.choose(clients, 10)
    assert (error.value.needed, error.value.got) == (3, clients)


@each_case(
    "choices, error, reason",
    [
        ({"security": "passive"}, ParameterError, 'is "semi-honest" or "active", not \'passive\''),
        ({"security": "active", "complete": False}, ParameterError, "graph; leave out complete"),
        ({"minimum": 2}, ThresholdError, "the cohort is too small"),
        ({"minimum": -1}, ThresholdError, "the cohort is too small"),
        ({"minimum": 6}, ParameterError, "no 6 of 5 clients can survive"),
        ({"max_weight": -1}, RangeError, "could wrap"),
        ({"max_weight": 2**62}, RangeError, "do not fit 63 bits"),
        ({"corrupt": 0.04, "complete": False}, ParameterError, "must stand at least 5 % corrupt"),
        ({"corrupt": 0.6, "dropout": 0.4, "complete": False}, ParameterError, "no graph is safe"),
    ],
)
def test_impossible_choices(choices, error, reason):
    clients = 5 if choices.get("complete", True) else 60
    with pytest.raises(error, match=reason):
        Parameters.choose(clients, 10, **choices)


@each_case("rate", ["corrupt", "dropout"])
def test_a_rate_that_is_not_a_number(rate):
    with pytest.raises(ParameterError, match="rates"):
        Parameters.choose(60, 10, **{rate: float("nan")})


@each_case("clients", [10, 49])
def test_the_complete_graph_stands_the_corruption_that_was_asked_for(clients):
    """Otherwise the corrupt clients alone hold as many shares of a secret as bring it back."""
    try:
        p = Parameters.choose(clients, 10, corrupt=0.6, dropout=0.2)
    except ParameterError:
        return
    assert p.threshold > int(0.6 * clients)


def test_a_rate_is_rounded_to_the_safe_side():
    """0.58 * 100 is 57.99999999999999: 58 corrupt clients held a threshold of 58 shares."""
    assert Parameters.choose(100, 10, corrupt=0.58, dropout=0.1, complete=True).threshold == 59
    with pytest.raises(ParameterError, match="58% dropped out of 100 clients no threshold is safe"):
        Parameters.choose(100, 10, corrupt=0.42, dropout=0.58, complete=True)
    # A sparse graph's rates are agreed in thousandths, of which there must not be too few.
    sparse = Parameters.choose(1000, 10, corrupt=0.1234, dropout=0.0501)
    assert (sparse.corrupt, sparse.dropout) == (124, 51)


@each_case(
    "clients, corrupt, threshold",
    [(10, 0.4, 8), (100, 0.34, 68), (100, 0.58, 80), (30, 0.5, 23), (31, 0.5, 24), (9, 0.3, 7)],
)
def test_an_active_threshold_stands_the_corruption_that_was_asked_for(clients, corrupt, threshold):
    """Two lists of survivors must not both be signed by half of the honest and all corrupt ones."""
    p = Parameters.choose(clients, 10, security="active", corrupt=corrupt, dropout=0.1)
    assert (p.threshold, p.minimum) == (threshold, threshold)
    assert 2 * threshold > clients + round(100 * corrupt) * clients // 100
    Cohort(clients, bound=10, parameters=p)  # and all agree to it


def test_corruption_that_no_active_threshold_stands_is_refused():
    with pytest.raises(ParameterError, match=r"40% corrupt and 30% dropped out of 10 .*lower one"):
        Parameters.choose(10, 10, security="active", corrupt=0.4, dropout=0.3)


def test_the_complete_graph_stands_the_dropouts_that_were_asked_for():
    try:
        p = Parameters.choose(10, 10, corrupt=0.2, dropout=0.6)
    except ParameterError:
        return
    assert p.threshold <= 10 - 6


def test_a_forbidden_complete_graph_is_not_taken():
    try:
        p = Parameters.choose(15, 10, corrupt=0.4, dropout=0.4, complete=False)
    except ParameterError:
        return
    assert not p.complete


def test_terms_and_back():
    for p in (CHOSEN, SPARSE, Parameters.choose(5, 10, security="active", max_weight=3)):
        terms = p.terms()
        assert all(type(v) is int for v in terms.values())
        assert set(terms) == {field.name for field in fields(Parameters)}
        cohort = Cohort(p.clients, bound=10, parameters=p)
        assert Parameters.of(cohort.session) == p


def refused(cohort, terms, error, reason, **changes):
    """Both sides refuse such a session before they draw a key."""
    layout = Layout(4, 1000)
    session = cohort.agree(layout, terms=terms, **changes)
    for kind, name in ((Client, "c1"), (Server, SERVER)):
        asked = []
        with pytest.raises(error, match=reason):
            kind(session, name, identity(name), entropy=asked.append)
        assert not asked


BAD = [
    ({"threshold": 0}, ThresholdError, "threshold of the shares is too low"),
    ({"threshold": 1}, ThresholdError, "threshold of the shares is too low"),
    ({"threshold": 2}, ThresholdError, "threshold of the shares is too low"),
    ({"threshold": 6}, ParameterError, "threshold 6 is above the 5 holders of shares"),
    ({"threshold": -5}, ThresholdError, "threshold of the shares is too low"),
    ({"minimum": 2}, ThresholdError, "the cohort is too small"),
    ({"minimum": 0}, ThresholdError, "the cohort is too small"),
    ({"minimum": 6}, ParameterError, "no 6 of 5 clients can survive"),
    ({"bits": 13}, RangeError, r"a sum of 5 vectors could wrap modulo 2\^13"),
    ({"bits": 0}, RangeError, "could wrap"),
    ({"bits": -64}, RangeError, "could wrap"),
    ({"max_weight": -1}, RangeError, "could wrap"),
    ({"max_weight": 2}, RangeError, "could wrap"),
    ({"clients": 4}, ParameterError, "names other parties than its parameters say"),
    ({"clients": 6}, ParameterError, "names other parties than its parameters say"),
    ({"degree": 2}, ParameterError, "must stand at least 5 % corrupt clients"),
    ({"degree": 0}, ParameterError, "must stand at least 5 % corrupt clients"),
    ({"degree": 5}, ParameterError, "must stand at least 5 % corrupt clients"),
    ({"degree": 2, "corrupt": 400, "dropout": 100}, ParameterError, "is not the one that"),
    ({"degree": 2, "corrupt": 1000, "dropout": 0}, ParameterError, "below 1"),
    ({"degree": 2, "corrupt": 200, "dropout": -1}, ParameterError, "at least 0"),
    ({"active": 1}, ThresholdError, "threshold of the shares is too low"),
    ({"active": 1, "degree": 2}, ParameterError, "active security needs the complete graph"),
]


@each_case("terms, error, reason", BAD)
def test_bad_terms_are_refused_by_client_and_server(terms, error, reason):
    refused(Cohort(5), CHOSEN.terms() | terms, error, reason)


BAD_SPARSE = [
    ({"degree": SPARSE.degree - 2}, ParameterError, "is not the one that the agreed rates need"),
    ({"degree": SPARSE.degree + 1}, ParameterError, "is not the one that the agreed rates need"),
    ({"threshold": SPARSE.threshold - 1}, ThresholdError, "threshold of the shares is too low"),
    ({"threshold": SPARSE.degree + 2}, ParameterError, "holders of shares"),
    ({"corrupt": 49}, ParameterError, "must stand at least 5 % corrupt clients"),
    ({"corrupt": 200}, ParameterError, "is not the one that the agreed rates need"),
    ({"dropout": 300}, ParameterError, "is not the one that the agreed rates need"),
    ({"corrupt": 600, "dropout": 400}, ParameterError, "no graph is safe"),
    ({"active": 1}, ParameterError, "active security needs the complete graph"),
]


@each_case("terms, error, reason", BAD_SPARSE)
def test_bad_terms_of_a_sparse_graph(terms, error, reason):
    cohort = Cohort(60, parameters=SPARSE)
    refused(cohort, SPARSE.terms() | terms, error, reason)


@each_case("clients", [5, 10, 19])
def test_a_rate_below_one_client_is_no_protection(clients):
    """5 % of less than 20 clients is nobody: degree 2 and threshold 2 pass as the plan.

    Then two corrupt neighbours hold both secrets of the client between them, and any two corrupt
    clients cut the ring in parts whose sums the server learns. The complete graph stands half.
    """
    cohort = Cohort(clients)
    ring = {"degree": 2, "threshold": 2, "corrupt": 50, "dropout": 0}
    refused(cohort, cohort.parameters.terms() | ring, SecureCompError, "corrupt|complete")


@each_case("bits", [64, 65, 1000, 2**40])
def test_a_modulus_beyond_the_words(bits):
    refused(Cohort(5), CHOSEN.terms() | {"bits": bits}, RangeError, "63 bits")


@each_case("minimum", [3, 31, 56])
def test_a_sparse_graph_is_for_the_dropouts_it_was_planned_for(minimum):
    """Bell et al., algorithm 2: below (1 - dropout) n the run ends.

    The chance that the graph of honest survivors falls apart is bounded for the planned rates
    alone; with every second client gone, degree 30 on 1000 clients is cut with near certainty.
    """
    assert SPARSE.dropout == 50
    assert Parameters.choose(60, 1000, corrupt=0.05, dropout=0.05).minimum >= 57
    cohort = Cohort(60, parameters=SPARSE)
    refused(cohort, SPARSE.terms() | {"minimum": minimum}, ThresholdError, "the cohort")


def test_more_than_the_least_is_agreed_to():
    for changes in ({"threshold": 5}, {"minimum": 5}, {"bits": 20}, {"minimum": 3, "bits": 63}):
        cohort = Cohort(5, parameters=replace(CHOSEN, **changes))
        result = cohort.finish()
        assert result.values.tolist() == cohort.total(cohort.names)


def test_other_terms_than_those_of_the_protocol():
    cohort = Cohort(5)
    terms = CHOSEN.terms()
    for wrong in ({}, terms | {"more": 1}, {k: v for k, v in terms.items() if k != "bits"}):
        refused(cohort, wrong, ParameterError, "is not a session of 'masking/sum/1'")


def test_a_session_of_another_protocol_or_with_two_servers():
    cohort = Cohort(5, receivers=(SERVER, "c9"))
    session = cohort.agree(Layout(4, 1000))
    assert session.protocol == PROTOCOL
    other = type(session)(
        **{f: getattr(session, f) for f in session.__struct_fields__}
        | {"protocol": "masking/sum/2"}
    )
    with pytest.raises(ParameterError, match="'masking/sum/2' is not a session of"):
        Client(other, "c1", identity("c1"))
    two = cohort.agree(Layout(4, 1000), servers=(SERVER, "c9"))
    with pytest.raises(ParameterError, match="names other parties than its parameters say"):
        Client(two, "c1", identity("c1"))


@each_case("twin", ["c1", SERVER])
def test_one_key_under_two_names_is_refused(twin):
    """A party with several names counts several times towards every threshold."""
    cohort = Cohort(5)
    keys = {name: identity(name).public for name in (*cohort, SERVER)} | {
        "c2": identity(twin).public
    }
    with pytest.raises(ParameterError, match="has the same key as"):
        cohort.agree(Layout(4, 1000), terms=CHOSEN.terms(), keys=keys)


def test_who_is_not_in_the_session():
    cohort = Cohort(5)
    for kind, name in ((Client, SERVER), (Client, "c9"), (Server, "c1"), (Receiver, "c1")):
        with pytest.raises(ParameterError, match=f"'{name}' is not a {kind.__name__} of this"):
            kind(cohort.session, name, identity(name))


def test_a_wrong_identity_is_refused_before_anything_is_spent():
    cohort = Cohort(5)
    with pytest.raises(ValueError, match="this identity is not 'c1'"):
        Client(cohort.session, "c1", identity("c2"))
