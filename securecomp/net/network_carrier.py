"""Carrier of one party's messages over a relay, with a memory that outlives the process.

The party runs the same program as all others, and everything that it learns on the way is in its
state: a program that is started again goes through the sums that were opened, without a message,
and on from there.

Session ids are computed by every site alike: from the study, the run's nonces, the number of the
sum, and all totals so far. Sites that heard different totals have different next sessions, and no
server plays these.
"""

import hashlib
import time
from collections.abc import Callable, Collection, Iterable

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from securecomp.core import entropy as entropy_
from securecomp.core import prg
from securecomp.core.entropy import Entropy
from securecomp.core.secret import Secret
from securecomp.errors import KeyMismatchError, LocalProtocolError, RemoteProtocolError
from securecomp.net.post_office import PostOffice
from securecomp.net.site_state import SESSION
from securecomp.net.study_file import StudyFile
from securecomp.net.study_messages import (
    Announcement,
    Nonces,
    Proposal,
    Stop,
    StudyTalk,
    TotalsDigest,
)
from securecomp.protocol import wire
from securecomp.protocol.carrier import K, Posts, T, Transcript, Vector
from securecomp.protocol.identity import Identity
from securecomp.protocol.session import Session

Watch = Callable[[str, Collection[str]], None]
"""Hears the current step, and which parties are awaited."""


class LateError(RemoteProtocolError):
    """A party is silent. Everybody can be started again, and goes on."""


class StoppedError(RemoteProtocolError):
    """A party has said that it cannot go on."""


class NetworkCarrier(Secret):
    """Brings the messages of one party."""

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
        self.study, self.name, self.run = study, name, run
        self.transcript = Transcript()
        self.stands_dropouts = study.sums().stands_dropouts
        self._talk = StudyTalk(study)
        self._identity, self._office, self._state = identity, office, office.state
        self._watch: Watch = watch or (lambda *_: None)
        self._number = self._proposals = 0
        self._run_id = b""
        self._totals = hashlib.sha256(b"securecomp totals").digest()
        self.entropy = self._program()
        self.session_ids: Entropy = self._session_id

    def here(self, name: str) -> bool:
        """Return whether it is this party."""
        return name == self.name

    def identity(self, name: str) -> Identity:
        """Return the key of the party that is here."""
        if name != self.name:
            raise KeyMismatchError(f"the keys of {name!r} are elsewhere")
        return self._identity

    def public(self, name: str) -> bytes:
        """Return a party's public key."""
        return self.study.keys[name]

    def randomness(self, session: Session, name: str, role: str) -> Entropy:
        """Return a role's source: the same again after a restart, other for every session.

        Raises:
            LocalProtocolError: The session is over. Its messages are gone, and the same randomness
                would serve for others.
        """
        if self._state.spent(session.id):
            raise LocalProtocolError("this sum is over; it is not played again")
        return self._source("role", session.agreement, name, role)

    def start(self) -> None:
        """Count from zero."""
        self.transcript = Transcript()

    def next_round(self) -> None:
        """Count a round."""
        self.transcript.rounds += 1

    def send(self, sender: str, recipient: str, data: wire.Buffer) -> wire.Buffer:
        """Refuse: messages go by `deliver`."""
        del data
        raise LocalProtocolError(
            f"this analysis sends messages from {sender} to {recipient} that no network carries "
            "yet; use one that needs sums only"
        )

    def each(self, work: Callable[[K], T], names: Iterable[K], elements: int) -> dict[K, T]:
        """Do the work of the party that is here."""
        del elements
        return {name: work(name) for name in names}

    def begin(self) -> None:
        """Agree on the run's id with all sites: no run has the id of another.

        The first site collects a nonce of each, and sends all of them to all; each looks for its
        own.
        """
        first, tag = self._first, f"{self.run}/nonces"
        nonce = self._state.fact("nonce", entropy_.system(32))
        if self.name == first:
            heard = self._hear_all(tag, self._others, "the other sites", Nonces)
            nonces = {site: m.nonces.get(site, b"") for site, m in heard.items()} | {first: nonce}
            self._tell(self._others, tag, Nonces(nonces))
        else:
            self._tell([first], tag, Nonces({self.name: nonce}))
            nonces = self._hear_all(tag, [first], "the other sites", Nonces)[first].nonces
        if sorted(nonces) != sorted(self.study.sites) or nonces[self.name] != nonce:
            raise RemoteProtocolError(first, "its list of nonces is not that of this run")
        pairs = [part for site in sorted(nonces) for part in (site, nonces[site])]
        self._run_id = hashlib.sha256(prg.join("run", self.study.digest, self.run, *pairs)).digest()

    def finish(self) -> None:
        """Compare all totals with the other sites', and tell the servers that the run is done.

        Raises:
            RemoteProtocolError: A site heard other totals.
        """
        first, tag = self._first, f"{self.run}/totals"
        mine = TotalsDigest(self._totals)
        awaited = self._others if self.name == first else [first]
        self._tell([*awaited, *self.study.servers], tag, mine)
        # Where a site may have dropped out, the others end without it.
        patient = self.name != first or not self.stands_dropouts
        heard = self._hear_all(tag, awaited, "the comparison", TotalsDigest, patient)
        for site, theirs in heard.items():
            if theirs.digest != self._totals:
                raise RemoteProtocolError(
                    site, "heard other totals: a server or the relay told the sites different sums"
                )

    def stop(self, reason: str) -> None:
        """Tell all parties that this one cannot go on.

        Not kept: who starts again would stop all others with what did not go out before.
        """
        tag, told = f"{self.run}/stop", Stop(reason[:500])
        self._office.once(
            [
                (name, tag, self._talk.seal(self._identity, self.name, name, tag, told))
                for name in self.study.keys
                if name != self.name
            ]
        )

    def opened(self, session: Session, play: Callable[[], Vector | None]) -> Vector:
        """Return a sum's total: the one that was opened before a restart, or else that of `play`.

        Raises:
            LocalProtocolError: The program asks another question than before the restart.
        """
        number, self._number = self._number, self._number + 1
        self.entropy = self._program()
        known = self._state.total(number)
        if known is not None and known[0] != session.agreement:
            raise LocalProtocolError(
                f"sum {number + 1} is another one than before the restart; start with the same "
                "study, data and software, or begin a new run"
            )
        if known is None:
            tag = f"{SESSION}{session.id.hex()}"
            announced = Announcement(self.run, number, session.to_bytes())
            # It goes out with the first messages of the sum.
            self._write([s for s in session.servers if s != self.name], tag, announced)
            played = play()
            if played is None:
                raise LocalProtocolError(f"{self.name} does not receive the total")
            packed = np.asarray(played, np.int64).astype("<i8").tobytes()
            self._state.remember(number, session.agreement, packed, session.id)
        else:
            packed = known[1]
        self._totals = hashlib.sha256(self._totals + session.agreement + packed).digest()
        self.entropy = self._program()
        return np.frombuffer(packed, "<i8").astype(np.int64)

    def agree(self, what: str, values: npt.ArrayLike, tolerance: float) -> npt.NDArray[np.float64]:
        """Return the first site's numbers, after a comparison with one's own."""
        mine = np.asarray(values, np.float64)
        number, self._proposals = self._proposals, self._proposals + 1
        tag = f"{self.run}/agree/{number}"
        if self.name == self._first:
            packed = self._state.fact(tag, mine.astype("<f8").tobytes())
            self._tell(self._others, tag, Proposal(packed))
        else:
            heard = self._hear_all(tag, [self._first], what, Proposal)
            packed = heard[self._first].values
        sized = len(packed) == 8 * mine.size
        found = np.frombuffer(packed if sized else b"", "<f8").astype(np.float64)
        scale = float(np.abs(mine).max(initial=0.0))
        # Of numbers that are none nothing is within the tolerance.
        same = sized and np.isfinite(found).all() and np.isfinite(mine).all()
        if not same or float(np.abs(found - mine).max(initial=0.0)) > tolerance * scale:
            raise RemoteProtocolError(
                self._first, f"proposed other numbers than this site has computed: {what}"
            )
        return found

    def deliver(
        self,
        session: Session,
        step: str,
        posts: Posts,
        senders: Collection[str],
        recipients: Collection[str],
        *,
        instead: str | None = None,
        patient: bool = True,
    ) -> dict[str, dict[str, wire.Buffer]]:
        """Send this party's messages of a step, and await those for it."""
        tag = f"{session.id.hex()}/{step}"
        mine = posts.get(self.name, {})
        going = [(to, tag, bytes(data)) for to, data in mine.items() if to != self.name]
        for to, _, data in going:
            self.transcript.count(self.name, to, len(data))
        self._office.put(going)
        if self.name not in recipients:
            return {}
        others = [name for name in senders if name != self.name]
        other_tag = None if instead in (None, step) else f"{session.id.hex()}/{instead}"
        arrived = self._await(tag, step, others, other_tag, patient)
        found: dict[str, wire.Buffer] = {}
        for name in senders:
            if name == self.name and name in mine:
                found[name] = mine[name]
            elif name in arrived:
                found[name] = arrived[name]
                self.transcript.count(name, self.name, len(arrived[name]))
        return {self.name: found}

    @property
    def _first(self) -> str:
        return min(self.study.sites)

    @property
    def _others(self) -> list[str]:
        return [site for site in self.study.sites if site != self.name]

    def _await(
        self, tag: str, step: str, others: list[str], instead: str | None, patient: bool
    ) -> dict[str, bytes]:
        """Wait for the messages of a step."""
        state = self._state
        decided = None if patient else state.known(f"closed {tag}")
        wanted = list(others) if decided is None else state.closed(tag, ())
        missing, skipped = list(wanted), False

        def ready() -> bool:
            nonlocal missing, skipped
            self.check_stop()
            heard = state.senders(tag)
            missing = [name for name in wanted if name not in heard]
            skipped = bool(missing) and instead is not None and bool(state.senders(instead))
            self._watch(step, missing)
            return not missing or skipped

        patience = self.study.patience if patient else self.study.answer_within
        if not self._office.wait(ready, time.monotonic() + patience) and patient:
            raise LateError(
                missing[0],
                f"nothing came for the step {step!r} within {patience} seconds (awaited: "
                f"{', '.join(missing)}); start it again there, then here",
                authenticated=False,
            )
        if skipped:
            return {}
        there = [name for name in wanted if name not in missing]
        if not patient and decided is None:
            state.closed(tag, there)
        return {name: state.message(name, tag) for name in there}

    def check_stop(self) -> None:
        """Raise what another party has stopped for."""
        tag = f"{self.run}/stop"
        for sender in self._state.senders(tag):
            reason = self.read(sender, tag, Stop).reason
            raise StoppedError(
                sender, f"has stopped: {reason}; begin a new run at all parties (--run)"
            )

    def read(self, sender: str, tag: str, kind: type[wire.M]) -> wire.M:
        """Verify and read a message of the study that was heard.

        Raises:
            DecodeError, AuthenticationError, RemoteProtocolError: Not this sender's, or not of
                this tag and kind.
        """
        data = self._state.message(sender, tag)
        return self._talk.open(self._identity, sender, self.name, tag, data, kind)

    def _tell(self, names: Collection[str], tag: str, message: wire.Message) -> None:
        """Seal a message for several parties, and send it."""
        self._write(names, tag, message)
        self._office.send()

    def _write(self, names: Collection[str], tag: str, message: wire.Message) -> None:
        """Seal and commit a message for several parties. What was put before a restart counts."""
        self._state.put(
            [
                (name, tag, self._talk.seal(self._identity, self.name, name, tag, message))
                for name in names
                if not self._state.posted(name, tag)
            ]
        )

    def _hear_all(
        self,
        tag: str,
        names: Collection[str],
        what: str,
        kind: type[wire.M],
        patient: bool = True,
    ) -> dict[str, wire.M]:
        heard = self._await(tag, what, list(names), None, patient)
        return {name: self.read(name, tag, kind) for name in heard}

    def _session_id(self, size: int, /) -> bytes:
        return hashlib.sha256(
            prg.join("session id", self._run_id, self._number, self._totals)
        ).digest()[:size]

    def _program(self) -> Entropy:
        """Return the program's source up to the next sum.

        Each sum has its own: a program that draws less before one does not shift the next one's.
        """
        return self._source("program", self._number.to_bytes(8, "big"), self._totals)

    def _source(self, purpose: str, *context: bytes | str) -> Entropy:
        """Return a stream of random bytes that a restarted program draws again."""
        seed = self._state.seed
        if not seed:  # the run is done: nothing is sent any more
            return entropy_.system
        key = prg.derive(seed, f"replayed randomness of a {purpose}", self.run, *context)
        stream = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()
        return lambda size: stream.update(bytes(size))
