"""Carrier of one party's messages over a relay, with a memory that outlives the process.

The party runs the same program as all others, and everything that it learns on the way is in its
state: a program that is started again goes through the sums that were opened, without a message,
and on from there.

Session ids are computed by every site alike: from the study, the run's nonces, the number of the
sum, and all totals so far. Sites that heard different totals have different next sessions, and no
server plays these.

A run has parts. Part 0 is the study's own questions; every question of an analyst is a part of its
own. Parts do not depend on each other, so one can end early and the run goes on.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from securecomp.core import entropy as entropy_
from securecomp.core import prg
from securecomp.core.entropy import Entropy
from securecomp.core.secret import Secret
from securecomp.errors import (
    AuthenticationError,
    KeyMismatchError,
    LocalProtocolError,
    RemoteProtocolError,
)
from securecomp.net.site_state import SESSION
from securecomp.net.study_channel import StudyChannel
from securecomp.net.study_messages import (
    Announcement,
    Countersignatures,
    Nonces,
    Proposal,
    SitesKey,
    TotalsDigest,
)
from securecomp.net.totals_chain import PART, TotalsChain, run_id
from securecomp.protocol import wire
from securecomp.protocol.carrier import K, Posts, T, Transcript, Vector
from securecomp.protocol.identity import Identity
from securecomp.protocol.session import Session


class OpenedElsewhere(Exception):  # noqa: N818 - nothing went wrong
    """The total is for others alone: this party's work for the question is done.

    Attributes:
        labels: Names of what was opened.
    """

    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = tuple(labels)
        super().__init__("the total is opened to others")


class NetworkCarrier(Secret):
    """Brings the messages of one party."""

    def __init__(self, channel: StudyChannel, identity: Identity) -> None:
        """Take the party's channel and its keys."""
        self.channel, self.study, self.name = channel, channel.study, channel.name
        self.transcript = Transcript()
        self.stands_dropouts = self.study.sums().stands_dropouts
        self._identity, self._state = identity, channel.state
        self.chain = TotalsChain(self.study)
        self.nonces: Mapping[str, bytes] = {}
        self.session_ids: Entropy = self.chain.session_id
        self.begin_part(0, None)
        self._head_of_run = self.chain.head
        self._signatures: dict[str, bytes] = {}

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

    def begin_part(self, part: int, receivers: tuple[str, ...] | None) -> None:
        """Begin a part of the run: its sums depend on no other part's.

        Args:
            part: Its number.
            receivers: Who hears its totals; by default all sites.
        """
        self.receivers = receivers
        self.channel.part, self._current = part, b""
        self._proposals = part * PART
        self.chain.begin_part(part)
        self.entropy = self._program()

    def begin(self) -> None:
        """Agree on the run's id with all sites: no run has the id of another.

        The first site collects a nonce of each, and sends all of them to all; each looks for its
        own. An analyst has none, and hears those of the sites.
        """
        first, tag = self.channel.first, f"{self.channel.run}/nonces"
        nonce = self._state.fact("nonce", entropy_.system(32))
        if self.name == first:
            heard = self.channel.hear(tag, self.channel.others, "the other sites", Nonces)
            nonces = {site: m.nonces.get(site, b"") for site, m in heard.items()} | {first: nonce}
            self.channel.tell([*self.channel.others, *self.study.analysts], tag, Nonces(nonces))
        else:
            if self.name in self.study.sites:
                self.channel.tell([first], tag, Nonces({self.name: nonce}))
            nonces = self.channel.hear(tag, [first], "the other sites", Nonces)[first].nonces
        if sorted(nonces) != sorted(self.study.sites) or nonces.get(self.name, nonce) != nonce:
            raise RemoteProtocolError(first, "its list of nonces is not that of this run")
        self.nonces = nonces
        self.chain.begin(run_id(self.study, self.channel.run, nonces))

    def finish(self) -> None:
        """Compare the totals of part 0 with the other sites', and tell the servers of the end.

        Raises:
            RemoteProtocolError: A site heard other totals.
        """
        servers = tuple(self.study.servers)
        tag, channel = f"{self.channel.run}/totals", self.channel
        self._signatures = self._compare(tag, self._head_of_run, 0, servers=servers)
        if self.name == channel.first:
            channel.tell(channel.others, f"{tag}/signed", Countersignatures(self._signatures))

    def signatures(self) -> tuple[bytes, dict[str, bytes]]:
        """Return the head of part 0, and the sites' signatures on it, after `finish`.

        The first site has collected them, and sends them to all. Where a site has dropped out, its
        signature may be missing.

        Raises:
            RemoteProtocolError: One is not valid, or of no site.
        """
        channel, found = self.channel, dict(self._signatures)
        if self.name != channel.first:
            tag = f"{channel.run}/totals/signed"
            heard = channel.hear(tag, [channel.first], "the signatures", Countersignatures)
            found = {**heard[channel.first].signatures, **self._signatures}
            if not set(found) <= set(self.study.sites):
                raise RemoteProtocolError(channel.first, "its list of signatures is not this run's")
        for site, signature in found.items():
            self._check_signature(site, signature, self._head_of_run, 0)
        return self._head_of_run, found

    def finish_part(self) -> None:
        """Compare this part's totals with what the other sites and its analysts heard.

        Raises:
            RemoteProtocolError: A site heard other totals.
        """
        hearers = self.receivers or ()
        if not self.channel.part:
            self._head_of_run = self.chain.head
            hearers = tuple(self.study.analysts) if self.study.receivers == "analysts" else ()
        analysts = [name for name in hearers if name in self.study.analysts]
        if self.channel.part or analysts:
            tag = f"{self.channel.run}/totals/{self.channel.part}"
            self._compare(tag, self.chain.head, self.channel.part, analysts=analysts)

    def _compare(
        self,
        tag: str,
        digest: bytes,
        part: int,
        servers: Collection[str] = (),
        analysts: Collection[str] = (),
    ) -> dict[str, bytes]:
        """Compare a digest with that of the other sites; an analyst hears the first site's.

        Returns:
            The signatures of this site and of those that it has heard.
        """
        channel, first = self.channel, self.channel.first
        awaited = channel.others if self.name == first else [first]
        found: dict[str, bytes] = {}
        if self.name in self.study.sites:
            signature = self.chain.sign(self._identity, channel.run, part, digest)
            found[self.name] = signature
            told = [*awaited, *servers, *(analysts if self.name == first else ())]
            channel.tell(told, tag, TotalsDigest(digest, signature))
        # Where a site may have dropped out, the others end without it.
        patient = self.name != first or not self.stands_dropouts
        heard = self.channel.hear(tag, awaited, "the comparison", TotalsDigest, patient)
        for site, theirs in heard.items():
            if theirs.digest != digest:
                raise RemoteProtocolError(
                    site, "heard other totals: a server or the relay told the sites different sums"
                )
            self._check_signature(site, theirs.signature, digest, part)
            found[site] = theirs.signature
        return found

    def _check_signature(self, site: str, signature: bytes, head: bytes, part: int) -> None:
        try:
            self.chain.check(site, signature, self.channel.run, part, head)
        except AuthenticationError as error:
            raise RemoteProtocolError(site, f"did not sign these totals: {error}") from None

    def abandon(self) -> None:
        """Forget the sum that is open: this part of the run ends early."""
        if self._current:
            self._state.spend(self._current)

    def opened(self, session: Session, play: Callable[[], Vector | None]) -> Vector:
        """Return a sum's total: the one that was opened before a restart, or else that of `play`.

        Raises:
            LocalProtocolError: The program asks another question than before the restart.
        """
        number, self.chain.number = self.chain.number, self.chain.number + 1
        self._current = session.id
        self.entropy = self._program()
        hears = self.name in session.receivers
        known = self._state.total(number)
        if known is not None and known[0] != session.agreement:
            raise LocalProtocolError(
                f"sum {number + 1} is another one than before the restart; start with the same "
                "study, data and software, or begin a new run"
            )
        if known is None:
            if self.name in session.contributors:
                tag = f"{SESSION}{session.id.hex()}"
                announced = Announcement(self.channel.run, number, session.to_bytes())
                # It goes out with the first messages of the sum.
                self.channel.write([s for s in session.servers if s != self.name], tag, announced)
            played = play()
            if hears != (played is not None):
                raise LocalProtocolError(f"{self.name}: the total did not come to its receivers")
            packed = b"" if played is None else np.asarray(played, np.int64).astype("<i8").tobytes()
            self._state.remember(number, session.agreement, packed, session.id)
        else:
            packed = known[1]
        self._current = b""
        self.chain.opened(session, self._counted(session), packed if hears else None)
        self.entropy = self._program()
        if not hears:
            raise OpenedElsewhere(session.layout.labels)
        return np.frombuffer(packed, "<i8").astype(np.int64)

    def counted(self, session: Session, names: Collection[str]) -> None:
        """Remember whose vectors are in a total, where some are not."""
        if tuple(names) != session.contributors:
            self._state.fact(f"counted {session.id.hex()}", json.dumps(list(names)).encode())

    def _counted(self, session: Session) -> tuple[str, ...]:
        known = self._state.known(f"counted {session.id.hex()}")
        return session.contributors if known is None else tuple(json.loads(known))

    def agree(self, what: str, values: npt.ArrayLike, tolerance: float) -> npt.NDArray[np.float64]:
        """Return the first site's numbers, after a comparison with one's own."""
        mine = np.asarray(values, np.float64)
        number, self._proposals = self._proposals, self._proposals + 1
        tag = f"{self.channel.run}/agree/{number}"
        if self.name == self.channel.first:
            packed = self._state.fact(tag, mine.astype("<f8").tobytes())
            hearers = {*self.study.sites, *(self.receivers or ())} - {self.name}
            self.channel.tell(sorted(hearers), tag, Proposal(packed))
        else:
            heard = self.channel.hear(tag, [self.channel.first], what, Proposal)
            packed = heard[self.channel.first].values
        found = accepted(mine, packed, tolerance)
        if found is None:
            raise RemoteProtocolError(
                self.channel.first, f"proposed other numbers than this site has computed: {what}"
            )
        self.chain.agreed(what, packed)
        return found

    def sites_key(self) -> bytes:
        """Return random bytes that the first site has drawn, sealed for each other site."""
        number, self._proposals = self._proposals, self._proposals + 1
        tag, channel = f"{self.channel.run}/key/{number}", self.channel
        mine = self._state.fact(tag, entropy_.system(32))
        if self.name not in self.study.sites:
            return mine
        if self.name == channel.first:
            channel.tell(channel.others, tag, SitesKey(mine))
            return mine
        key = channel.hear(tag, [channel.first], "the sites' key", SitesKey)[channel.first].key
        if len(key) != len(mine):
            raise RemoteProtocolError(channel.first, "the sites' key has another length")
        return key

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
        self.channel.office.put(going)
        if self.name not in recipients:
            return {}
        others = [name for name in senders if name != self.name]
        other_tag = None if instead in (None, step) else f"{session.id.hex()}/{instead}"
        arrived = self.channel.awaited(tag, step, others, other_tag, patient)
        found: dict[str, wire.Buffer] = {}
        for name in senders:
            if name == self.name and name in mine:
                found[name] = mine[name]
            elif name in arrived:
                found[name] = arrived[name]
                self.transcript.count(name, self.name, len(arrived[name]))
        return {self.name: found}

    def _program(self) -> Entropy:
        """Return the program's source up to the next sum.

        Each sum has its own: a program that draws less before one does not shift the next one's.
        """
        return self._source("program", self.chain.number.to_bytes(8, "big"), self.chain.head)

    def _source(self, purpose: str, *context: bytes | str) -> Entropy:
        """Return a stream of random bytes that a restarted program draws again."""
        seed = self._state.seed
        if not seed:  # the run is done: nothing is sent any more
            return entropy_.system
        key = prg.derive(seed, f"replayed randomness of a {purpose}", self.channel.run, *context)
        stream = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()
        return lambda size: stream.update(bytes(size))


def accepted(
    mine: npt.NDArray[np.float64], packed: bytes, tolerance: float
) -> npt.NDArray[np.float64] | None:
    """Return proposed numbers if they are one's own, but for rounding; else None.

    Args:
        mine: As computed here.
        packed: The proposal: float64, little-endian.
        tolerance: Largest accepted difference, relative to the largest number.
    """
    if len(packed) != 8 * mine.size:
        return None
    found = np.frombuffer(packed, "<f8").astype(np.float64)
    scale = float(np.abs(mine).max(initial=0.0))
    # Of numbers that are none nothing is within the tolerance.
    same = np.isfinite(found).all() and np.isfinite(mine).all()
    if not same or float(np.abs(found - mine).max(initial=0.0)) > tolerance * scale:
        return None
    return found
