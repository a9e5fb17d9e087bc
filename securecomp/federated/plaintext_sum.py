"""A sum without protection, to compare with: one server sees what every site adds."""

import numpy as np

from securecomp.errors import ParameterError, RangeError
from securecomp.protocol.carrier import HOSPITAL_LEARNS, Carrier, Inputs, Vector, check_apart
from securecomp.protocol.session import Layout
from securecomp.protocol.sum_protocols import SumProtocol


class PlaintextSum(SumProtocol):
    """Vectors cross as they are: what federated learning without secure sums is."""

    name = "clear"
    servers = 1
    server = "server"

    @property
    def limit(self) -> int:
        """The largest absolute total that comes out exactly: 63 bits with the sign."""
        return (1 << 62) - 1

    def run(
        self,
        carrier: Carrier,
        layout: Layout,
        contributors: Inputs,
        receivers: tuple[str, ...] | None = None,
    ) -> Vector:
        """Add, and return the total, shape (layout.length,).

        Raises:
            ParameterError: A vector of another length, or a site that is named as the server is.
            RangeError: A value is beyond the layout's bound, or the bound too large.
        """
        check_apart(tuple(contributors), (self.server,))
        if layout.bound * len(contributors) > self.limit:
            raise RangeError(f"totals of up to {layout.bound} a site do not fit; lower the bound")
        vectors = {name: np.asarray(read(), np.int64) for name, read in contributors.items()}
        for name, vector in vectors.items():
            if vector.shape != (layout.length,):
                raise ParameterError(f"{name}: the vector's shape is {vector.shape}")
            if vector.size and np.abs(vector).max() > layout.bound:
                raise RangeError(f"{name}: a value is beyond the bound {layout.bound}")
        total = np.zeros(layout.length, np.int64)
        for name, vector in vectors.items():
            sent = carrier.send(name, self.server, vector.astype("<i8").tobytes())
            total += np.frombuffer(sent, "<i8")
        carrier.next_round()
        for name in contributors if receivers is None else receivers:
            carrier.send(self.server, name, total.astype("<i8").tobytes())
        return total

    def learned(self) -> dict[str, str]:
        """Say what each kind of party learns."""
        return {
            "hospital": HOSPITAL_LEARNS,
            "server": "every hospital's figures: nothing is protected",
        }
