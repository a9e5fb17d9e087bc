"""A study's codebook: a file that lies beside the study file, which has its SHA-256.

Who signs the study signs the codebook with it. Relay and servers need no codebook.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from securecomp.errors import DecodeError, ParameterError
from securecomp.protocol import storage
from securecomp.statistics import Codebook

_NAME, _DIGEST = "codebook", "codebook_sha256"
FACTS = {_NAME, _DIGEST}
"""Keys of a study file."""


@dataclass(frozen=True, slots=True)
class CodebookFile:
    """The file of a codebook, and which codebook it is.

    Attributes:
        path: The file.
        sha256: Of its bytes.
    """

    path: Path
    sha256: bytes

    def read(self) -> Codebook:
        """Read the codebook.

        Raises:
            ParameterError: The file is not there, is another one, or is no codebook.
        """
        data = storage.read_bytes(self.path)
        found = hashlib.sha256(data).hexdigest()
        if found != self.sha256.hex():
            raise ParameterError(
                f"{self.path}: another codebook than the study names: its SHA-256 is {found}; take "
                f"the agreed file, or write {_DIGEST} anew and have all sites sign"
            )
        try:
            return Codebook.from_json(data)
        except DecodeError as error:
            raise ParameterError(f"{self.path}: {error}") from None


def named(study: Mapping[str, Any], folder: Path) -> CodebookFile | None:
    """Return the codebook that the table [study] names; None if it names none.

    Raises:
        ParameterError: One of the two facts is missing, or is not as it must be.
    """
    if not FACTS & set(study):
        return None
    name, digest = study.get(_NAME), study.get(_DIGEST)
    if not isinstance(name, str) or Path(name).name != name:
        raise ParameterError(
            f"[study] {_NAME} is the name of a file that lies beside the study file"
        )
    if not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
        raise ParameterError(
            f"[study] {_DIGEST} is the SHA-256 of {name}: 64 hexadecimal digits, as sha256sum "
            "prints them"
        )
    return CodebookFile(folder / name, bytes.fromhex(digest))
