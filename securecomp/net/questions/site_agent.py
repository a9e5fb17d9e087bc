"""A site's agent: it stays, and answers the questions of analysts that the study's rules allow.

For each question the sites agree on an order (the first site takes them as they come), each site
decides (by the rules, by a rehearsal on its own rows, by a person where the study says so) and
tells the others, and if none refuses all run the same program. A question that is refused, or that
fails on the way, ends alone: the agent goes on with the next.

What a question costs a site to know: the analyst's question, and that another site refuses and by
which rule. A refusal for the site's own rows names the kind of error and nothing else.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from securecomp.errors import (
    AuthenticationError,
    BudgetError,
    DecodeError,
    ParameterError,
    RemoteProtocolError,
    SecureCompError,
)
from securecomp.net import programs
from securecomp.net.network_carrier import OpenedElsewhere
from securecomp.net.programs import ConnectedParty
from securecomp.net.questions import study_questions
from securecomp.net.questions.question_log import QuestionLog
from securecomp.net.questions.rehearsal import rehearse
from securecomp.net.questions.study_questions import StudyQuestion
from securecomp.net.relay_client import RelayError
from securecomp.net.site_state import StateError
from securecomp.net.study_channel import PartStoppedError, StoppedError
from securecomp.net.study_messages import AnalystQuestion, SiteVerdict, Turn

_NO_MORE = hashlib.sha256(b"").digest()
_NUMBER = re.compile("0|[1-9][0-9]{0,8}")

Person = Callable[[int, str, StudyQuestion, Sequence[str]], str]
"""Asks a person at this site: number, analyst, question, names of the first totals that would be
opened. Returns why it is refused, or an empty text."""


class SiteAgent:
    """Answers at one site."""

    def __init__(
        self,
        member: ConnectedParty,
        frame: Any,
        person: Person,
        log: Path,
        heard: Callable[[StudyQuestion, Any], None] = lambda *_: None,
    ) -> None:
        """Take the site's rows.

        Args:
            member: The site, connected.
            frame: Its rows, a data frame.
            person: Asks somebody here.
            log: File of the log.
            heard: Hears each question and its result; None where only others hear that.
        """
        self._member, self._study, self._name = member, member.study, member.channel.name
        self._rows: Mapping[str, Any] = {self._name: frame}
        self._person, self._heard = person, heard
        self._log = QuestionLog(log, self._name, member.identity)
        self._answered = 0
        self._had: set[tuple[str, int]] = set()

    def run(self) -> None:
        """Answer the study's own questions, then those of analysts until none has more.

        Raises:
            SecureCompError: The run cannot go on; start the agent again.
        """
        member = self._member
        with member.telling():
            study = programs.study_at(self._study, member.carrier, self._rows, member.ledger)
            programs.begin(member, study)
            for question, result in programs.answers(member.study, member.carrier, study):
                self._heard(question, result)
            member.carrier.finish_part()
            part, ended = 1, set[str]()
            while len(ended) < len(self._study.analysts):
                turn, message = self._next(part)
                if turn.digest == _NO_MORE:
                    ended.add(turn.analyst)
                else:
                    self._answer(part, turn, message)
                part += 1
            member.channel.part = 0
            member.carrier.finish()
        member.state.finish()

    def _next(self, part: int) -> tuple[Turn, AnalystQuestion | None]:
        """Agree on the next question; wait for it as long as it takes."""
        channel = self._member.channel
        channel.part = part
        tag = f"{channel.run}/turn/{part}"
        if channel.name == channel.first:
            fact = f"turn {part}"
            if self._member.state.known(fact) is None:
                analyst, number = self._oldest()
                chosen = [analyst, number, _digest(self._question(analyst, number)).hex()]
                self._member.state.fact(fact, json.dumps(chosen).encode())
            analyst, number, digest = json.loads(self._member.state.known(fact) or b"")
            turn = Turn(analyst, number, part, bytes.fromhex(digest))
            channel.tell(channel.others, tag, turn)
            channel.tell([turn.analyst], f"{channel.run}/turn of {turn.number}", turn)
        else:
            heard = channel.hear_in_time(tag, [channel.first], "the next question", Turn)
            turn = heard[channel.first]
            place = (turn.analyst, turn.number)
            if turn.analyst not in self._study.analysts or turn.part != part or place in self._had:
                raise RemoteProtocolError(channel.first, "gave a turn to no question of an analyst")
            asked = f"{channel.run}/question/{turn.number}"
            channel.attend("a question", lambda: channel.unheard([turn.analyst], asked))
        self._had.add((turn.analyst, turn.number))
        return turn, self._question(turn.analyst, turn.number)

    def _oldest(self) -> tuple[str, int]:
        """Wait for the oldest question that had no turn."""
        channel, state = self._member.channel, self._member.state
        found: list[tuple[str, int]] = []

        def asked() -> Sequence[str]:
            found[:] = [
                place
                for sender, tag in state.tagged(f"{channel.run}/question/")
                if sender in self._study.analysts
                and _NUMBER.fullmatch(written := tag.rpartition("/")[2])
                and (place := (sender, int(written))) not in self._had
            ]
            return () if found else ("an analyst",)

        channel.attend("the next question", asked)
        return found[0]

    def _question(self, analyst: str, number: int) -> AnalystQuestion | None:
        """Return an analyst's question; None if it is not as an analyst writes and signs it."""
        channel = self._member.channel
        try:
            message = channel.read(analyst, f"{channel.run}/question/{number}", AnalystQuestion)
            message.verify(analyst, self._study, channel.run, number)
        except (DecodeError, AuthenticationError, RemoteProtocolError):
            return None
        return message

    def _answer(self, part: int, turn: Turn, message: AnalystQuestion | None) -> None:
        """Decide on a question, tell all, and run it if no site refuses."""
        channel, state = self._member.channel, self._member.state
        self._log.add(
            part,
            "asked",
            analyst=turn.analyst,
            number=turn.number,
            question="" if message is None else message.text,
            signature="" if message is None else message.signature.hex(),
        )
        own = state.known(f"verdict {part}")
        if own is None:
            own = state.fact(f"verdict {part}", self._judged(part, turn, message).encode())
        tag = f"{channel.run}/verdict/{part}"
        channel.tell([*channel.others, turn.analyst], tag, SiteVerdict(own.decode()))
        heard = channel.hear_in_time(tag, channel.others, "the other sites' consent", SiteVerdict)
        said = {self._name: own.decode(), **{site: v.refusal for site, v in heard.items()}}
        refusals = {site: reason for site, reason in said.items() if reason}
        self._log.add(part, "decided", refusals=refusals)
        if message is not None and not refusals:
            self._answered += 1
            if state.known(f"ended {part}") is None:
                self._play(part, turn.analyst, study_questions.from_json(message.text, "question"))

    def _judged(self, part: int, turn: Turn, message: AnalystQuestion | None) -> str:
        """Return why this site refuses a question; nothing if it does not."""
        if message is None:
            return "this is not a question that the analyst has signed"
        if _digest(message) != turn.digest:
            return "this site heard another question than the first site"
        try:
            question = study_questions.from_json(message.text, f"question {turn.number + 1}")
        except ParameterError as error:
            return str(error)
        refusal = self._study.rules.refusal(question, self._answered)
        if refusal is not None:
            return refusal
        terms, ledger = self._study.privacy, self._member.ledger
        try:
            if terms is not None and ledger is not None:
                ledger.check(terms.cost, terms.neighbours)
            # It pays nothing: a rehearsal has no ledger.
            opened = rehearse(self._study, self._rows, question)
        except BudgetError as error:
            self._log.add(part, "not possible here", reason=str(error))
            return "its privacy budget does not cover the question"
        except SecureCompError as error:
            # The words may be about rows. Its operator reads them here.
            self._log.add(part, "not possible here", reason=str(error))
            return f"its rows do not allow it ({type(error).__name__}); its operator sees why"
        if question.ask in self._study.rules.ask:
            return self._person(part, turn.analyst, question, opened)[:500]
        return ""

    def _play(self, part: int, analyst: str, question: StudyQuestion) -> None:
        """Run a question with the other sites; if it fails, it ends alone."""
        member = self._member
        receivers = self._study.hearers(question, analyst)
        carrier = member.carrier
        carrier.begin_part(part, receivers)
        study = programs.study_at(self._study, carrier, self._rows, member.ledger)
        result = None
        try:
            try:
                result = question.put_to(study)
                opened = tuple(result.run.opened)
            except OpenedElsewhere as elsewhere:
                opened = elsewhere.labels
            carrier.finish_part()
            self._log.add(part, "opened", totals=list(opened), receivers=list(receivers))
        except (StateError, RelayError, StoppedError):
            raise  # the agent is started again, and goes on
        except SecureCompError as error:
            # From totals that all know, an error of its own comes at all sites alike.
            if not isinstance(error, PartStoppedError):
                member.channel.stop_part(programs.told(error))
            carrier.abandon()
            self._log.add(part, "stopped", reason=str(error))
            member.state.fact(f"ended {part}", str(error).encode())
            return
        member.state.fact(f"ended {part}", b"")
        self._heard(question, result)


def _digest(message: AnalystQuestion | None) -> bytes:
    text = "unreadable" if message is None else message.text
    return hashlib.sha256(text.encode()).digest()
