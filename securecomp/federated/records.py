"""Where a training's state is kept: in a file, or nowhere."""

import os
from dataclasses import dataclass
from pathlib import Path

import msgspec

from securecomp.federated import checkpoints
from securecomp.federated.checkpoints import Checkpoint
from securecomp.protocol.storage import check_output


@dataclass(frozen=True, slots=True)
class Record:
    """A file that a training goes on from.

    Attributes:
        path: The file; None to keep nothing.
        digest: Of what was agreed on.
    """

    path: str | os.PathLike[str] | None
    digest: bytes

    def load(self, weights: int, columns: int) -> Checkpoint | None:
        """Read the file, if there is one; refuse a place that cannot be written.

        Raises:
            ParameterError, DecodeError, KeyMismatchError: As `checkpoints.load`, or no such place.
        """
        if self.path is None:
            return None
        check_output(Path(self.path), [])
        return checkpoints.load(self.path, self.digest, weights, columns)

    def save(self, state: Checkpoint) -> None:
        """Write the file."""
        if self.path is not None:
            checkpoints.save(self.path, msgspec.structs.replace(state, digest=self.digest))

    @property
    def folder(self) -> Path | None:
        """Where marks are kept beside the file."""
        return None if self.path is None else Path(f"{os.fspath(self.path)}.rounds")
