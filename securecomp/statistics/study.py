"""A study: several sites, each with its own rows, asked questions about all of them together."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from securecomp import sums, wire
from securecomp.core.fixedpoint import Limbs
from securecomp.errors import ParameterError, ThresholdError
from securecomp.local import LocalCarrier
from securecomp.session import Layout
from securecomp.statistics import definitions
from securecomp.statistics.definitions import Pool, Statistic
from securecomp.statistics.measures import Measure, Missing
from securecomp.statistics.results import Result, Run
from securecomp.statistics.schema import Column, Schema
from securecomp.statistics.tables import Table

_ROUNDING = 1e-12  # of the terms' size: what adding floats may lose


class Study:
    """Sites that compute together, simulated in this process.

    Every site's rows are read by that site's role alone; what the roles exchange are the sealed
    messages that would cross a network. For comparison, the same is computed from pooled rows
    with plain numpy, which only a simulation can do.

    Example:
        >>> study = Study({"north": north, "south": south, "west": west})  # doctest: +SKIP
        >>> study.mean("los", by="ward")  # doctest: +SKIP
    """

    def __init__(
        self,
        sites: Mapping[str, Any],
        *,
        columns: Mapping[str, Column] | None = None,
        protocol: sums.SumProtocol | str = "sharing",
        servers: int | Literal["all"] | None = None,
        missing: Missing = "error",
        sources: Mapping[str, str] | None = None,
    ) -> None:
        """Take the sites' data.

        Args:
            sites: Site name to data frame (pandas, polars, pyarrow). A site may have no rows.
            columns: What is declared about columns; what is not is taken from the data.
            protocol: Who adds, and how.
            servers: For "sharing": number of computing servers, by default 3, or "all" sites.
            missing: Whether an empty or NaN cell in a column that is used is an error, or drops
                its row from the statistic.
            sources: Site name to what errors call its data, say a file; by default the name.

        Raises:
            ThresholdError: Fewer than two sites.
            ParameterError: Not data frames; a name that cannot be used; an unknown choice.
        """
        if missing not in ("error", "drop"):
            raise ParameterError(f'missing is "error" or "drop", not {missing!r}')
        if not isinstance(sites, Mapping):
            raise ParameterError("sites is a mapping from site name to data frame")
        if len(sites) < 2:
            raise ThresholdError(
                2,
                len(sites),
                "a study needs other sites to hide among; give two files, or two frames, or more",
            )
        names = [wire.check_name(str(name)) for name in sites]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ParameterError(f"two sites are named {min(twice)!r}; names are unique")
        called = sources or {}
        self.tables = [
            Table(name, frame, called.get(name))
            for name, frame in zip(names, sites.values(), strict=True)
        ]
        self.columns = dict(columns or {})
        known = {name for table in self.tables for name in table.columns}
        for name, column in self.columns.items():
            if not isinstance(column, Column):
                raise ParameterError(f"columns: {name!r} must be a Column, not {column!r}")
            if name not in known:
                raise ParameterError(
                    f"columns: there is no column {name!r} at any site; correct its name"
                )
        if not isinstance(protocol, str) and not hasattr(protocol, "run"):
            raise ParameterError(f"protocol is a name or a SumProtocol, not {protocol!r}")
        self.protocol = (
            sums.protocol(protocol, servers=servers) if isinstance(protocol, str) else protocol
        )
        self.missing: Missing = missing
        self._carrier = LocalCarrier()

    def count(self, *, by: str | None = None) -> Result:
        """Count rows.

        Args:
            by: Categorical column to group by.
        """
        return self._one(definitions.Count(None, by))

    def sum(self, column: str, *, by: str | None = None) -> Result:
        """Sum a numeric column; exact."""
        return self._one(definitions.Sum(column, by))

    def mean(self, column: str, *, by: str | None = None) -> Result:
        """Average a numeric column; the exact mean, rounded once."""
        return self._one(definitions.Mean(column, by))

    def variance(self, column: str, *, by: str | None = None) -> Result:
        """Return the sample variance and standard deviation, from exact power sums."""
        return self._one(definitions.Variance(column, by))

    def histogram(self, column: str, edges: Sequence[float], *, by: str | None = None) -> Result:
        """Count rows in bins [a, b), the last one closed, and below and above them."""
        if isinstance(edges, str) or not isinstance(edges, Iterable):
            raise ParameterError(
                f"edges are the bins' borders, at least two numbers; not {edges!r}"
            )
        return self._one(definitions.Histogram(column, by, tuple(map(float, edges))))

    def crosstab(self, row: str, col: str, *, by: str | None = None) -> Result:
        """Count rows for each pair of levels of two categorical columns."""
        return self._one(definitions.CrossTable(None, by, row, col))

    def _one(self, statistic: Statistic) -> Result:
        return self.run([statistic])[0]

    def run(self, statistics: Sequence[Statistic]) -> list[Result]:
        """Answer several questions with one secure sum.

        Every site's data are checked before the first message leaves.

        Raises:
            ParameterError: A column is missing or of the wrong kind at a site.
            RangeError: A value is missing, infinite, beyond its bound or outside its levels.
        """
        if isinstance(statistics, Statistic | str) or not isinstance(statistics, Iterable):
            raise ParameterError("run takes a list of statistics")
        statistics = list(statistics)
        if any(not isinstance(s, Statistic) for s in statistics):
            raise ParameterError("run takes statistics: Count(), Sum(column), ...")
        if not statistics:
            raise ParameterError("ask for at least one statistic")
        start = time.perf_counter()
        schema = Schema(self.tables, self.columns)
        measures = list(dict.fromkeys(m for s in statistics for m in s.measures()))
        totals = self._add_up(measures, schema)
        finished = [statistic.finish(totals, schema) for statistic in statistics]
        seconds = time.perf_counter() - start
        # The pool reads each column once, before the clock starts.
        pool = Pool(self.tables, schema)
        for statistic in statistics:
            statistic.plaintext(pool)
        start = time.perf_counter()
        plain = [statistic.plaintext(pool) for statistic in statistics]
        run = Run(
            protocol=self.protocol.name,
            parties=tuple(table.site for table in self.tables),
            servers=getattr(self.protocol, "servers", 1),
            transcript=self._carrier.transcript,
            seconds=seconds,
            plaintext_seconds=time.perf_counter() - start,
            learned=self.protocol.learned(),
            from_data=schema.from_data,
        )
        count = sum(table.rows for table in self.tables)
        return [
            Result(
                s,
                tuple(rows),
                tuple(values),
                run,
                _ROUNDING * s.magnitude(schema, count),
                tuple(s.outside(pool)),
            )
            for s, rows, values in zip(statistics, finished, plain, strict=True)
        ]

    def _add_up(self, measures: Sequence[Measure], schema: Schema) -> dict[Measure, list[int]]:
        """Run one secure sum over all cells of all measures."""
        labels: list[str] = []
        plans: list[Limbs] = []
        sizes: list[int] = []
        for measure in measures:
            plan = Limbs.plan(measure.bound(schema), len(self.tables), self.protocol.limit)
            names = measure.labels(schema)
            plans.append(plan)
            sizes.append(len(names))
            labels += (
                names
                if plan.count == 1
                else [f"{name} (limb {i + 1})" for name in names for i in range(plan.count)]
            )
        # All sites measure, and refuse what is wrong, before any site sends.
        parts = {
            table.site: [measure.part(table, schema, self.missing) for measure in measures]
            for table in self.tables
        }
        self._carrier.start()
        entropy = self._carrier.entropy

        def vector(site: str) -> np.ndarray[Any, np.dtype[np.int64]]:
            limbs = (
                limb
                for plan, part in zip(plans, parts[site], strict=True)
                for limb in plan.split(part, entropy)
            )
            return np.fromiter(limbs, np.int64, len(labels))

        total = self.protocol.run(
            self._carrier,
            Layout(len(labels), max(plan.largest for plan in plans), tuple(labels)),
            {site: lambda site=site: vector(site) for site in parts},  # type: ignore[misc]
        ).tolist()
        totals: dict[Measure, list[int]] = {}
        for measure, plan, size in zip(measures, plans, sizes, strict=True):
            taken, total = total[: size * plan.count], total[size * plan.count :]
            totals[measure] = plan.join(taken)
        return totals
