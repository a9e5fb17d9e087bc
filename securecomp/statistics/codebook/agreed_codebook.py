"""The codebook: what the sites' columns mean, agreed and signed before anything is summed.

A sum over sites adds what looks alike: kilograms to pounds, a 1 that is a woman to a 1 that is a
man, 999 for "not measured" to days. Nobody sees rows, so nobody sees the mistake. A codebook says
of each column its kind, unit, plausible range, levels and codes for missing values. Every site
signs its digest; each checks its own data against it, at home, before its first message leaves.

What is public is the codebook. What a check finds stays at its site (in a simulation, in this
process); findings name columns, rows, rules and remedies, and never a value.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from securecomp.errors import AuthenticationError, DecodeError, ParameterError
from securecomp.protocol import identity as identities
from securecomp.protocol import wire
from securecomp.protocol.identity import Identity
from securecomp.statistics.codebook import drafting, findings
from securecomp.statistics.codebook.entries import Entry
from securecomp.statistics.codebook.findings import Finding
from securecomp.statistics.schema import Column
from securecomp.statistics.site_table import Table

T = TypeVar("T")
_PURPOSE = "codebook"
_FORMAT = "securecomp codebook/1"


class CodebookWarning(UserWarning):
    """A site's data follow the codebook and look as if something else was meant."""


class Signature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A site's word that it codes its data by a codebook. Public.

    Attributes:
        name: The codebook's name.
        version: Its version.
        digest: SHA-256 of it.
        signature: The site's, on all of this.
    """

    name: str
    version: str
    digest: bytes
    signature: bytes

    def to_json(self) -> str:
        """Return the signature as JSON, to be sent to the others."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> "Signature":
        """Read what `to_json` wrote.

        Raises:
            DecodeError: It is not a signature.
        """
        return _read(text, cls, "a codebook's signature")


class Codebook(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The agreed meaning of every column: a JSON file that people write.

    Attributes:
        name: Of the study.
        version: Any text; a change needs a new one, and new signatures.
        columns: Column to what is agreed about it. Their order says nothing.
        unique: The columns whose combination identifies a patient, or a row; each once a site.

    Example:
        >>> codebook = Codebook("stays", "1", {
        ...     "id": Entry("identifier"),
        ...     "weight": Entry("number", unit="kg", lower=2, upper=300, typical=(55, 95)),
        ...     "sex": Entry("category", levels={"1": "female", "2": "male"}, missing=(9,)),
        ... }, unique=("id",))
        >>> Study(sites, codebook=codebook)  # doctest: +SKIP
    """

    name: str
    version: str
    columns: dict[str, Entry]
    unique: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.columns or not self.name or not self.version:
            raise ParameterError("a codebook has a name, a version, and at least one column")
        for name, entry in self.columns.items():
            if not isinstance(entry, Entry):
                raise ParameterError(f"codebook: column {name!r} is an Entry, not {entry!r}")
            entry.check(name)
        for name in self.unique:
            if name not in self.columns:
                raise ParameterError(f"codebook: unique names {name!r}, which is no column of it")
            if not self.columns[name].required:
                raise ParameterError(f"codebook: {name!r} identifies rows; it must be required")

    @classmethod
    def draft(cls, frame: Any, *, name: str = "draft", version: str = "0") -> "Codebook":
        """Propose a codebook from one site's data; a person completes it.

        It holds levels, ranges (rounded outwards), decimals, what looks like a code for missing,
        and no other value. Units, descriptions, meanings and `typical` are not in the data.

        Args:
            frame: A data frame.
            name: Of the study.
            version: Of the codebook.
        """
        entries, unique = drafting.draft(Table(name or "draft", frame))
        return cls(name, version, entries, unique)

    @property
    def digest(self) -> bytes:
        """SHA-256 of what is agreed, whatever the order of columns and the layout of the file."""
        entries = [[name, *_canonical(entry)] for name, entry in sorted(self.columns.items())]
        agreed = [_FORMAT, self.name, self.version, list(self.unique), entries]
        return hashlib.sha256(msgspec.json.encode(agreed)).digest()

    def sign(self, identity: Identity) -> Signature:
        """Sign the codebook, as a site that codes its data so."""
        statement = (self.name, self.version, self.digest)
        return Signature(*statement, identity.sign(_PURPOSE, *statement))

    def verify(self, signatures: Mapping[str, Signature], keys: Mapping[str, bytes]) -> None:
        """Check that every site signed this codebook.

        Args:
            signatures: Site to its signature.
            keys: Every site to its pinned public key.

        Raises:
            AuthenticationError: A site's signature is missing, of another codebook or version, or
                not its own; the error names the site.
        """
        for site, key in keys.items():
            found = signatures.get(site)
            if found is None:
                raise AuthenticationError(
                    f"{site}: has not signed the codebook {self.name!r}, version {self.version}; "
                    "ask for its signature"
                )
            if (found.name, found.version, found.digest) != (self.name, self.version, self.digest):
                differs = (
                    "which has other entries here"
                    if (found.name, found.version) == (self.name, self.version)
                    else f"and this is {self.name!r}, version {self.version}"
                )
                raise AuthenticationError(
                    f"{site}: signed the codebook {found.name!r}, version {found.version}, "
                    f"{differs}; agree on one and sign it"
                )
            statement = (found.name, found.version, found.digest)
            identities.verify(key, found.signature, site, _PURPOSE, *statement)

    def check(self, frame: Any, site: str, source: str | None = None) -> list[Finding]:
        """List all that is wrong with one site's data, and what looks wrong.

        Args:
            frame: The site's data frame.
            site: Its name.
            source: What findings call its data, say a file; by default the site.
        """
        return findings.find(self.table(frame, site, source), self.columns, self.unique)

    def table(self, frame: Any, site: str, source: str | None = None) -> Table:
        """Return a site's rows, codes for missing values being missing."""
        codes = {name: entry.missing for name, entry in self.columns.items() if entry.missing}
        optional = [name for name, entry in self.columns.items() if not entry.required]
        return Table(wire.check_name(site), frame, source, codes, optional)

    def declared(self, columns: Mapping[str, Column]) -> dict[str, Column]:
        """Return what is declared for a computation, by the codebook and beside it.

        Raises:
            ParameterError: A column is declared differently, or is not in the codebook.
        """
        agreed = {name: entry.column() for name, entry in self.columns.items()}
        for name, column in columns.items():
            mine = agreed.get(name)
            if mine is None:
                raise ParameterError(
                    f"columns: {name!r} is not in the codebook; add it there, and sign it"
                )
            for fact in ("bound", "decimals", "bits", "levels"):
                said = getattr(column, fact)
                if said is not None and said != getattr(mine, fact):
                    raise ParameterError(
                        f"columns: {name!r} has another {fact} in the codebook; declare it once"
                    )
        return agreed

    def ranges(self) -> dict[str, tuple[float, float]]:
        """Return where the numbers of each numeric column are, by the codebook."""
        return {
            name: (entry.lower, entry.upper)
            for name, entry in self.columns.items()
            if entry.lower is not None and entry.upper is not None
        }

    def to_json(self) -> str:
        """Return the codebook as JSON, for a file."""
        return msgspec.json.format(msgspec.json.encode(self)).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> "Codebook":
        """Read what `to_json` or a person wrote.

        Raises:
            DecodeError: It is not a codebook; the error says where.
        """
        return _read(text, cls, "a codebook")

    @classmethod
    def read(cls, path: Path | str) -> "Codebook":
        """Read a codebook's file.

        Raises:
            ParameterError: The file cannot be read.
            DecodeError: It is not a codebook.
        """
        try:
            text = Path(path).read_bytes()
        except OSError as error:
            raise ParameterError(f"{path}: cannot be read: {error.strerror}") from None
        try:
            return cls.from_json(text)
        except DecodeError as error:
            raise DecodeError(f"{path}: {error}") from None


def _canonical(entry: Entry) -> list[Any]:
    """Return an entry's facts in a fixed order; 1.0 is 1, and the order of levels counts."""

    def plain(value: Any) -> Any:
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, tuple):
            return list(map(plain, value))
        return [list(pair) for pair in value.items()] if isinstance(value, dict) else value

    return [plain(getattr(entry, name)) for name in entry.__struct_fields__]


def _read(text: str | bytes, kind: type[T], what: str) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError, ParameterError) as error:
        raise DecodeError(f"not {what}: {error}") from None
