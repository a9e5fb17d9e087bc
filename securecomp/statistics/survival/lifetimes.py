"""Survival analyses as methods of a study: curves, log-rank tests, Cox's regression.

Each begins an inquiry and hands it to the module that knows the analysis.
"""

from collections.abc import Sequence

from securecomp.statistics.inquiry import Inquiry
from securecomp.statistics.survival import cox, kaplan_meier, log_rank
from securecomp.statistics.survival.cox_result import Cox
from securecomp.statistics.survival.kaplan_meier import KaplanMeier
from securecomp.statistics.survival.log_rank import LogRank, Weighting
from securecomp.statistics.survival.survival_curve import Interval


class Lifetimes:
    """Methods that `Study` inherits."""

    def inquiry(self) -> Inquiry:
        """Begin a question."""
        raise NotImplementedError

    def kaplan_meier(
        self,
        time: str,
        event: str,
        *,
        times: Sequence[float] | None = None,
        by: str | None = None,
        confidence: float = 0.95,
        interval: Interval = "log-log",
    ) -> KaplanMeier:
        """Estimate survival curves from events and rows at risk on a grid of times.

        Args:
            time: Column of times from 0 until the event, or until the row is censored.
            event: Column that is 1 where the event happened and 0 where the row is censored.
            times: The grid, increasing; public. An event between two of its times counts at the
                later one, and who is censored between them is at risk there: so curves are exact if
                all times are on the grid, and otherwise too high by at most `Curve.grid_error` at
                its times. Rows are followed up to its last time; later events do not count. By
                default all integers up to the time column's bound, if that is at most 1,000.
            by: Categorical column; a curve for each level.
            confidence: Of the intervals.
            interval: "log-log", which stay within 0 and 1, or "plain", cut there.

        Returns:
            For each group the survival with Greenwood's standard error and interval at each time,
            the counts, the median, and the restricted mean.

        Raises:
            ParameterError: A column that there is not; times that are no grid, or none where one
                is needed.
            RangeError: A negative time, an event that is not 0 or 1; no rows at any site.

        Opens: each group's events and censorings at each time of the grid and beyond it; how many
        times are off the grid. One sum.

        Example:
            >>> study.kaplan_meier("days", "died", by="treatment").survival_at(365, "a")
            ... # doctest: +SKIP
        """
        ask = self.inquiry()
        return kaplan_meier.kaplan_meier(ask, time, event, times, by, confidence, interval)

    def logrank(
        self,
        time: str,
        event: str,
        by: str,
        *,
        times: Sequence[float] | None = None,
        strata: str | None = None,
        weighting: Weighting = "logrank",
        p: float = 0,
        q: float = 0,
    ) -> LogRank:
        """Test whether groups have the same hazard at all times.

        Args:
            time: Column of times, as `kaplan_meier` has it.
            event: Column of events, 1 or 0.
            by: Categorical column of two or more groups.
            times: The grid, as `kaplan_meier` has it; the test is of the times rounded up to it.
            strata: Categorical column within whose levels groups are compared.
            weighting: Of the times: "logrank" (1), "wilcoxon" (Gehan's: rows at risk),
                "tarone-ware" (their square root) or "fleming-harrington" (S^p (1 - S)^q with the
                stratum's survival S just before the time).
            p: For "fleming-harrington".
            q: For "fleming-harrington".

        Returns:
            Chi-square, degrees of freedom, p value; observed and expected events of each group.

        Raises:
            ParameterError: As `kaplan_meier`; one group only; an unknown weighting.
            RangeError: As `kaplan_meier`; no event, or never two groups at risk.

        Opens: rows and events of each group; events at each time of each stratum; at times with
        events, the rows at risk in each group; and each group's weighted events. Two sums, or
        three.

        Example:
            >>> study.logrank("days", "died", "treatment").pvalue  # doctest: +SKIP
        """
        ask = self.inquiry()
        return log_rank.logrank(ask, time, event, by, times, strata, weighting, (p, q))

    def cox(
        self,
        time: str,
        event: str,
        covariates: Sequence[str],
        *,
        times: Sequence[float] | None = None,
        strata: str | None = None,
        categorical: Sequence[str] = (),
        confidence: float = 0.95,
    ) -> Cox:
        """Fit Cox's model of proportional hazards, with ties as Breslow's.

        Args:
            time: Column of times, as `kaplan_meier` has it.
            event: Column of events, 1 or 0.
            covariates: Columns. Those of text, with declared levels or in `categorical` are
                categories, compared with their first level; others are numbers.
            times: The grid, as `kaplan_meier` has it; the fit is of the times rounded up to it.
            strata: Categorical column whose levels have a baseline hazard each.
            categorical: Covariates whose numbers are codes.
            confidence: Of the intervals.

        Returns:
            Coefficients, hazard ratios, standard errors, tests, likelihoods, baseline hazards and
            predicted survival.

        Raises:
            ParameterError: As `kaplan_meier`; covariates that are none.
            RangeError: As `kaplan_meier`; no event; a level without events, a constant or
                redundant covariate, a coefficient without a finite estimate: the column is named.

        Opens: rows; events at each time of each stratum; each covariate's sum over events; then in
        every step, at each time with events, the sum of exp(x'b) over the rows at risk and that of
        exp(x'b) x, and one matrix over all times. If one row leaves between two such times, its
        covariates follow from these sums: a coarser grid of times opens less.

        Example:
            >>> study.cox("days", "died", ["age", "treatment"]).hazard_ratios  # doctest: +SKIP
        """
        ask = self.inquiry()
        return cox.cox(ask, time, event, covariates, times, strata, categorical, confidence)
