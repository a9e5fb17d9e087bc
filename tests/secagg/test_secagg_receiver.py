"""Who gets the total takes it from the server alone, and only if it can be one."""

import pytest
from cases import each_case
from secagg.cohort import SERVER, Cohort, flipped

from securecomp.errors import (
    AuthenticationError,
    DecodeError,
    LocalProtocolError,
    RangeError,
    RemoteProtocolError,
    SecureCompError,
)
from securecomp.protocol.role import State
from securecomp.protocol.wire import Vector
from securecomp.secagg.masking_messages import Survivors, UnmaskedTotal

WHO = "registry"
BITS = 13  # four clients, values up to 1000
GOOD = [4000, -4000, 0, 7]


@pytest.fixture
def cohort():
    made = Cohort(4, receivers=(WHO,))
    assert made.parameters.bits == BITS
    return made


def total(cohort, survivors=(0, 1, 2, 3), values=GOOD, vector=None, bits=BITS, sender=SERVER):
    message = UnmaskedTotal(list(survivors), vector or Vector(bits, len(values)))
    residues = [v % (1 << bits) for v in values]
    return cohort.say(message, WHO, sender=sender, residues=residues, bits=bits)


def refused(cohort, data, error, reason, sender=SERVER):
    """It is refused, and the right total is taken afterwards, once."""
    receiver = cohort.receiver(WHO)
    with pytest.raises(error, match=reason) as caught:
        receiver.receive(data)
    if error is RemoteProtocolError:
        assert caught.value.sender == sender
    assert receiver.state is State.COLLECTING
    got = receiver.receive(total(cohort))
    assert got.values.tolist() == GOOD
    assert got.survivors == tuple(cohort.names)
    with pytest.raises(LocalProtocolError, match=r"receive\(\) is not allowed when done"):
        receiver.receive(total(cohort))


@pytest.mark.parametrize(
    "survivors",
    [(0, 1, 2, 4), (-1, 0, 1), (0, 1, 1, 2), (0, 1, 2, 3, 3), (0, 1, 2**63)],
    ids=repr,
)
def test_malformed_survivors(cohort, survivors):
    reason = "server: its list of survivors is malformed"
    refused(cohort, total(cohort, survivors), RemoteProtocolError, reason)


@pytest.mark.parametrize("survivors", [(), (1,), (0, 1)])
def test_too_few_survivors(cohort, survivors):
    refused(cohort, total(cohort, survivors, [0] * 4), SecureCompError, "survivors")


def test_survivors_in_disorder(cohort):
    data = total(cohort, (3, 2, 1, 0))
    refused(cohort, data, RemoteProtocolError, "server: its list of survivors is malformed")


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"values": [0] * 3}, "the vector has 3 elements and 4 were agreed"),
        ({"values": [0] * 5}, "the vector has 5 elements and 4 were agreed"),
        ({"bits": 14}, "the vector is not packed in 13 bits an element"),
        ({"vector": Vector(BITS, 5)}, "the vector has 5 elements"),
        ({"vector": Vector(61, 4)}, "the vector is not packed in 13 bits"),
        ({"values": [0] * 4 + [1], "vector": Vector(BITS, 4)}, "not packed|padding"),
    ],
)
def test_a_total_of_another_size(cohort, facts, reason):
    refused(cohort, total(cohort, **facts), RemoteProtocolError, f"server: .*{reason}")


@pytest.mark.parametrize("value", [3001, -3001, 4095, -4096])
def test_a_total_beyond_the_bounds_of_its_survivors(cohort, value):
    data = total(cohort, (0, 1, 3), [0, 0, 0, value])
    refused(cohort, data, RangeError, "the total is beyond what the agreed bounds allow")


def test_a_total_at_the_bounds_of_its_survivors(cohort):
    got = cohort.receiver(WHO).receive(total(cohort, (0, 1, 3), [3000, -3000, 0, 1]))
    assert got.values.tolist() == [3000, -3000, 0, 1]
    assert got.mean().tolist() == [1000.0, -1000.0, 0.0, 1 / 3]


@each_case(
    "values, reason",
    [
        ([0, 0, 0, 0, 37], "the total weight is beyond"),
        ([0, 0, 0, 0, -1], "the total weight is beyond"),
        ([3001, 0, 0, 0, 3], "the total is beyond"),
        ([0, 0, -1, 0, 0], "the total is beyond"),
    ],
)
def test_weights_bound_the_total(values, reason):
    cohort = Cohort(4, receivers=(WHO,), max_weight=9)
    bits = cohort.parameters.bits
    receiver = cohort.receiver(WHO)
    with pytest.raises(RangeError, match=reason):
        receiver.receive(total(cohort, values=values, bits=bits))
    got = receiver.receive(total(cohort, values=[3000, -3000, 0, 1, 3], bits=bits))
    assert (got.weight, got.values.tolist()) == (3, [3000, -3000, 0, 1])


def test_messages_of_others_other_kinds_and_other_sessions(cohort):
    reason = "c1: sent message kind 25, which is not its to send here"
    refused(cohort, total(cohort, sender="c1"), RemoteProtocolError, reason, sender="c1")
    reason = "server: sent message kind 21, which is not its"
    data = cohort.say(Survivors([0, 1, 2, 3]), WHO)
    refused(cohort, data, RemoteProtocolError, reason)
    other = total(Cohort(4, receivers=(WHO,), seed="other"))
    refused(cohort, other, RemoteProtocolError, "server: the message belongs to another session")
    data = total(cohort)
    refused(cohort, flipped(data, len(data) - 1), AuthenticationError, "server: ")
    refused(cohort, data[:-1], DecodeError, "the body has")
