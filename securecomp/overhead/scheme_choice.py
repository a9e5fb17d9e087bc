"""The fastest sum protocol for a number of sites and values, on a given line.

The model. Every party has its own machine and line. A job takes the computing of the parties that
wait for each other (one site, the servers, one receiver; sites work side by side) and the time of
its messages (`line_model`). Keys exist. Nobody drops out. Every site receives the total.

- Computing: units of work times the seconds of a unit, fitted to a run's rows (`rates`).
- Rounds and bytes: counted by the library itself on a few small sums, and extended to other sizes
  by the layout of the messages: a vector's packed bytes, and an amount for each site and each pair
  of neighbours. A test compares them with sums of other sizes.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from securecomp.overhead import rates
from securecomp.overhead.line_model import Line
from securecomp.overhead.rates import BOUND, MESSAGE, SERVERS, Row
from securecomp.paillier.encrypted_sum import Paillier
from securecomp.paillier.packing import Packing
from securecomp.protocol.carrier import Transcript
from securecomp.protocol.local_carrier import LocalCarrier
from securecomp.protocol.session import Layout
from securecomp.protocol.sum_protocols import SumProtocol
from securecomp.secagg import Parameters
from securecomp.secagg.masked_sum import Masking
from securecomp.sharing.additive_sum import Sharing

_RESIDUE = 61  # bits of an element on the wire, with sharing
_INTEGER = 64  # bits of an element of Paillier's total
FEWEST, MOST = 3, 1000
"""Sites of the jobs that are compared; masking needs three."""
CASES = {
    "sharing": "sum/sharing growth/sharing",
    "masking": "sum/masking growth/masking",
    "paillier": "sum/paillier growth/paillier",
}
"""Cases of `securecomp bench` that tell a protocol's rates."""


@dataclass(frozen=True, slots=True)
class ProtocolCost:
    """A protocol with the model of its cost.

    Attributes:
        name: Its name for people.
        dropouts: Whether a site may drop out.
        rounds: Rounds of any job.
        load: Returns the bytes on the busiest party's line, from sites and values.
        computing: Returns the seconds of the parties that wait for each other, from sites and
            values.
        rates: The seconds of each unit of work.
    """

    name: str
    dropouts: bool
    rounds: int
    load: Callable[[int, int], float]
    computing: Callable[[int, int], float]
    rates: Mapping[str, float]

    def seconds(self, sites: int, values: int, line: Line) -> float:
        """Return the time of a job on a line."""
        return self.computing(sites, values) + line.seconds(self.rounds, self.load(sites, values))


def protocol_costs(rows: Sequence[Row]) -> tuple[list[ProtocolCost], list[str]]:
    """Return the protocols with rates in these rows, and the names of the others.

    Every protocol seals and signs its messages alike. The time of a message is fitted to sums by
    sharing, without which no rate is known.
    """
    good = [row for row in rows if "failure" not in row and "online" in row]
    shared = rates.sharing(good)
    if shared is None:
        return [], list(CASES)
    found = [_sharing(shared), _everyone(shared)]
    for make in (_masking, _paillier):
        protocol = make(good, shared[MESSAGE])
        if protocol is not None:
            found.append(protocol)
    known = {protocol.name for protocol in found}
    return found, [name for name in CASES if not any(name in protocol for protocol in known)]


def fastest(
    choice: Sequence[ProtocolCost], sites: int, values: int, line: Line
) -> list[tuple[float, str]]:
    """Return times and names, the fastest first."""
    return sorted((protocol.seconds(sites, values, line), protocol.name) for protocol in choice)


def _sharing(found: Mapping[str, float]) -> ProtocolCost:
    message, value = found.values()

    def computing(sites: int, values: int) -> float:
        handled, inside = rates.path(sites, values)
        return message * handled + value * inside

    def vectors(sites: int, values: int) -> float:
        # All shares of a site but one are seeds. The servers take turns in getting the long one.
        return (math.ceil(sites / SERVERS) + sites) * math.ceil(_RESIDUE * values / 8)

    return _counted("sharing, 3 servers", Sharing(SERVERS), vectors, computing, found)


def _everyone(found: Mapping[str, float]) -> ProtocolCost:
    message, value = found.values()

    def computing(sites: int, values: int) -> float:
        return 4 * (sites - 1) * (message + value * values)  # deal, read, answer, read

    def vectors(sites: int, values: int) -> float:
        return (sites - 1) * math.ceil(_RESIDUE * values / 8)  # the long share stays at home

    return _counted("sharing, all sites serve", Sharing("all"), vectors, computing, found)


@cache
def _agreed(sites: int) -> Parameters:
    return Parameters.choose(sites, BOUND)


def _masking(rows: Sequence[Row], message: float) -> ProtocolCost | None:
    found = rates.masking(rows)
    if found is None:
        return None
    neighbour, mask, pair, unmask = found.values()

    def computing(sites: int, values: int) -> float:
        degree = _agreed(sites).degree
        site = neighbour * degree + mask * (degree + 1) * values
        server = pair * sites * degree + unmask * sites * values
        return site + server + message * 8 * sites  # the server reads four a site, and writes four

    def vectors(sites: int, values: int) -> float:
        return 2 * sites * math.ceil(_agreed(sites).bits * values / 8)  # there and back

    def pairs(sites: int) -> int:
        return sites * _agreed(sites).degree

    return _counted("masking", Masking(), vectors, computing, found, pairs, dropouts=True)


def _paillier(rows: Sequence[Row], message: float) -> ProtocolCost | None:
    lengths = [row["sizes"]["bits"] for row in rows if "bits" in row["sizes"]]
    if not lengths:
        return None
    scheme = Paillier(bits=max(lengths))
    key = scheme.key(LocalCarrier()).public

    @cache
    def packing(sites: int) -> Packing:
        return Packing.plan(key, BOUND, sites)

    def whole(sites: int, values: int) -> int:
        return packing(sites).ciphertexts(values) * packing(sites).slots

    found = rates.paillier(rows, scheme.bits, whole)
    if found is None:
        return None
    encrypt, add, decrypt = found.values()

    def computing(sites: int, values: int) -> float:
        # The aggregator reads a message a site, the key holder writes one to each.
        handled = message * (2 * sites + 4)
        return handled + whole(sites, values) * (encrypt + add * sites + decrypt)

    def vectors(sites: int, values: int) -> float:
        encrypted = packing(sites).ciphertexts(values) * key.ciphertext_bytes
        return (sites + 1) * encrypted + sites * values * _INTEGER / 8

    title = f"paillier, {scheme.bits} bits"
    return _counted(title, scheme, vectors, computing, found, dropouts=True)


def _counted(
    name: str,
    scheme: SumProtocol,
    vectors: Callable[[int, int], float],
    computing: Callable[[int, int], float],
    found: Mapping[str, float],
    pairs: Callable[[int], int] | None = None,
    *,
    dropouts: bool = False,
) -> ProtocolCost:
    """Return a protocol's model. Its bytes beside the vectors are counted on small sums."""

    def amounts(sites: int) -> list[int]:
        return [1, sites] if pairs is None else [1, sites, pairs(sites)]

    small, samples = 8, (4, 7) if pairs is None else (4, 7, 12)
    counted = {sites: count(scheme, sites, small) for sites in samples}
    extra = [sum(found.loads) - vectors(sites, small) for sites, found in counted.items()]
    each = np.linalg.solve([amounts(sites) for sites in samples], extra)

    def load(sites: int, values: int) -> float:
        return vectors(sites, values) + float(each @ amounts(sites))

    rounds = counted[samples[0]].rounds
    return ProtocolCost(name, dropouts, rounds, load, computing, found)


def count(scheme: SumProtocol, sites: int, values: int) -> Transcript:
    """Run a sum of zeros and return its transcript."""
    carrier = LocalCarrier()
    zeros = np.zeros(values, np.int64)
    inputs = {f"site {i + 1}": (lambda: zeros) for i in range(sites)}
    scheme.run(carrier, Layout(values, BOUND), inputs)
    return carrier.transcript
