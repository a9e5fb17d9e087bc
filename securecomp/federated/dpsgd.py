"""DP-SGD (Abadi et al., Deep learning with differential privacy, CCS 2016) for linear models.

A step draws a Poisson sample of the units, clips each unit's gradient to a norm of at most `clip`,
adds them up exactly (`clipping`), adds one draw of discrete Gaussian noise (`poisson`), and divides
by a public constant, the rate times a public number of units; not by the batch's size, which is
secret. What leaves a step is the noised sum alone; all else is computed from it.

Who sees the model, or every step's model, knows all other rows and holds any side information,
learns about one unit what `promise.spent` says. The party that trains sees the rows.
"""

from dataclasses import dataclass

import numpy as np

from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.core.fixedpoint import is_number
from securecomp.errors import ParameterError
from securecomp.federated.clipping import UNIT, UnitRows
from securecomp.federated.losses import Floats, Loss
from securecomp.federated.poisson import batches, check_rate, noises
from securecomp.federated.promise import check_noise, variance

_LEAST = 1e-50


@dataclass(frozen=True, slots=True)
class Schedule:
    """Public settings of a training.

    Attributes:
        rate: The probability with which a unit is in a step's batch.
        steps: How many.
        clip: The largest norm of a unit's gradient.
        noise: The noise's standard deviation over `clip`; 0 promises nothing.
        learning_rate: What the mean gradient is multiplied by.
        expected: What sums are divided by: a public number, about the rate times the units.
    """

    rate: float
    steps: int
    clip: float
    noise: float
    learning_rate: float
    expected: float

    def __post_init__(self) -> None:
        if isinstance(self.steps, bool) or not isinstance(self.steps, int) or self.steps < 1:
            raise ParameterError(f"training has a whole number of steps from 1 on: {self.steps!r}")
        for name in ("clip", "learning_rate", "expected"):
            value = getattr(self, name)
            if not (is_number(value) and _LEAST <= value <= 1 / _LEAST):
                raise ParameterError(f"{name} is a number above 0, not {value!r}")
        if self.noise != 0:
            check_noise(self.noise)


def train(
    rows: UnitRows,
    targets: Floats,
    loss: Loss,
    schedule: Schedule,
    entropy: Entropy = entropy_.system,
    start: Floats | None = None,
) -> Floats:
    """Return a model's weights, shape (K, d).

    Nothing is accounted here: who calls this has paid for `schedule` before.

    Args:
        rows: The rows.
        targets: Of each row, shape (n, K).
        loss: What is made small.
        schedule: How.
        entropy: Source of batches and noise.
        start: Weights to begin with, which do not depend on these rows; by default zeros.

    Raises:
        ParameterError: Batches would come out empty as a rule, or the weights grew beyond floats.
    """
    check_rate(schedule.rate, rows.units)
    shape = (targets.shape[1], rows.features)
    model = np.zeros(shape) if start is None else np.array(start, np.float64).reshape(shape)
    pace = schedule.learning_rate * schedule.clip / schedule.expected / UNIT
    drawn = zip(
        batches(rows.units, schedule.rate, schedule.steps, entropy),
        noises(variance(schedule.noise), model.size, schedule.steps, entropy),
        strict=True,
    )
    for batch, noise in drawn:
        total = rows.total(rows.of(batch), model, targets, loss, schedule.clip)
        total += noise.reshape(shape)
        model -= pace * total
    return model
