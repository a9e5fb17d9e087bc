"""The program of a computing server: it plays its role in each sum that the sites announce.

It knows no question, and cannot read what it adds.
"""

import time
from collections.abc import Collection
from typing import Any

from securecomp.errors import RemoteProtocolError
from securecomp.net.programs import ConnectedParty
from securecomp.net.site_state import SESSION
from securecomp.net.study_channel import PartStoppedError, StoppedError
from securecomp.net.study_file import StudyFile
from securecomp.net.study_messages import Announcement, TotalsDigest
from securecomp.net.totals_chain import PART
from securecomp.protocol.session import Session


def serve(member: ConnectedParty, private: Any = None) -> None:
    """Play a server's role in every announced sum, until all sites say that the run is done.

    Args:
        member: The server.
        private: The key holder's private key, if it is one.

    Raises:
        SecureCompError: It says which party caused it.
    """
    study, state, carrier = member.study, member.state, member.carrier
    protocol, channel = study.sums(private), member.channel
    sums = _Announced(member)
    done = f"{channel.run}/totals"
    first_heard = float("inf")

    def all_done() -> bool:
        nonlocal first_heard
        ended = state.senders(done)
        if ended:
            first_heard = min(first_heard, time.monotonic())
        # A site that has dropped out never says so.
        waited = time.monotonic() - first_heard > 2 * study.answer_within
        return ended == set(study.sites) or (carrier.stands_dropouts and waited)

    with member.telling():
        while (session := sums.next(all_done)) is not None:
            try:
                protocol.play(carrier, session, {})
            except PartStoppedError:
                pass
            except StoppedError:
                raise
            except RemoteProtocolError as error:
                if not channel.part:
                    raise
                channel.stop_part(str(error))  # one question of an analyst; the run goes on
            state.spend(session.id)
        digests = {channel.read(site, done, TotalsDigest).digest for site in state.senders(done)}
        if len(digests) > 1:
            raise RemoteProtocolError(
                min(state.senders(done)), "and another site ended with other totals"
            )
        member.office.send()
    state.finish()


class _Announced:
    """The sums that the sites announce to a server, and when it first heard of each."""

    def __init__(self, member: ConnectedParty) -> None:
        self._member = member
        self._read: dict[tuple[str, str], tuple[int, bytes]] = {}
        self._first: dict[bytes, float] = {}
        self._parts: dict[bytes, int] = {}

    def next(self, done: Any) -> Session | None:
        """Wait for a sum that all of its contributors announce alike; None when all are done."""
        found: list[Session] = []

        channel = self._member.channel
        channel.part = 0

        def ready() -> bool:
            channel.check_stop()
            session = self._complete()
            if session is not None:
                found[:] = [session]
            return session is not None or bool(done())

        while not self._member.office.wait(ready, time.monotonic() + 3600):
            pass
        if not found:
            return None
        channel.part = self._parts[found[0].id]
        tag = f"{SESSION}{found[0].id.hex()}"
        self._read = {place: told for place, told in self._read.items() if place[1] != tag}
        return found[0]

    def _complete(self) -> Session | None:
        """Return the next sum that all announce."""
        carrier, state = self._member.carrier, self._member.state
        channel = self._member.channel
        by_number: dict[int, dict[str, bytes]] = {}
        for sender, tag in state.tagged(SESSION):
            known = self._read.get((sender, tag))
            if known is None:
                told = channel.read(sender, tag, Announcement)
                session = Session.from_bytes(told.session)
                if told.run != channel.run:
                    continue
                # By its tag a sum is known to be over, and is never played again.
                if tag != f"{SESSION}{session.id.hex()}":
                    raise RemoteProtocolError(sender, "announced a sum under another one's id")
                if state.spent(session.id):
                    continue
                self._parts[session.id] = told.number // PART
                known = self._read[sender, tag] = (told.number, told.session)
            by_number.setdefault(known[0], {})[sender] = known[1]
        for number, told_by in sorted(by_number.items()):
            one = min(told_by)
            other = next((s for s in sorted(told_by) if told_by[s] != told_by[one]), None)
            if other is not None:
                error = RemoteProtocolError(
                    one,
                    f"and {other} go on from different totals before sum {number % PART + 1}: a "
                    "server or the relay told them different sums, or they run different versions",
                )
                if number < PART:
                    raise error
                self._end_part(number // PART, str(error))
                continue
            session = Session.from_bytes(next(iter(told_by.values())))
            self._check(session, told_by)
            first = self._first.setdefault(session.id, time.monotonic())
            late = time.monotonic() - first > self._member.study.answer_within
            # Its steps go on without the silent; the role ends it if they are too many.
            if set(told_by) >= set(session.contributors) or (carrier.stands_dropouts and late):
                return session
        return None

    def _end_part(self, part: int, reason: str) -> None:
        """End a part of the run that cannot go on; the others do."""
        channel = self._member.channel
        channel.part = part
        channel.stop_part(reason)
        channel.part = 0
        ended = [id_ for id_, of in self._parts.items() if of == part]
        for id_ in ended:
            self._member.state.spend(id_)
        tags = {f"{SESSION}{id_.hex()}" for id_ in ended}
        self._read = {place: told for place, told in self._read.items() if place[1] not in tags}

    def _check(self, session: Session, announced: Collection[str]) -> None:
        """Refuse a sum that is not of this study."""
        study: StudyFile = self._member.study
        if (
            not set(announced) <= set(session.contributors) <= set(study.sites)
            or not set(session.receivers) <= {*study.sites, *study.analysts}
            or set(session.servers) != set(study.servers)
            or any(study.keys[name] != key for name, key in session.keys.items())
        ):
            raise RemoteProtocolError(min(announced), "announced a sum that is not of this study")
