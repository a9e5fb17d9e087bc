"""One round's secure sum: what every site adds, over those that stay to the end."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from securecomp.errors import ParameterError, ThresholdError
from securecomp.protocol import sum_protocols as sums
from securecomp.protocol.carrier import Carrier, Inputs, Vector
from securecomp.protocol.session import Layout
from securecomp.secagg.masked_sum import STEPS
from securecomp.statistics.adder import Adder, IntegerBlock, RealBlock

START = "start"
"""When a site is gone that does not answer before a round's deadline."""
Gone = Mapping[str, Collection[str]]
"""A step ("start", or one of masking's) to the sites that answer no more from it on."""


class WithDropouts(sums.SumProtocol):
    """A sum protocol of which some contributors vanish in the middle.

    Masking goes on without them. The other protocols need everybody who began: they stop, and
    nothing is opened.

    Attributes:
        survivors: Whose vectors are in the last total.
    """

    def __init__(self, protocol: sums.SumProtocol, gone: Gone) -> None:
        self._protocol = protocol
        self._gone = {step: names for step, names in gone.items() if step != START}
        self.name = protocol.name
        self.survivors: tuple[str, ...] = ()

    @property
    def limit(self) -> int:
        """The largest absolute total that comes out exactly."""
        return self._protocol.limit

    def learned(self) -> dict[str, str]:
        """Say what each kind of party learns, and under which assumption."""
        return self._protocol.learned()

    def run(
        self,
        carrier: Carrier,
        layout: Layout,
        contributors: Inputs,
        receivers: tuple[str, ...] | None = None,
    ) -> Vector:
        """Run all roles and return the total over the survivors.

        Raises:
            ThresholdError: Too few are left.
        """
        total, self.survivors = self._protocol.run_without(
            carrier, layout, contributors, receivers, self._gone
        )
        return total


@dataclass(slots=True)
class RoundSum:
    """Opens the totals of rounds.

    Attributes:
        protocol: Who adds, and how.
        carrier: Brings messages.
        sites: All sites; each receives the totals, because each goes on from them.
        least: Fewest sites whose sum is opened.
        colluding: How many may put together what they know.
        opened: Labels of all totals that were opened.
        count: Number of sums.
    """

    protocol: sums.SumProtocol
    carrier: Carrier
    sites: tuple[str, ...]
    least: int
    colluding: int
    opened: dict[str, None]
    count: int = 0

    def check(self, gone: Gone) -> None:
        """Refuse unknown sites and steps.

        Raises:
            ParameterError: It names it.
        """
        for step, names in gone.items():
            if step not in (START, *STEPS):
                raise ParameterError(
                    f"absent: there is no step {step!r}; one of {', '.join((START, *STEPS))}"
                )
            if isinstance(names, str):
                raise ParameterError(f"absent: several names, not one text: {names!r}")
            for name in names:
                if name not in self.sites:
                    raise ParameterError(f"absent: there is no site {name!r}")

    def scheme(self, contributors: int) -> sums.SumProtocol:
        """Return the protocol, by which no sum of fewer than `least` is opened.

        Raises:
            ThresholdError: There are fewer.
            ParameterError: So many that collude have the others' secrets.
        """
        if contributors < self.least:
            raise ThresholdError(
                self.least, contributors, "fewer sites are left than a sum must have"
            )
        return self.protocol.requiring(self.least, contributors, self.colluding)

    def add(
        self, names: Sequence[str], blocks: Sequence[IntegerBlock | RealBlock], gone: Gone
    ) -> tuple[list[Any], tuple[str, ...]]:
        """Add up blocks over some sites.

        Returns:
            For each block its totals, and whose vectors are in them.

        Raises:
            ThresholdError: Too few are left; nothing was opened.
        """
        surviving = WithDropouts(self.scheme(len(names)), gone)
        adder = Adder(names, surviving, self.carrier)
        if self.count:  # a round waits for the one before
            self.carrier.next_round()
        self.count += 1
        totals = adder.add(*blocks, receivers=self.sites)
        self.opened.update(adder.opened)
        return totals, surviving.survivors
