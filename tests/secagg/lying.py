"""What the tests of a lying server have in common.

The server has its own key and does not keep to the protocol. Every lie is a properly sealed
message. A client refuses it with the right error, reveals nothing and is not harmed: it finishes
with an honest server, and the sum is exact.
"""

import pytest
from secagg.cohort import SERVER

from securecomp.errors import RemoteProtocolError

SECURITY = ["semi-honest", "active"]
ALICE = "c1"  # the client that is lied to

# The X25519 keys of small order: with them the shared secret is zero for everybody.
SMALL_ORDER = [
    bytes(32),
    (1).to_bytes(32, "little"),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
    bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
    (2**255 - 20).to_bytes(32, "little"),
    (2**255 - 19).to_bytes(32, "little"),
    (2**255 - 18).to_bytes(32, "little"),
]


def refused(cohort, step, data, error, reason, name=ALICE, sender=SERVER):
    """The client refuses, says whom it blames, and is as it was."""
    client = cohort.clients[name]
    before = client.state
    cohort.inbox, honest = cohort.inbox | {name: data}, cohort.inbox
    with pytest.raises(error, match=reason) as caught:
        cohort.do(step, name)
    if error is RemoteProtocolError:
        assert caught.value.sender == sender
    assert client.state is before
    cohort.inbox = honest
    return caught.value


def finishes(cohort, drops=None):
    """Nothing was harmed: an honest server comes to the exact sum."""
    result = cohort.finish(drops)
    assert result.values.tolist() == cohort.total(result.survivors)
    return result


def again(cohort, layout=None):
    """Begin the next round, up to the boxes."""
    layout = layout or cohort.session.layout
    cohort.server.next_round(layout)
    for client in cohort.clients.values():
        cohort.server.receive(client.next_round(layout)[1])
    cohort.inbox = cohort.server.close()
