"""Graph of the clients that share masks: complete, or random and k-regular.

The sparse graph is a Harary graph on a random order of the clients: each is a neighbour of the k/2
before and the k/2 behind it in a ring. `plan` finds the smallest degree and threshold for which
the bad events of Bell et al. are rarer than asked: the graph of honest survivors falls apart, a
client has as many corrupt neighbours as the threshold, or fewer live ones.

Source: Bell, Bonawitz, Gascón, Lepoint, Raykova, Secure single-server aggregation with
(poly)logarithmic overhead, CCS 2020, sections 3.2 to 3.4 and 4.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from securecomp.core import checks, prg
from securecomp.core.fixedpoint import is_number
from securecomp.errors import ParameterError

SIGMA = 40
"""Statistical security: bad events of secrecy have probability below 2^-40."""
ETA = 20
"""Correctness: a run within the dropout rate fails with probability below 2^-20."""
COMPLETE_BELOW = 50
"""Under this many clients the complete graph is the cheaper one to be safe with."""


@dataclass(frozen=True, slots=True)
class GraphPlan:
    """A graph's degree and the threshold of the sharing among a client's neighbours."""

    degree: int
    threshold: int


def rates(corrupt: float | Fraction, dropout: float | Fraction) -> tuple[Fraction, Fraction]:
    """Return two rates as they are written: in floats 0.58 * 100 is less than 58 clients.

    Raises:
        ParameterError: One is not in [0, 1).
    """
    for rate in (corrupt, dropout):
        if not (is_number(rate) and 0 <= rate < 1):
            raise ParameterError("corruption and dropout rates are at least 0 and below 1")
    return Fraction(str(corrupt)), Fraction(str(dropout))


@lru_cache(maxsize=256)
def plan(
    clients: int,
    corrupt: float | Fraction,
    dropout: float | Fraction,
    *,
    active: bool = False,
    sigma: int = SIGMA,
    eta: int = ETA,
) -> GraphPlan | None:
    """Return the smallest sparse graph that is safe, or None if only the complete one is.

    Args:
        clients: Number of clients, at least 3.
        corrupt: Largest fraction of clients that collude with the server, in [0, 1).
        dropout: Largest fraction that drops out, in [0, 1).
        active: Whether the server may deviate from the protocol.
        sigma: Secrecy fails with probability at most 2^-sigma.
        eta: Correctness fails with probability at most 2^-eta.

    Raises:
        ParameterError: The rates cannot be reached by any graph.
    """
    checks.integer(clients, "the clients of a graph", 3)
    corrupt, dropout = rates(corrupt, dropout)
    if corrupt + (2 if active else 1) * dropout > Fraction(9, 10):
        raise ParameterError(
            f"no graph is safe with {float(corrupt):.0%} corrupt and {float(dropout):.0%} dropped "
            "out; lower one"
        )
    bad, gone = math.floor(corrupt * clients), math.floor(dropout * clients)
    alive = clients - gone
    share = 2.0 ** -(sigma + 1) / clients  # two bad events of secrecy, a union over clients
    for degree in range(2, clients - 1, 2):
        if _log_disconnected(clients, degree, bad + gone) >= -(sigma + 1) * math.log(2):
            continue
        most_corrupt = _upper_quantile(clients, bad, degree, share)
        fewest_alive = _lower_quantile(clients, alive, degree, 2.0**-eta / clients)
        if active:
            # Two survivor sets must not both find a threshold of honest neighbours.
            most_corrupt = math.ceil((most_corrupt + degree - 1.25) / 2)
        if fewest_alive > most_corrupt:
            return GraphPlan(degree, max(most_corrupt + 1, 2))
    return None


def _log_disconnected(clients: int, degree: int, removed: int) -> float:
    """Bound the chance that a Harary graph falls apart without `removed` random clients.

    It takes two gaps of degree/2 neighbours in the ring: a union bound over the pairs of gaps.
    """
    if degree > removed:
        return -math.inf
    pairs = math.log(clients) + math.log(clients - degree - 1) - math.log(2)
    return (
        pairs
        + math.lgamma(removed + 1)
        + math.lgamma(clients - degree + 1)
        - math.lgamma(clients + 1)
        - math.lgamma(removed - degree + 1)
    )


def _probabilities(total: int, marked: int, drawn: int) -> Iterator[tuple[int, float]]:
    """Yield (x, Pr[x marked among the drawn]), x rising: the hypergeometric distribution."""

    def log_choose(n: int, k: int) -> float:
        return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)

    whole = log_choose(total, drawn)
    for x in range(max(0, drawn - (total - marked)), min(drawn, marked) + 1):
        log = log_choose(marked, x) + log_choose(total - marked, drawn - x) - whole
        yield x, math.exp(log)


def _upper_quantile(total: int, marked: int, drawn: int, chance: float) -> int:
    """Return the smallest x with Pr[more than x marked] <= chance."""
    tail = 0.0
    for x, probability in reversed(list(_probabilities(total, marked, drawn))):
        if tail + probability > chance:
            return x
        tail += probability
    return 0


def _lower_quantile(total: int, marked: int, drawn: int, chance: float) -> int:
    """Return the largest x with Pr[fewer than x marked] < chance."""
    below = 0.0
    for x, probability in _probabilities(total, marked, drawn):
        below += probability
        if below >= chance:
            return x
    return drawn


def neighbours(clients: int, degree: int, seed: bytes) -> list[list[int]]:
    """Return each client's neighbours, ascending.

    Args:
        clients: Number of clients.
        degree: Even, or clients - 1 for the complete graph.
        seed: Public randomness, 32 bytes; the same for everyone.
    """
    if degree >= clients - 1:
        return [[v for v in range(clients) if v != u] for u in range(clients)]
    ranks = prg.expand(prg.derive(seed, "secagg graph"), clients)
    ring = np.argsort(ranks, kind="stable").tolist()
    near = [*range(-(degree // 2), 0), *range(1, degree // 2 + 1)]
    found: list[list[int]] = [[]] * clients
    for place, client in enumerate(ring):
        found[client] = sorted(ring[(place + step) % clients] for step in near)
    return found
