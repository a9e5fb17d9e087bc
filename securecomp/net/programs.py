"""A party that is connected, and the program of a site: the study's questions, in their order."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from securecomp.core.secret import Secret
from securecomp.errors import (
    BudgetError,
    KeyMismatchError,
    LocalProtocolError,
    ParameterError,
    RemoteProtocolError,
    SecureCompError,
)
from securecomp.net import identity_file, private_study, study_file
from securecomp.net.network_carrier import NetworkCarrier, OpenedElsewhere
from securecomp.net.post_office import PostOffice
from securecomp.net.questions.study_questions import StudyQuestion
from securecomp.net.relay_client import Note, RelayClient, RelayError
from securecomp.net.site_state import SiteState
from securecomp.net.study_channel import LateError, StoppedError, StudyChannel, Watch
from securecomp.net.study_file import StudyFile
from securecomp.privacy.replayed_ledger import ReplayedLedger
from securecomp.protocol.carrier import Carrier
from securecomp.protocol.identity import Identity
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
        ledger: File of a site's privacy budget; by default beside the state, for all runs.
    """

    relay: str
    state: Path | None = None
    run: str = "1"
    proxy: str | None = None
    authority: str | None = None
    ledger: Path | None = None

    def state_file(self, study: Path, party: str) -> Path:
        """Return where the state is kept."""
        if self.state is not None:
            return self.state
        return study.with_name(f"{study.name}.{party.replace('/', '%2F')}.{self.run}.state")

    def ledger_file(self, study: Path, party: str) -> Path:
        """Return where a site's privacy budget is kept."""
        if self.ledger is not None:
            return self.ledger
        beside = self.state_file(study, party)
        return beside.with_name(f"{study.name}.{party.replace('/', '%2F')}.ledger")


class ConnectedParty(Secret):
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
        self.ledger: ReplayedLedger | None = None
        if self.study.privacy is not None and name in self.study.sites:
            ledger_file = connection.ledger_file(path, name)
            self.ledger = private_study.open_ledger(ledger_file, self.study.privacy, self._mark)
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
        self.identity = identity
        self.channel = StudyChannel(self.study, name, identity, self.office, connection.run, watch)
        self.carrier = NetworkCarrier(self.channel, identity)

    def _mark(self) -> str:
        """Return what names the next sum, in the ledger that pays for it."""
        return f"{self.study.id} {self.channel.run} {self.carrier.session_ids(16).hex()}"

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
        except SecureCompError as error:
            self._tell_stop(told(error))
            raise

    def _tell_stop(self, reason: str) -> None:
        self._stopped = True  # one try: the relay may be what is broken
        with contextlib.suppress(SecureCompError):
            self.channel.stop(reason)


def told(error: SecureCompError) -> str:
    """Return what other parties hear of an error here: what one of them caused, or its kind."""
    if isinstance(error, RemoteProtocolError):
        return str(error)
    if isinstance(error, BudgetError):
        return "its privacy budget does not cover what is asked"
    # What went wrong here may be about rows, which others must not hear.
    return f"an error of its own ({type(error).__name__})"


@contextlib.contextmanager
def connected(
    path: Path,
    name: str,
    identity: Path,
    connection: Connection,
    *,
    watch: Watch | None = None,
    note: Note | None = None,
) -> Iterator[ConnectedParty]:
    """Connect a party, with the file of its keys, for a block; as `ConnectedParty`."""
    member = ConnectedParty(
        path, name, identity_file.read(identity), connection, watch=watch, note=note
    )
    try:
        yield member
    finally:
        member.close()


def study_at(
    study: StudyFile,
    carrier: Carrier,
    rows: Mapping[str, Any],
    ledger: ReplayedLedger | None = None,
) -> Study:
    """Return a study as one party sees it: its own rows if it has some, and everybody's totals.

    Args:
        study: What all agreed on.
        carrier: Brings messages.
        rows: The site here to its data frame; none for an analyst.
        ledger: What the site here pays noised answers from.
    """
    terms = study.privacy
    return Study(
        rows,
        columns=study.columns,
        protocol=study.sums(),
        missing=study.missing,
        rows=study.rows,
        minimum_count=study.minimum_count,
        minimum_sites=study.minimum_sites,
        codebook=None if study.codebook is None else study.codebook.read(),
        privacy=None if terms is None else replace(terms, ledger=ledger),
        carrier=carrier,
        elsewhere=[name for name in study.sites if name not in rows],
    )


def answers(
    agreed: StudyFile, carrier: Carrier, study: Study
) -> Iterator[tuple[StudyQuestion, Any]]:
    """Ask the study's own questions; yield each with its result, None where others hear it."""
    questions = agreed.analyses
    if agreed.privacy is not None and questions:
        # One noised sum, and one payment, for all of them; all have the same hearers.
        carrier.receivers = agreed.hearers(questions[0])
        found: list[Any] = [None] * len(questions)
        with contextlib.suppress(OpenedElsewhere):
            found = study.run([private_study.statistic(question) for question in questions])
        yield from zip(questions, found, strict=True)
        return
    for question in questions:
        carrier.receivers = agreed.hearers(question)
        try:
            yield question, question.put_to(study)
        except OpenedElsewhere:
            yield question, None


def begin(member: ConnectedParty, study: Study) -> None:
    """Check the rows by the codebook, and the budget, before anything is sent; then begin the run.

    Raises:
        ParameterError, RangeError: The rows here do not follow the codebook.
        BudgetError: The ledger here does not cover what is asked.
    """
    study.agree()
    private_study.check_budget(member.study.privacy, member.ledger, member.state)
    member.carrier.begin()


@contextlib.contextmanager
def taking_part(member: ConnectedParty, site: str, frame: Any) -> Iterator[Study]:
    """Give a site's study for a block of questions; the totals are compared when it ends.

    Raises:
        SecureCompError: It says which party caused it. The others are told that this one stopped.
    """
    with member.telling():
        study = study_at(member.study, member.carrier, {site: frame}, member.ledger)
        begin(member, study)
        yield study
        member.carrier.finish_part()
        member.carrier.finish()
    member.state.finish()


@contextlib.contextmanager
def joined(
    path: Path, site: str, frame: Any, identity: Path, connection: Connection
) -> Iterator[Study]:
    """Connect a site for a block of questions; as `taking_part`."""
    with connected(path, site, identity, connection) as member:
        if member.study.receivers == "analysts":
            raise ParameterError(
                "by this study its own questions go to analysts alone; run: securecomp join"
            )
        with taking_part(member, site, frame) as study:
            yield study


def join(member: ConnectedParty, site: str, frame: Any) -> Iterator[tuple[StudyQuestion, Any]]:
    """Run all of the study's questions at a site; yield each with its result; as `taking_part`."""
    with taking_part(member, site, frame) as study:
        yield from answers(member.study, member.carrier, study)
