"""Messages among the parties of a study, outside of the sums: told, heard, and awaited.

Every message is sealed for its recipient, bound to the study and its tag, and committed before it
is sent.
"""

import time
from collections.abc import Callable, Collection

from securecomp.core.secret import Secret
from securecomp.errors import RemoteProtocolError
from securecomp.net.post_office import PostOffice
from securecomp.net.study_file import StudyFile
from securecomp.net.study_messages import Stop, StudyTalk
from securecomp.protocol import wire
from securecomp.protocol.identity import Identity

Watch = Callable[[str, Collection[str]], None]
"""Hears the current step, and which parties are awaited."""


ABSENT = 60.0
"""Seconds. A party that runs asks the relay every 25, and after a fault within 30 more."""


class LateError(RemoteProtocolError):
    """A party is silent. Everybody can be started again, and goes on."""


class StoppedError(RemoteProtocolError):
    """A party has said that it cannot go on."""


class PartStoppedError(RemoteProtocolError):
    """A party has ended this part of the run."""


class StudyChannel(Secret):
    """Messages that one party tells the others, and hears of them.

    Attributes:
        study: What all agreed on.
        name: The party.
        run: Name of the run.
        part: Number of the part of the run that is being worked on.
        office: Sends and hears.
        state: What was sent and heard.
    """

    def __init__(
        self,
        study: StudyFile,
        name: str,
        identity: Identity,
        office: PostOffice,
        run: str,
        watch: Watch | None = None,
    ) -> None:
        """Take the party's keys and its post office.

        Args:
            study: What all agreed on.
            name: The party.
            identity: Its keys.
            office: Sends and hears.
            run: Name of the run; a study can be run again under another name.
            watch: Hears what is awaited.
        """
        self.study, self.name, self.run, self.part = study, name, run, 0
        self.office, self.state = office, office.state
        self._talk, self._identity = StudyTalk(study), identity
        self._watch: Watch = watch or (lambda *_: None)

    @property
    def first(self) -> str:
        """The site that proposes, and collects what all compare."""
        return min(self.study.sites)

    @property
    def others(self) -> list[str]:
        """All sites but this party."""
        return [site for site in self.study.sites if site != self.name]

    def stop_part(self, reason: str) -> None:
        """Tell all parties that this part of the run ends early."""
        others = [name for name in self.study.keys if name != self.name]
        self.tell(others, f"{self.run}/stop/{self.part}", Stop(reason[:500]))

    def stop(self, reason: str) -> None:
        """Tell all parties that this one cannot go on.

        Not kept: who starts again would stop all others with what did not go out before.
        """
        tag, told = f"{self.run}/stop", Stop(reason[:500])
        self.office.once(
            [
                (name, tag, self._talk.seal(self._identity, self.name, name, tag, told))
                for name in self.study.keys
                if name != self.name
            ]
        )

    def awaited(
        self, tag: str, step: str, others: list[str], instead: str | None, patient: bool
    ) -> dict[str, bytes]:
        """Wait for the messages of a step, and return them by sender.

        Args:
            tag: Of the messages.
            step: Its name, for whoever watches.
            others: Who is awaited.
            instead: Another tag. If its message arrives first, nothing is returned.
            patient: Whether all are awaited; else those that are late are left out, for good.

        Raises:
            RemoteProtocolError: A party is late, or has stopped.
        """
        state = self.state
        decided = None if patient else state.known(f"closed {tag}")
        wanted = list(others) if decided is None else state.closed(tag, ())
        missing, skipped = list(wanted), False

        def ready() -> bool:
            nonlocal missing, skipped
            missing = self.unheard(wanted, tag)
            skipped = bool(missing) and instead is not None and bool(state.senders(instead))
            if missing and not skipped:  # what is there counts, whoever stopped after it
                self.check_stop()
            self._watch(step, missing)
            return not missing or skipped

        patience = self.study.patience if patient else self.study.answer_within
        if not self.office.wait(ready, time.monotonic() + patience) and patient:
            raise self._late(step, missing, patience)
        if skipped:
            return {}
        there = [name for name in wanted if name not in missing]
        if not patient and decided is None:
            state.closed(tag, there)
        return {name: state.message(name, tag) for name in there}

    def _late(self, step: str, missing: list[str], patience: float) -> LateError:
        """Return the error that names who is silent: who is awaited may itself await another."""
        seen = self.office.seen()
        now = max(seen.values(), default=0.0)  # this party's own request: the relay's clock
        silent = [
            name
            for name in (*self.study.sites, *self.study.servers)
            if name in seen and now - seen[name] > ABSENT
        ]
        cause = next((name for name in missing if name in silent), (silent or missing)[0])
        heard = f"; the relay has heard nothing of {', '.join(silent)} lately" if silent else ""
        return LateError(
            cause,
            f"nothing came for the step {step!r} within {patience} seconds (awaited: "
            f"{', '.join(missing)}{heard}); start it again there, then here",
            authenticated=False,
        )

    def unheard(self, names: Collection[str], tag: str) -> list[str]:
        """Return who of some parties has sent nothing of this tag."""
        heard = self.state.senders(tag)
        return [name for name in names if name not in heard]

    def attend(self, step: str, missing: Callable[[], Collection[str]]) -> None:
        """Wait until nobody is missing, as long as it takes.

        Raises:
            RemoteProtocolError: A party has stopped.
        """

        def ready() -> bool:
            names = missing()
            if names:
                self.check_stop()
            self._watch(step, names)
            return not names

        while not self.office.wait(ready, time.monotonic() + 3600):
            pass

    def check_stop(self) -> None:
        """Raise what another party has stopped for: the run, or this part of it."""
        # An analyst stops nobody.
        tag, able = f"{self.run}/stop", {*self.study.sites, *self.study.servers}
        for sender in self.state.senders(tag) & able:
            reason = self.read(sender, tag, Stop).reason
            raise StoppedError(
                sender, f"has stopped: {reason}; begin a new run at all parties (--run)"
            )
        if not self.part:
            return
        tag = f"{self.run}/stop/{self.part}"
        for sender in self.state.senders(tag) & able:
            raise PartStoppedError(sender, self.read(sender, tag, Stop).reason)

    def read(self, sender: str, tag: str, kind: type[wire.M]) -> wire.M:
        """Verify and read a message of the study that was heard.

        Raises:
            DecodeError, AuthenticationError, RemoteProtocolError: Not this sender's, or not of
                this tag and kind.
        """
        data = self.state.message(sender, tag)
        return self._talk.open(self._identity, sender, self.name, tag, data, kind)

    def tell(self, names: Collection[str], tag: str, message: wire.Message) -> None:
        """Seal a message for several parties, and send it."""
        self.write(names, tag, message)
        self.office.send()

    def write(self, names: Collection[str], tag: str, message: wire.Message) -> None:
        """Seal and commit a message for several parties. What was put before a restart counts."""
        self.state.put(
            [
                (name, tag, self._talk.seal(self._identity, self.name, name, tag, message))
                for name in names
                if not self.state.posted(name, tag)
            ]
        )

    def hear_in_time(
        self, tag: str, names: Collection[str], what: str, kind: type[wire.M]
    ) -> dict[str, wire.M]:
        """Read a message of each of several parties, and wait as long as it takes; as `hear`."""
        self.attend(what, lambda: self.unheard(names, tag))
        return {name: self.read(name, tag, kind) for name in names}

    def hear(
        self,
        tag: str,
        names: Collection[str],
        what: str,
        kind: type[wire.M],
        patient: bool = True,
    ) -> dict[str, wire.M]:
        """Await a message of the study of each of several parties, and read it.

        Args:
            tag: The messages' tag.
            names: Who is awaited.
            what: Step, for whoever watches.
            kind: Their kind.
            patient: Whether all are awaited; else those that are late are left out.

        Raises:
            RemoteProtocolError: A party is late, has stopped, or sent something else.
        """
        heard = self.awaited(tag, what, list(names), None, patient)
        return {name: self.read(name, tag, kind) for name in heard}
