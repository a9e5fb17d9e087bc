"""The encrypted aggregator as statistics know it."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from cases import each_case
from paillier import textbook
from sharing.cast import flipped, stream

from securecomp.errors import (
    AuthenticationError,
    DecodeError,
    ParameterError,
    RangeError,
    RemoteProtocolError,
    ThresholdError,
)
from securecomp.paillier import sum_roles, sum_session
from securecomp.paillier.encrypted_sum import Paillier
from securecomp.protocol.local_carrier import LocalCarrier
from securecomp.protocol.secure_sum import secure_sum
from securecomp.protocol.session import Layout
from securecomp.protocol.sum_protocols import PROTOCOLS, protocol
from securecomp.sharing.additive_sum import Sharing
from securecomp.statistics import Column, Count, CrossTable, Histogram, Mean, Study, Sum, Variance

VALUES = {"north": [1, -2, 3], "south": [10, 20, -30], "east": [-100, 0, 100]}
TOTAL = [-89, 18, 73]
LAYOUT = Layout(3, 100)


def scheme(**options):
    return Paillier(**({"bits": 512, "insecure_for_tests": True} | options))


@pytest.fixture(params=[False, True], ids=["plain", "blind"])
def paillier(request):
    return scheme(blind=request.param)


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


class TestRuns:
    @each_case("receivers", [None, ("south",), ("registry",), ("east", "registry")])
    def test_the_total_is_exact(self, paillier, receivers):
        network = Network()
        total = paillier.run(network, LAYOUT, readers(), receivers)
        assert total.dtype == np.int64
        assert total.tolist() == TOTAL
        assert network.rounds == [3, 1, 3 if receivers is None else len(receivers)]
        sent = [(a, b) for a, b, _ in network.record]
        assert sent[:4] == [*((n, "aggregator") for n in VALUES), ("aggregator", "key holder")]
        assert sent[4:] == [("key holder", name) for name in receivers or VALUES]

    def test_who_takes_part(self, paillier):
        network = Network()
        session = paillier.session(network, LAYOUT, ("north", "south"))
        assert session.protocol == sum_session.protocol_name(paillier.key(network).public)
        assert session.contributors == session.receivers == ("north", "south")
        assert session.servers == ("aggregator", "key holder")
        assert session.limit == paillier.limit == 2**62 - 1
        assert session.terms == {"minimum": 2, "blind": int(paillier.blind)}
        assert paillier.session(network, LAYOUT, ("north", "south")).id != session.id

    def test_the_key_is_drawn_once(self, paillier):
        network = Network()
        key = paillier.key(network)
        assert key.public.bits == 512
        paillier.run(network, LAYOUT, readers())
        assert paillier.key(Network()) is key
        same = scheme().key(LocalCarrier(stream("network")))
        assert textbook.factors(same) == textbook.factors(
            scheme().key(LocalCarrier(stream("network")))
        )

    @each_case("bits", [511, 62])
    def test_a_key_that_cannot_be(self, bits):
        with pytest.raises(ParameterError, match=f"^a key has an even number .*, not {bits}$"):
            scheme(bits=bits).run(Network(), LAYOUT, readers())

    def test_a_short_key(self):
        with pytest.raises(ParameterError, match=r"^a key of 512 bits is not safe"):
            Paillier(bits=512).run(Network(), LAYOUT, readers())
        assert Paillier().bits == 3072

    @each_case("values", [{}, {"north": [1, 2, 3]}])
    def test_too_few(self, paillier, values):
        network = Network()
        with pytest.raises(ThresholdError) as error:
            paillier.run(network, LAYOUT, readers(values))
        assert (error.value.needed, error.value.got) == (2, len(values))
        assert network.record == []

    @each_case("name", ["aggregator", "key holder"])
    def test_a_hospital_with_the_name_of_a_server(self, paillier, name):
        network = Network()
        reason = f"^a site is named '{name}', as a computing server is; rename the site$"
        with pytest.raises(ParameterError, match=reason):
            paillier.run(network, LAYOUT, readers(VALUES | {name: [1, 2, 3]}))
        assert network.record == []

    def test_nobody_receives_the_result(self, paillier):
        with pytest.raises(ThresholdError, match="nobody receives the result"):
            paillier.run(Network(), LAYOUT, readers(), ())

    @each_case("value", [101, -101])
    def test_beyond_the_bound(self, paillier, value):
        network = Network()
        with pytest.raises(RangeError, match=r"^south: a value is beyond the bound 100 of a slot$"):
            paillier.run(network, LAYOUT, readers(VALUES | {"south": [0, value, 0]}))
        assert all(sender == "north" for sender, *_ in network.record)

    def test_a_bound_that_could_pass_the_limit(self, paillier):
        with pytest.raises(RangeError, match="could pass the largest exact total"):
            paillier.run(Network(), Layout(3, 2**61), readers())
        bound = (2**62 - 1) // 3
        values = {name: [bound, -bound, 0] for name in VALUES}
        total = paillier.run(Network(), Layout(3, bound), readers(values))
        assert total.tolist() == [3 * bound, -3 * bound, 0]

    def test_a_wrong_length(self, paillier):
        with pytest.raises(ParameterError, match=r"^south: the vector has shape \(2,\) and \(3,\)"):
            paillier.run(Network(), LAYOUT, readers(VALUES | {"south": [1, 2]}))

    @each_case("victim", ["aggregator", "key holder", "south"])
    def test_a_changed_byte_anywhere(self, paillier, victim):
        first = Network()
        paillier.run(first, LAYOUT, readers())
        size = min(len(d) for _, to, d in first.record if to == victim)
        for at in (0, 30, 70, size // 2, size - 1):
            treat = lambda a, b, d: flipped(d, at) if b == victim else d  # noqa: B023, E731
            with pytest.raises((DecodeError, AuthenticationError, RemoteProtocolError)):
                paillier.run(Network(treat), LAYOUT, readers())

    def test_messages_of_an_earlier_sum(self, paillier):
        first = Network()
        paillier.run(first, LAYOUT, readers())
        old = {(a, b): d for a, b, d in first.record}
        for pair in (("south", "aggregator"), ("aggregator", "key holder"), ("key holder", "east")):
            network = Network(lambda a, b, d, pair=pair: old[pair] if (a, b) == pair else d)
            network._identities = first._identities
            with pytest.raises(RemoteProtocolError, match=f"^{pair[0]}: the message belongs"):
                paillier.run(network, LAYOUT, readers())

    def test_long_vectors_go_through_threads(self):
        length = (1 << 16) + 3
        ones = np.ones(length, np.int64)
        values = {"north": ones, "south": -3 * ones, "east": np.arange(length) % 7 - 3}
        network = LocalCarrier()  # threads draw in any order
        total = scheme(blind=True).run(network, Layout(length, 3), readers(values))
        assert np.array_equal(total, np.arange(length) % 7 - 5)

    def test_by_name(self):
        assert "paillier" in PROTOCOLS
        assert type(protocol("paillier")) is Paillier
        assert (protocol("paillier").bits, protocol("paillier").blind) == (3072, False)

    def test_what_was_learned(self):
        for blind, together in ((False, "every hospital's figures"), (True, "the result")):
            learned = scheme(blind=blind).learned()
            assert list(learned) == ["hospital", "aggregator", "key holder"]
            assert learned["aggregator"] == "nothing but sizes"
            assert learned["key holder"] == (
                f"the result; together with the aggregator: {together}"
            )

    def test_what_an_aggregator_that_holds_the_key_would_see(self):
        """The claim that is made of blind sums: uploads decrypt to something else."""
        for blind, seen in ((False, True), (True, False)):
            paillier = scheme(blind=blind)
            network = Network()
            opened = []

            original = sum_roles.read_vector
            private = paillier.key(network)

            def spy(*args, original=original, private=private, opened=opened):
                vector = original(*args)
                opened.append(int(private.raw_decrypt(vector.ciphertexts[0])))
                return vector

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(sum_roles, "read_vector", spy)
                paillier.run(network, LAYOUT, readers())
            n = int(paillier.key(network).public.n)
            slot = 7 + 1 + 2 + 1
            packed = [textbook.pack(v, slot, 100)[0] % n for v in VALUES.values()]
            assert (opened[:3] == packed) is seen
            assert not (blind and set(opened[:3]) & set(packed))


def draw(seed, rows):
    values = np.frombuffer(stream(seed)(8 * rows), "<u8")
    return values.astype(object)


class TestSums:
    @each_case("blind", [False, True])
    @each_case("bound, decimals", [(1000, 0), (10**6, 2), (10**9, 6), (2**61, 0), (10**30, 8)])
    def test_the_same_as_sharing(self, blind, bound, decimals):
        """Wide totals travel in limbs, and come out exactly."""
        scale = 10**decimals
        limit = bound * scale
        integers = {
            name: [limit, *(int(v) * 7**40 % (2 * limit + 1) - limit for v in draw(name, 11))]
            for name in VALUES
        }
        vectors = {
            name: np.array([Decimal(f"{v}e-{decimals}") for v in row], object).reshape(3, 4)
            for name, row in integers.items()
        }
        got, want = (
            secure_sum(vectors, bound=bound, decimals=decimals, protocol=p, entropy=stream("sum"))
            for p in (scheme(blind=blind), Sharing())
        )
        exact = [sum(column) for column in zip(*integers.values(), strict=True)]
        assert got.integers == want.integers == exact
        assert got.values.tolist() == want.values.tolist()
        assert got.values.shape == (3, 4)
        assert (got.protocol, got.scale) == ("paillier", scale)
        assert got.transcript.rounds == 3
        assert got.transcript.messages == 3 + 1 + 3

    def test_scalars_and_nothing(self):
        for values, want in (([5, -7], -2), ([np.zeros((0, 3))] * 2, np.zeros((0, 3)).tolist())):
            vectors = dict(zip("ab", values, strict=True))
            got = secure_sum(vectors, bound=9, protocol=scheme())
            assert got.values.tolist() == want


@pytest.fixture(scope="module")
def sites():
    def site(seed, rows):
        raw = draw(seed, 3 * rows)
        return pd.DataFrame(
            {
                "los": [int(v) % 60 for v in raw[:rows]],
                "cost": [int(v) % 10**9 / 100 for v in raw[rows : 2 * rows]],
                "ward": ["abc"[int(v) % 3] for v in raw[2 * rows :]],
            }
        )

    return {"north": site("n", 40), "south": site("s", 25), "east": site("e", 0)}


COLUMNS = {
    "los": Column(bound=60, decimals=0),
    "cost": Column(bound=10**7, decimals=2),
    "ward": Column(levels=["a", "b", "c"]),
}


@each_case("blind", [False, True])
def test_statistics_are_those_of_sharing(sites, blind):
    asked = [
        Count(None, "ward"),
        Sum("cost", None),
        Mean("los", "ward"),
        Variance("cost", "ward"),
        Histogram("los", None, (0.0, 10.0, 30.0, 60.0)),
        CrossTable(None, None, "ward", "ward"),
    ]
    ours = Study(sites, columns=COLUMNS, protocol=scheme(blind=blind)).run(asked)
    theirs = Study(sites, columns=COLUMNS, protocol=Sharing()).run(asked)
    for a, b in zip(ours, theirs, strict=True):
        assert a.to_json() == b.to_json()
        assert a.protocol == "paillier"
        assert a.learned["aggregator"] == "nothing but sizes"
    pooled = pd.concat(sites.values())
    assert ours[1].value == float(sum(Decimal(str(v)) for v in pooled["cost"]))
