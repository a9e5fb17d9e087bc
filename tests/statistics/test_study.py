"""A study: who takes part, what they exchange, and one secure sum for all questions."""

import pytest
from cases import each_case
from sites import Spy, frame, mean, study, variance

from securecomp import Study
from securecomp.protocol import sum_protocols as sums
from securecomp.protocol.local_carrier import LocalCarrier
from securecomp.sharing.additive_sum import Sharing
from securecomp.statistics import Count, CrossTable, Histogram, Mean, Sum, Variance

TABLES = [
    frame("pandas", x=[1, 5], g=["a", "b"]),
    frame("polars", x=[-4], g=["b"]),
    frame("pyarrow", x=[9, 9, 0], g=["a", "a", "b"]),
    frame("polars", x=[2], g=["a"]),
    frame("pandas", x=[], g=[]),
]
ALL = [
    Count(None, "g"),
    Sum("x", "g"),
    Mean("x"),
    Variance("x", "g"),
    Histogram("x", None, (0, 5, 9)),
    CrossTable(None, None, "g", "x"),
]
ANSWERS = [
    {"a": 4, "b": 3},
    {"a": 21, "b": 1},
    mean([1, 5, -4, 9, 9, 0, 2]),
    {"a": variance([1, 9, 9, 2]), "b": variance([5, -4, 0])},
    [3, 3],
    [[0, 0, 1, 1, 0, 2], [1, 1, 0, 0, 1, 0]],
]


@each_case("servers", [2, 3, 5, "all"])
def test_any_number_of_servers(servers):
    results = study(*TABLES, servers=servers).run(ALL)
    assert [r.value for r in results] == ANSWERS
    assert all(r.equal for r in results)
    run = results[0].run
    assert run.servers == servers
    assert run.transcript.rounds == 2
    # A share from each site to each server and a sum back; what one sends to itself is no message.
    count = 5 if servers == "all" else servers
    own = 5 if servers == "all" else 0
    assert run.transcript.messages == 2 * (5 * count - own)
    assert sum(run.transcript.sent.values()) == run.transcript.bytes_sent
    assert run.transcript.bytes_sent == sum(run.transcript.received.values()) > 0


@each_case("protocol", sums.PROTOCOLS)
def test_every_protocol(protocol):
    results = study(*TABLES, protocol=protocol).run(ALL)
    assert [r.value for r in results] == ANSWERS
    assert results[0].protocol == protocol


def test_a_protocol_that_was_made_before():
    results = study(*TABLES, protocol=Sharing(2)).run(ALL)
    assert [r.value for r in results] == ANSWERS
    assert results[0].run.servers == 2


def test_the_methods_ask_the_same_questions():
    sites = study(*TABLES)
    asked = [
        sites.count(by="g"),
        sites.sum("x", by="g"),
        sites.mean("x"),
        sites.variance("x", by="g"),
        sites.histogram("x", [0, 5, 9]),
        sites.crosstab("g", "x"),
    ]
    assert [r.statistic for r in asked] == ALL
    assert [r.value for r in asked] == ANSWERS
    assert sites.histogram("x", range(0, 10, 5), by="g").value == {"a": [2], "b": [2]}
    assert sites.crosstab("g", "g", by="g").value == {"a": [[4, 0], [0, 0]], "b": [[0, 0], [0, 3]]}
    assert (sites.mean("x", by="g").value, sites.count().value) == ({"a": 5.25, "b": 1 / 3}, 7)
    assert (sites.sum("x").value, sites.variance("x").value) == (
        22,
        variance([1, 5, -4, 9, 9, 0, 2]),
    )


def test_all_questions_travel_in_one_sum(monkeypatch):
    spy = Spy(monkeypatch)
    results = study(*TABLES[:2]).run(ALL)
    assert len(spy.carried) == 2 * 2 * 3
    assert all(r.run is results[0].run for r in results)


def test_each_computation_counts_for_itself():
    sites = study(*TABLES[:2])
    first = sites.count().run.transcript
    before = (first.messages, first.bytes_sent, first.rounds)
    second = sites.run(ALL)[0].run.transcript
    assert (first.messages, first.bytes_sent, first.rounds) == before == (12, first.bytes_sent, 2)
    assert (second.messages, second.rounds) == (12, 2)
    assert second.bytes_sent > first.bytes_sent


def test_each_party_sends_and_gets_what_it_should(monkeypatch):
    spy = Spy(monkeypatch)
    study(*TABLES[:2], servers=2).count()
    sites, servers = ("north", "south"), ("server 1", "server 2")
    shares = {(a, b) for a in sites for b in servers}
    assert set(spy.carried[:4]) == shares
    assert set(spy.carried[4:]) == {(b, a) for a, b in shares}


def test_no_message_shows_a_figure(monkeypatch):
    """No site's figure stands in any message, as eight bytes or as text."""
    figure = 0x0123456789ABCDE
    messages = []
    send = LocalCarrier.send

    def keep(carrier, sender, recipient, data):
        messages.append(bytes(data))
        return send(carrier, sender, recipient, data)

    monkeypatch.setattr(LocalCarrier, "send", keep)
    table = frame("polars", x=[figure])
    assert study(table, table).sum("x").value == 2 * figure
    assert len(messages) == 12
    for value in (figure, 2 * figure):
        for form in (value.to_bytes(8, "little"), value.to_bytes(8, "big"), str(value).encode()):
            assert not any(form in message for message in messages)


def test_two_runs_send_different_bytes(monkeypatch):
    messages = []
    send = LocalCarrier.send

    def keep(carrier, sender, recipient, data):
        messages.append(bytes(data))
        return send(carrier, sender, recipient, data)

    monkeypatch.setattr(LocalCarrier, "send", keep)
    sites = study(*TABLES[:2])
    assert sites.count().value == sites.count().value == 3
    assert len(set(messages)) == len(messages) == 24


def test_the_sites_may_be_any_mapping():
    from types import MappingProxyType

    sites = MappingProxyType({"north": TABLES[0], "south": TABLES[1]})
    assert Study(sites).count().run.parties == ("north", "south")


def test_300_sites_of_one_row():
    sites = {f"site {i}": frame("pyarrow", x=[i]) for i in range(300)}
    result = Study(sites, servers=2).variance("x")
    assert result.value == variance(range(300))
    assert result.rows[0]["n"] == 300


def test_the_plaintext_comes_from_all_rows():
    sums_ = study(*TABLES).run(ALL)
    assert [list(map(_plain, r.plaintext)) for r in sums_] == [
        [4, 3],
        [21, 1],
        [mean([1, 5, -4, 9, 9, 0, 2])],
        [pytest.approx(variance([1, 9, 9, 2])), pytest.approx(variance([5, -4, 0]))],
        [[3, 3]],
        [ANSWERS[5]],
    ]


def _plain(value):
    return value if isinstance(value, list | float) else int(value)


def test_the_frames_stay_as_they_were():
    table = frame("pandas", x=[1, None], g=["a", None])
    before = table.copy()
    study(table, table, missing="drop").run([Sum("x", "g"), Histogram("x", None, (0, 1))])
    assert table.equals(before)
    assert list(table.dtypes) == list(before.dtypes)
