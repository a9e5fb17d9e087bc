"""The classical analyses as methods of a study: correlation, tests of means and tables, ROC curves.

Each begins an inquiry and hands it to the module that knows the analysis.
"""

from collections.abc import Sequence
from typing import Literal

from securecomp.core.fixedpoint import Number
from securecomp.statistics.comparisons import (
    anova,
    contingency,
    distinct,
    risks,
    roc,
    stratified,
    t_tests,
)
from securecomp.statistics.comparisons import (
    correlation as correlation_,
)
from securecomp.statistics.distributions import Alternative
from securecomp.statistics.inquiry import Inquiry
from securecomp.statistics.site_table import Level


class Classical:
    """Methods that `Study` inherits."""

    def inquiry(self) -> Inquiry:
        """Begin a question."""
        raise NotImplementedError

    def covariance(self, columns: Sequence[str]) -> correlation_.Covariance:
        """Compute the sample covariances of columns, over the rows that have all of them.

        Exact power sums and products; each covariance is rounded once. Opened: the number of rows,
        and the sums of columns, squares and products.

        Args:
            columns: Numeric columns.

        Raises:
            ThresholdError: Fewer than 2 complete rows.
        """
        return correlation_.covariance(self.inquiry(), columns)

    def correlation(
        self, columns: Sequence[str], *, confidence: float = 0.95
    ) -> correlation_.Correlation:
        """Compute Pearson's correlations, over the rows that have all columns.

        With p values by Student's t and intervals by Fisher's transform. Opened: the number of
        rows, and the sums of columns, squares and products.

        Args:
            columns: At least two numeric columns.
            confidence: Of the intervals.

        Raises:
            RangeError: A column is constant; it is named.
            ThresholdError: Fewer than 3 complete rows.
        """
        return correlation_.correlation(self.inquiry(), columns, confidence)

    def standardisation(
        self, columns: Sequence[str], *, ddof: int = 1
    ) -> correlation_.Standardisation:
        """Compute what standardises columns alike at all sites: `result.apply(frame)`.

        Opened: of each column the number of rows that have it, their sum and sum of squares.

        Args:
            columns: Numeric columns.
            ddof: 1 for the sample's standard deviation, 0 for scikit-learn's.

        Raises:
            RangeError: A column is constant; it is named.
            ThresholdError: Fewer than 2 rows have a column.
        """
        return correlation_.standardisation(self.inquiry(), columns, ddof)

    def t_test(
        self,
        column: str,
        *,
        by: str | None = None,
        groups: Sequence[Level] | None = None,
        paired: str | None = None,
        mu: Number = 0,
        equal_variance: bool = False,
        alternative: Alternative = "two-sided",
        confidence: float = 0.95,
    ) -> t_tests.TTest:
        """Test a difference of means: of two groups, of two columns of a row, or from a number.

        Opened: of each group the number of rows, their sum and sum of squares; of a pair the
        number of rows, the two sums, and the sum of squared differences.

        Args:
            column: What is compared.
            by: Categorical column of two groups; the difference is the first less the second.
            groups: Two of its levels, if it has more, or in another order.
            paired: A second column, which is subtracted from the first in each row.
            mu: The mean, or difference of means, that is tested.
            equal_variance: Student's pooled variance instead of Welch's test.
            alternative: "two-sided", or that the difference is "less" or "greater" than `mu`.
            confidence: Of the difference's interval.

        Raises:
            ParameterError: Not two groups.
            ThresholdError: Fewer than 2 rows in a sample.
            RangeError: Nothing varies.
        """
        return t_tests.t_test(
            self.inquiry(),
            column,
            by=by,
            groups=groups,
            paired=paired,
            mu=mu,
            equal_variance=equal_variance,
            alternative=alternative,
            confidence=confidence,
        )

    def anova(
        self,
        column: str,
        by: str,
        *,
        groups: Sequence[Level] | None = None,
        equal_variance: bool = True,
    ) -> anova.Anova:
        """Compare the means of groups: one-way analysis of variance.

        Opened: of each group the number of rows, their sum and sum of squares.

        Args:
            column: What is compared.
            by: Categorical column of the groups.
            groups: Some of its levels; by default all that are agreed.
            equal_variance: False for Welch's test.

        Raises:
            ThresholdError: A group has no row (Welch: fewer than 2); it is named.
            RangeError: Nothing varies within the groups.
        """
        ask = self.inquiry()
        return anova.anova(ask, column, by, groups=groups, equal_variance=equal_variance)

    def chi_square(self, row: str, col: str, *, correction: bool = True) -> contingency.ChiSquare:
        """Test whether two categorical columns are independent, with Cramér's V.

        Levels that no row has are left out, and named. Opened: the number of rows of each cell.

        Args:
            row: Column whose levels are the table's rows.
            col: Column whose levels are the table's columns.
            correction: Yates' correction for 2 x 2 tables.

        Raises:
            ThresholdError: Fewer than 2 levels occur.
        """
        return contingency.chi_square(self.inquiry(), row, col, correction=correction)

    def fisher(
        self, row: str, col: str, *, alternative: Alternative = "two-sided"
    ) -> contingency.Fisher:
        """Test exactly whether two columns of two levels are independent.

        Opened: the four counts.

        Args:
            row: Column whose levels are the table's rows.
            col: Column whose levels are the table's columns.
            alternative: "two-sided", or that the odds ratio is "less" or "greater" than 1.
        """
        return contingency.fisher(self.inquiry(), row, col, alternative=alternative)

    def odds_ratio(
        self,
        exposure: str,
        outcome: str,
        *,
        exposed: Level | None = None,
        event: Level | None = None,
        haldane: bool = False,
        confidence: float = 0.95,
    ) -> risks.Risk:
        """Estimate the odds ratio of an event with and without an exposure, with Woolf's interval.

        Opened: the four counts.

        Args:
            exposure: Column of two levels.
            outcome: Column of two levels.
            exposed: The level that is exposed; by default 1 of 0 and 1, True of False and True.
            event: The level that is the event; by default as well.
            haldane: Add one half to each count if one is 0; otherwise that is refused.
            confidence: Of the interval.

        Raises:
            ParameterError: Not two levels, or it must be said which is meant.
            RangeError: A count is 0, without `haldane`.
            ThresholdError: There are no exposed rows, or no others.
        """
        return risks.risk(
            self.inquiry(),
            "odds ratio",
            exposure,
            outcome,
            exposed=exposed,
            event=event,
            haldane=haldane,
            confidence=confidence,
        )

    def relative_risk(
        self,
        exposure: str,
        outcome: str,
        *,
        exposed: Level | None = None,
        event: Level | None = None,
        haldane: bool = False,
        confidence: float = 0.95,
    ) -> risks.Risk:
        """Estimate the ratio of the risks with and without an exposure, with Katz' interval.

        Arguments, what is opened and errors are those of `odds_ratio`; only the counts of events
        must not be 0.
        """
        return risks.risk(
            self.inquiry(),
            "relative risk",
            exposure,
            outcome,
            exposed=exposed,
            event=event,
            haldane=haldane,
            confidence=confidence,
        )

    def risk_difference(
        self,
        exposure: str,
        outcome: str,
        *,
        exposed: Level | None = None,
        event: Level | None = None,
        method: Literal["newcombe", "wald"] = "newcombe",
        confidence: float = 0.95,
    ) -> risks.Risk:
        """Estimate the risk with an exposure less that without, by Newcombe's or Wald's interval.

        Arguments, what is opened and errors are those of `odds_ratio`; counts may be 0.
        """
        return risks.risk(
            self.inquiry(),
            "risk difference",
            exposure,
            outcome,
            exposed=exposed,
            event=event,
            method=method,
            confidence=confidence,
        )

    def mantel_haenszel(
        self,
        exposure: str,
        outcome: str,
        strata: str | None = None,
        *,
        effect: stratified.Effect = "odds ratio",
        exposed: Level | None = None,
        event: Level | None = None,
        correction: bool = True,
        homogeneity: bool = False,
        confidence: float = 0.95,
    ) -> stratified.MantelHaenszel:
        """Pool an odds ratio or relative risk within strata: by default the sites.

        With the test of Cochran, Mantel and Haenszel. Opened, if the sites are the strata: the
        totals over sites of the terms that the estimate, its variance and the test are made of, and
        no table. With a column of strata: the four counts of each stratum over all sites.

        Args:
            exposure: Column of two levels.
            outcome: Column of two levels.
            strata: Categorical column; without, every site is a stratum.
            effect: "odds ratio" or "relative risk".
            exposed: The level that is exposed; by default 1 of 0 and 1, True of False and True.
            event: The level that is the event; by default as well.
            correction: The test's correction for continuity.
            homogeneity: Test too whether the strata share the odds ratio (Breslow-Day-Tarone); if
                the sites are the strata, by a second sum, of four more totals.
            confidence: Of the interval.

        Raises:
            ParameterError: Not two levels, or it must be said which is meant.
            RangeError: The pooled ratio is not defined.
            ThresholdError: No stratum has both exposed and others, events and none.
        """
        return stratified.mantel_haenszel(
            self.inquiry(),
            exposure,
            outcome,
            strata,
            effect=effect,
            exposed=exposed,
            event=event,
            correction=correction,
            homogeneity=homogeneity,
            confidence=confidence,
        )

    def roc_auc(
        self,
        score: str,
        outcome: str,
        *,
        event: Level | None = None,
        edges: Sequence[float] | None = None,
        bins: int = 100,
        confidence: float = 0.95,
    ) -> roc.Discrimination:
        """Compute a score's ROC curve, the area under it, its bounds and standard errors.

        The area lies within `auc_low` and `auc_high`, whatever the scores within a bin; `auc` is
        exact if scores that share a bin are equal. Opened: the numbers of cases and controls in
        each bin.

        Args:
            score: Numeric column; larger scores speak for the event.
            outcome: Column of two levels.
            event: The level that is the event; by default 1 of 0 and 1, True of False and True.
            edges: The bins' borders, [a, b), the last one closed; they hold all scores.
            bins: Without edges: so many equal bins of [0, 1] if the score's agreed bound is at
                most 1, else from minus the bound to the bound.
            confidence: Of the interval.

        Raises:
            RangeError: A score is outside the bins.
            ThresholdError: There are no cases, or no controls.
        """
        return roc.roc_auc(
            self.inquiry(),
            score,
            outcome,
            event=event,
            edges=edges,
            bins=bins,
            confidence=confidence,
        )

    def distinct(
        self,
        columns: str | Sequence[str],
        *,
        expected: int,
        error: float = 0.01,
        confidence: float = 0.95,
    ) -> distinct.Distinct:
        """Estimate how many distinct patients the sites have together, and how far they overlap.

        No identifier leaves a site. Opened, to an analyst who has no site's key: which cells of a
        bitmap of keyed hashes are marked by any site, and the sum of the sites' own numbers of
        distinct patients. The sites hear the estimate.

        Args:
            columns: What identifies a patient: text or integers, compared as they are written.
            expected: The largest number of patients that is expected over all sites; public.
            error: Relative standard error with so many patients.
            confidence: Of the interval.

        Raises:
            ParameterError: Identifiers are text at one site and numbers at another.
            RangeError: There are far more patients than expected.
        """
        return distinct.distinct(
            self.inquiry(), columns, expected=expected, error=error, confidence=confidence
        )
