"""Sites with rows of their own, a federated averaging in plain numpy, and processes that die."""

import numpy as np
from replaying import Replay

from securecomp.federated import FederatedLogisticRegression
from securecomp.protocol.local_carrier import LocalCarrier
from securecomp.sharing.additive_sum import Sharing

SIZES = {"north": 40, "south": 25, "east": 61, "west": 33}


def sites(columns=3, sizes=SIZES, seed=1, classes=2):
    """Rows of a logistic model; the sites differ in size and in where their rows lie."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(classes if classes > 2 else 1, columns))
    found = {}
    for place, (name, size) in enumerate(sizes.items()):
        x = np.clip(rng.normal(0.2 * place, 1, (size, columns)), -4, 4)
        scores = x @ weights.T
        if classes > 2:
            y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
        else:
            y = (rng.uniform(size=size) < 1 / (1 + np.exp(-scores[:, 0]))).astype(int)
        found[name] = (x, y)
    return found


def model(protocol="sharing", seed="training", **arguments):
    """A model whose randomness is replayed, on unscaled columns."""
    given = {"scaling": "none", "rounds": 4, "bounds": 4, "entropy": Replay(seed)} | arguments
    return FederatedLogisticRegression(protocol, **given)


def averaged(data, rounds, rate, epochs=1, l2=0.0, names=None):
    """Federated averaging on all rows of a site, as in the paper, in floats."""
    names = list(data) if names is None else names
    width = next(iter(data.values()))[0].shape[1]
    w = np.zeros(width + 1)
    for _ in range(rounds):
        total, rows = np.zeros_like(w), 0
        for name in names:
            x, y = data[name]
            x = np.column_stack([x, np.ones(len(x))])
            own = w.copy()
            for _ in range(epochs):
                p = 1 / (1 + np.exp(-x @ own))
                own = own - rate * (x.T @ (p - y) / len(y) + l2 * np.append(own[:-1], 0))
            total += len(y) * own
            rows += len(y)
        w = total / rows
    return w


class Recorder(LocalCarrier):
    """Keeps all that crosses between different parties."""

    def __init__(self, entropy=None):
        super().__init__(entropy or Replay("recorder"))
        self.record = []

    def send(self, sender, recipient, data):
        if sender != recipient:
            self.record.append((sender, recipient, bytes(data)))
        return super().send(sender, recipient, data)


class CrashError(Exception):
    """A process that dies."""


class Mortal(Sharing):
    """A protocol whose process dies before or after its n-th sum was opened."""

    def __init__(self, at=None, after=False):
        super().__init__()
        self.at, self.after, self.calls, self.totals = at, after, 0, []

    def run(self, carrier, layout, contributors, receivers=None):
        self.calls += 1
        if self.calls == self.at and not self.after:
            raise CrashError
        total = super().run(carrier, layout, contributors, receivers)
        self.totals.append(total.tolist())
        if self.calls == self.at:
            raise CrashError
        return total
