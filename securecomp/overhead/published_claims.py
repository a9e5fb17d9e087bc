"""What is said about the cost of privacy, to stand beside what was measured."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PublishedClaim:
    """A sentence that people repeat.

    Attributes:
        family: Which cases it is about.
        text: The sentence.
        low: Smallest ratio to plaintext that it speaks of.
        high: Largest.
    """

    family: str
    text: str
    low: float
    high: float

    def facts(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)


CLAIMS = (
    PublishedClaim("mpc", "MPC is 100 to 1,000 times slower", 100, 1_000),
    PublishedClaim("fhe", "FHE is 10,000 to 1,000,000 times slower", 10_000, 1_000_000),
)


def verdict(ratio: dict[str, Any], claim: dict[str, Any]) -> str:
    """Return where a measured ratio stands to a claim: "below", "within" or "above" it.

    It is outside only if its whole interval is; without an interval its median decides.
    """
    low, high = (ratio.get(end) or ratio["median"] for end in ("low", "high"))
    if high < claim["low"]:
        return "below"
    return "above" if low > claim["high"] else "within"
