"""Parties that compute on shares, carriers that listen, and exact arithmetic to compare with."""

import functools
import operator
from fractions import Fraction

import numpy as np
from replaying import Replay

from securecomp.core import field
from securecomp.mpc.computation import Computation
from securecomp.mpc.dealer_parties import DEALER
from securecomp.mpc.roles import ShareMessage
from securecomp.protocol import identity as identities
from securecomp.protocol import wire
from securecomp.protocol.local_carrier import LocalCarrier

P = field.MODULUS
LIMIT = field.LIMIT
NAMES = ("north", "south", "east", "west", "centre")


class Listener(LocalCarrier):
    """Keeps every message, and may change one on its way: `tamper(number, data) -> data`."""

    def __init__(self, entropy=None):
        super().__init__(entropy or Replay("computers"))
        self.record = []
        self.tamper = None

    def send(self, sender, recipient, data):
        number = len(self.record)
        self.record.append((sender, recipient, bytes(data)))
        super().send(sender, recipient, data)
        return self.tamper(number, bytes(data)) if self.tamper else data


def computation(parties=3, seed="computers", **facts):
    return Computation(NAMES[:parties], Listener(Replay(seed)), **facts)


def carrier(run):
    return run.engine.run._carrier


def sent(run):
    """How many messages have left so far."""
    return len(carrier(run).record)


def units(array):
    """The integers over the scale, opened by adding the shares up: no message, no rounding."""
    total = [0] * array.size
    for share in array.value:
        assert share.dtype == np.uint64
        assert share.shape == (array.size,)
        assert all(int(v) < P for v in share)
        total = [(t + int(v)) % P for t, v in zip(total, share, strict=True)]
    return [t - P if t > LIMIT else t for t in total]


def exact(array):
    """The exact values, an object array of fractions in the array's shape."""
    integers = units(array)
    assert all(abs(v) <= array.bound for v in integers)
    out = np.empty(array.size, object)
    out[:] = [Fraction(v, array.scale) for v in integers]
    return out.reshape(array.shape)


def fractions(values):
    """What numbers are, exactly."""
    array = values if isinstance(values, np.ndarray) else np.array(values, object)
    out = np.empty(array.size, object)
    out[:] = [Fraction(v.item() if isinstance(v, np.generic) else v) for v in array.flat]
    return out.reshape(array.shape)


def same(array, want):
    """A shared array is exactly this: in shape, in every value, and when it is revealed."""
    want = np.asarray(want, object)
    assert array.shape == want.shape
    found = exact(array)
    assert found.tolist() == want.tolist()
    revealed = array.reveal()
    assert revealed.shape == want.shape
    if array.scale == 1:
        assert revealed.dtype == np.int64
        assert revealed.tolist() == want.tolist()
    else:
        assert revealed.dtype == np.float64
        nearest = [float(v) for v in want.reshape(-1)]
        assert revealed.reshape(-1).tolist() == nearest


def opened_messages(run):
    """Every message in the clear: (step, sender, recipient, message, payload)."""
    lockstep = run.engine.run
    speakers = {party.name: party for party in (*lockstep.parties, lockstep.dealer)}
    clear = []
    for sender, recipient, data in carrier(run).record:
        speaker = speakers[recipient]
        header, _, _ = wire.split_header(data)
        assert (header.sender, header.recipient) == (sender, recipient)
        speaker._computing.round = header.round
        _, body = identities.open_sealed(
            speaker._identity, speaker._computing, speaker._computing.agreement, data, recipient
        )
        clear.append((header.round, sender, recipient, header.kind, bytes(body)))
    return clear


def said(body):
    """The numbers of a `ShareMessage` body, in Python ints, and their width."""
    message, payload = wire.decode_body(body, ShareMessage)
    vector = message.vector
    return wire.unpack(vector, payload, vector.length, vector.bits).tolist(), vector.bits


def openings(run, start=0):
    """What the parties opened to all, step by step: the sum or the exclusive-or of all shares."""
    steps = {}
    for step, sender, _, kind, body in opened_messages(run)[start:]:
        if kind == ShareMessage.KIND and sender != DEALER:
            steps.setdefault(step, {})[sender] = said(body)
    found = []
    for step in sorted(steps):
        columns = zip(*(numbers for numbers, _ in steps[step].values()), strict=True)
        bits = next(iter(steps[step].values()))[1]
        join = operator.xor if bits == 64 else lambda a, b: (a + b) % P
        found.append((bits, [functools.reduce(join, column) for column in columns]))
    return found
