"""Differential privacy of a whole training: one plan over all rounds, made before the first.

What one unit (a record, a patient, a site) adds to a sum is clipped to a norm and encoded as
integers, and every site adds its part of the noise before the sum, in every round: there is no
total with less noise, and nobody to trust. All rounds that a unit can be in are blocks of one plan;
that a round asks only some of the sites is no protection, because it is known who was asked.

A unit that is a record or a patient has its gradient clipped, and the noised total is divided by
the number of units: a public figure (`TrainingTerms.examples`), or one that was summed with noise,
as a block of the same plan, before the first round. A site's change is divided by the number of
sites in the sum, which is known; that a site takes part is no secret.

Sources: Kairouz, Liu, Steinke, ICML 2021 (noise in parts); Abadi et al., CCS 2016 (clipped
gradients); McMahan, Ramage, Talwar, Zhang, Learning differentially private recurrent language
models, ICLR 2018 (whole clients as units).
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from securecomp.core import prg
from securecomp.core.entropy import Entropy
from securecomp.errors import ParameterError
from securecomp.federated.config import TrainingTerms
from securecomp.federated.losses import Floats
from securecomp.privacy import distributed
from securecomp.privacy.distributed import NoisePlan
from securecomp.privacy.guarantee import Guarantee
from securecomp.privacy.noise_distributions import UnitChange
from securecomp.privacy.policy import Privacy
from securecomp.privacy.privacy_amounts import below
from securecomp.privacy.rotation import Encoding

_RESOLUTION = 1 << 20
"""Integers for the length `clip`: rounding adds a millionth of what noise covers."""


@dataclass(frozen=True, slots=True)
class Protection:
    """Encoder of a round's vectors as integers with noise.

    Attributes:
        privacy: What was promised.
        clip: Largest norm of one unit's vector.
        length: Of a vector.
        seed: Public; the rotations are drawn from it.
        plan: The noise; of the number of units first, if it is summed, and of each round.
        counted: Whether the number of units is summed.
        exposures: The most rounds that one unit is in.
        max_units: Most units of a site.
    """

    privacy: Privacy
    clip: float
    length: int
    seed: bytes
    plan: NoisePlan
    counted: bool
    exposures: int
    max_units: int

    @classmethod
    def of(
        cls,
        privacy: Privacy,
        terms: TrainingTerms,
        sites: tuple[str, ...],
        seed: bytes,
        length: int,
    ) -> "Protection":
        """Plan a training's noise.

        Raises:
            ParameterError: Terms whose rounds cannot be clipped by unit, or a promise that no
                noise keeps.
            ThresholdError: Too few sites for noise in parts.
        """
        check(privacy, terms)
        asked = Counter(
            site
            for number in range(1, terms.rounds + 1)
            for site in terms.participants(sites, seed, number)
        )
        # A patient's other records are at other sites, which take part in other rounds.
        exposures = terms.rounds if privacy.sites > 1 else max(asked.values())
        whole = privacy.unit == "site"
        counted = not whole and terms.examples is None
        change = Encoding(length, terms.clip, _RESOLUTION / terms.clip, seed).change(
            privacy.relation
        )
        many = privacy.sites
        changes = [
            UnitChange(change.size, many * change.l1, many * change.l2, change.one)
        ] * exposures
        if counted:
            changes.insert(0, UnitChange(1, many, float(many), one=True))
        cost = privacy.cost
        plan = distributed.plan(
            privacy.noise,
            changes,
            below(cost.epsilon),
            below(cost.delta),
            terms.per_round(len(sites)),
            colluding=privacy.colluding,
            dropouts=privacy.dropouts,
        )
        units = 1 if whole else terms.max_rows
        return cls(privacy, terms.clip, length, seed, plan, counted, exposures, units)

    @property
    def of_sites(self) -> bool:
        """Whether what is protected is a site."""
        return self.privacy.unit == "site"

    @property
    def scale(self) -> float:
        """Integers per unit of length."""
        return _RESOLUTION / self.clip

    @property
    def bound(self) -> int:
        """The largest absolute integer that a site adds."""
        return self._encoding(0).bound(self.max_units) + self.plan.reach(-1)

    def integers(self, number: int, vectors: Iterable[Floats], entropy: Entropy) -> list[int]:
        """Return one site's integers of a round, with its part of the noise.

        A vector that is not finite counts as none: an error would say, without noise, that it is.

        Args:
            number: The round.
            vectors: Of the site's units, shape (units, length), some at a time.
            entropy: For rounding and noise.
        """
        encoding = self._encoding(number)
        total = np.zeros(encoding.padded, np.int64)
        for rows in vectors:
            finite = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, 0.0)
            total += np.array(encoding.encode(finite, entropy), np.int64)
        return self.plan.add(-1, total.tolist(), entropy)

    def decoded(self, number: int, total: list[int]) -> Floats:
        """Return the noised sum of the units' vectors, shape (length,)."""
        return self._encoding(number).decode(total)

    def labels(self) -> list[str]:
        """Name the integers of a round: each is a mixture of all weights' gradients."""
        what = "changes" if self.of_sites else "gradients"
        size = self._encoding(0).padded
        return [f"noised sum of clipped {what}, rotated ({i + 1})" for i in range(size)]

    def guarantee(self, paid: bool) -> Guarantee:
        """Return what holds for the trained model and all that was opened on the way to it."""
        plan = self.plan
        counted = " and the number of units" if self.counted else ""
        return Guarantee(
            plan.epsilon,
            plan.delta,
            self.privacy.neighbours,
            f"distributed {plan.kind} noise in each of {self.exposures} rounds{counted}, "
            f"{plan.honest} of {plan.parties} sites' enough",
            plan.deviation(-1) / self.scale,
            plan.half_width(-1) / self.scale,
            plan.accountant,
            self.privacy.cost if paid else None,
        )

    def _encoding(self, number: int) -> Encoding:
        seed = prg.derive(self.seed, "federated rotation", number)
        return Encoding(self.length, self.clip, self.scale, seed)


def check(privacy: Privacy, terms: TrainingTerms) -> None:
    """Refuse terms of a training that its unit does not allow.

    Raises:
        ParameterError: It says which, and what to do.
    """
    if privacy.unit != "site":
        if terms.strategy != "sgd" or terms.batch_size is not None:
            raise ParameterError(
                f'unit="{privacy.unit}" clips the gradient of each {privacy.unit}: take '
                'strategy="sgd" and all rows (batch_size=None), or protect sites with unit="site"'
            )
    elif terms.examples is not None:
        raise ParameterError(
            'examples are for unit="record" or "patient"; changes are averaged over sites'
        )
    if terms.track_loss:
        raise ParameterError(
            "track_loss opens one more total in each round, which the noise was not planned for; "
            "leave it out with privacy"
        )
    if terms.dropouts not in (0, privacy.dropouts):
        raise ParameterError(
            f"dropouts={terms.dropouts}, and privacy has dropouts={privacy.dropouts}, for which "
            "its noise is planned; give it there alone"
        )
