"""The chain of a run: one hash over everything that all sites opened and agreed on, in order.

Every site computes it alike, and the ids of the sessions follow from it: sites that heard different
totals, other numbers or other contributors have different next sessions, which no server plays.
When the run ends, each site signs the chain's head.
"""

import hashlib
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from securecomp.core import prg
from securecomp.net.parties import Parties
from securecomp.protocol import identity as identity_
from securecomp.protocol.identity import Identity
from securecomp.protocol.session import Session

PART = 1 << 32
"""Sums of one part are numbered from the part's number times this."""

_PURPOSE = "totals of a run"


class OpenedSum(msgspec.Struct, frozen=True, tag="sum", forbid_unknown_fields=True):
    """A sum of a run.

    Attributes:
        session: What was agreed on, as `Session.to_bytes` wrote it.
        counted: Whose vectors are in the total.
        total: The total; None where only others hear it.
    """

    session: bytes
    counted: tuple[str, ...]
    total: tuple[int, ...] | None


class AgreedNumbers(msgspec.Struct, frozen=True, tag="agreed", forbid_unknown_fields=True):
    """Numbers that steer the next sum, as the sites agreed on them.

    Attributes:
        what: What they are.
        values: The first site's.
    """

    what: str
    values: tuple[float, ...]


Step = OpenedSum | AgreedNumbers


def run_id(study: Parties, run: str, nonces: Mapping[str, bytes]) -> bytes:
    """Return the id of a run, which no other run has: it follows from a nonce of every site."""
    pairs = [part for site in sorted(nonces) for part in (site, nonces[site])]
    return hashlib.sha256(prg.join("run", study.digest, run, *pairs)).digest()


class TotalsChain:
    """The chain of one run at one party.

    Attributes:
        head: The hash over all that happened in this part so far.
        number: Of the next sum.
        record: Every step, where a list is put here to keep them.
    """

    def __init__(self, study: Parties) -> None:
        """Begin a run whose id is not known yet."""
        self._study, self._run_id = study, b""
        self.record: list[Step] | None = None
        self.begin_part(0)

    def begin(self, run_id: bytes) -> None:
        """Take the run's id."""
        self._run_id = run_id

    def begin_part(self, part: int) -> None:
        """Begin a part of the run: it depends on no other part."""
        self.number = part * PART
        self.head = hashlib.sha256(b"securecomp totals").digest()

    def session_id(self, size: int, /) -> bytes:
        """Return the id of the next sum's session."""
        return hashlib.sha256(
            prg.join("session id", self._run_id, self.number, self.head)
        ).digest()[:size]

    def opened(self, session: Session, counted: Sequence[str], total: bytes | None) -> None:
        """Add a sum.

        Args:
            session: What was agreed on.
            counted: Whose vectors are in the total.
            total: int64, little-endian; None where only others hear it.
        """
        # All parties follow the same chain, so what a site does not hear is not in it.
        common = set(self._study.sites) <= set(session.receivers)
        heard = prg.join(total or b"", *counted) if common else b""
        joined = prg.join("sum", self.head, session.agreement, heard)
        self.head = hashlib.sha256(joined).digest()
        if self.record is not None:
            values = None if total is None else tuple(np.frombuffer(total, "<i8").tolist())
            self.record.append(OpenedSum(session.to_bytes(), tuple(counted), values))

    def agreed(self, what: str, values: bytes) -> None:
        """Add numbers that all sites agreed on: float64, little-endian."""
        self.head = hashlib.sha256(prg.join("agreed", self.head, what, values)).digest()
        if self.record is not None:
            numbers = tuple(np.frombuffer(values, "<f8").tolist())
            self.record.append(AgreedNumbers(what, numbers))

    def sign(self, identity: Identity, run: str, part: int, head: bytes) -> bytes:
        """Return a site's statement that a part of the run ended with this head."""
        return identity.sign(_PURPOSE, *self._statement(run, part, head))

    def check(self, site: str, signature: bytes, run: str, part: int, head: bytes) -> None:
        """Verify a site's statement.

        Raises:
            AuthenticationError: It is not this site's, or about another run or head.
        """
        key = self._study.keys[site]
        identity_.verify(key, signature, site, _PURPOSE, *self._statement(run, part, head))

    def _statement(self, run: str, part: int, head: bytes) -> tuple[bytes | str | int, ...]:
        return self._study.digest, run, self._run_id, part, head
