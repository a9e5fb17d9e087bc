"""Rehearsal of a question: its program runs up to the first sum, and nothing is sent.

A site's rows are read and checked there. An analyst, who has none, learns whether the question fits
the study.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from securecomp.net import programs
from securecomp.net.questions.study_questions import StudyQuestion
from securecomp.net.study_file import StudyFile
from securecomp.protocol.carrier import Vector
from securecomp.protocol.local_carrier import LocalCarrier
from securecomp.protocol.session import Session


class _FirstSum(Exception):  # noqa: N818 - not an error
    """A rehearsal has come to its first sum."""


class _Rehearsal(LocalCarrier):
    """Carries nothing: a program runs up to its first sum, whose inputs are read and checked."""

    def __init__(self, study: StudyFile, here: Sequence[str]) -> None:
        super().__init__()
        self._study, self._here = study, here
        self.opens: Sequence[str] = ()

    def here(self, name: str) -> bool:
        """Return whether it is a party whose rows are here."""
        return name in self._here

    def public(self, name: str) -> bytes:
        """Return a party's public key."""
        return self._study.keys[name]

    def opened(self, session: Session, play: Callable[[], Vector | None]) -> Vector:
        """End the rehearsal."""
        del play
        self.opens = session.layout.labels
        raise _FirstSum


def rehearse(study: StudyFile, rows: Mapping[str, Any], question: StudyQuestion) -> Sequence[str]:
    """Run a question up to its first sum; nothing is sent.

    Args:
        study: What all agreed on.
        rows: The rows of the site here; none for an analyst.
        question: What is asked.

    Returns:
        Names of the totals that the first sum would open.

    Raises:
        SecureCompError: The question does not fit the study, or the rows here.
    """
    carrier = _Rehearsal(study, tuple(rows))
    carrier.receivers = study.hearers(question, next(iter(study.analysts), None))
    with contextlib.suppress(_FirstSum):
        question.put_to(programs.study_at(study, carrier, rows))
    return carrier.opens
