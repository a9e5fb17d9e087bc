"""Regressions as methods of a study.

Each begins an inquiry and hands it to the module that knows the analysis.
"""

from collections.abc import Mapping

from securecomp.statistics.inquiry import Inquiry
from securecomp.statistics.regression import glm
from securecomp.statistics.regression.regression_results import Regression


class Models:
    """Methods that `Study` inherits."""

    def inquiry(self) -> Inquiry:
        """Begin a question."""
        raise NotImplementedError

    def glm(
        self,
        formula: str,
        family: str = "logistic",
        *,
        weights: str | None = None,
        offset: str | None = None,
        confidence: float = 0.95,
        bounds: Mapping[str, float] | None = None,
        tolerance: float = 1e-8,
        iterations: int = 40,
    ) -> Regression:
        """Fit a generalised linear model to all sites' rows, by its canonical link.

        Newton's method: each step opens the totals of the log likelihood, its gradient and the
        information matrix, as if one site had all rows, and nothing of a site. A first sum opens
        the sums of products of all columns, from which everybody scales them alike; a linear
        model on agreed grids needs no other.

        Args:
            formula: As in R and statsmodels: "died ~ los + C(type) * age". Text columns are
                categories, with their first level as the reference; log(), exp(), sqrt(), I(...)
                and arithmetic act on each row. What depends on all rows of a site is refused. Names
                that Python could not read are in back quotes. At most 1,000 columns of the design.
            family: "logistic" (0 and 1, or two levels), "poisson" (counts, log link) or "linear".
            weights: Column of weights. Logistic, poisson: how many equal rows a row stands for
                (statsmodels' freq_weights). Linear: inverse variances (statsmodels' WLS).
            offset: Column that is added to the linear predictor as it is.
            confidence: Coverage of the intervals.
            bounds: Largest absolute value of a factor of the formula, {"exp(x)": 20}, where the
                columns' bounds give none, or one that is too large.
            tolerance: Stop when a step would move no coefficient by more standard errors.
            iterations: Give up after so many steps.

        Raises:
            ParameterError: A formula that cannot be read; a column that is a combination of
                others; separation; no convergence. It says what to do.
            RangeError: A site's value is missing, beyond a bound, outside its levels, or no
                response of the family; the site and the row are named and nothing is sent.
            BackendUnavailableError: `formulaic` is not installed.
        """
        return glm.fit(
            self.inquiry(),
            formula,
            family,
            weights=weights,
            offset=offset,
            confidence=confidence,
            bounds=bounds,
            tolerance=tolerance,
            iterations=iterations,
        )
