"""Published claims about the cost of privacy, to stand beside measured ratios."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PublishedClaim:
    """A sentence that people repeat.

    Attributes:
        family: Family of the cases that it is about.
        text: The sentence.
        low: Smallest ratio to plaintext that it claims.
        high: Largest ratio.
    """

    family: str
    text: str
    low: float
    high: float

    def facts(self) -> dict[str, Any]:
        """Return the claim as plain values."""
        return asdict(self)


CLAIMS = (
    PublishedClaim("mpc", "MPC is 100 to 1,000 times slower", 100, 1_000),
    PublishedClaim("fhe", "FHE is 10,000 to 1,000,000 times slower", 10_000, 1_000_000),
)


def verdict(ratio: dict[str, Any], claim: dict[str, Any]) -> str:
    """Return the place of a measured ratio: "below", "within" or "above" the claim.

    A ratio is outside only if its whole interval is. Without an interval its median decides.
    """
    low, high = (ratio.get(end) or ratio["median"] for end in ("low", "high"))
    if high < claim["low"]:
        return "below"
    return "above" if low > claim["high"] else "within"
