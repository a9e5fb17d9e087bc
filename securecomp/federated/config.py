"""Settings that all sites agree on before a training. They are public."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import msgspec
import numpy as np

from securecomp.core import prg
from securecomp.core.fixedpoint import is_number
from securecomp.errors import ParameterError, ThresholdError
from securecomp.federated.losses import Loss

Strategy = Literal["averaging", "sgd"]
STRATEGIES: tuple[Strategy, ...] = ("averaging", "sgd")
_MOST_BOUND = 2.0**64  # sums of wider numbers take many limbs


@dataclass(kw_only=True, eq=False, repr=False)
class TrainingArguments:
    """The arguments that all sites agree on; `FederatedLogisticRegression` documents each."""

    strategy: Strategy = "averaging"
    rounds: int = 50
    fraction: float = 1.0
    local_epochs: int = 1
    batch_size: int | None = None
    learning_rate: float = 0.5
    server_rate: float = 1.0
    l2: float = 0.0
    bound: float = 16.0
    bits: int = 30
    max_rows: int = 1 << 20
    dropouts: int = 0
    track_loss: bool = False
    clip: float = 1.0
    examples: int | None = None


@dataclass(kw_only=True)
class TrainingTerms(TrainingArguments):
    """Checked arguments of a training; they do not change once they are made.

    Raises:
        ParameterError: An argument has another type, or is out of its range.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if hasattr(self, "_checked"):
            raise AttributeError(f"{name}: terms do not change; make others with `replace`")
        super().__setattr__(name, value)

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise ParameterError(f"strategy is one of {STRATEGIES}, not {self.strategy!r}")
        whole = {
            "rounds": (self.rounds, 1, 100_000),
            "local_epochs": (self.local_epochs, 1, 10_000),
            "batch_size": (1 if self.batch_size is None else self.batch_size, 1, 1 << 31),
            "bits": (self.bits, 8, 52),
            "max_rows": (self.max_rows, 1, 1 << 31),
            "dropouts": (self.dropouts, 0, 1 << 16),
            "examples": (1 if self.examples is None else self.examples, 1, 1 << 40),
        }
        for name, (value, least, most) in whole.items():
            integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if not integer or not least <= value <= most:
                raise ParameterError(
                    f"{name} is an integer from {least} to {most:,}, not {value!r}"
                )
        positive = ("fraction", "learning_rate", "server_rate", "bound", "clip")
        for name in (*positive, "l2"):
            value = getattr(self, name)
            fine = is_number(value) and math.isfinite(value)
            if not fine or value < 0 or (name in positive and not value):
                least_ = "above 0" if name in positive else "at least 0"
                raise ParameterError(f"{name} is a finite number {least_}, not {value!r}")
        if self.bound > _MOST_BOUND:
            raise ParameterError(f"bound is at most 2^64, not {self.bound!r}")
        if not isinstance(self.track_loss, bool | np.bool_):
            raise ParameterError(f"track_loss is True or False, not {self.track_loss!r}")
        if self.fraction > 1:
            raise ParameterError(f"fraction is at most 1, not {self.fraction!r}")
        for name in whole:
            if getattr(self, name) is not None:  # of numpy's types too
                setattr(self, name, int(getattr(self, name)))
        self.track_loss = bool(self.track_loss)
        for name in (*positive, "l2"):
            setattr(self, name, float(getattr(self, name)))
        if self.strategy == "sgd" and self.local_epochs != 1:
            raise ParameterError('local_epochs are for strategy="averaging"; sgd takes one step')
        self._checked = True

    def participants(self, sites: tuple[str, ...], seed: bytes, number: int) -> tuple[str, ...]:
        """Return who takes part in a round, drawn from a public seed.

        Source: McMahan, Moore, Ramage, Hampson, Aguera y Arcas, Communication-efficient learning
        of deep networks from decentralized data, AISTATS 2017, algorithm 1.
        """
        many = self.per_round(len(sites))
        key = prg.derive(seed, "federated participants", number)
        drawn = np.argsort(prg.expand_words(key, len(sites)), kind="stable")[:many]
        return tuple(sites[i] for i in sorted(drawn.tolist()))

    def per_round(self, sites: int) -> int:
        """Return how many sites take part in a round."""
        return max(1, math.ceil(self.fraction * sites - 1e-9))

    def fewest(self, sites: int, needed: int) -> int:
        """Return the fewest sites whose sum is opened.

        Args:
            sites: How many there are.
            needed: The fewest of the protocol, or of the noise.

        Raises:
            ThresholdError: A round has fewer.
        """
        many = self.per_round(sites)
        if needed > many:
            raise ThresholdError(
                needed,
                many,
                f"fraction {self.fraction:g} of {sites} sites leaves too few in a round; raise "
                "fraction, or ask more sites",
            )
        return max(needed, many - self.dropouts)

    def check_rows(self, site: str, count: int, *, noised: bool) -> None:
        """Refuse a site's number of rows, if it does not go with what was agreed.

        Args:
            site: Its name.
            count: How many.
            noised: Whether there is noise. Then few or none are fine: to refuse them would tell
                that a row is there, without noise.

        Raises:
            ParameterError: There are too many, none, or fewer than a batch.
        """
        if count > self.max_rows:
            raise ParameterError(
                f"{site}: more rows than the {self.max_rows:,} that were agreed for a site; raise "
                "max_rows"
            )
        if noised:
            return
        if not count:
            raise ParameterError(f"{site}: has no rows to train on; leave the site out")
        if self.batch_size is not None and count < self.batch_size:
            raise ParameterError(
                f"{site}: fewer rows than batch_size {self.batch_size}; lower it, or take all of a "
                "site's rows (batch_size=None)"
            )


def digest(terms: TrainingTerms, loss: Loss, facts: Mapping[str, Any]) -> bytes:
    """Return SHA-256 of all that a training agreed on: checkpoints are bound to it."""
    agreed = {"terms": asdict(terms), "loss": loss.name, **facts}
    return hashlib.sha256(msgspec.msgpack.encode(agreed, order="deterministic")).digest()
