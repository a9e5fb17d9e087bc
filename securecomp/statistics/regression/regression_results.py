"""The result of a regression, printed like statsmodels' summaries."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from securecomp.errors import ParameterError
from securecomp.show.exhibit import Plot, TextTable
from securecomp.statistics.analysis import Analysis
from securecomp.statistics.distributions import check_confidence
from securecomp.statistics.regression.designs import INTERCEPT, new_rows
from securecomp.statistics.regression.empty_levels import UnseenCell, refuse_unseen
from securecomp.statistics.regression.families import FAMILIES
from securecomp.statistics.regression.fitting import NewtonStep
from securecomp.statistics.regression.gathered_rows import STEEPEST
from securecomp.statistics.regression.risk_model import risk_model
from securecomp.statistics.results import Run, data_frame
from securecomp.statistics.site_table import Level

if TYPE_CHECKING:
    from securecomp.models import Bounds, LogisticModel

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Regression(Analysis):
    """A fitted generalised linear model.

    Attributes:
        formula: As it was given.
        family: "logistic", "poisson" or "linear".
        response: What is explained; with the level that is modelled, if it has two.
        names: The coefficients' names, as statsmodels has them.
        params: Coefficients, shape (d,).
        covariance: Their covariance matrix, shape (d, d).
        nobs: Rows.
        weight: The sum of the weights; `nobs` without.
        df_model: Columns beside a constant.
        df_resid: Residual degrees of freedom.
        llf: Log likelihood.
        llnull: Log likelihood of the model with a constant alone (and the offset).
        deviance: Twice the log likelihood lost against a perfect fit; residual sum of squares for
            linear.
        null_deviance: The same with a constant alone.
        pearson_chi2: Sum of squared residuals over their variance; equal to the deviance for
            linear.
        scale: The dispersion: 1, or for linear the residual variance.
        history: The iterations.
        confidence: Of the intervals that are printed.
        weights: Name of the weights' column, or None.
        offset: Name of the offset's column, or None.
        levels: The agreed levels of the categorical columns, which `predict` needs.
        run: Protocol and cost.
        left_out: What was done about levels without rows, in words.
        unseen: Levels, and combinations of levels, that no row of the fit had.
    """

    formula: str
    family: str
    response: str
    names: tuple[str, ...]
    params: Vector
    covariance: Vector
    nobs: int
    weight: float
    df_model: int
    df_resid: float
    llf: float
    llnull: float
    deviance: float
    null_deviance: float
    pearson_chi2: float
    scale: float
    history: tuple[NewtonStep, ...]
    confidence: float
    weights: str | None
    offset: str | None
    levels: Mapping[str, tuple[Level, ...]]
    run: Run
    left_out: tuple[str, ...] = ()
    unseen: tuple[UnseenCell, ...] = ()

    @property
    def title(self) -> str:
        """The question in words."""
        return f"{self.family} regression: {self.formula.strip()}"

    @property
    def converged(self) -> bool:
        """True: what does not converge is an error."""
        return True

    @property
    def iterations(self) -> int:
        """Number of steps taken."""
        return max(0, len(self.history) - 1)

    @property
    def bse(self) -> Vector:
        """Standard errors, shape (d,)."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def tvalues(self) -> Vector:
        """Coefficients over their standard errors: t for linear, else z."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.params / self.bse

    zvalues = tvalues

    @property
    def pvalues(self) -> Vector:
        """Two-sided: of Student's t for linear, else of the normal distribution."""
        from scipy import special

        size = np.abs(self.tvalues)
        if self.family == "linear":
            return np.asarray(2 * special.stdtr(self.df_resid, -size))
        return np.asarray(2 * special.ndtr(-size))

    def conf_int(self, confidence: float | None = None) -> Vector:
        """Return Wald's intervals, shape (d, 2), by default with the fit's coverage.

        Raises:
            ParameterError: It is not between 0 and 1.
        """
        from scipy import special

        confidence = check_confidence(self.confidence if confidence is None else confidence)
        tail = (1 + confidence) / 2
        linear = self.family == "linear"
        half = special.stdtrit(self.df_resid, tail) if linear else special.ndtri(tail)
        return np.column_stack([self.params - half * self.bse, self.params + half * self.bse])

    def cov_params(self) -> Vector:
        """Return the coefficients' covariance matrix, shape (d, d)."""
        return self.covariance.copy()

    def ratios(self, confidence: float | None = None) -> Vector:
        """Return exp of coefficients and of their intervals, shape (d, 3).

        Odds ratios of a logistic model, rate ratios of a Poisson one.

        Raises:
            ParameterError: The model is linear.
        """
        if not FAMILIES[self.family].ratio:
            raise ParameterError("a linear model has differences, no ratios; see params")
        with np.errstate(over="ignore"):
            return np.exp(np.column_stack([self.params, self.conf_int(confidence)]))

    @property
    def aic(self) -> float:
        """Akaike's criterion: -2 log likelihood + 2 d."""
        return -2 * self.llf + 2 * len(self.names)

    @property
    def bic(self) -> float:
        """Schwarz's criterion: -2 log likelihood + d log n; n is the sum of frequency weights."""
        rows = self.nobs if self.family == "linear" else self.weight
        return -2 * self.llf + len(self.names) * math.log(rows)

    @property
    def llr(self) -> float:
        """Likelihood ratio statistic against a constant alone."""
        return 2 * (self.llf - self.llnull)

    @property
    def llr_pvalue(self) -> float:
        """Its p value, by chi squared with `df_model` degrees of freedom; NaN without any."""
        from scipy import special

        return float(special.chdtrc(self.df_model, self.llr)) if self.df_model > 0 else math.nan

    @property
    def rsquared(self) -> float:
        """Linear: the share of the variance that is explained."""
        return 1 - self.deviance / self.null_deviance

    @property
    def rsquared_adj(self) -> float:
        """Linear: R squared less what as many columns of noise would explain."""
        constant = len(self.names) - self.df_model
        return 1 - (self.nobs - constant) / self.df_resid * (1 - self.rsquared)

    @property
    def fvalue(self) -> float:
        """Linear: F statistic of all columns but a constant; NaN without any."""
        if self.df_model == 0:
            return math.nan
        explained = (self.null_deviance - self.deviance) / self.df_model
        return explained / self.scale if self.scale else math.inf

    @property
    def f_pvalue(self) -> float:
        """Linear: its p value."""
        from scipy import special

        return float(special.fdtrc(self.df_model, self.df_resid, self.fvalue))

    @property
    def residual_sd(self) -> float:
        """Linear: standard deviation of what is not explained."""
        return math.sqrt(self.scale)

    def predict(self, frame: Any, which: Literal["mean", "linear"] = "mean") -> Vector:
        """Predict for new rows, which stay here: nothing is sent.

        Args:
            frame: A data frame with the columns that the formula uses (and the offset).
            which: The mean of the response, or the linear predictor.

        Returns:
            Shape (rows,).

        Raises:
            ParameterError: A column is missing.
            RangeError: A cell is empty, or not one of the levels.
        """
        if which not in ("mean", "linear"):
            raise ParameterError(f'which is "mean" or "linear", not {which!r}')
        design, rows = new_rows(frame, self.formula, self.levels, self.offset)
        refuse_unseen(design, rows, self.unseen)
        matrix = design.matrix(rows)
        eta = matrix[:, [design.names.index(name) for name in self.names]] @ self.params
        if design.offset is not None:
            eta = eta + rows.floats(design.offset)
        return eta if which == "linear" else FAMILIES[self.family].mean(eta)

    def logistic_model(self, bounds: "Bounds" = None) -> "LogisticModel":
        """Return a logistic model of plain columns; `bounds` as in `LogisticModel.from_sklearn`.

        Raises:
            ParameterError: Another family, an offset, or terms that are no columns of numbers.
        """
        return risk_model(self, bounds)

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pyarrow") -> Any:
        """Convert the coefficients to a data frame of a library.

        Raises:
            BackendUnavailableError: The library is not installed.
            ParameterError: There is no such library.
        """
        low, high = self.conf_int().T
        columns = {
            "term": list(self.names),
            "estimate": self.params.tolist(),
            "std_error": self.bse.tolist(),
            "statistic": self.tvalues.tolist(),
            "p_value": self.pvalues.tolist(),
            "low": low.tolist(),
            "high": high.tolist(),
        }
        return data_frame(columns, backend)

    def grids(self) -> list[TextTable]:
        """Return the coefficients, ratios, and the fit's figures."""
        letter = "t" if self.family == "linear" else "z"
        percent = f"{100 * self.confidence:g} %"
        header = ("", "coef", "std err", letter, f"P>|{letter}|", f"{percent} from", "to")
        table = zip(
            self.names, self.params, self.bse, self.tvalues, self.pvalues, self.conf_int(),
            strict=True,
        )  # fmt: skip
        rows = tuple(
            (_short(name), _four(b), _four(se), f"{z:.3f}", f"{p:.3f}", *map(_four, ends))
            for name, b, se, z, p, ends in table
        )
        grids = [TextTable("", header, rows)]
        ratio = FAMILIES[self.family].ratio
        kept = [i for i, name in enumerate(self.names) if name != INTERCEPT]
        if ratio and kept:
            found = self.ratios()
            grids.append(
                TextTable(
                    "",
                    ("", ratio, f"{percent} from", "to"),
                    tuple((_short(self.names[i]), *map(_four, found[i])) for i in kept),
                )
            )
        figures = tuple((name, _figure(value)) for name, value in self._figures().items())
        return [*grids, TextTable("", ("fit", ""), figures)]

    def _figures(self) -> dict[str, float | int]:
        figures: dict[str, float | int] = {"rows": self.nobs}
        if self.weights is not None:
            figures[f"sum of {self.weights}"] = self.weight
        figures |= {
            "residual degrees of freedom": self.df_resid,
            "log likelihood": self.llf,
            "log likelihood, constant alone": self.llnull,
            "AIC": self.aic,
            "BIC": self.bic,
        }
        if self.family == "linear":
            return figures | {
                "R squared": self.rsquared,
                "R squared, adjusted": self.rsquared_adj,
                "F": self.fvalue,
                "P(F)": self.f_pvalue,
                "residual standard deviation": self.residual_sd,
            }
        return figures | {
            "deviance": self.deviance,
            "deviance, constant alone": self.null_deviance,
            "Pearson chi squared": self.pearson_chi2,
            "likelihood ratio chi squared": self.llr,
            "P(chi squared)": self.llr_pvalue,
        }

    def facts(self) -> dict[str, Any]:
        """Return everything as plain objects."""
        low, high = self.conf_int().T
        rows = zip(
            self.names, self.params, self.bse, self.tvalues, self.pvalues, low, high, strict=True
        )
        keys = ("estimate", "std_error", "statistic", "p_value", "low", "high")
        return {
            "formula": self.formula,
            "family": self.family,
            "response": self.response,
            "confidence": self.confidence,
            "coefficients": {
                name: dict(zip(keys, map(_plain, values), strict=True)) for name, *values in rows
            },
            "fit": {name: _plain(value) for name, value in self._figures().items()},
            "history": [
                {"iteration": s.iteration, "likelihood": s.likelihood, "decrement": s.decrement}
                for s in self.history
            ],
        }

    def plots(self) -> list[Plot]:
        """Return a forest plot of the ratios, or of a linear model's coefficients."""
        ratio = FAMILIES[self.family].ratio
        found = self.ratios() if ratio else np.column_stack([self.params, self.conf_int()])
        series: dict[str, dict[str, Sequence[float]]] = {
            name: {"estimate": [float(b)], "low": [float(low)], "high": [float(high)]}
            for name, (b, low, high) in zip(self.names, found, strict=True)
            if name != INTERCEPT
        }
        if not series:
            return []
        what = ratio or "coefficient"
        return [
            Plot(
                "forest", self.title, what, "", series, reference=1 if ratio else 0,
                logarithmic=bool(ratio),
            )
        ]  # fmt: skip

    def remarks(self) -> list[str]:
        """Return how it converged, and what the weights are."""
        remarks = list(self.left_out)
        if self.response not in self.formula:
            remarks.append(f"the response is {self.response}")
        if self.weights is not None:
            kind = "inverse variances" if self.family == "linear" else "numbers of equal rows"
            remarks.append(f"the weights {self.weights} are {kind}")
        if math.isnan(self.pearson_chi2):
            remarks.append(
                "Pearson's chi squared was not summed: by the columns' bounds a row could add more "
                f"than e^{STEEPEST:.0f} to it; agree on smaller bounds"
            )
        if self.history:
            last = self.history[-1]
            halved = sum(step.halvings > 0 for step in self.history)
            remarks.append(
                f"converged after {self.iterations} iterations; the last step moves no coefficient "
                f"by more than {last.decrement:.1g} standard errors"
                + (f"; {halved} steps were halved" if halved else "")
            )
        return remarks


def _short(name: str) -> str:
    return name if len(name) <= 36 else f"{name[:20]}...{name[-13:]}"


def _four(value: float) -> str:
    """Format as published tables do: four decimals, or digits where those show none."""
    size = abs(value)
    return f"{value:.4f}" if size == 0 or 0.01 <= size < 1e5 else f"{value:.4g}"


def _figure(value: float | int) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def _plain(value: Any) -> float | int | None:
    """Return a number that JSON has."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, int) or math.isfinite(value) else None
