"""An analyst without rows asks a consortium: the methods of `Study`, answered by the sites' agents.

The analyst sends an analysis and its arguments to every site, never code. It hears what the sites
agree to open to it, and computes the result from these totals by the same program as the sites.
"""

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from securecomp.errors import LocalProtocolError, ParameterError, RemoteProtocolError
from securecomp.net import programs
from securecomp.net.programs import ConnectedParty, Connection
from securecomp.net.questions import study_questions
from securecomp.net.questions.rehearsal import rehearse
from securecomp.net.questions.study_questions import StudyQuestion
from securecomp.net.relay_client import Note
from securecomp.net.study_channel import Watch
from securecomp.net.study_messages import AnalystQuestion, SiteVerdict, Turn
from securecomp.statistics import Study


class RefusedQuestionError(RemoteProtocolError):
    """A site refuses a question; nothing was opened.

    Attributes:
        refusals: Site to its reason.
    """

    def __init__(self, refusals: dict[str, str]) -> None:
        self.refusals = dict(sorted(refusals.items()))
        first, *more = self.refusals
        beside = f" (so do {', '.join(more)})" if more else ""
        super().__init__(first, f"refuses the question: {self.refusals[first]}{beside}")


class AskedStudy:
    """A study that is elsewhere. Its methods are those of `Study` that need sums alone.

    A question that was asked before is not sent again: its answer is computed from the totals that
    were opened then.
    """

    def __init__(self, member: ConnectedParty) -> None:
        """Take a connected analyst; hear the run's nonces from the first site."""
        self._member = member
        self._asked: list[StudyQuestion] = []
        member.carrier.begin()
        while (text := member.state.known(f"question {len(self._asked)}")) is not None:
            self._asked.append(study_questions.from_json(text.decode(), "the state"))
        self._again = set(range(len(self._asked)))

    def own(self) -> list[tuple[StudyQuestion, Any]]:
        """Return the study's own questions and their results, if analysts hear these.

        Raises:
            ParameterError: The study says that its sites hear them, and nobody else.
        """
        member = self._member
        if member.study.receivers != "analysts":
            raise ParameterError("the study's own questions are answered to its sites alone")
        member.carrier.begin_part(0, None)
        study = programs.study_at(member.study, member.carrier, {})
        found = list(programs.answers(member.study, member.carrier, study))
        member.carrier.finish_part()
        return found

    def ask(self, question: StudyQuestion) -> Any:
        """Ask a question, and return its result.

        Raises:
            ParameterError: The question does not fit the study; nothing was sent.
            RefusedQuestionError: A site refuses it.
            RemoteProtocolError: It ended early; the party that caused it is named.
        """
        member, channel = self._member, self._member.channel
        channel.part = 0  # an earlier question that ended early is no matter of this one
        refusal = member.study.rules.refusal(question, 0)
        if refusal is not None:
            raise ParameterError(refusal)
        rehearse(member.study, {}, question)
        number = self._number(question)
        text = question.to_json()
        self._send(number, text)
        tag = f"{channel.run}/turn of {number}"
        part = channel.hear_in_time(tag, [channel.first], "its turn", Turn)[channel.first].part
        tag, sites = f"{channel.run}/verdict/{part}", list(member.study.sites)
        heard = channel.hear_in_time(tag, sites, "the sites' consent", SiteVerdict)
        refusals = {site: verdict.refusal for site, verdict in heard.items() if verdict.refusal}
        if refusals:
            raise RefusedQuestionError(refusals)
        member.carrier.begin_part(part, member.study.hearers(question, channel.name))
        result = question.put_to(programs.study_at(member.study, member.carrier, {}))
        member.carrier.finish_part()
        return result

    def no_more(self) -> None:
        """Say that there will be no more questions of this analyst in this run.

        The sites' agents and the servers end with the last analyst.
        """
        self._send(len(self._asked), "")
        self._asked.append(StudyQuestion("", {}))

    def _number(self, question: StudyQuestion) -> int:
        """Return the number under which this question is asked, or was asked before."""
        for number in sorted(self._again):
            if self._asked[number] == question:
                self._again.discard(number)
                return number
        self._asked.append(question)
        return len(self._asked) - 1

    def _send(self, number: int, text: str) -> None:
        member, channel = self._member, self._member.channel
        if text and member.state.fact(f"question {number}", text.encode()) != text.encode():
            raise LocalProtocolError(f"question {number + 1} was another one; open the study again")
        message = AnalystQuestion.signed(member.identity, member.study, channel.run, number, text)
        channel.tell(list(member.study.sites), f"{channel.run}/question/{number}", message)


def _asking(name: str) -> Callable[..., Any]:
    """Return the method that asks the consortium what `Study`'s method of this name answers."""
    method = getattr(Study, name)
    signature = inspect.signature(method)

    @functools.wraps(method)
    def asked(self: AskedStudy, *args: Any, **kwargs: Any) -> Any:
        given = dict(signature.bind(self, *args, **kwargs).arguments)
        given.pop(next(iter(signature.parameters)))
        return self.ask(study_questions.made({**given, "ask": name}, name))

    return asked


for _name in study_questions.ANALYSES:
    setattr(AskedStudy, _name, _asking(_name))


@contextlib.contextmanager
def connected(
    path: Path,
    analyst: str,
    identity: Path,
    connection: Connection,
    *,
    watch: Watch | None = None,
    note: Note | None = None,
) -> Iterator[AskedStudy]:
    """Connect an analyst for a block of questions.

    Args:
        path: The study file.
        analyst: Its name in it.
        identity: The file of its keys.
        connection: How it reaches the relay.
        watch: Hears who is awaited.
        note: Hears why a request is tried again.

    Raises:
        ParameterError: The study has no such analyst.
        AuthenticationError: A site has not signed the study.
    """
    with programs.connected(path, analyst, identity, connection, watch=watch, note=note) as member:
        if analyst not in member.study.analysts:
            known = ", ".join(member.study.analysts) or "none"
            raise ParameterError(f"the study has no analyst {analyst!r}: {known}")
        yield AskedStudy(member)
