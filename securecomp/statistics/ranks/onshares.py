"""What sums are not enough for, as methods of a study: ranks, a winner, scores by a hidden model.

Each begins an inquiry and hands it to the module that knows the analysis.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from securecomp.core.fixedpoint import shown
from securecomp.errors import ParameterError
from securecomp.protocol import sum_protocols as sums
from securecomp.statistics.inquiry import Inquiry
from securecomp.statistics.ranks import quantiles as quantiles_
from securecomp.statistics.ranks import scoring, winner
from securecomp.statistics.ranks.quantiles import Method, Ranks
from securecomp.statistics.ranks.scoring import Scores
from securecomp.statistics.ranks.share_engines import Engine
from securecomp.statistics.ranks.winner import Measured, Winner


class OnShares:
    """Methods that `Study` inherits."""

    protocol: sums.SumProtocol

    def inquiry(self) -> Inquiry:
        """Begin a question."""
        raise NotImplementedError

    def median(
        self,
        column: str,
        *,
        by: str | None = None,
        method: Method | None = None,
        engine: Engine = "replicated",
    ) -> Ranks:
        """Find the exact median; of an even number of rows the mean of the middle two.

        Args:
            column: A numeric column.
            by: Categorical column to group by.
            method: "shares" opens the result and nothing else; "counts" works with every sum
                protocol, and opens the number of rows below each candidate on the way. By default
                shares where the study's protocol is sharing among servers.
            engine: Who computes on shares: "replicated", three servers of which no two collude;
                "dealer", two servers and a dealer of random numbers; "mac", the same where a server
                may deviate, which is noticed.

        Raises:
            ParameterError: No such column or choice.
            RangeError: A value is missing or beyond its bound.
        """
        return self._ranks(column, by, {"median": quantiles_.MIDDLE}, method, engine)

    def quantiles(
        self,
        column: str,
        q: Sequence[float] = (0.25, 0.5, 0.75),
        *,
        by: str | None = None,
        method: Method | None = None,
        engine: Engine = "replicated",
    ) -> Ranks:
        """Find values of ranks ceil(q n), as numpy's "inverted_cdf"; arguments as `median` has."""
        shares = np.atleast_1d(np.array(q, object)).tolist()
        found = [(quantiles_.rank(share),) for share in shares]
        asked = {shown(abs(float(v))): rank for v, rank in zip(shares, found, strict=True)}
        if not asked or len(asked) < len(found):
            raise ParameterError("ask for at least one quantile, and for each once")
        return self._ranks(column, by, asked, method, engine)

    def extremes(
        self,
        column: str,
        *,
        by: str | None = None,
        method: Method | None = None,
        engine: Engine = "replicated",
    ) -> Ranks:
        """Find the smallest and the largest value, which may be one patient's; as `median`."""
        asked = {"minimum": (quantiles_.SMALLEST,), "maximum": (quantiles_.rank(1),)}
        return self._ranks(column, by, asked, method, engine)

    def _ranks(
        self,
        column: str,
        by: str | None,
        asked: Mapping[str, tuple[quantiles_.Rank, ...]],
        method: Method | None,
        engine: Engine,
    ) -> Ranks:
        if method is None:
            # Where every site computes, nobody else is trusted: no three servers are either.
            apart = getattr(self.protocol, "servers", "all") != "all"
            method = "shares" if self.protocol.name == "sharing" and apart else "counts"
        return quantiles_.find(self.inquiry(), column, by, asked, method, engine)

    def winner(
        self,
        column: str | None,
        *,
        of: Measured = "mean",
        smallest: bool = False,
        engine: Engine = "replicated",
    ) -> Winner:
        """Find the site with the largest mean, sum or count; nobody's number is opened.

        Args:
            column: A numeric column; None for the count of rows.
            of: "mean", "sum" or "count".
            smallest: Find the smallest instead.
            engine: Who computes on shares, as `median` has it.

        Raises:
            ParameterError: No such column or choice.
            RangeError: A value is missing or beyond its bound.
        """
        return winner.find(self.inquiry(), column, of, smallest, engine)

    def scores(
        self,
        weights: Mapping[str, float],
        intercept: float = 0.0,
        *,
        owner: str = "model owner",
        weight_bound: float | None = None,
        labels: bool = False,
        engine: Engine = "replicated",
    ) -> Scores:
        """Score every site's rows by a logistic model that no site sees, and that sees no row.

        Args:
            weights: Column to coefficient; the owner's secret, but for the columns' names.
            intercept: The owner's secret.
            owner: The owner's name; it computes nothing, and learns shapes alone.
            weight_bound: Largest absolute coefficient times its column's bound, public; by default
                the power of two above it.
            labels: Open 1 or 0 for each row, for a logit of at least 0 or not, in place of its
                probability: it tells the sites less of the model.
            engine: Who computes on shares, as `median` has it.

        Returns:
            Each site's scores, for itself.

        Raises:
            ParameterError: No such column or choice.
            RangeError: A value is missing or beyond its bound, or weights leave no room.
        """
        return scoring.score(
            self.inquiry(), weights, intercept, owner, weight_bound, labels, engine
        )
