"""Carrier of messages from role to role: one process (`local`) or a network.

A protocol drives its roles over a carrier, and knows nothing else of where they run.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from securecomp.core.entropy import Entropy
from securecomp.errors import ParameterError
from securecomp.protocol import wire
from securecomp.protocol.identity import Identity

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
Vector = npt.NDArray[np.int64]
Inputs = Mapping[str, Callable[[], npt.ArrayLike]]
"""Each contributor's name, and how it reads its vector."""

HOSPITAL_LEARNS = "the result if it receives it, and what that implies beside its own data"


class Carrier(Protocol):
    """Brings messages, and has the keys of the parties that run here."""

    entropy: Entropy

    def identity(self, name: str) -> Identity:
        """Return the long-term key of a party that runs here."""

    def send(self, sender: str, recipient: str, data: wire.Buffer) -> wire.Buffer:
        """Bring a message over and return it as it arrives."""

    def next_round(self) -> None:
        """Everything sent from now on waits for what was sent before."""

    def each(self, work: Callable[[K], T], names: Iterable[K], elements: int) -> dict[K, T]:
        """Do the work of several parties of one round, each on vectors of so many elements.

        It is told apart by the parties' names, or by names and parts of a party's vector.
        """


def check_apart(contributors: tuple[str, ...], servers: tuple[str, ...]) -> None:
    """Refuse a contributor that is named as a server is.

    Raises:
        ParameterError: It names the site.
    """
    both = sorted(set(contributors) & set(servers))
    if both:
        raise ParameterError(
            f"a site is named {both[0]!r}, as a computing server is; rename the site"
        )
