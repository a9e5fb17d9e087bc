"""The study file: everything that the parties agree on before anything is computed.

It is TOML, written by people. Its SHA-256 is in every session, so a changed byte is another study.
Each site signs this digest; the signatures lie beside it, in `study.toml.signatures`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from securecomp.core import checks
from securecomp.errors import AuthenticationError, ParameterError, SecureCompError
from securecomp.net import parties, private_study, study_codebook
from securecomp.net.parties import Parties, table
from securecomp.net.questions import study_questions
from securecomp.net.questions.study_questions import (
    FOR_ANALYSTS,
    ONE_SUM,
    QuestionRules,
    StudyQuestion,
)
from securecomp.net.study_codebook import CodebookFile
from securecomp.paillier.keys import PublicKey
from securecomp.privacy.policy import Privacy
from securecomp.protocol import identity as identity_
from securecomp.protocol import storage, wire
from securecomp.protocol import sum_protocols as sums
from securecomp.protocol.identity import Identity
from securecomp.statistics import Column
from securecomp.statistics.disclosure.suppression import DEFAULT_MINIMUM
from securecomp.statistics.measures import Missing

_PURPOSE = "study file"
_TOP = {"study", "sites", "servers", "analysts", "columns", "analyses", "questions", "privacy"}
_FACTS = {
    "name", "protocol", "security", "blind", "paillier_public", "missing", "rows", "minimum_count",
    "minimum_sites", "patience", "answer_within", "receivers", *study_codebook.FACTS,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class StudyFile(Parties):
    """A study, as all parties agreed on it.

    Attributes:
        name: Its title.
        protocol: Name of the sum protocol.
        options: Its options.
        paillier_public: The key holder's public key, as JSON; only for Paillier.
        columns: Declared facts.
        analyses: The questions, in order.
        rules: What analysts may ask besides.
        receivers: Who hears what one sum answers: "sites" (and an analyst, where one has asked)
            or "analysts" alone.
        missing: As `Study`.
        rows: As `Study`.
        minimum_count: As `Study`.
        minimum_sites: As `Study`.
        patience: Seconds that a party waits for another.
        answer_within: Seconds after which a masking server goes on without a silent site.
        privacy: Terms of noise, without a ledger: each site has its own. None for no noise.
        codebook: Meaning of all columns, in a file beside this one; or None.
    """

    name: str
    protocol: str
    options: Mapping[str, Any]
    paillier_public: str | None
    columns: Mapping[str, Column]
    analyses: Sequence[StudyQuestion]
    rules: QuestionRules
    receivers: str
    missing: Missing
    rows: int
    minimum_count: int
    minimum_sites: int
    patience: int
    answer_within: int
    privacy: Privacy | None
    codebook: CodebookFile | None

    def hearers(self, question: StudyQuestion, analyst: str | None = None) -> tuple[str, ...]:
        """Return who hears the totals that answer a question.

        Sites hear totals on which their next step depends, whatever was agreed about receivers.

        Args:
            question: What is asked.
            analyst: Who has asked it; None for the study's own questions.
        """
        analysts = tuple(self.analysts) if analyst is None else (analyst,)
        if question.ask in FOR_ANALYSTS:
            return analysts
        if self.receivers == "analysts":
            return analysts if question.ask in ONE_SUM else (*self.sites, *analysts)
        return tuple(self.sites) if analyst is None else (*self.sites, analyst)

    def sums(self, private: Any = None) -> sums.PlayedSum:
        """Return the sum protocol.

        Args:
            private: The key holder's private key, where it is.
        """
        key = private
        if key is None and self.paillier_public is not None:
            key = PublicKey.from_json(self.paillier_public)
        servers = max(2, len(self.servers)) if self.protocol == "sharing" else None
        made = sums.protocol(self.protocol, servers=servers, key=key, **self.options)
        if not isinstance(made, sums.PlayedSum):
            raise ParameterError(f"protocol {self.protocol!r} cannot run over a network")
        return made


def read(path: Path) -> StudyFile:
    """Read a study file.

    Raises:
        ParameterError: It names what is wrong, and where.
    """
    facts, agreed = parties.load(path)
    try:
        return _study(facts, agreed, path.parent)
    except (SecureCompError, TypeError, ValueError) as error:
        raise ParameterError(f"{path}: {error}") from None


def _study(facts: Mapping[str, Any], agreed: Parties, folder: Path) -> StudyFile:
    _refuse_unknown(facts, _TOP, "the file")
    study = table(facts, "study")
    _refuse_unknown(study, _FACTS, "[study]")
    protocol = study.get("protocol", "sharing")
    if protocol not in sums.PROTOCOLS:
        raise ParameterError(f"[study] protocol is one of {', '.join(sums.PROTOCOLS)}")
    options = {name: study[name] for name in ("security", "blind") if name in study}
    for name in agreed.keys:
        wire.check_name(name)
    columns = {name: _column(name, column) for name, column in table(facts, "columns").items()}
    missing = study.get("missing", "error")
    if missing not in get_args(Missing):
        raise ParameterError(f"[study] missing is one of {', '.join(get_args(Missing))}")
    analyses = tuple(
        study_questions.made(given, f"[[analyses]] {number}")
        for number, given in enumerate(facts.get("analyses", ()), start=1)
    )
    rules = study_questions.rules(table(facts, "questions"))
    privacy = private_study.terms(table(facts, "privacy"))
    minimum_sites = checks.integer(study.get("minimum_sites", 1), "[study] minimum_sites", 1)
    if privacy is not None:
        private_study.check_questions(privacy, analyses, rules, minimum_sites)
    elif not analyses and not rules.allowed:  # with noise it may be for trainings alone
        raise ParameterError("there is no [[analyses]]; add one for each question")
    if rules.allowed and not agreed.analysts:
        raise ParameterError("[questions] are asked by [analysts]; name one, with its public key")
    if protocol == "paillier" and "paillier_public" not in study:
        raise ParameterError("[study] paillier_public: give the key holder's public key")
    found = StudyFile(
        name=_text(study, "name") or "study",
        digest=agreed.digest,
        sites=agreed.sites,
        servers=agreed.servers,
        analysts=agreed.analysts,
        protocol=protocol,
        options=options,
        paillier_public=_text(study, "paillier_public"),
        columns=columns,
        analyses=analyses,
        rules=rules,
        receivers=_receivers(study, agreed),
        missing=missing,
        rows=checks.integer(study.get("rows", 1_000_000), "[study] rows", 1),
        minimum_count=checks.integer(
            study.get("minimum_count", DEFAULT_MINIMUM), "[study] minimum_count", 0
        ),
        minimum_sites=minimum_sites,
        patience=checks.integer(study.get("patience", 3600), "[study] patience", 1),
        answer_within=checks.integer(study.get("answer_within", 600), "[study] answer_within", 1),
        privacy=privacy,
        codebook=study_codebook.named(study, folder),
    )
    if found.receivers != "analysts" and any(q.ask in FOR_ANALYSTS for q in analyses):
        raise ParameterError(
            f"[[analyses]] {' and '.join(FOR_ANALYSTS)}: an analyst hears the totals, and no site; "
            'name one under [analysts], and say receivers = "analysts" under [study]'
        )
    wanted = found.sums().server_names()  # refuses what does not go together
    if sorted(agreed.servers) != sorted(wanted):
        raise ParameterError(
            f"[servers] of {protocol} are {', '.join(map(repr, wanted))}, each with its public key"
        )
    return found


def _receivers(study: Mapping[str, Any], agreed: Parties) -> str:
    found = study.get("receivers", "sites")
    if found not in ("sites", "analysts") or (found == "analysts" and not agreed.analysts):
        raise ParameterError('[study] receivers is "sites", or "analysts" if [analysts] are named')
    return str(found)


def _text(study: Mapping[str, Any], name: str) -> str | None:
    value = study.get(name)
    if value is not None and not isinstance(value, str):
        raise ParameterError(f"[study] {name} is text")
    return value


def _column(name: str, facts: Any) -> Column:
    if not isinstance(facts, Mapping) or set(facts) - {"bound", "decimals", "bits", "levels"}:
        raise ParameterError(f"[columns.{name}] has bound, decimals or bits, or levels")
    given = dict(facts)
    if "levels" in given:
        given["levels"] = tuple(given["levels"])
    try:
        return Column(**given)
    except ParameterError as error:
        raise ParameterError(f"[columns.{name}]: {error}") from None


def _refuse_unknown(table: Mapping[str, Any], known: set[str], where: str) -> None:
    unknown = sorted(set(table) - known)
    if unknown:
        raise ParameterError(f"{where} has no {unknown[0]!r}; one of {', '.join(sorted(known))}")


def signatures_path(path: Path) -> Path:
    """Return where the signatures of a study file lie."""
    return path.with_name(path.name + ".signatures")


def signatures(path: Path) -> dict[str, bytes]:
    """Return the signatures that lie beside a study file, not yet verified."""
    beside = signatures_path(path)
    if not beside.exists():
        return {}
    try:
        return {str(n): bytes.fromhex(s) for n, s in json.loads(storage.read_text(beside)).items()}
    except (ValueError, AttributeError, TypeError):
        raise ParameterError(f"{beside}: not signatures of a study file") from None


def sign(path: Path, name: str, identity: Identity) -> None:
    """Add a party's signature.

    Raises:
        ParameterError: The study names no such party with this key.
    """
    study = read(path)
    if study.keys.get(name) != identity.public:
        raise ParameterError(f"{path}: {name!r} does not have this key there")
    if study.codebook is not None:
        study.codebook.read()  # nobody signs what is not there
    found = signatures(path)
    found[name] = identity.sign(_PURPOSE, study.digest, name)
    text = json.dumps({n: s.hex() for n, s in sorted(found.items())}, indent=2) + "\n"
    storage.write_output(signatures_path(path), text.encode(), [])


def verify(path: Path) -> StudyFile:
    """Read a study file that all sites have signed.

    Raises:
        AuthenticationError: A site has not signed it, or signed another version.
    """
    study, found = read(path), signatures(path)
    for name in study.sites:
        if name not in found:
            raise AuthenticationError(
                f"{name} has not signed {path.name}; run: securecomp study sign {path.name} "
                f"--party {name} --identity KEY"
            )
        check_signature(study, name, found[name], path.name)
    return study


def check_signature(
    study: StudyFile, site: str, signature: bytes, file: str = "the study file"
) -> None:
    """Verify a site's signature on a study file.

    Raises:
        AuthenticationError: It signed another version; the site and the file are named.
    """
    try:
        identity_.verify(study.sites[site], signature, site, _PURPOSE, study.digest, site)
    except AuthenticationError:
        raise AuthenticationError(
            f"{site} signed another version of {file}; compare it, and sign again"
        ) from None
