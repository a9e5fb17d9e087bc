"""A study: several sites, each with its own rows, asked questions about all of them together."""

import dataclasses
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from securecomp.errors import AuthenticationError, ParameterError, ThresholdError
from securecomp.privacy.policy import Privacy
from securecomp.protocol import sum_protocols as sums
from securecomp.protocol import wire
from securecomp.protocol.carrier import Carrier
from securecomp.protocol.local_carrier import LocalCarrier
from securecomp.statistics import joining
from securecomp.statistics.codebook.agreed_codebook import Codebook, CodebookWarning, Signature
from securecomp.statistics.codebook.findings import find
from securecomp.statistics.comparisons import (
    anova,
    contingency,
    correlation,
    distinct,
    risks,
    roc,
    stratified,
    t_tests,
)
from securecomp.statistics.disclosure.release import Release, check
from securecomp.statistics.disclosure.suppression import DEFAULT_MINIMUM, Rule
from securecomp.statistics.disclosure.table_cells import needed
from securecomp.statistics.inquiry import Inquiry
from securecomp.statistics.measures import Missing
from securecomp.statistics.ranks import quantiles, scoring, winner
from securecomp.statistics.regression import glm
from securecomp.statistics.results import Result
from securecomp.statistics.schema import MAX_ROWS, STUDY_FILE, Column, Schema
from securecomp.statistics.site_table import Table
from securecomp.statistics.summaries import (
    Count,
    CrossTable,
    Histogram,
    Mean,
    Skewness,
    Statistic,
    Sum,
    Variance,
)
from securecomp.statistics.summaries.pooled_comparison import Comparison, compare
from securecomp.statistics.survival import cox, kaplan_meier, log_rank


class Study:
    """Sites that compute together, simulated in this process.

    Every site's rows are read by that site's role alone; what the roles exchange are the sealed
    messages that would cross a network. `compare` also computes from the pooled rows, which only a
    simulation can do.

    Example:
        >>> study = Study({"north": north, "south": south, "west": west})  # doctest: +SKIP
        >>> study.mean("los", by="ward")  # doctest: +SKIP
    """

    # Each analysis is a function of a study, in the module that knows it.
    covariance = correlation.covariance
    standardisation = correlation.standardisation
    t_test = t_tests.t_test
    chi_square = contingency.chi_square
    fisher = contingency.fisher
    odds_ratio = risks.odds_ratio
    relative_risk = risks.relative_risk
    risk_difference = risks.risk_difference
    mantel_haenszel = stratified.mantel_haenszel
    roc_auc = roc.roc_auc
    logrank = log_rank.logrank
    median = quantiles.median
    extremes = quantiles.extremes
    scores = scoring.scores
    anova = anova.anova
    correlation = correlation.correlation
    cox = cox.cox
    distinct = distinct.distinct
    glm = glm.glm
    kaplan_meier = kaplan_meier.kaplan_meier
    quantiles = quantiles.quantiles
    winner = winner.winner
    join = staticmethod(joining.join)
    connect = staticmethod(joining.connect)

    def __init__(
        self,
        sites: Mapping[str, Any],
        *,
        columns: Mapping[str, Column] | None = None,
        protocol: sums.SumProtocol | str = "sharing",
        servers: int | Literal["all"] | None = None,
        missing: Missing = "error",
        rows: int | None = None,
        sources: Mapping[str, str] | None = None,
        minimum_count: int = DEFAULT_MINIMUM,
        minimum_sites: int = 1,
        codebook: Codebook | None = None,
        signatures: Mapping[str, Signature] | None = None,
        keys: Mapping[str, bytes] | None = None,
        privacy: Privacy | None = None,
        carrier: Carrier | None = None,
        elsewhere: Sequence[str] = (),
    ) -> None:
        """Take the data of the sites that are here: all of them, if nothing else is said.

        Args:
            sites: Site name to data frame (pandas, polars, pyarrow). A site may have no rows.
            columns: What is declared about columns; what is not is taken from the data.
            protocol: Who adds, and how.
            servers: For "sharing": number of computing servers, by default 3, or "all" sites.
            missing: Whether an empty or NaN cell in a column that is used is an error, or drops
                its row from the statistic.
            rows: The most rows that a site can have, public: where rows are shared, every site
                fills up to so many. By default that of the largest site.
            sources: Site name to what errors call its data, say a file; by default the name.
            minimum_count: Results show no count below it but zeros, no mean, sum or variance over
                fewer rows, and nothing that gives these away; 0 shows all. `suppression` says how.
                It rules over all sites' totals, which the receivers' software sees before.
            minimum_sites: Likewise for cells to which fewer sites contribute. With more than 1,
                the number of sites that have rows in a cell is added up and opened too.
            codebook: What all columns mean. Every site checks its rows against it before the first
                sum, and nothing is taken from the data.
            signatures: Each site's on the codebook; by default they sign here, with their keys of
                this simulation.
            keys: The public keys that signatures are verified with.
            privacy: Terms under which all answers have noise; `noised` says how. Then only counts,
                sums, means, histograms and cross tables are answered, and nothing is compared
                with plaintext.
            carrier: Brings messages; by default within this process.
            elsewhere: Names of the sites that run the same questions in other places. Then all
                facts about columns must be declared.

        Raises:
            ThresholdError: Fewer than two sites, or than `minimum_sites`.
            ParameterError: Not data frames; a name that cannot be used; an unknown choice.
        """
        if missing not in ("error", "drop"):
            raise ParameterError(f'missing is "error" or "drop", not {missing!r}')
        if not isinstance(sites, Mapping):
            raise ParameterError("sites is a mapping from site name to data frame")
        self.apart = bool(elsewhere)
        if len(sites) + len(elsewhere) < 2:
            raise ThresholdError(
                2,
                len(sites),
                "a study needs other sites to hide among; give two files, or two frames, or more",
            )
        self.rule = Rule(minimum_count, minimum_sites)
        if len(sites) + len(elsewhere) < minimum_sites:
            raise ThresholdError(
                minimum_sites,
                len(sites) + len(elsewhere),
                "no cell could ever be shown; lower minimum_sites (--min-sites)",
            )
        names = [wire.check_name(str(name)) for name in sites]
        # Every place has the same order.
        self.sites = (*names, *map(wire.check_name, elsewhere))
        if elsewhere:
            self.sites = tuple(sorted(self.sites))
        twice = {name for name in self.sites if self.sites.count(name) > 1}
        if twice:
            raise ParameterError(f"two sites are named {min(twice)!r}; names are unique")
        called = sources or {}
        self.codebook = codebook
        self.tables = [
            Table(name, frame, called.get(name))
            if codebook is None
            else codebook.table(frame, name, called.get(name))
            for name, frame in zip(names, sites.values(), strict=True)
        ]
        self.columns = dict(columns or {})
        known = {name for table in self.tables for name in table.columns}
        for name, column in self.columns.items():
            if not isinstance(column, Column):
                raise ParameterError(f"columns: {name!r} must be a Column, not {column!r}")
            if self.tables and name not in known:
                raise ParameterError(
                    f"columns: there is no column {name!r} at any site; correct its name"
                )
        clipped = getattr(privacy, "bounds", ())
        for name in clipped:
            if self.tables and name not in known:
                raise ParameterError(
                    f"privacy: there is no column {name!r} at any site; correct its name (--clip)"
                )
        if not isinstance(protocol, str | sums.SumProtocol):
            raise ParameterError(f"protocol is a name or a SumProtocol, not {protocol!r}")
        self.protocol = (
            sums.protocol(protocol, servers=servers) if isinstance(protocol, str) else protocol
        )
        if privacy is not None and not isinstance(privacy, Privacy):
            raise ParameterError(f"privacy is a Privacy, not {privacy!r}")
        self.privacy = privacy
        self.missing: Missing = missing
        whole = isinstance(rows, int | np.integer) and not isinstance(rows, bool)
        if rows is not None and not (whole and 1 <= rows <= MAX_ROWS):
            raise ParameterError(f"rows is a number from 1 to {MAX_ROWS}, not {rows!r}")
        self.rows = None if rows is None else int(rows)
        self.carrier: Carrier = LocalCarrier() if carrier is None else carrier
        self._checked = False
        self._keys = keys
        self._signatures = signatures
        if codebook is None and (signatures is not None or keys is not None):
            raise ParameterError("signatures and keys are for a codebook; give the codebook")
        if codebook is not None:
            self.columns = codebook.declared(self.columns)
            if (signatures is None) != (keys is None):
                raise ParameterError("give the sites' signatures and their public keys together")

    def count(self, *, by: str | None = None) -> Result:
        """Count rows.

        Args:
            by: Categorical column to group by.
        """
        return self._one(Count(None, by))

    def sum(self, column: str, *, by: str | None = None) -> Result:
        """Sum a numeric column; exact."""
        return self._one(Sum(column, by))

    def mean(self, column: str, *, by: str | None = None) -> Result:
        """Average a numeric column; the exact mean, rounded once."""
        return self._one(Mean(column, by))

    def variance(self, column: str, *, by: str | None = None) -> Result:
        """Return the sample variance and standard deviation, from exact power sums."""
        return self._one(Variance(column, by))

    def skewness(self, column: str, *, by: str | None = None) -> Result:
        """Return the adjusted Fisher-Pearson skewness, from exact power sums; rounded once."""
        return self._one(Skewness(column, by))

    def histogram(self, column: str, edges: Sequence[float], *, by: str | None = None) -> Result:
        """Count rows in bins [a, b), the last one closed, and below and above them."""
        if isinstance(edges, str) or not isinstance(edges, Iterable):
            raise ParameterError(
                f"edges are the bins' borders, at least two numbers; not {edges!r}"
            )
        return self._one(Histogram(column, by, tuple(map(float, edges))))

    def crosstab(self, row: str, col: str, *, by: str | None = None) -> Result:
        """Count rows for each pair of levels of two categorical columns."""
        return self._one(CrossTable(None, by, row, col))

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
        if self.privacy is not None:
            return self._noised(self.privacy, statistics)
        ask = self.inquiry()
        schema = ask.schema
        measures = list(dict.fromkeys(m for s in statistics for m in s.measures()))
        if self.rule.active:
            count_sites = self.rule.minimum_sites > 1
            also = needed(statistics, schema, self.missing, count_sites)
            measures = list(dict.fromkeys([*measures, *also]))
            sizes = {m: len(m.labels(schema)) for m in measures}
            check(statistics, sizes, schema, self.missing)
        totals = ask.totals(measures)
        finished = [statistic.finish(totals, schema) for statistic in statistics]
        run = ask.done()
        release = Release(statistics, totals, schema, self.missing, self.rule)
        results = []
        for statistic, rows in zip(statistics, finished, strict=True):
            shown = release.of(statistic, rows)
            results.append(Result(statistic, shown.rows, run, shown.remarks))
        return results

    def compare(self, asked: Sequence[Statistic] | Sequence[Result]) -> list[Comparison]:
        """Hold each figure of results against exact arithmetic over the pooled rows.

        Only a simulation can: this reads the rows of all sites in one place. `run` does not.

        Args:
            asked: Questions, which are answered first, or results of this study.

        Raises:
            ParameterError: Answers with noise; or as `run`.
            RangeError: As `run`.
        """
        if self.privacy is not None:
            raise ParameterError("answers with noise are not those of the pooled rows")
        if self.apart:
            raise ParameterError("only a simulation has all rows in one place, to compare with")
        results = [each for each in asked if isinstance(each, Result)]
        if len(results) < len(asked):
            results = self.run([each for each in asked if isinstance(each, Statistic)])
        return compare(results, self.tables, self.schema())

    def _noised(self, privacy: Privacy, statistics: Sequence[Statistic]) -> list[Result]:
        from securecomp.statistics.summaries.private_summaries import (
            Noised,  # samplers take a while to load
        )

        self.agree()
        if self.codebook is not None:
            bounds = {**self.codebook.ranges(), **privacy.bounds}
            privacy = dataclasses.replace(privacy, bounds=bounds)
        noised = Noised(
            privacy, self.tables, self.columns, self.missing, self.rule, self.protocol,
            self.sites, STUDY_FILE if self.apart else "",
        )  # fmt: skip
        return noised.answer(statistics, self.carrier)

    def inquiry(self) -> Inquiry:
        """Begin a question: agree on facts anew, count messages from zero.

        Raises:
            ParameterError: The study answers with noise, and this question has none.
            AuthenticationError: A site has not signed the codebook, or another one.
            ParameterError, RangeError: A site's data do not follow it.
        """
        if self.privacy is not None:
            raise ParameterError(
                "this study answers with noise: counts, sums, means, histograms and cross tables; "
                "for other analyses make a study without privacy, if its results may be shown"
            )
        self.agree()
        return Inquiry(
            self.tables, self.schema(), self.missing, self.protocol, self.carrier, sites=self.sites
        )

    def schema(self, tables: Sequence[Table] | None = None) -> Schema:
        """Return what the sites agree on, anew. Facts that are not declared come from the tables.

        Args:
            tables: Rows of the sites here; by default those of the study.
        """
        closed = STUDY_FILE if self.apart else "codebook" if self.codebook is not None else ""
        return Schema(
            self.tables if tables is None else tables, self.columns, rows=self.rows, closed=closed
        )

    def agree(self) -> None:
        """Verify the codebook's signatures, and let every site check its rows; once is enough.

        Raises:
            AuthenticationError: A site has not signed the codebook, or another one.
            ParameterError, RangeError: A site's data do not follow it.
        """
        codebook = self.codebook
        if codebook is None or self._checked:
            return
        names = [table.site for table in self.tables]
        own = {name: self.carrier.identity(name) for name in names}
        keys = self._keys if self._keys is not None else {n: i.public for n, i in own.items()}
        unknown = [name for name in names if name not in keys]
        if unknown:
            raise AuthenticationError(f"{unknown[0]}: has no public key; pin one in keys")
        signed = self._signatures
        if signed is None:
            signed = {name: codebook.sign(identity) for name, identity in own.items()}
        codebook.verify(signed, {name: keys[name] for name in names})
        found = [f for t in self.tables for f in find(t, codebook.columns, codebook.unique)]
        wrong = [f for f in found if f.severity == "error"]
        if wrong:
            raise wrong[0].error(len(wrong) - 1)
        for finding in found:
            warnings.warn(str(finding), CodebookWarning, stacklevel=5)
        self._checked = True
