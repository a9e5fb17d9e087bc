"""Programs of a consortium: what a site runs, and what a computing server runs.

A site asks the study's questions in their order, on its own rows. A server knows no question: it
plays its role in each sum that all of its contributors announce.
"""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from securecomp.errors import (
    KeyMismatchError,
    LocalProtocolError,
    ParameterError,
    RemoteProtocolError,
    SecureCompError,
)
from securecomp.net import identity_file, study_file
from securecomp.net.network_carrier import LateError, NetworkCarrier, StoppedError, Watch
from securecomp.net.post_office import PostOffice
from securecomp.net.relay_client import Note, RelayClient, RelayError
from securecomp.net.site_state import SESSION, SiteState
from securecomp.net.study_file import StudyFile, StudyQuestion
from securecomp.net.study_messages import Announcement, TotalsDigest
from securecomp.protocol.identity import Identity
from securecomp.protocol.session import Session
from securecomp.statistics import Study


@dataclass(frozen=True, slots=True)
class Connection:
    """A party's way to the relay, and the place of its state.

    Attributes:
        relay: URL.
        state: The state's file; by default beside the study file.
        run: Name of the run. A study can be run again under another name.
        proxy: URL of an HTTP proxy; by default what the environment says.
        authority: File of a private certificate authority; by default the system's.
    """

    relay: str
    state: Path | None = None
    run: str = "1"
    proxy: str | None = None
    authority: str | None = None

    def state_file(self, study: Path, party: str) -> Path:
        """Return where the state is kept."""
        if self.state is not None:
            return self.state
        return study.with_name(f"{study.name}.{party.replace('/', '%2F')}.{self.run}.state")


class ConnectedParty:
    """A party that is connected."""

    def __init__(
        self,
        path: Path,
        name: str,
        identity: Identity,
        connection: Connection,
        *,
        watch: Watch | None = None,
        note: Note | None = None,
    ) -> None:
        """Verify the study's signatures, open the state, and begin to listen.

        Args:
            path: The study file.
            name: The party.
            identity: Its keys.
            connection: How it reaches the relay.
            watch: Hears what is awaited.
            note: Hears why a request is tried again.

        Raises:
            AuthenticationError: A site has not signed the study.
            KeyMismatchError: The study has another key for the party.
            ParameterError: The study file or the state cannot be used.
        """
        run = connection.run
        if not 0 < len(run) <= 40 or "/" in run or not run.isprintable():
            raise ParameterError("the run's name has 1 to 40 printable characters and no slash")
        self.study = study_file.verify(path)
        if name not in self.study.keys:
            raise ParameterError(
                f"the study has no party {name!r}: {', '.join(sorted(self.study.keys))}"
            )
        if self.study.keys[name] != identity.public:
            raise KeyMismatchError(f"the study does not have this key for {name!r}; use its own")
        self.state = SiteState(
            connection.state_file(path, name), self.study.digest + connection.run.encode(), name
        )
        self._stopped = False

        def connect() -> RelayClient:
            return RelayClient(
                connection.relay,
                self.study.id,
                name,
                identity,
                connection.run,
                proxy=connection.proxy,
                authority=connection.authority,
                note=note or (lambda _: None),
                stopped=lambda: self._stopped,
            )

        self.office = PostOffice(self.state, connect)
        self.carrier = NetworkCarrier(
            self.study, name, identity, self.office, connection.run, watch
        )

    def close(self) -> None:
        """Stop listening, and close the state."""
        self._stopped = True
        self.office.close()
        self.state.close()

    @contextlib.contextmanager
    def telling(self) -> Iterator[None]:
        """Tell the other parties if this one fails, unless another party failed first.

        What a restart puts right stops nobody else: a silent party, a relay that refuses, a full
        disk, other rows than before.
        """
        try:
            yield
        except (LateError, LocalProtocolError, RelayError, StoppedError):
            raise
        except RemoteProtocolError as error:
            self._tell_stop(str(error))
            raise
        except SecureCompError as error:
            # What went wrong here may be about rows, which others must not hear.
            self._tell_stop(f"an error of its own ({type(error).__name__})")
            raise

    def _tell_stop(self, reason: str) -> None:
        self._stopped = True  # one try: the relay may be what is broken
        with contextlib.suppress(SecureCompError):
            self.carrier.stop(reason)


def study_at(member: ConnectedParty, site: str, frame: Any) -> Study:
    """Return the study as a site sees it: its own rows, and everybody's totals."""
    study = member.study
    return Study(
        {site: frame},
        columns=study.columns,
        protocol=study.sums(),
        missing=study.missing,
        rows=study.rows,
        minimum_count=study.minimum_count,
        minimum_sites=study.minimum_sites,
        carrier=member.carrier,
        elsewhere=[name for name in study.sites if name != site],
    )


def ask(study: Study, analysis: StudyQuestion) -> Any:
    """Ask one question, and return its result."""
    return getattr(study, analysis.ask)(**analysis.arguments)


@contextlib.contextmanager
def taking_part(member: ConnectedParty, site: str, frame: Any) -> Iterator[Study]:
    """Give a site's study for a block of questions; the totals are compared when it ends.

    Raises:
        SecureCompError: It says which party caused it. The others are told that this one stopped.
    """
    with member.telling():
        study = study_at(member, site, frame)
        member.carrier.begin()
        yield study
        member.carrier.finish()
    member.state.finish()


@contextlib.contextmanager
def joined(
    path: Path, site: str, frame: Any, identity: Path, connection: Connection
) -> Iterator[Study]:
    """Connect a site for a block of questions; as `taking_part`."""
    member = ConnectedParty(path, site, identity_file.read(identity), connection)
    try:
        with taking_part(member, site, frame) as study:
            yield study
    finally:
        member.close()


def join(member: ConnectedParty, site: str, frame: Any) -> Iterator[tuple[StudyQuestion, Any]]:
    """Run all of the study's questions at a site; yield each with its result; as `taking_part`."""
    with taking_part(member, site, frame) as study:
        for analysis in member.study.analyses:
            yield analysis, ask(study, analysis)


def serve(member: ConnectedParty, private: Any = None) -> None:
    """Play a server's role in every announced sum, until all sites say that the run is done.

    Args:
        member: The server.
        private: The key holder's private key, if it is one.

    Raises:
        SecureCompError: It says which party caused it.
    """
    study, state, carrier = member.study, member.state, member.carrier
    protocol = study.sums(private)
    sums = _Announced(member)
    done = f"{carrier.run}/totals"
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
            protocol.play(carrier, session, {})
            state.spend(session.id)
        digests = {carrier.read(site, done, TotalsDigest).digest for site in state.senders(done)}
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

    def next(self, done: Any) -> Session | None:
        """Wait for a sum that all of its contributors announce alike; None when all are done."""
        found: list[Session] = []

        def ready() -> bool:
            self._member.carrier.check_stop()
            session = self._complete()
            if session is not None:
                found[:] = [session]
            return session is not None or bool(done())

        while not self._member.office.wait(ready, time.monotonic() + 3600):
            pass
        if not found:
            return None
        tag = f"{SESSION}{found[0].id.hex()}"
        self._read = {place: told for place, told in self._read.items() if place[1] != tag}
        return found[0]

    def _complete(self) -> Session | None:
        """Return the next sum that all announce."""
        carrier, state = self._member.carrier, self._member.state
        by_number: dict[int, dict[str, bytes]] = {}
        for sender, tag in state.tagged(SESSION):
            known = self._read.get((sender, tag))
            if known is None:
                told = carrier.read(sender, tag, Announcement)
                session = Session.from_bytes(told.session)
                if told.run != carrier.run:
                    continue
                # By its tag a sum is known to be over, and is never played again.
                if tag != f"{SESSION}{session.id.hex()}":
                    raise RemoteProtocolError(sender, "announced a sum under another one's id")
                if state.spent(session.id):
                    continue
                known = self._read[sender, tag] = (told.number, told.session)
            by_number.setdefault(known[0], {})[sender] = known[1]
        for number, told_by in sorted(by_number.items()):
            one = min(told_by)
            other = next((s for s in sorted(told_by) if told_by[s] != told_by[one]), None)
            if other is not None:
                raise RemoteProtocolError(
                    one,
                    f"and {other} go on from different totals before sum {number + 1}: a server "
                    "or the relay told them different sums, or they run different versions",
                )
            session = Session.from_bytes(next(iter(told_by.values())))
            self._check(session)
            first = self._first.setdefault(session.id, time.monotonic())
            late = time.monotonic() - first > self._member.study.answer_within
            # Its steps go on without the silent; the role ends it if they are too many.
            if set(told_by) >= set(session.contributors) or (carrier.stands_dropouts and late):
                return session
        return None

    def _check(self, session: Session) -> None:
        """Refuse a sum that is not of this study."""
        study: StudyFile = self._member.study
        outside = set(session.contributors) | set(session.receivers)
        if (
            not outside <= set(study.sites)
            or set(session.servers) != set(study.servers)
            or any(study.keys[name] != key for name, key in session.keys.items())
        ):
            raise RemoteProtocolError("a site", "announced a sum that is not of this study")
