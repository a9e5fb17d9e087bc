"""The mark of a dealing: shares of two dealings of one contributor are not taken for one vector."""

import hashlib

import pytest
from sharing import reference
from sharing.cast import Cast, vector, vector_body

from securecomp.errors import LocalProtocolError, ProtocolError, RemoteProtocolError
from securecomp.protocol.role import State
from securecomp.sharing.private_sum import DEALING_BYTES, Deal, PartialSum


@pytest.fixture
def cast():
    return Cast()


def marks(cast, deals):
    return {
        name: {cast.open(data, server, Deal)[0].dealing for server, data in messages.items()}
        for name, messages in deals.items()
    }


def test_a_dealing_has_one_mark_for_all_servers_and_no_two_have_the_same(cast):
    seen = []
    for _ in range(2):
        for of_one in marks(cast, cast.deals()).values():
            (mark,) = of_one
            assert len(mark) == DEALING_BYTES == 16
            seen.append(mark)
    assert len(set(seen)) == 6


def test_servers_say_whose_dealings_they_added_in_the_agreed_order(cast):
    deals = cast.deals()
    ordered = [mark for (mark,) in marks(cast, deals).values()]
    want = hashlib.sha256(reference.join("dealings", *ordered)).digest()
    for arrival in (deals, dict(reversed(deals.items()))):
        for messages in cast.partials(arrival).values():
            for receiver, data in messages.items():
                assert cast.open(data, receiver, PartialSum)[0].dealings == want


@pytest.mark.parametrize("again", ["north", "south", "east"])
@pytest.mark.parametrize("servers", [("one",), ("two", "three")])
def test_a_receiver_refuses_sums_over_different_dealings(cast, again, servers):
    values = cast.values()
    deals = cast.deals(values)
    second = cast.contributor(again).contribute(values[again])
    deals[again] = deals[again] | {name: second[name] for name in servers}
    receiver = cast.received("south", cast.partials(deals))
    with pytest.raises(ProtocolError, match="the servers added shares of different dealings"):
        receiver.result()
    assert receiver.state is State.ABORTED
    with pytest.raises(LocalProtocolError, match="is not allowed when aborted"):
        receiver.result()


def test_a_second_dealing_that_reached_every_server_is_as_good_as_the_first(cast):
    values = cast.values()
    deals = cast.deals(values)
    deals["north"] = cast.contributor("north").contribute(values["north"])
    result = cast.received("south", cast.partials(deals)).result()
    assert result.tolist() == cast.total(values)


@pytest.mark.parametrize("size", [0, 31, 33, 1000])
def test_a_digest_of_another_length_is_refused(cast, size):
    receiver = cast.receiver("north")
    body = vector_body(PartialSum(bytes(size), vector()), [1, 2, 3, 4])
    with pytest.raises(RemoteProtocolError) as error:
        receiver.receive(cast.seal(PartialSum.KIND, "one", "north", body))
    assert error.value.sender == "one"
    assert receiver.state is State.COLLECTING
    # It counts as not received: the honest one is still taken.
    partials = cast.partials(cast.deals())
    receiver.receive(partials["one"]["north"])
