"""Result of a Cox regression: coefficients, tests, baseline hazards and predicted survival."""

import bisect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from securecomp.errors import ParameterError
from securecomp.show.exhibit import Plot, TextTable
from securecomp.show.numbers import show
from securecomp.statistics.analysis import Analysis
from securecomp.statistics.distributions import check_confidence, half_width, normal_pvalue
from securecomp.statistics.regression.covariates import Covariates
from securecomp.statistics.results import Run
from securecomp.statistics.survival.cox_likelihood import Ties
from securecomp.statistics.survival.cox_newton import CoxStep
from securecomp.statistics.survival.follow_up import TimeGrid

Floats = npt.NDArray[np.float64]


class CoefficientTest(NamedTuple):
    """A test that all coefficients are 0."""

    statistic: float
    df: int
    pvalue: float


@dataclass(frozen=True, slots=True, eq=False)
class Baseline:
    """The baseline hazard of a stratum, at the covariates' mean over events.

    Breslow's estimate; with Efron's ties, as R has it, each event of a tie counts among the rows
    that are left at risk.

    Attributes:
        times: Times with events.
        events: How many.
        hazard: Increment of the cumulative hazard at each.
    """

    times: Floats
    events: Floats
    hazard: Floats

    @property
    def cumulative(self) -> Floats:
        """The cumulative hazard at each time with events."""
        return np.cumsum(self.hazard)


@dataclass(frozen=True, slots=True, eq=False)
class Cox(Analysis):
    """A fitted model of proportional hazards.

    Attributes:
        time: Column of times.
        event: Column of events.
        covariates: The covariates, their levels and references.
        strata: Column of strata, or None.
        ties: "efron" or "breslow".
        names: Of the coefficients.
        params: Log hazard ratios, for one unit or against the reference level.
        covariance: Of the coefficients; the inverse of the observed information.
        confidence: Of the intervals.
        llf: Partial log likelihood.
        llnull: The same with all coefficients 0.
        likelihood_ratio: Test that all are 0.
        score: The same by the score at 0; without ties the log-rank test, for two groups.
        wald: The same by the estimates.
        rows: Rows that were used.
        events: Events among them.
        centre: Covariates' means over events.
        baselines: Stratum to baseline hazard, at `centre`; {"": hazard} without strata.
        history: The fit's steps.
        smallest: How many of the counts that were opened are small, as a remark.
        rounded: Rows whose time is between times of the grid.
        run: Protocol and cost.
    """

    time: str
    event: str
    covariates: Covariates
    strata: str | None
    ties: Ties
    names: tuple[str, ...]
    params: Floats
    covariance: Floats
    confidence: float
    llf: float
    llnull: float
    likelihood_ratio: CoefficientTest
    score: CoefficientTest
    wald: CoefficientTest
    rows: int
    events: int
    centre: Floats
    baselines: dict[str, Baseline]
    history: tuple[CoxStep, ...]
    smallest: tuple[str, ...]
    rounded: int
    grid: TimeGrid
    run: Run

    @property
    def bse(self) -> Floats:
        """Standard errors of the coefficients."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def tvalues(self) -> Floats:
        """Coefficients over their standard errors, which are normal in large samples (z)."""
        return self.params / self.bse

    @property
    def pvalues(self) -> Floats:
        """Two-sided p value of each coefficient."""
        return np.array([normal_pvalue(z) for z in self.tvalues.tolist()])

    @property
    def hazard_ratios(self) -> Floats:
        """exp of the coefficients."""
        return np.exp(self.params)

    def conf_int(self, confidence: float | None = None) -> Floats:
        """Return intervals of the coefficients, shape (coefficients, 2)."""
        z = half_width(self.confidence if confidence is None else check_confidence(confidence))
        return np.stack([self.params - z * self.bse, self.params + z * self.bse], axis=1)

    def cov_params(self) -> Floats:
        """Return the coefficients' covariance."""
        return self.covariance

    def baseline_cumulative_hazard(self, stratum: str = "") -> tuple[Floats, Floats]:
        """Return times with events and the cumulative hazard where all covariates are 0.

        Zero is the reference level of a category, and may be far from any patient for a number.

        Raises:
            ParameterError: There is no such stratum.
        """
        found = self._baseline(stratum)
        return found.times, found.cumulative * math.exp(-float(self.params @ self.centre))

    def survival(self, row: Mapping[str, Any], times: Any, stratum: str = "") -> Floats:
        """Return the predicted survival of one patient.

        Args:
            row: Column to value, for all covariates.
            times: Times, shape (n,).
            stratum: Where there are strata.

        Returns:
            Survival at each time. After the last event it stays as it is.

        Raises:
            ParameterError: A covariate is missing, unknown or of the wrong kind.
        """
        found = self._baseline(stratum)
        x = self.covariates.vector(dict(row))
        hazard = np.concatenate([[0.0], found.cumulative])
        known = found.times.tolist()
        at = [bisect.bisect_right(known, t) for t in np.atleast_1d(times).tolist()]
        survival: Floats = np.exp(-hazard[at] * math.exp(float(self.params @ (x - self.centre))))
        return survival

    def _baseline(self, stratum: str) -> Baseline:
        if str(stratum) not in self.baselines:
            known = ", ".join(self.baselines)
            raise ParameterError(f"there is no stratum {stratum!r}; choose from: {known}")
        return self.baselines[str(stratum)]

    @property
    def title(self) -> str:
        """The question in words."""
        strata = f", stratified by {self.strata}" if self.strata is not None else ""
        return f"Cox regression of {self.time} until {self.event}{strata}"

    def records(self) -> list[dict[str, Any]]:
        """Return one flat record for each coefficient, for a data frame."""
        low, high = self.conf_int().T
        columns = {
            "coef": self.params,
            "se": self.bse,
            "z": self.tvalues,
            "pvalue": self.pvalues,
            "low": low,
            "high": high,
            "hazard_ratio": self.hazard_ratios,
            "hazard_ratio_low": np.exp(low),
            "hazard_ratio_high": np.exp(high),
        }
        return [
            {"name": name, **{key: float(values[j]) for key, values in columns.items()}}
            for j, name in enumerate(self.names)
        ]

    def grids(self) -> list[TextTable]:
        """Return coefficients, tests and the fit's steps."""
        lines = [
            (
                r["name"],
                *(f"{r[key]:.4f}" for key in ("coef", "se", "z")),
                f"{r['pvalue']:.4g}",
                *(show(r[f"hazard_ratio{key}"]) for key in ("", "_low", "_high")),
            )
            for r in self.records()
        ]
        percent = f"{show(100 * self.confidence)}%"
        head = ("", "coef", "se", "z", "p value", "hazard ratio", f"{percent} from", "to")
        named = {"likelihood ratio": self.likelihood_ratio, "score": self.score, "Wald": self.wald}
        tests = [(n, f"{t.statistic:.4f}", str(t.df), f"{t.pvalue:.4g}") for n, t in named.items()]
        steps = [
            (str(i), f"{s.llf:.8f}", f"{s.shift:.3g}", str(s.halvings))
            for i, s in enumerate(self.history)
        ]
        return [
            TextTable(f"{self.rows:,} rows, {self.events:,} events", head, tuple(lines)),
            TextTable(
                "all coefficients are 0", ("test", "chi-square", "df", "p value"), tuple(tests)
            ),
            TextTable("", ("step", "log likelihood", "next, in se", "halved"), tuple(steps)),
        ]

    @property
    def _asked(self) -> str | list[str]:
        asked = self.covariates.asked
        return asked if isinstance(asked, str) else list(asked)

    def facts(self) -> dict[str, Any]:
        """Return the model as plain objects."""
        return {
            "time": self.time,
            "event": self.event,
            "strata": self.strata,
            "ties": self.ties,
            "covariates": self._asked,
            "left_out": list(self.covariates.left_out),
            "references": dict(self.covariates.references),
            "rows": self.rows,
            "events": self.events,
            "rounded": self.rounded,
            "coefficients": self.records(),
            "covariance": self.covariance.tolist(),
            "log_likelihood": self.llf,
            "log_likelihood_of_0": self.llnull,
            "likelihood_ratio": self.likelihood_ratio._asdict(),
            "score": self.score._asdict(),
            "wald": self.wald._asdict(),
            "centre": self.centre.tolist(),
            "baselines": {
                name: {
                    "times": b.times.tolist(),
                    "events": [int(n) for n in b.events],
                    "cumulative_hazard": b.cumulative.tolist(),
                }
                for name, b in self.baselines.items()
            },
            "steps": [s._asdict() for s in self.history],
        }

    def plots(self) -> list[Plot]:
        """Return the hazard ratios, and the survival at the covariates' mean over events."""
        ratios: dict[str, dict[str, Sequence[float]]] = {
            r["name"]: {
                "estimate": [r["hazard_ratio"]],
                "low": [r["hazard_ratio_low"]],
                "high": [r["hazard_ratio_high"]],
            }
            for r in self.records()
        }
        curves: dict[str, dict[str, Sequence[float]]] = {
            name or "survival": {
                "x": [0.0, *b.times.tolist()],
                "y": [1.0, *np.exp(-b.cumulative).tolist()],
            }
            for name, b in self.baselines.items()
        }
        where = "survival at the covariates' means over events"
        return [
            Plot("forest", self.title, "hazard ratio", "", ratios, 1.0, True),
            Plot("steps", where, self.time, "survival", curves),
        ]

    def remarks(self) -> list[str]:
        """Return references, ties, what was opened beyond the model, and small counts."""
        said = [f"{c}: against {level}." for c, level in self.covariates.references.items()]
        said += [f"{words}." for words in self.covariates.left_out]
        cells = sum(len(b.times) for b in self.baselines.values())
        said.append(
            f"Ties by {self.ties.capitalize()}'s method. In every step, sums over the rows at risk "
            f"became known at each of {cells:,} times with events: 1 + {len(self.names)} numbers "
            "each. The sums of two times differ by the rows that left between them; if one row "
            "did, its covariates can be computed. That is more than a regression without times "
            "opens; fewer times open less."
        )
        tied = sum(int((b.events > 1).sum()) for b in self.baselines.values())
        if self.ties == "efron" and tied:
            said.append(
                f"At {tied:,} times with two or more events the same sums over these events became "
                "known; where there are two or three, their covariates follow from the sums of "
                'several steps. ties="breslow" (--ties breslow) does not open them.'
            )
        none = [name for name, b in self.baselines.items() if name and not len(b.times)]
        said += [f"No events in {self.strata}: {', '.join(none)}."] if none else []
        return [*said, *self.grid.remarks(self.rounded), *self.smallest]
