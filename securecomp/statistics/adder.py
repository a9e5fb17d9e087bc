"""Secure sums of what every site computed: blocks of integers or reals, by any sum protocol.

An analysis may need several sums, one after the other; they are counted together.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.core.fixedpoint import Integers
from securecomp.core.limbs import Limbs
from securecomp.errors import RangeError
from securecomp.protocol import sum_protocols as sums
from securecomp.protocol.carrier import Carrier
from securecomp.protocol.session import Layout


@dataclass(frozen=True, slots=True)
class IntegerBlock:
    """Integers that are added over the sites.

    Attributes:
        labels: Name of each integer; what is opened is their totals.
        bound: Largest absolute integer of one site. Public.
        parts: Site name to its integers: a list, or int64.
    """

    labels: Sequence[str]
    bound: int
    parts: Mapping[str, Sequence[int] | Integers]


@dataclass(frozen=True, slots=True)
class RealBlock:
    """Real numbers that are added over the sites, each rounded to a multiple of 2^-bits.

    Attributes:
        labels: Name of each number; what is opened is their totals.
        bound: Largest absolute value of one site's. Public.
        bits: The grid; a total is within half a unit for each site.
        parts: Site name to its numbers, any shape of as many elements as labels.
    """

    labels: Sequence[str]
    bound: float
    bits: int
    parts: Mapping[str, npt.NDArray[Any]]

    def encoded(self) -> IntegerBlock:
        """Return the block of integers.

        Raises:
            RangeError: A number is not finite or beyond the bound; it names the site.
        """
        limit = int(np.ldexp(self.bound, self.bits)) + 1
        parts: dict[str, Integers] = {}
        for site, values in self.parts.items():
            flat = np.asarray(values, np.float64).reshape(-1)
            if not np.isfinite(flat).all() or (flat.size and np.abs(flat).max() > self.bound):
                raise RangeError(
                    f"{site}: what it computed is not finite, or beyond the agreed bounds; check "
                    "the columns' bounds"
                )
            scaled = np.rint(np.ldexp(flat, self.bits))
            # Doubles: beyond 2^53 they are integers already, and int() is exact.
            wide = limit >= 1 << 62
            parts[site] = _integers(map(int, scaled.tolist())) if wide else scaled.astype(np.int64)
        return IntegerBlock(self.labels, limit, parts)


class Adder:
    """Adds blocks over the sites. What is opened is the totals, and nothing else.

    Attributes:
        sites: Who contributes.
        protocol: Who adds, and how.
        count: Number of sums so far.
        opened: Labels of all totals that were opened, in order; each once.
    """

    def __init__(self, sites: Sequence[str], protocol: sums.SumProtocol, carrier: Carrier) -> None:
        self.sites = tuple(sites)
        self.protocol = protocol
        self.count = 0
        self.opened: dict[str, None] = {}
        self._carrier = carrier

    def add(
        self, *blocks: IntegerBlock | RealBlock, receivers: tuple[str, ...] | None = None
    ) -> list[Any]:
        """Add up all blocks in one secure sum.

        Args:
            blocks: What every site computed.
            receivers: Who gets the totals; by default every site.

        Returns:
            For each block its totals: a list of integers, or of reals a float64 array.

        Raises:
            RangeError: A block whose totals have no room in the protocol; or as
                `RealBlock.encoded`.
        """
        integers = [b.encoded() if isinstance(b, RealBlock) else b for b in blocks]
        limit, entropy = self.protocol.limit, self._carrier.entropy
        plans = [Limbs.plan(b.bound, len(self.sites), limit) for b in integers]
        labels: list[str] = []
        for block, plan in zip(integers, plans, strict=True):
            self.opened.update(dict.fromkeys(block.labels))
            labels += (
                block.labels
                if plan.count == 1
                else [f"{n} (limb {i + 1})" for n in block.labels for i in range(plan.count)]
            )

        def vector(site: str) -> npt.NDArray[np.int64]:
            limbs = [
                plan.cut(_integers(block.parts[site]), entropy)
                for block, plan in zip(integers, plans, strict=True)
            ]
            return np.concatenate([*limbs, np.zeros(0, np.int64)])

        if self.count:  # this sum waits for the one before
            self._carrier.next_round()
        self.count += 1
        total = self.protocol.run(
            self._carrier,
            Layout(len(labels), max(plan.largest for plan in plans), tuple(labels)),
            {site: lambda site=site: vector(site) for site in self.sites},  # type: ignore[misc]
            receivers,
        )
        found: list[Any] = []
        for asked, plan in zip(blocks, plans, strict=True):
            size = len(asked.labels) * plan.count
            joined, total = plan.put_together(total[:size]), total[size:]
            if isinstance(asked, IntegerBlock):
                found.append(joined.tolist())
            elif joined.dtype == object:
                # Integers of any size: scaled down exactly, then rounded once.
                found.append(np.array([v / (1 << asked.bits) for v in joined], np.float64))
            else:
                found.append(np.ldexp(joined.astype(np.float64), -asked.bits))
        return found


def _integers(values: Iterable[int] | Integers) -> Integers:
    """Return an array: int64, or Python ints where one is wider."""
    if isinstance(values, np.ndarray):
        return values
    plain = [int(v) for v in values]
    narrow = all(-(1 << 63) <= v < 1 << 63 for v in plain)
    array = np.empty(len(plain), np.int64 if narrow else object)
    array[:] = plain
    return array
