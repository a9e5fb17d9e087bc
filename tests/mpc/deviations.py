"""Ways to deviate from a computation on authenticated shares, each by one party of three."""

import numpy as np

from securecomp.core import field
from securecomp.mpc.computation import Computation
from securecomp.mpc.mac_checks import Commitment, Opening
from securecomp.mpc.roles import ShareMessage, vector_body
from securecomp.protocol import wire
from securecomp.protocol.local_carrier import LocalCarrier

ONE = np.array(1, np.uint64)
NAMES = ("ada", "ben", "cyd", "dan")


class Network(LocalCarrier):
    """Keeps the last message of every pair, and can bring it again instead of the next."""

    def __init__(self, entropy):
        super().__init__(entropy)
        self.last = {}
        self.again = False

    def send(self, sender, recipient, data):
        data = bytes(data)
        if self.again and sender == "ben":
            return super().send(sender, recipient, self.last[sender, recipient])
        self.last[sender, recipient] = data
        return super().send(sender, recipient, data)


class Run:
    """A computation, and all that it opened."""

    def __init__(self, replay, parties=3, seed=0):
        self.network = Network(replay(seed))
        self.computation = Computation(NAMES[:parties], self.network, integrity="mac")
        self.engine = self.computation.engine
        self.driver = self.engine.run
        self.members = self.driver.members
        self.opened = set()
        original = self.driver.open_checked

        def spy(pairs):
            heard = original(pairs)
            for vector in heard:
                self.opened |= {int(v) for v in vector}
            return heard

        self.driver.open_checked = spy

    def share(self, owner, values, **how):
        return self.computation.share(owner, values, **{"bound": 1000, **how})

    def revealed(self, integers):
        """Which of these integers were opened as they are."""
        return self.opened & {int(v) for v in field.encode(integers)}


# Cheating. Each takes a run and its first value, x, before x is multiplied and revealed.


def bumped(body):
    message, payload = wire.decode_body(body.data, ShareMessage)
    values = wire.unpack(message.vector, payload, message.vector.length).copy()
    values[0] = field.add(values[0], ONE)
    return vector_body(values, field.BITS)


def lie_to_all(r, cheater, turn=0, errors=(1,)):
    """Open a share that is not one's own, and believe it, as all others do."""
    exchange, turns = r.driver._exchange, []

    def lying(size, share, then, bits, to):
        turns.append(bits)
        wrong = field.encode(np.array(errors))
        now = len(turns) == turn + 1

        def changed(party):
            made = share(party)
            if now and party == cheater:
                made[: wrong.size] = field.add(made[: wrong.size], wrong)
            return made

        return exchange(size, changed, then, bits, to)

    r.driver._exchange = lying


def lie(party, turn=0, to=None, kind=ShareMessage, change=bumped):
    """A `_sealed` whose message number `turn` of a kind is another, to all or to some."""
    say, said = party._sealed, []

    def lying(recipients, step, body, of):
        sealed = say(recipients, step, body, of)
        if of == kind.KIND:
            said.append(step)
            if len(said) == turn + 1:
                other = say(recipients, step, change(body), of)
                pairs = zip(recipients, sealed, other, strict=True)
                return [b if to is None or name in to else a for name, a, b in pairs]
        return sealed

    return lying


def product_opening(r, x):
    lie_to_all(r, 1)


def output_opening(r, x):
    lie_to_all(r, 0, turn=1)


def input_share(r, x):
    x.value[1][0, 0] = field.add(x.value[1][0, 0], ONE)


def input_mac(r, x):
    x.value[0][1, 0] = field.add(x.value[0][1, 0], ONE)


def guessed_mac(r, x):
    """A share changed by one, and its MAC by a guess of alpha."""
    input_share(r, x)
    x.value[1][1, 0] = field.add(x.value[1][1, 0], r.members[1].key)


def correction(vector, row):
    def cheat(r, x):
        last = r.members[-1]
        vectors = last.vectors

        def changed(*args):
            last.vectors = vectors
            found = vectors(*args)
            found[vector][row, 0] = field.add(found[vector][row, 0], ONE)
            return found

        last.vectors = changed

    return cheat


def sigma(r, x):
    own = r.members[1].sigma
    r.members[1].sigma = lambda: field.add(own(), ONE)


def key(r, x):
    r.members[0]._key = field.add(r.members[0].key, ONE)


changed_product, changed_product_mac = correction(2, 0), correction(2, 1)
MACS = [
    product_opening,
    output_opening,
    input_share,
    input_mac,
    guessed_mac,
    correction(0, 0),
    correction(0, 1),
    correction(1, 1),
    changed_product,
    changed_product_mac,
    sigma,
    key,
]


def two_stories(r, x):
    r.members[1]._sealed = lie(r.members[1], to=["ada"])


def another_story_than_its_own(r, x):
    r.members[1]._sealed = lie(r.members[1])


def two_stories_of_the_output(r, x):
    r.members[1]._sealed = lie(r.members[1], turn=1, to=["cyd"])


def said_otherwise(kind, turn, **fields):
    """The same message with other contents."""

    def change(body):
        message, _ = wire.decode_body(body.data, kind)
        told = {name: getattr(message, name) for name in kind.__struct_fields__}
        return wire.encode_body(kind(**{**told, **fields}))

    return lambda r, x: setattr(
        r.members[1], "_sealed", lie(r.members[1], turn=turn, kind=kind, change=change)
    )


def one_commitment_to_ada(r, x):
    def change(body):
        return wire.encode_body(Commitment(bytes(32)))

    r.members[1]._sealed = lie(r.members[1], kind=Commitment, to=["ada"], change=change)


def replayed(r, x):
    r.network.again = True


def too_long(r, x):
    def change(body):
        return vector_body(np.zeros(5, np.uint64), field.BITS)

    r.members[1]._sealed = lie(r.members[1], change=change)


def something_behind(r, x):
    def change(body):
        return np.concatenate([body, np.zeros(8, np.uint8)])

    r.members[1]._sealed = lie(r.members[1], kind=Commitment, change=change)


def nonsense(r, x):
    say = r.members[1]._sealed
    r.members[1]._sealed = lambda to, step, body, kind: say(to, step, body[:3], kind)


another_sigma_of_the_output = said_otherwise(Opening, 3, secret=bytes(8))
OTHERS = [
    (two_stories, "did not hear the same"),
    (another_story_than_its_own, "did not hear the same"),
    (two_stories_of_the_output, "did not hear the same"),
    (said_otherwise(Opening, 0, heard=bytes(32)), "did not hear the same"),
    (said_otherwise(Commitment, 0, digest=bytes(32)), "^ben: does not open"),
    (said_otherwise(Commitment, 0, digest=b""), "^ben: does not open"),
    (said_otherwise(Opening, 0, secret=bytes(32)), "^ben: does not open"),
    (said_otherwise(Opening, 0, nonce=bytes(32)), "^ben: does not open"),
    (said_otherwise(Opening, 0, nonce=b""), "^ben: does not open"),
    (said_otherwise(Commitment, 1, digest=bytes(32)), "^ben: does not open"),
    (said_otherwise(Opening, 1, secret=bytes(8)), "^ben: does not open"),
    (another_sigma_of_the_output, "^ben: does not open"),
    (one_commitment_to_ada, "^ben: does not open"),
    (replayed, "^ben: the message is of round"),
    (too_long, "^ben: the vector has 5 elements"),
    (something_behind, "^ben: its message has something behind"),
    (nonsense, "^ben: ShareMessage: the body is cut off"),
]
AT_THE_OUTPUT = [
    output_opening,
    changed_product,
    changed_product_mac,
    two_stories_of_the_output,
    another_sigma_of_the_output,
]
"""Nothing is wrong before the result is opened; all others are found before that."""
