"""The private sum as statistics know it: who computes, what is sent, what each party learned."""

import re

import numpy as np
import pytest
from cases import each_case
from sharing.cast import flipped, stream

from securecomp import sharing
from securecomp.core import field
from securecomp.errors import (
    AuthenticationError,
    DecodeError,
    LocalProtocolError,
    ParameterError,
    RangeError,
    RemoteProtocolError,
    ThresholdError,
)
from securecomp.paillier.encrypted_sum import Paillier
from securecomp.protocol.local_carrier import LocalCarrier
from securecomp.protocol.session import Layout
from securecomp.protocol.sum_protocols import PROTOCOLS, protocol
from securecomp.secagg.masked_sum import Masking
from securecomp.sharing.additive_sum import Sharing

VALUES = {"north": [1, -2, 3], "south": [10, 20, -30], "east": [-100, 0, 100]}
TOTAL = [-89, 18, 73]
LAYOUT = Layout(3, 100)
SCHEMES = [
    Sharing(),
    Sharing("all"),
    Masking(),
    Masking("active"),
    Paillier(bits=512, insecure_for_tests=True),
]
NAMES = ["sharing", "sharing among all", "masking", "active masking", "paillier"]


def readers(values=VALUES):
    return {name: lambda v=vector: v for name, vector in values.items()}


class Network(LocalCarrier):
    """Keeps a record of all messages, and does with them what it was told."""

    def __init__(self, treat=lambda sender, recipient, data: data):
        super().__init__(stream("network"))
        self.record, self.rounds, self.treat = [], [0], treat

    def send(self, sender, recipient, data):
        self.record.append((sender, recipient, bytes(data)))
        self.rounds[-1] += 1
        return super().send(sender, recipient, self.treat(sender, recipient, bytes(data)))

    def next_round(self):
        super().next_round()
        self.rounds.append(0)


@each_case("servers", [2, 3, 5, 10, "all"])
@each_case("receivers", [None, ("south",), ("registry",), ("east", "registry")])
def test_the_total_is_exact(servers, receivers):
    network = Network()
    total = Sharing(servers).run(network, LAYOUT, readers(), receivers)
    assert total.dtype == np.int64
    assert total.tolist() == TOTAL
    to = 3 if receivers is None else len(receivers)
    among = 3 if servers == "all" else servers
    assert network.rounds == [3 * among, among * to]


@each_case("receivers", [None, ("south",), ("registry", "east")])
@each_case("scheme", SCHEMES)
def test_every_protocol_gives_the_exact_total(scheme, receivers):
    total = scheme.run(Network(), LAYOUT, readers(), receivers)
    assert total.dtype == np.int64
    assert total.tolist() == TOTAL


@each_case("servers", [2, "all"])
def test_long_vectors_go_through_threads(servers):
    length, bound = (1 << 16) + 3, field.LIMIT // 3
    ramp = np.arange(length, dtype=np.int64)
    values = {"north": ramp, "south": np.full(length, -bound), "east": bound - 2 * ramp}
    network = LocalCarrier()  # threads draw in any order
    total = Sharing(servers).run(network, Layout(length, bound), readers(values))
    assert np.array_equal(total, -ramp)


def test_every_receiver_gets_the_total(monkeypatch):
    totals = {}
    result = sharing.Receiver.result

    def spy(self):
        totals[self.name] = result(self).tolist()
        return np.array(totals[self.name])

    monkeypatch.setattr(sharing.Receiver, "result", spy)
    Sharing("all").run(Network(), LAYOUT, readers())
    assert totals == dict.fromkeys(VALUES, TOTAL)


@each_case("servers", [0, 1, -1, 1001])
def test_a_number_of_servers_that_cannot_be(servers):
    with pytest.raises(ParameterError, match=f"servers must be from 2 to 1000, not {servers}"):
        Sharing(servers)


@each_case("servers", [True, False, 3.0, "3", "ALL", None, [3]])
def test_servers_that_are_no_number(servers):
    with pytest.raises(ParameterError, match='servers is a number of at least 2 or "all", not '):
        Sharing(servers)


def test_who_takes_part():
    network = Network()
    three = Sharing().session(network, LAYOUT, ("north", "south"))
    assert three.protocol == "sharing/sum/1"
    assert three.contributors == three.receivers == ("north", "south")
    assert three.servers == ("server 1", "server 2", "server 3")
    assert three.limit == field.LIMIT
    assert three.layout is LAYOUT
    assert three.keys == {
        name: network.identity(name).public for name in (*three.contributors, *three.servers)
    }
    everyone = Sharing("all").session(network, LAYOUT, ("north", "south"), ("registry",))
    assert everyone.servers == ("north", "south")
    assert everyone.receivers == ("registry",)
    assert everyone.id != three.id
    assert everyone.keys["north"] == three.keys["north"]


@each_case("servers", [2, "all"])
def test_too_few_contributors(servers):
    for names in ((), ("north",)):
        network = Network()
        with pytest.raises(ThresholdError) as error:
            Sharing(servers).run(network, LAYOUT, readers({n: VALUES[n] for n in names}))
        assert (error.value.needed, error.value.got) == (2, len(names))
        assert network.record == []


@each_case("scheme", SCHEMES)
def test_nobody_receives_the_result(scheme):
    network = Network()
    with pytest.raises(ThresholdError, match="nobody receives the result"):
        scheme.run(network, LAYOUT, readers(), ())
    assert network.record == []


@each_case("scheme, name", [(Sharing(3), "server 2"), (Masking(), "server")])
def test_a_hospital_with_the_name_of_a_server(scheme, name):
    network = Network()
    values = VALUES | {name: [1, 2, 3]}
    reason = f"a site is named '{name}', as a computing server is; rename the site"
    with pytest.raises(ParameterError, match=reason):
        scheme.run(network, LAYOUT, readers(values))
    assert network.record == []


def test_a_hospital_with_the_name_of_a_server_that_does_not_compute():
    values = {"server 3": [1, 2, 3], "server": [4, 5, 6]}
    assert Sharing(2).run(Network(), LAYOUT, readers(values)).tolist() == [5, 7, 9]
    values = {"server 1": [1, 2, 3], "server 2": [4, 5, 6]}
    assert Sharing("all").run(Network(), LAYOUT, readers(values)).tolist() == [5, 7, 9]


@each_case("scheme", SCHEMES)
def test_what_was_learned_says_that_receivers_learn_it(scheme):
    assert "receive" in " ".join([*scheme.learned(), *scheme.learned().values()])


@each_case("receivers", [("south", "south"), ("",), (" south",)])
def test_receivers_that_cannot_be(receivers):
    with pytest.raises(ParameterError):
        Sharing().run(Network(), LAYOUT, readers(), receivers)


@each_case(
    "vector, error, reason",
    [
        ([1, 2, 101], RangeError, "east: a value is beyond the bound 100"),
        ([1, 2], ParameterError, r"east: the vector has shape \(2,\) and \(3,\) was agreed"),
        ([1.0, 2.0, 3.0], ParameterError, "east: expected integers, got float64"),
    ],
)
@each_case("servers", [3, "all"])
def test_no_message_leaves_before_every_vector_is_checked(servers, vector, error, reason):
    network = Network()
    with pytest.raises(error, match=reason):
        Sharing(servers).run(network, LAYOUT, readers(VALUES | {"east": vector}))
    assert network.record == []
    assert network.transcript.messages == 0


def test_no_message_leaves_before_every_vector_is_read():
    network = Network()

    def unreadable():
        raise RangeError("east: stays.csv cannot be read")

    with pytest.raises(RangeError, match="cannot be read"):
        Sharing().run(network, LAYOUT, readers() | {"east": unreadable})
    assert network.record == []


def test_a_bound_that_does_not_fit():
    largest = field.LIMIT // 3
    vector = {name: [largest, 0, -largest] for name in VALUES}
    total = Sharing().run(Network(), Layout(3, largest), readers(vector))
    assert total.tolist() == [3 * largest, 0, -3 * largest]
    network = Network()
    with pytest.raises(RangeError, match="could pass the largest exact total"):
        Sharing().run(network, Layout(3, largest + 1), readers(vector))
    assert network.record == []
    assert Sharing().limit == field.LIMIT


def each(change):
    """A network that does this to every message."""
    return lambda: lambda sender, recipient, data: change(data)


def swapping():
    """A network that gives the fourth message again in the place of the fifth."""
    kept = []

    def treat(sender, recipient, data):
        kept.append(data)
        return kept[3] if len(kept) == 5 else data

    return treat


@each_case(
    "treat, error, reason",
    [
        (each(lambda d: flipped(d, -1)), AuthenticationError, "north: the message was not made"),
        (each(lambda d: flipped(d, 30)), RemoteProtocolError, "another layout or other parties"),
        (each(lambda d: d[:-1]), DecodeError, "the header says"),
        (each(lambda d: b""), DecodeError, "too short to be one"),
        (swapping, RemoteProtocolError, "north: this message was received before"),
    ],
)
@each_case("servers", [2, "all"])
def test_a_network_that_meddles_is_noticed(servers, treat, error, reason):
    with pytest.raises(error, match=reason):
        Sharing(servers).run(Network(treat()), LAYOUT, readers())


def test_messages_of_an_earlier_run_are_refused():
    network = Network()
    Sharing(2).run(network, LAYOUT, readers())
    old = {(sender, recipient): data for sender, recipient, data in network.record}
    network.treat = lambda sender, recipient, data: old[sender, recipient]
    with pytest.raises(RemoteProtocolError, match="north: the message belongs to another session"):
        Sharing(2).run(network, LAYOUT, readers())


def test_a_lost_message_is_a_missing_one(monkeypatch):
    receive = sharing.Server.receive

    def deaf(self, data):
        if self.missing != ["south", "east"]:
            receive(self, data)

    monkeypatch.setattr(sharing.Server, "receive", deaf)
    with pytest.raises(LocalProtocolError, match="no share of south, east"):
        Sharing(2).run(Network(), LAYOUT, readers())


def test_what_each_party_learned_is_said():
    learned = Sharing(4).learned()
    assert set(learned) == {"hospital", "server"}
    assert "any 3 of the 4 servers together: nothing" in learned["server"]
    assert "all of them together: every hospital's figures" in learned["server"]
    everyone = Sharing("all").learned()
    assert set(everyone) == {"hospital"}
    assert "even if all but two hospitals pool what they saw" in everyone["hospital"]
    for text in (*learned.values(), *everyone.values()):
        assert "the result" in text or "nothing but sizes" in text


# Masking, as far as it is one of the ways to add.


def test_masking_has_room_for_63_bits():
    assert Masking().limit == 2**62 - 1
    largest = Masking().limit // 3
    vectors = {name: [largest, 0, -largest] for name in VALUES}
    total = Masking().run(Network(), Layout(3, largest), readers(vectors))
    assert total.tolist() == [3 * largest, 0, -3 * largest]
    with pytest.raises(RangeError):
        Masking().run(Network(), Layout(3, largest + 1), readers(vectors))


@each_case("security", ["", "malicious", None, True, "Active"])
def test_a_security_that_is_none(security):
    with pytest.raises(ParameterError, match='security is "semi-honest" or "active", not '):
        Masking(security)


def test_masking_needs_more_than_two():
    for names in ((), ("north",), ("north", "south")):
        network = Network()
        with pytest.raises(ThresholdError) as error:
            Masking().run(network, LAYOUT, readers({n: VALUES[n] for n in names}))
        assert (error.value.needed, error.value.got) == (3, len(names))
        assert network.record == []


@each_case("security", ["semi-honest", "active"])
@each_case("vector, error", [([1, 2, 101], RangeError), ([1, 2], ParameterError)])
def test_masking_sends_nothing_when_a_vector_is_wrong(vector, error, security):
    network = Network()
    with pytest.raises(error, match="east"):
        Masking(security).run(network, LAYOUT, readers(VALUES | {"east": vector}))
    assert network.record == []


@each_case("vector, error", [([1, 2, 101], RangeError), ([1, 2], ParameterError)])
def test_paillier_sends_nothing_when_a_vector_is_wrong(vector, error):
    network = Network()
    with pytest.raises(error, match="east"):
        SCHEMES[-1].run(network, LAYOUT, readers(VALUES | {"east": vector}))
    assert network.record == []


def test_masking_says_what_each_party_learned():
    assert "if it follows the protocol" in Masking().learned()["server"]
    assert "even if it deviates" in Masking("active").learned()["server"]
    assert set(Masking().learned()) == {"hospital", "server"}


def test_protocols_have_names():
    assert {"sharing", "masking"} <= set(PROTOCOLS)
    for servers in (2, 7, "all"):
        scheme = protocol("sharing", servers=servers)
        assert (type(scheme), scheme.name, scheme.servers) == (Sharing, "sharing", servers)
    assert protocol("sharing").servers == 3
    for security in ("semi-honest", "active"):
        scheme = protocol("masking", security=security)
        assert (type(scheme), scheme.name, scheme.security) == (Masking, "masking", security)
    assert protocol("masking").security == "semi-honest"
    assert [protocol(name).name for name in PROTOCOLS] == list(PROTOCOLS)


@each_case("name", ["", "Sharing", "shares", "paillier?"])
def test_a_protocol_that_is_none(name):
    reason = re.escape(f"there is no protocol {name!r}; choose from: {', '.join(PROTOCOLS)}")
    with pytest.raises(ParameterError, match=reason):
        protocol(name)
