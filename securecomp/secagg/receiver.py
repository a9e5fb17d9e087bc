"""Result of a secure aggregation, and the party that receives it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.core.prg import Lanes
from securecomp.errors import DecodeError, RangeError, RemoteProtocolError, ThresholdError
from securecomp.protocol import wire
from securecomp.protocol.identity import Identity
from securecomp.protocol.role import SessionRole, State
from securecomp.protocol.session import Session
from securecomp.secagg import masking
from securecomp.secagg.masking_messages import UnmaskedTotal
from securecomp.secagg.parameters import Parameters


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The sum over the survivors.

    Attributes:
        values: The total, shape (d,), int64; weighted if the session has weights.
        survivors: Whose vectors are in it.
        weight: The total weight, None in a session without weights.
    """

    values: npt.NDArray[np.int64]
    survivors: tuple[str, ...]
    weight: int | None

    def mean(self) -> npt.NDArray[np.float64]:
        """Return the weighted mean, or the mean over the survivors.

        Raises:
            RangeError: The total weight is zero.
        """
        if self.weight == 0:
            raise RangeError("the survivors' total weight is zero, so there is no mean")
        return self.values / (len(self.survivors) if self.weight is None else self.weight)


def read_total(
    residues: Lanes, survivors: list[int], session: Session, parameters: Parameters
) -> Aggregate:
    """Decode a total modulo 2^bits and check it against the bounds.

    Raises:
        RangeError: No inputs within the bounds give it: a client did not keep to the protocol.
    """
    values = masking.decode(residues, parameters.bits)
    weight = None
    largest = len(survivors) * session.layout.bound * max(1, parameters.max_weight)
    if parameters.max_weight:
        weight, values = int(values[-1]), values[:-1]
        if not 0 <= weight <= len(survivors) * parameters.max_weight:
            raise RangeError("the total weight is beyond what the agreed bounds allow")
        largest = weight * session.layout.bound
    if values.size and max(int(values.max()), -int(values.min())) > largest:
        raise RangeError(
            "the total is beyond what the agreed bounds allow: a client did not keep to the "
            "protocol, and masking cannot say which"
        )
    names = tuple(session.contributors[i] for i in survivors)
    return Aggregate(values, names, weight)


class Receiver(SessionRole):
    """Gets the total from the server."""

    TRANSITIONS: ClassVar = {(State.COLLECTING, "receive"): State.DONE}

    def __init__(
        self,
        session: Session,
        name: str,
        identity: Identity,
        *,
        entropy: Entropy = entropy_.system,
    ) -> None:
        super().__init__(session, name, identity, session.receivers, State.COLLECTING, entropy)

    def receive(self, data: wire.Buffer) -> Aggregate:
        """Open the total.

        Raises:
            DecodeError, AuthenticationError, RemoteProtocolError: Not the server's message.
            RangeError: The total is beyond the agreed bounds.
            ThresholdError: It is of fewer survivors than agreed.
        """
        following = self._next("receive")
        sender, total, payload = self._open(data, UnmaskedTotal, self._session.servers)
        parameters = Parameters.of(self._session)
        length = masking.vector_length(self._session.layout, parameters)
        survivors = total.survivors
        inside = all(0 <= i < parameters.clients for i in survivors)
        if not inside or survivors != sorted(set(survivors)):
            raise RemoteProtocolError(sender, "its list of survivors is malformed")
        if len(survivors) < parameters.minimum:
            raise ThresholdError(parameters.minimum, len(survivors), "a total of too few survivors")
        try:
            residues = wire.unpack(total.vector, payload, length, parameters.bits)
        except DecodeError as error:
            raise RemoteProtocolError(sender, str(error)) from None
        aggregate = read_total(residues, total.survivors, self._session, parameters)
        self.state = following
        return aggregate
