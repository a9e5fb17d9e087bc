"""Parameters that clients and server agree on; a client refuses weak ones."""

import math
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Literal

from securecomp.core import checks
from securecomp.errors import ParameterError, RangeError, ThresholdError
from securecomp.protocol.session import Session
from securecomp.secagg import graph

Security = Literal["semi-honest", "active"]
PROTOCOL = "masking/sum/1"
LEAST_CORRUPT = 50
"""Thousandths of corrupt clients that a sparse graph must stand at least."""
_MOST_CLIENTS = 1 << 20
SMALLEST_COHORT = 3
"""With two survivors, each would read the other's vector off the sum."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """The agreed numbers of one session.

    Attributes:
        clients: How many clients.
        degree: Neighbours of each; clients - 1 is the complete graph.
        threshold: Shares (of the neighbours and the client itself) that reveal a secret.
        minimum: Fewest survivors whose sum a client helps to reveal.
        bits: The modulus is 2^bits.
        max_weight: Largest weight of a client; 0 if there are no weights.
        active: Whether the server may deviate from the protocol.
        corrupt: Corruption rate that a sparse graph was planned for, in thousandths.
        dropout: Dropout rate that it was planned for, in thousandths.
    """

    clients: int
    degree: int
    threshold: int
    minimum: int
    bits: int
    max_weight: int
    active: bool
    corrupt: int = 0
    dropout: int = 0

    def __post_init__(self) -> None:
        for name in _TERMS:
            if name != "active":
                checks.integer(getattr(self, name), name.replace("_", " "))
        checks.truth(self.active, "active")

    @classmethod
    def choose(
        cls,
        clients: int,
        bound: int,
        *,
        security: Security = "semi-honest",
        corrupt: float = 0.2,
        dropout: float = 0.2,
        max_weight: int = 0,
        minimum: int | None = None,
        complete: bool | None = None,
    ) -> "Parameters":
        """Choose graph, threshold and modulus.

        Args:
            clients: How many clients, at least 3.
            bound: Largest absolute value of an element, before weighting.
            security: Against a server that follows the protocol, or one that does not. The
                second needs the complete graph: clients that see different survivors must have
                signers in common.
            corrupt: Fraction of clients that may collude with the server.
            dropout: Fraction of clients that may drop out.
            max_weight: Largest integer weight; 0 for a plain sum.
            minimum: Fewest survivors; by default the threshold of a complete graph, which is more
                than half (two thirds) of its clients, and of a sparse one's clients all that the
                dropout rate leaves.
            complete: Force the complete graph, or forbid it; by default it is used below 50
                clients, for active security, and where no sparse graph is safe.

        Raises:
            ThresholdError: Fewer than 3 clients.
            RangeError: The sum does not fit 63 bits.
            ParameterError: Impossible rates or choices.
        """
        for what, number in (("bound", bound), ("max_weight", max_weight)):
            checks.integer(number, what)
        checks.integer(clients, "clients", most=_MOST_CLIENTS)
        if minimum is not None:
            checks.integer(minimum, "minimum")
        if complete is not None:
            checks.truth(complete, "complete")
        if clients < SMALLEST_COHORT:
            raise ThresholdError(
                SMALLEST_COHORT, clients, "masking: with two clients each sees the other's vector"
            )
        if security not in ("semi-honest", "active"):
            raise ParameterError(f'security is "semi-honest" or "active", not {security!r}')
        exactly = graph.rates(corrupt, dropout)
        active = security == "active"
        if active and complete is False:
            raise ParameterError("active security needs the complete graph; leave out complete")
        forbidden = complete is False
        if complete is None:
            complete = active or clients < graph.COMPLETE_BELOW
        thousandths = (math.ceil(exactly[0] * 1000), math.ceil(exactly[1] * 1000))
        found = None if complete else _planned(clients, *thousandths)
        if found is None:
            if complete is False and forbidden:
                raise ParameterError(
                    f"no sparse graph on {clients} clients is safe at these rates; allow the "
                    "complete one"
                )
            bad, gone = (math.floor(rate * clients) for rate in exactly)
            threshold = _least_threshold(clients, active, bad)
            if threshold > clients - gone:
                raise ParameterError(
                    f"with {corrupt:.0%} corrupt and {dropout:.0%} dropped out of {clients} "
                    "clients no threshold is safe; lower one"
                )
            thousandths = (0, 0)
            found = graph.GraphPlan(clients - 1, threshold)
            least = max(SMALLEST_COHORT, threshold)
        else:
            least = _survivors(clients, thousandths[1])
        return cls(
            clients,
            found.degree,
            found.threshold,
            least if minimum is None else minimum,
            modulus_bits(clients, bound, max_weight),
            max_weight,
            active,
            *thousandths,
        ).check(bound)

    @property
    def complete(self) -> bool:
        """Whether everyone is everyone's neighbour."""
        return self.degree == self.clients - 1

    def check(self, bound: int) -> "Parameters":
        """Refuse what does not protect a client, whoever proposed it.

        Args:
            bound: Largest absolute value of an element.

        Raises:
            ThresholdError: The threshold or the cohort is too small.
            ParameterError: Inconsistent numbers.
            RangeError: A sum could wrap.
        """
        checks.integer(bound, "bound", 0)
        if self.clients < SMALLEST_COHORT or self.minimum < SMALLEST_COHORT:
            raise ThresholdError(
                SMALLEST_COHORT, min(self.clients, self.minimum), "the cohort is too small"
            )
        if self.minimum > self.clients:
            raise ParameterError(f"no {self.minimum} of {self.clients} clients can survive")
        if self.complete:
            least = _least_threshold(self.clients, self.active)
        else:
            least = self._sparse_threshold()
        if self.threshold < least:
            raise ThresholdError(least, self.threshold, "the threshold of the shares is too low")
        if self.threshold > self.degree + 1:
            raise ParameterError(
                f"threshold {self.threshold} is above the {self.degree + 1} holders of shares"
            )
        if self.bits > 63:
            raise RangeError(f"a modulus of {self.bits} bits does not fit 63 bits")
        if self.max_weight < 0 or self.bits < modulus_bits(self.clients, bound, self.max_weight):
            raise RangeError(f"a sum of {self.clients} vectors could wrap modulo 2^{self.bits}")
        return self

    def _sparse_threshold(self) -> int:
        if self.active:
            raise ParameterError("active security needs the complete graph")
        if self.corrupt < LEAST_CORRUPT or self.corrupt * self.clients < 1000:
            raise ParameterError(
                f"a sparse graph must stand at least {LEAST_CORRUPT / 10:g} % corrupt clients, and "
                "one; take the complete graph"
            )
        planned = _planned(self.clients, self.corrupt, self.dropout)
        if planned is None or self.degree != planned.degree:
            raise ParameterError(
                f"a graph of degree {self.degree} on {self.clients} clients is not the one that "
                "the agreed rates need"
            )
        if self.minimum < _survivors(self.clients, self.dropout):
            # The graph of the survivors holds together for the planned dropouts only.
            raise ThresholdError(
                _survivors(self.clients, self.dropout),
                self.minimum,
                "the cohort is smaller than the graph was planned for",
            )
        return planned.threshold

    def terms(self) -> dict[str, int]:
        """Return the numbers as they stand in a session."""
        return {name: int(getattr(self, name)) for name in _TERMS}

    @classmethod
    def of(cls, session: Session) -> "Parameters":
        """Read and check a session's parameters.

        Raises:
            ParameterError, ThresholdError, RangeError: As `check`.
        """
        session = session.checked()
        terms = session.terms
        if session.protocol != PROTOCOL or set(terms) != set(_TERMS):
            raise ParameterError(f"{session.protocol!r} is not a session of {PROTOCOL!r}")
        numbers = {name: terms[name] for name in _TERMS}
        if len(session.contributors) != numbers["clients"] or len(session.servers) != 1:
            raise ParameterError("the session names other parties than its parameters say")
        active = numbers.pop("active")
        if active not in (0, 1):
            raise ParameterError(f"the term 'active' is 0 or 1, not {active}")
        return cls(**numbers, active=active == 1).check(session.layout.bound)


_TERMS = tuple(field.name for field in fields(Parameters))


def _planned(clients: int, corrupt: int, dropout: int) -> graph.GraphPlan | None:
    return graph.plan(clients, Fraction(corrupt, 1000), Fraction(dropout, 1000))


def _survivors(clients: int, dropout: int) -> int:
    """Fewest clients that a sparse graph's dropout rate, in thousandths, leaves."""
    return clients - clients * dropout // 1000


def _least_threshold(clients: int, active: bool, corrupt: int = 0) -> int:
    """More than half of the clients, and than the corrupt ones.

    If the server may lie: more than two thirds, and than half of the clients and the corrupt ones
    together. Two lists of survivors can each have all the corrupt ones as signers, but no honest
    one twice (Bonawitz et al. 2017, 6.2).
    """
    if active:
        return max(2 * clients // 3, (clients + corrupt) // 2) + 1
    return max(clients // 2, corrupt) + 1


def modulus_bits(clients: int, bound: int, max_weight: int) -> int:
    """Return the bits of the smallest 2^b that no sum can wrap.

    Raises:
        ParameterError: Something else than integers.
        RangeError: More than 63 bits.
    """
    checks.integer(clients, "clients", 0)
    checks.integer(bound, "bound", 0)
    checks.integer(max_weight, "max_weight")  # `check` says what a negative one would do
    largest = clients * max(bound * max(1, max_weight), max_weight)
    bits = max(1, (2 * largest).bit_length())  # 2^bits > 2 largest: both signs have room
    if bits > 63:
        raise RangeError(
            f"{clients} clients with values up to {bound} and weights up to {max_weight} do not "
            "fit 63 bits; use a smaller bound or weight"
        )
    return bits
