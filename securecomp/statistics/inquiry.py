"""One question put to the sites: their data, what they agreed on, and the secure sums so far."""

import time
from collections.abc import Sequence

from securecomp import sums
from securecomp.local import LocalCarrier
from securecomp.statistics.adding import Adder, Block
from securecomp.statistics.measures import Measure, Missing
from securecomp.statistics.results import Run
from securecomp.statistics.schema import Schema
from securecomp.statistics.tables import Table


class Inquiry:
    """What an analysis works with. It reads `tables` only to compute a site's own part of a sum.

    Attributes:
        tables: The sites' rows, one table a site.
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
        carrier: LocalCarrier,
    ) -> None:
        self.tables = tuple(tables)
        self.schema = schema
        self.missing: Missing = missing
        self.protocol = protocol
        self.carrier = carrier
        self.adder = Adder(self.sites, protocol, carrier)
        self._learned: dict[str, str] = {}
        self._beside, self._servers = "", 0
        self._start = time.perf_counter()
        carrier.start()

    @property
    def sites(self) -> tuple[str, ...]:
        """The sites' names."""
        return tuple(table.site for table in self.tables)

    def totals(self, measures: Sequence[Measure]) -> dict[Measure, list[int]]:
        """Run one secure sum over all cells of all measures."""
        labels = {measure: measure.labels(self.schema) for measure in measures}
        bounds = {measure: measure.bound(self.schema) for measure in measures}
        # All sites measure, and refuse what is wrong, before any site sends.
        parts: dict[Measure, dict[str, list[int]]] = {measure: {} for measure in measures}
        for table in self.tables:
            for measure in measures:
                parts[measure][table.site] = measure.part(table, self.schema, self.missing)
        blocks = [Block(labels[m], bounds[m], parts[m]) for m in measures]
        return dict(zip(measures, self.adder.add(*blocks), strict=True))

    def computes(self, protocol: str, servers: int, learned: dict[str, str]) -> None:
        """Note another protocol, beside the sums or instead of them, and who learns what by it."""
        self._beside, self._servers = protocol, servers
        self.also_learned(learned)

    def also_learned(self, learned: dict[str, str]) -> None:
        """Note what parties learn beside, or other than, what the protocol says."""
        self._learned |= learned

    def done(self) -> Run:
        """Return what it took, from the inquiry's start to now; plaintext's time is not known."""
        summed = self.adder.count or not self._beside
        added = self.protocol.learned() if summed else {}
        names = [self.protocol.name] * bool(summed) + [self._beside] * bool(self._beside)
        return Run(
            protocol=" and ".join(names),
            parties=self.sites,
            servers=getattr(self.protocol, "servers", 1) if summed else self._servers,
            transcript=self.carrier.transcript,
            seconds=time.perf_counter() - self._start,
            plaintext_seconds=None,
            learned={**added, **self._learned},
            from_data=dict(self.schema.from_data),
            sums=self.adder.count,
            opened=tuple(self.adder.opened),
        )
