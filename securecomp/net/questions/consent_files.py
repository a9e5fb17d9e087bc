"""Questions that wait for a person at a site whose agent has no terminal: files beside the state.

The agent writes `STATE.question.N`, and waits until `securecomp consent` has written the person's
answer to `STATE.consent.N`.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from securecomp.errors import ParameterError
from securecomp.net.questions.study_questions import StudyQuestion
from securecomp.protocol import storage

_LOOK = 0.5  # seconds between two looks for an answer
_YES = "yes"


def _place(state: Path, what: str, number: int) -> Path:
    return state.with_name(f"{state.name}.{what}.{number}")


def wording(analyst: str, question: StudyQuestion, opened: Sequence[str]) -> str:
    """Return what a person is asked."""
    shown = ", ".join(opened[:12]) + (f" and {len(opened) - 12} more" if len(opened) > 12 else "")
    return f"{analyst} asks: {question}\nfirst totals that would be opened: {shown or 'none'}"


def waiting(state: Path) -> dict[int, str]:
    """Return the questions that wait for an answer, by number."""
    prefix = f"{state.name}.question."
    found = {}
    for path in state.parent.glob(f"{prefix}*"):
        number = path.name.removeprefix(prefix)
        if number.isdecimal() and not _place(state, "consent", int(number)).exists():
            found[int(number)] = storage.read_text(path).strip()
    return dict(sorted(found.items()))


def answer(state: Path, number: int, refusal: str) -> None:
    """Answer a question; the first answer counts.

    Args:
        state: The agent's state file.
        number: The question's.
        refusal: Why it is refused; empty to allow it. The analyst and the other sites read it.

    Raises:
        ParameterError: No such question waits, or it was answered.
    """
    if number not in waiting(state):
        raise ParameterError(f"no question {number} waits for an answer at {state}")
    text = f"no: {refusal}" if refusal else _YES
    storage.write_new(_place(state, "consent", number), text, 0o600)


def ask(
    state: Path,
    number: int,
    analyst: str,
    question: StudyQuestion,
    opened: Sequence[str],
    pause: Callable[[float], None] = time.sleep,
) -> str:
    """Put a question to whoever reads the files, and wait for the answer as long as it takes.

    Returns:
        Why it is refused, or an empty text.
    """
    asked, answered = _place(state, "question", number), _place(state, "consent", number)
    if not asked.exists():
        storage.write_new(asked, wording(analyst, question, opened), 0o600)
    while True:
        # A file that is being written has no line's end yet.
        if answered.exists() and (text := storage.read_text(answered)).endswith("\n"):
            asked.unlink(missing_ok=True)
            return "" if text.strip() == _YES else text.strip().removeprefix("no:").strip() or "no"
        pause(_LOOK)
