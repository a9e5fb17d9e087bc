"""Verification of a transcript: its chain, its signatures, and the program run again on its totals.

The program of the study asks its questions anew. Where it comes to a sum, it must be the next sum
of the transcript, and it gets that total; so the results follow from the totals alone.

This proves that the named sites signed this study and these totals, that each total belongs to the
sum that the study's program opens at this place, and that the results follow. It does not prove
that rows were true, or that the servers added right: no third party could see that.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from securecomp.errors import AuthenticationError, DecodeError, SecureCompError
from securecomp.net import programs, run_transcript, study_file
from securecomp.net.network_carrier import OpenedElsewhere, accepted
from securecomp.net.questions.study_questions import StudyQuestion
from securecomp.net.run_transcript import RunTranscript
from securecomp.net.study_file import StudyFile
from securecomp.net.totals_chain import AgreedNumbers, OpenedSum, TotalsChain
from securecomp.protocol.carrier import Vector
from securecomp.protocol.local_carrier import LocalCarrier
from securecomp.protocol.session import MAX_TERM, Session


@dataclass(frozen=True, slots=True)
class VerifiedRun:
    """A transcript that holds.

    Attributes:
        study: What all sites signed.
        transcript: Whose chain and signatures are right.
        sums: Each sum's session, and whose vectors were counted.
        unsigned: Sites that did not sign the totals: they had dropped out.
        results: Each question with its result; None where only others heard the total.
    """

    study: StudyFile
    transcript: RunTranscript
    sums: Sequence[tuple[Session, tuple[str, ...]]]
    unsigned: Sequence[str]
    results: Sequence[tuple[StudyQuestion, Any]]


def verify(study_path: Path, path: Path) -> VerifiedRun:
    """Verify a transcript with the study file, and compute its results.

    Args:
        study_path: The study file; its signatures are in the transcript.
        path: The transcript.

    Raises:
        AuthenticationError: Something does not hold; it says what, and at which step.
        ParameterError: A file cannot be read, or the transcript is of another study.
    """
    study = study_file.read(study_path)
    found = run_transcript.read(path, study)
    chain = found.chain(study)
    sums = [s for n, step in enumerate(found.steps, 1) if (s := _taken(n, step, chain, found))]
    if chain.head.hex() != found.head:
        raise AuthenticationError("the steps do not lead to the head that the sites signed")
    for site, signature in found.ended.items():
        chain.check(site, signature, found.run, 0, chain.head)
    results = _results(found, study)
    unsigned = sorted(set(study.sites) - set(found.ended))
    fewest = max((study.sums().fewest_counted(s) for s, _ in sums), default=len(study.sites))
    if len(found.ended) < fewest:
        raise AuthenticationError(
            f"{', '.join(unsigned)} did not sign the totals, and {fewest} sites have to"
        )
    return VerifiedRun(study, found, sums, unsigned, results)


def _taken(
    number: int, step: OpenedSum | AgreedNumbers, chain: TotalsChain, found: RunTranscript
) -> tuple[Session, tuple[str, ...]] | None:
    """Check a step, and add it to the chain; return a sum's session and contributors."""
    where = f"step {number}"
    if isinstance(step, AgreedNumbers):
        chain.agreed(step.what, np.array(step.values, "<f8").tobytes())
        return None
    try:
        session = Session.from_bytes(step.session)
    except DecodeError as error:
        raise AuthenticationError(f"{where}: {error}") from None
    if session.id != chain.session_id(len(session.id)):
        raise AuthenticationError(f"{where}: the sum is not bound to this run and what it opened")
    chain.number += 1
    packed = _packed(where, session, step, found.site)
    chain.opened(session, step.counted, packed)
    return session, step.counted


def _packed(where: str, session: Session, step: OpenedSum, site: str) -> bytes | None:
    """Return a sum's total as bytes, after a check that it can be one of this session."""
    named = set(step.counted)
    if len(named) != len(step.counted) or not named <= set(session.contributors):
        raise AuthenticationError(f"{where}: counts a site that did not take part, or one twice")
    if (step.total is not None) != (site in session.receivers):
        raise AuthenticationError(f"{where}: a total is there exactly where {site} hears it")
    if step.total is None:
        return None
    most = min(len(named) * session.layout.bound, MAX_TERM)
    if len(step.total) != session.layout.length or any(abs(t) > most for t in step.total):
        raise AuthenticationError(f"{where}: no inputs within the bounds have this total")
    return np.array(step.total, "<i8").tobytes()


def _results(found: RunTranscript, study: StudyFile) -> list[tuple[StudyQuestion, Any]]:
    """Run the study's program on the totals of a transcript."""
    carrier = _Replay(found, study)
    try:
        results = list(programs.answers(study, carrier, programs.study_at(study, carrier, {})))
    except AuthenticationError:
        raise
    except SecureCompError as error:
        raise AuthenticationError(f"the study's program does not take these totals: {error}") from (
            error
        )
    if carrier.left:
        raise AuthenticationError(
            f"the study's program ends before {carrier.left} steps of the transcript"
        )
    return results


class _Replay(LocalCarrier):
    """Gives a program the totals of a transcript; nobody is here, and nothing is sent."""

    def __init__(self, found: RunTranscript, study: StudyFile) -> None:
        super().__init__()
        self._chain, self._study, self._site = found.chain(study), study, found.site
        self._steps = list(reversed(found.steps))
        self._count = 0
        self.session_ids = self._chain.session_id

    @property
    def left(self) -> int:
        """Number of steps that were not taken."""
        return len(self._steps)

    def here(self, name: str) -> bool:
        """Return False: no party is here."""
        del name
        return False

    def public(self, name: str) -> bytes:
        """Return a party's public key."""
        return self._study.keys[name]

    def opened(self, session: Session, play: Callable[[], Vector | None]) -> Vector:
        """Return the total of the next step, which must be of this session."""
        del play
        step = self._next(OpenedSum)
        if step.session != session.to_bytes():
            raise AuthenticationError(f"{self._where}: another sum than the study's program opens")
        if len(step.counted) < self._study.sums().fewest_counted(session):
            raise AuthenticationError(f"{self._where}: fewer sites are counted than was agreed")
        packed = None if step.total is None else np.array(step.total, "<i8").tobytes()
        self._chain.number += 1
        self._chain.opened(session, step.counted, packed)
        if packed is None:
            raise OpenedElsewhere(session.layout.labels)
        return np.frombuffer(packed, "<i8").astype(np.int64)

    def agree(self, what: str, values: npt.ArrayLike, tolerance: float) -> npt.NDArray[np.float64]:
        """Return the next step's numbers, after a comparison with those computed here."""
        step = self._next(AgreedNumbers)
        packed = np.array(step.values, "<f8").tobytes()
        found = accepted(np.asarray(values, np.float64), packed, tolerance)
        if found is None or step.what != what:
            raise AuthenticationError(f"{self._where}: other numbers than follow from the totals")
        self._chain.agreed(what, packed)
        return found

    @property
    def _where(self) -> str:
        return f"step {self._count}"

    def _next(self, kind: type[Any]) -> Any:
        self._count += 1
        if not self._steps or not isinstance(self._steps[-1], kind):
            raise AuthenticationError(f"{self._where}: the study's program asks something else")
        return self._steps.pop()
