"""One question put to the sites: their data, what they agreed on, and the secure sums so far."""

import time
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from securecomp.core.entropy import Entropy
from securecomp.protocol import sum_protocols as sums
from securecomp.protocol.carrier import SAME, Carrier
from securecomp.statistics.adder import Adder, IntegerBlock
from securecomp.statistics.measures import Measure, Missing
from securecomp.statistics.results import Run
from securecomp.statistics.schema import Schema
from securecomp.statistics.site_table import Table


class Noise(Protocol):
    """Noise that every site adds to its integers before they leave it."""

    def reach(self, measure: Measure) -> int:
        """Return by how much noise can enlarge an integer of one site."""

    def add(self, measure: Measure, integers: list[int], entropy: Entropy) -> list[int]:
        """Return one site's integers with noise, every one of them."""


class Inquiry:
    """Tools of an analysis. It reads `tables` only to compute a site's own part of a sum.

    Attributes:
        tables: The rows of the sites that are here, one table a site.
        sites: Names of all sites.
        schema: Agreed bounds, grids and levels.
        missing: What an empty cell does.
        protocol: Who adds, and how.
        carrier: Brings messages.
        adder: Adds over the sites.
    """

    def __init__(
        self,
        tables: Sequence[Table],
        schema: Schema,
        missing: Missing,
        protocol: sums.SumProtocol,
        carrier: Carrier,
        noise: Noise | None = None,
        sites: Sequence[str] | None = None,
    ) -> None:
        self.tables = tuple(tables)
        self.sites = tuple(table.site for table in tables) if sites is None else tuple(sites)
        self.schema = schema
        self.missing: Missing = missing
        self.protocol = protocol
        self.carrier = carrier
        self.adder = Adder(self.sites, protocol, carrier)
        self._noise = noise
        self._learned: dict[str, str] = {}
        self._beside, self._servers = "", 0
        self._start = time.perf_counter()
        carrier.start()

    def totals(self, measures: Sequence[Measure]) -> dict[Measure, list[int]]:
        """Run one secure sum over all cells of all measures."""
        return self.added(measures, self.measured(measures))

    def measured(self, measures: Sequence[Measure]) -> list[IntegerBlock]:
        """Let every site compute its parts, with its noise if there is some; nothing is sent."""
        labels = {measure: measure.labels(self.schema) for measure in measures}
        bounds = {measure: measure.bound(self.schema) for measure in measures}
        parts: dict[Measure, dict[str, list[int]]] = {measure: {} for measure in measures}
        for table in self.tables:
            for measure in measures:
                part = measure.part(table, self.schema, self.missing)
                if self._noise is not None:
                    part = self._noise.add(measure, part, self.carrier.entropy)
                parts[measure][table.site] = part
        reach = {m: self._noise.reach(m) if self._noise is not None else 0 for m in measures}
        return [IntegerBlock(labels[m], bounds[m] + reach[m], parts[m]) for m in measures]

    def added(
        self, measures: Sequence[Measure], blocks: Sequence[IntegerBlock]
    ) -> dict[Any, list[int]]:
        """Add up what `measured` returned, which all sites have computed, and refused if wrong."""
        return dict(zip(measures, self.adder.add(*blocks), strict=True))

    def agreed(self, what: str, *values: npt.ArrayLike) -> list[npt.NDArray[np.float64]]:
        """Return numbers that steer the next sum, the same bits at every site.

        Args:
            what: What they are, for errors.
            values: Arrays that every site has computed from the same totals. Their last bits
                depend on the processor.
        """
        arrays = [np.asarray(v, np.float64) for v in values]
        flat = np.concatenate([a.reshape(-1) for a in arrays])
        same = self.carrier.agree(what, flat, SAME)
        ends = np.cumsum([a.size for a in arrays])[:-1]
        return [p.reshape(a.shape) for p, a in zip(np.split(same, ends), arrays, strict=True)]

    def computes(self, protocol: str, servers: int, learned: dict[str, str]) -> None:
        """Note another protocol, beside the sums or instead of them, and who learns what by it."""
        self._beside, self._servers = protocol, servers
        self.also_learned(learned)

    def also_learned(self, learned: dict[str, str]) -> None:
        """Note what parties learn beside, or other than, what the protocol says."""
        self._learned |= learned

    def done(self) -> Run:
        """Return what it took, from the inquiry's start to now."""
        summed = self.adder.count or not self._beside
        added = self.protocol.learned() if summed else {}
        names = [self.protocol.name] * bool(summed) + [self._beside] * bool(self._beside)
        return Run(
            protocol=" and ".join(names),
            parties=self.sites,
            servers=getattr(self.protocol, "servers", 1) if summed else self._servers,
            transcript=self.carrier.transcript,
            seconds=time.perf_counter() - self._start,
            learned={**added, **self._learned},
            from_data=dict(self.schema.from_data),
            sums=self.adder.count,
            opened=tuple(self.adder.opened),
        )


class Asks(Protocol):
    """Anything that can begin an inquiry: a study. Every analysis is a function of one.

    `Study` has these functions as its methods, so that each has one signature and one docstring.
    """

    @property
    def protocol(self) -> sums.SumProtocol:
        """The sum protocol that adds, and its settings."""

    def inquiry(self) -> Inquiry:
        """Begin a question."""
