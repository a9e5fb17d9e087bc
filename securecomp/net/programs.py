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
from securecomp.net.network_carrier import SESSION, LateError, NetworkCarrier, Watch
from securecomp.net.post_office import PostOffice
from securecomp.net.relay_client import RELAY, Note, RelayClient
from securecomp.net.site_state import SiteState
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
        except (LateError, LocalProtocolError):
            raise
        except RemoteProtocolError as error:
            if error.sender != RELAY and "has stopped" not in str(error):
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
def joined(
    path: Path, site: str, frame: Any, identity: Path, connection: Connection
) -> Iterator[Study]:
    """Connect a site for a block of questions; the totals are compared when it ends."""
    member = ConnectedParty(path, site, identity_file.read(identity), connection)
    try:
        with member.telling():
            study = study_at(member, site, frame)
            member.carrier.begin()
            yield study
            member.carrier.finish()
        member.state.finish()
    finally:
        member.close()


def join(member: ConnectedParty, site: str, frame: Any) -> Iterator[tuple[StudyQuestion, Any]]:
    """Run all of the study's questions at a site; yield each with its result.

    Raises:
        SecureCompError: It says which party caused it. The others are told that this one stopped.
    """
    with member.telling():
        study = study_at(member, site, frame)
        member.carrier.begin()
        for analysis in member.study.analyses:
            yield analysis, ask(study, analysis)
        member.carrier.finish()
    member.state.finish()


def serve(member: ConnectedParty, private: Any = None) -> None:
    """Play a server's role in every announced sum, until all sites say that the run is done.

    Args:
        member: The server.
        private: The key holder's private key, if it is one.

    Raises:
        SecureCompError: It says which party caused it.
    """
    study, state = member.study, member.state
    protocol = study.sums(private)
    sums = _Announced(member)
    done = f"{member.carrier.run}/totals"

    first_heard = float("inf")

    def all_done() -> bool:
        nonlocal first_heard
        ended = {sender for sender, _, _ in state.tagged(done)}
        if ended:
            first_heard = min(first_heard, time.monotonic())
        # With masking a site may have dropped out, and never says so.
        waited = time.monotonic() - first_heard > 2 * study.answer_within
        return ended == set(study.sites) or (study.protocol == "masking" and waited)

    with member.telling():
        while True:
            session = sums.next(all_done)
            if session is None:
                break
            protocol.play(member.carrier, session, {})
            state.fact(f"played {session.id.hex()}", b"1")
            state.forget(session.id.hex())
        digests = {
            sender: member.carrier.talk.open(
                member.carrier.identity(member.carrier.name),
                sender,
                member.carrier.name,
                done,
                data,
                TotalsDigest,
            ).digest
            for sender, _, data in state.tagged(done)
        }
        if len(set(digests.values())) > 1:
            raise RemoteProtocolError(min(digests), "and another site ended with other totals")
        member.office.put([])
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
        return found[0] if found else None

    def _complete(self) -> Session | None:
        """Return the next sum that all announce."""
        carrier, state = self._member.carrier, self._member.state
        by_number: dict[int, dict[str, bytes]] = {}
        for sender, tag, data in state.tagged(SESSION):
            if state.known(f"played {tag[len(SESSION) :]}") is not None:
                continue
            known = self._read.get((sender, tag))
            if known is None:
                told = carrier.talk.open(
                    carrier.identity(carrier.name), sender, carrier.name, tag, data, Announcement
                )
                if told.run != carrier.run:
                    continue
                known = self._read[sender, tag] = (told.number, told.session)
                # Sums are told apart by their tags: one that was played is never played again,
                # since its role would seal other messages with the same randomness.
                if Session.from_bytes(told.session).id.hex() != tag[len(SESSION) :]:
                    raise RemoteProtocolError(sender, "announced a sum under another one's id")
            by_number.setdefault(known[0], {})[sender] = known[1]
        for number in sorted(by_number):
            told_by = by_number[number]
            if len(set(told_by.values())) > 1:
                one, other = (
                    sorted(told_by)[0],
                    next(s for s in sorted(told_by) if told_by[s] != told_by[min(told_by)]),
                )
                raise RemoteProtocolError(
                    one,
                    f"and {other} go on from different totals before sum {number + 1}: a server "
                    "or the relay told them different sums, or they run different versions",
                )
            session = Session.from_bytes(next(iter(told_by.values())))
            self._check(session)
            first = self._first.setdefault(session.id, time.monotonic())
            late = time.monotonic() - first > self._member.study.answer_within
            # Masking's steps go on without the silent; the role ends it if they are too many.
            if set(told_by) >= set(session.contributors) or (
                late and self._member.study.protocol == "masking"
            ):
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
