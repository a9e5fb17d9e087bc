"""A study's answers with noise: clipped, limited to so many records a patient, added up noised.

Each site leaves out rows beyond the agreed number of a patient, moves values into the agreed
bounds, and adds its part of the noise to every integer before it leaves the site. How many rows or
values that concerned is not counted: it would be an answer without noise. What is agreed is
declared, and never taken from the data. A mean is the noised sum over the noised number of rows;
the exact number is not opened. Suppression of small cells looks at noised counts only, which costs
nothing more; it hides what is mostly noise, and zeros and negative counts with it.

Source of the sensitivities: `privacy.sensitivity`; what is here is their form for groups.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from securecomp.core.entropy import Entropy
from securecomp.core.limbs import Limbs
from securecomp.errors import ParameterError
from securecomp.privacy import distributed, sensitivity
from securecomp.privacy.distributed import NoisePlan
from securecomp.privacy.guarantee import Guarantee
from securecomp.privacy.noise_distributions import UnitChange
from securecomp.privacy.policy import Privacy
from securecomp.privacy.privacy_amounts import below
from securecomp.privacy.sensitivity import Bounds
from securecomp.protocol import sum_protocols as sums
from securecomp.protocol.carrier import Carrier, agreed_bounds
from securecomp.protocol.session import Layout
from securecomp.statistics.disclosure.suppression import HIDDEN, Rule
from securecomp.statistics.inquiry import Inquiry
from securecomp.statistics.measures import Bins, Centred, Measure, Missing, PowerSum, Tally
from securecomp.statistics.results import Result
from securecomp.statistics.schema import Column, Schema
from securecomp.statistics.site_table import Table
from securecomp.statistics.summaries.clipped_values import Clipping
from securecomp.statistics.summaries.statistic import AddedNoise, Row, Statistic, Totals


class Noised:
    """Answers a study's questions under terms of privacy."""

    def __init__(
        self,
        privacy: Privacy,
        tables: Sequence[Table],
        columns: Mapping[str, Column],
        missing: Missing,
        rule: Rule,
        protocol: sums.SumProtocol,
        sites: Sequence[str],
        closed: str,
    ) -> None:
        """Take the terms, and what the study has: tables of the sites here, names of all."""
        self._privacy = privacy
        self._clipping = Clipping(privacy, columns, missing)
        self._rule = rule
        self._protocol = protocol
        self._tables = list(tables)
        self._sites, self._closed = tuple(sites), closed

    def answer(self, statistics: Sequence[Statistic], carrier: Carrier) -> list[Result]:
        """Answer questions by one noised sum; epsilon and delta are of all of them together.

        Everything is checked, and every site has measured, before the ledger is asked.

        Raises:
            ParameterError: A question that is not answered with noise; something undeclared.
            RangeError: A site's data do not follow what was declared.
            BudgetError: The ledger does not cover it.
            ThresholdError: Too few sites for the noise.
        """
        self._check(statistics)
        clipping = self._clipping
        terms, cost = self._privacy, self._privacy.cost
        affordable = getattr(terms.ledger, "check", None)
        if affordable is not None:  # what cannot be paid reads no row
            affordable(cost, terms.neighbours)
        used = list(dict.fromkeys(s.column for s in statistics if s.column is not None))
        tables = [clipping.table(table, used) for table in self._tables]
        schema = Schema(tables, clipping.columns, closed=self._closed)
        measures = list(dict.fromkeys(m for s in statistics for m in self._measures(s, schema)))
        changes = [self._change(measure, schema) for measure in measures]
        if schema.from_data:
            raise ParameterError(
                "with privacy nothing is taken from the data; declare, with columns or a codebook: "
                + ", ".join(schema.from_data)
            )
        plan = distributed.plan(
            terms.noise,
            changes,
            below(cost.epsilon),
            below(cost.delta),
            len(self._sites),
            colluding=terms.colluding,
            dropouts=terms.dropouts,
        )
        many = len(self._sites)
        protocol = self._protocol.requiring(plan.needed, many, terms.colluding)
        reaches = [plan.reach(place) for place in range(len(measures))]
        noise = _Added(plan, measures, agreed_bounds(carrier, "the noise's reach", reaches))
        ask = Inquiry(tables, schema, clipping.missing, protocol, carrier, noise, self._sites)
        blocks = ask.measured(measures)
        for block in blocks:
            Limbs.plan(block.bound, many, protocol.limit)
        plan.check(many)
        # All that can be refused is, before the ledger pays: also names, and errors beyond floats.
        agree = getattr(protocol, "session", None)
        if agree is not None:
            agree(carrier, Layout(1, 1), ask.sites)
        for place in range(len(measures)):
            plan.half_width(place)
        what = "; ".join(_words(s) for s in statistics)
        ledger = terms.ledger
        paid = nullcontext() if ledger is None else ledger.spending(what, cost, terms.neighbours)
        with paid:
            totals = ask.added(measures, blocks)
        run = ask.done()
        results = []
        for s in statistics:
            places = [measures.index(m) for m in self._measures(s, schema)]
            rows = s.finish(_uncentred(totals, measures, places), schema)
            scale, error = self._measured(s, plan, places, schema, rows)
            shown_rows = tuple(self._shown(s, row) for row in rows)
            guarantee = Guarantee(
                plan.epsilon,
                plan.delta,
                terms.neighbours,
                f"distributed {plan.kind} noise, {plan.honest} of {plan.parties} sites' enough",
                scale,
                error,
                plan.accountant,
                None if ledger is None else cost,
            )
            remarks = self._remarks(s, len(statistics), shown_rows)
            results.append(Result(s, shown_rows, run, remarks, guarantee))
        return results

    def _check(self, statistics: Sequence[Statistic]) -> None:
        if self._privacy.unit == "site":
            raise ParameterError(
                'unit="site" is for training, where each site\'s update is clipped; what a site '
                'adds to a count or a sum has no bound: ask with unit="record" or "patient"'
            )
        for s in statistics:
            if not s.noised:
                raise ParameterError(
                    f"{s.name} is not answered with noise; ask for counts, sums, means, "
                    "histograms or cross tables"
                )
            if s.column is not None:
                self._clipping.bounds(s.column)
            for column in s.categories:
                if self._clipping.columns.get(column, Column()).levels is None:
                    raise ParameterError(
                        f"column {column!r}: with privacy nothing is taken from the data; declare "
                        "its levels"
                    )
        if self._rule.minimum_sites > 1:
            raise ParameterError(
                "minimum_sites (--min-sites) opens how many sites contribute, without noise; leave "
                "it out with privacy"
            )

    def _measures(self, s: Statistic, schema: Schema) -> tuple[Measure, ...]:
        """Return what is summed: for a mean, distances from the middle of the bounds."""
        return s.noise_measures(lambda c: sum(self._clipping.integers(c, schema)) // 2)

    def _change(self, measure: Measure, schema: Schema) -> UnitChange:
        """Return what one unit changes in a measure's cells."""
        size = len(measure.labels(schema))
        near = self._privacy.neighbours
        # One row that comes or goes is in one cell, and so are all rows where there is but one.
        one = size == 1 or (near.records == 1 and near.relation == "add/remove")
        if isinstance(measure, Tally | Bins):
            found = sensitivity.count(near) if size == 1 else sensitivity.histogram(near)
            return UnitChange(size, math.ceil(found.l1), found.l2, one)
        if isinstance(measure, Centred):
            low, high = self._clipping.integers(measure.sums.column, schema)
            low, high = low - measure.middle, high - measure.middle
        elif isinstance(measure, PowerSum) and measure.power == 1:
            low, high = self._clipping.integers(measure.column, schema)
        else:
            raise ParameterError("only counts and sums of values have noise")
        if near.relation == "replace-one" and self._clipping.missing == "drop":
            # A record may be replaced by one that is dropped: its value comes or goes.
            low, high = min(0, low), max(0, high)
        bounds = Bounds(low, high)
        within = sensitivity.total(bounds, near)  # all rows in one cell, before and after
        if size == 1 or near.relation == "add/remove":
            return UnitChange(size, math.ceil(within.l1), within.l2, one)
        largest = near.records * bounds.magnitude
        l2 = max(within.l2, math.nextafter(math.sqrt(2) * float(largest), math.inf))
        return UnitChange(size, math.ceil(max(within.l1, 2 * largest)), l2, one)

    def _measured(
        self,
        s: Statistic,
        plan: NoisePlan,
        places: Sequence[int],
        schema: Schema,
        rows: Sequence[Row],
    ) -> tuple[float, float]:
        """Write each row's error into it; return the noise's scale and error in the result's unit.

        A mean's are those of its sum of distances from the middle.
        """
        unit = s.noise_unit(schema)
        middle = 0.0
        if s.column is not None:
            ends = self._clipping.bounds(s.column)
            middle = (float(ends.lower) + float(ends.upper)) / 2
        noise = AddedNoise(
            unit,
            plan.deviation(places[-1]) / unit,
            plan.half_width(places[-1]) / unit,
            plan.deviation(places[0]),
            plan.half_width(places[0]),
            middle,
        )
        for row in rows:
            s.add_error(row, noise)
        return noise.deviation, noise.half_width

    def _shown(self, s: Statistic, row: Row) -> Row:
        """Return a row as it is shown: clamped if asked for, small counts suppressed."""
        row = dict(row)
        least = self._rule.minimum_count if self._rule.active else None
        marks: dict[str, Any] = {}
        for key in s.counts:
            if least is not None:
                marks[key] = _each(row[key], lambda n: self._rule.mark if n < least else "")
                row[key] = _each(row[key], lambda n: None if n < least else n)
            if self._privacy.clamp:
                row[key] = _each(row[key], lambda n: n if n is None else max(n, 0))
        if marks.get("n"):
            marks["value"] = HIDDEN
            row["value"] = row["error"] = None
        elif self._privacy.clamp and s.of_values and s.column is not None:
            ends = self._clipping.bounds(s.column)
            s.clamp(row, float(ends.lower), float(ends.upper))
        if any(map(_marked, marks.values())):
            row["suppressed"] = marks
        return row

    def _remarks(self, s: Statistic, questions: int, rows: Sequence[Row]) -> tuple[str, ...]:
        terms = self._privacy
        words = []
        if questions > 1:
            words.append(f"epsilon and delta are of the {questions} answers of this run together")
        if terms.sites > 1 or terms.unit == "patient":
            words.append(
                f"promised to patients with records at no more than {terms.sites} "
                f"site{'s' * (terms.sites > 1)}, of which each site took the first {terms.records}"
            )
        if terms.colluding == 0:
            words.append("each site knows its own noise, and less protects the others from it")
        persons = max((_most(row.get(key)) for row in rows for key in s.counts), default=0)
        persons //= terms.neighbours.records
        if float(terms.cost.delta) * persons >= 1:
            words.append(
                f"delta {float(terms.cost.delta):g} is not below 1/{persons}, and there are about "
                f"{persons} persons: publishing one of them would keep this promise; take a delta "
                f"of {0.01 / persons:.0e} or less"
            )
        if any("suppressed" in row for row in rows):
            words.append(
                f"{self._rule.mark}: a noised count below {self._rule.minimum_count}, which may be "
                "negative"
            )
        return tuple(words)


class _Added:
    """The noise of a plan, by measure."""

    def __init__(
        self, plan: NoisePlan, measures: Sequence[Measure], reaches: Sequence[int]
    ) -> None:
        self._plan, self._reaches = plan, reaches
        self._places = {measure: i for i, measure in enumerate(measures)}

    def reach(self, measure: Measure) -> int:
        """Return by how much noise can enlarge an integer of one site."""
        return self._reaches[self._place(measure)]

    def add(self, measure: Measure, integers: list[int], entropy: Entropy) -> list[int]:
        """Return one site's integers with noise, every one of them."""
        return self._plan.add(self._place(measure), integers, entropy)

    def _place(self, measure: Measure) -> int:
        if measure not in self._places:
            raise ParameterError("a sum that no noise was planned for cannot be opened")
        return self._places[measure]


def _uncentred(
    totals: Totals,
    measures: Sequence[Measure],
    places: Sequence[int],
) -> Totals:
    """Return totals as a statistic finishes them: of a mean's distances, the sums."""
    own = measures[places[-1]]
    if not isinstance(own, Centred):
        return totals
    pairs = zip(totals[own], totals[own.rows], strict=True)
    return {**totals, own.sums: [distance + own.middle * n for distance, n in pairs]}


def _words(s: Statistic) -> str:
    return f"{s.name} of {s.what}" + (f" by {s.by}" if s.by else "")


def _each(value: Any, change: Any) -> Any:
    return [_each(v, change) for v in value] if isinstance(value, list) else change(value)


def _most(value: Any) -> int:
    """Return the largest of counts that are shown."""
    return max(map(_most, value), default=0) if isinstance(value, list) else value or 0


def _marked(mark: Any) -> bool:
    return any(map(_marked, mark)) if isinstance(mark, list) else bool(mark)
