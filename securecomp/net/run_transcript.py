"""Transcript of a run at one site: what was opened, by whom it is signed, and for which study.

One JSON file, in one form: another byte anywhere is noticed. It holds the totals that this site
heard, so whoever reads it knows them. It holds no row, no share and no key.
"""

import hashlib
from pathlib import Path
from typing import Literal

import msgspec

from securecomp.core import prg
from securecomp.errors import AuthenticationError, LocalProtocolError, ParameterError
from securecomp.net import study_file
from securecomp.net.programs import ConnectedParty
from securecomp.net.study_file import StudyFile
from securecomp.net.totals_chain import Step, TotalsChain, run_id
from securecomp.protocol import identity as identity_
from securecomp.protocol import storage

MOST_BYTES = 1 << 30
_PURPOSE = "transcript of a run"


class RunTranscript(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A transcript, as it is written.

    Attributes:
        format: Name of this form.
        study: SHA-256 of the study file, in hex.
        run: Name of the run.
        site: Who wrote this.
        nonces: A random number of each site; the run's id follows from them.
        steps: Sums and agreed numbers of part 0, in order.
        head: The chain's head after them, in hex.
        ended: Each site's signature on study, run and head.
        agreed: Each site's signature on the study file.
        signature: The writer's, on all of the above.
    """

    format: Literal["securecomp transcript 1"]
    study: str
    run: str
    site: str
    nonces: dict[str, bytes]
    steps: list[Step]
    head: str
    ended: dict[str, bytes]
    agreed: dict[str, bytes]
    signature: bytes

    def encode(self) -> bytes:
        """Return the one text of this transcript."""
        text = msgspec.json.encode(self, order="sorted")
        return msgspec.json.format(text, indent=1) + b"\n"

    def statement(self) -> tuple[bytes, str]:
        """Return what the writer signs: all but the signature, and its name."""
        unsigned = msgspec.structs.replace(self, signature=b"")
        return hashlib.sha256(unsigned.encode()).digest(), self.site

    def chain(self, study: StudyFile) -> TotalsChain:
        """Return the chain of the run at its beginning."""
        found = TotalsChain(study)
        found.begin(run_id(study, self.run, self.nonces))
        return found


def start(member: ConnectedParty) -> None:
    """Keep the steps of a site's run from now on; before the run begins."""
    member.carrier.chain.record = []


def finish(member: ConnectedParty, study_path: Path, path: Path) -> None:
    """Write the transcript of part 0, when the run is done at this site.

    It waits for the other sites' signatures, which come through the first site.

    Args:
        member: The site.
        study_path: The study file, with the signatures beside it.
        path: The file, which only this user can read then. An earlier one is never overwritten.

    Raises:
        LocalProtocolError: The steps were not kept.
        RemoteProtocolError: A party is late, or a signature is not valid.
        ParameterError: The file cannot be written.
    """
    carrier, study = member.carrier, member.study
    if carrier.chain.record is None:
        raise LocalProtocolError("the steps of this run were not kept; call start before it begins")
    head, ended = carrier.signatures()
    signed = study_file.signatures(study_path)
    unsigned = RunTranscript(
        format="securecomp transcript 1",
        study=study.digest.hex(),
        run=member.channel.run,
        site=member.channel.name,
        nonces=dict(carrier.nonces),
        steps=carrier.chain.record,
        head=head.hex(),
        ended=ended,
        agreed={site: signed[site] for site in study.sites},
        signature=b"",
    )
    signature = member.identity.sign(_PURPOSE, *unsigned.statement())
    whole = msgspec.structs.replace(unsigned, signature=signature)
    storage.write_new(path, whole.encode().decode().rstrip("\n"), 0o600)


def read(path: Path, study: StudyFile) -> RunTranscript:
    """Read a transcript; check its form, its writer's signature, and those of the study.

    Raises:
        ParameterError: Not a transcript, or one of another study.
        AuthenticationError: A signature is not valid, or missing; the site is named.
    """
    data = storage.read_bytes(path)
    try:
        if len(data) > MOST_BYTES:
            raise ParameterError(f"{path}: not a transcript: it is too large")
        found = msgspec.json.decode(data, type=RunTranscript)
        encoded = found.encode()
    except (msgspec.MsgspecError, UnicodeError, RecursionError, OverflowError) as error:
        raise ParameterError(f"{path}: not a transcript, or a changed one: {error}") from None
    if encoded != data:
        raise AuthenticationError(f"{path}: not as it was written: its form was changed")
    if found.study != study.digest.hex():
        raise ParameterError(f"{path}: the transcript of another study file")
    _check_sites(found, study)
    for site, signature in found.agreed.items():
        study_file.check_signature(study, site, signature)
    identity_.verify(
        study.keys[found.site], found.signature, found.site, _PURPOSE, *found.statement()
    )
    return found


def _check_sites(found: RunTranscript, study: StudyFile) -> None:
    """Refuse a transcript whose lists of sites are not those of the study.

    Raises:
        AuthenticationError: It names the list.
    """
    sites = set(study.sites)
    if found.site not in sites:
        raise AuthenticationError(f"it was written by {found.site!r}, no site of the study")
    if set(found.agreed) != sites:
        raise AuthenticationError("the sites' signatures on the study file are not complete")
    if set(found.nonces) != sites or any(len(n) != prg.SEED_BYTES for n in found.nonces.values()):
        raise AuthenticationError("the sites' random numbers of the run are not complete")
    if not found.ended.keys() <= sites or found.site not in found.ended:
        raise AuthenticationError(
            "the signatures on the totals are not those of this study's sites"
        )
