"""State of a training in a file: the point to go on from, and marks of what must not be done again.

The file is written whole or not at all. It is bound to what was agreed on by a digest, and has a
checksum against damage, not against people: who can write it can write another. It holds the
model's weights and totals that were opened, and nothing of a site.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from securecomp.core import prg
from securecomp.core.entropy import Entropy
from securecomp.errors import DecodeError, KeyMismatchError
from securecomp.protocol.storage import check_output, read_bytes, write_output

_MAGIC = b"securecomp training checkpoint 1\n"
ID_BYTES = 16


class Round(msgspec.Struct, frozen=True):
    """One round, as everybody knows it.

    Attributes:
        number: From 1.
        sites: Who is in the sum; nobody if the round was lost.
        examples: Rows (or units, with noise) that it is averaged over; None where that is sites.
        loss: Mean loss before the round; None where it was not opened.
        step: Euclidean norm of the weights' change.
    """

    number: int
    sites: tuple[str, ...]
    examples: float | None
    loss: float | None
    step: float

    @property
    def lost(self) -> bool:
        """Whether it was interrupted, and could not be done again."""
        return not self.sites


class Reserved(msgspec.Struct, frozen=True):
    """Privacy budget that a ledger set aside for the training.

    Attributes:
        number: The ledger's entry.
        epsilon: As text.
        delta: As text.
    """

    number: int
    epsilon: str
    delta: str


class Checkpoint(msgspec.Struct, frozen=True):
    """State of a training after a round.

    Attributes:
        digest: Of what was agreed on.
        run: 16 bytes that are this training's alone.
        seed: 32 bytes, public, that participants, batches and rotations are drawn from.
        weights: Little-endian float64.
        shift: Numbers that are subtracted from the columns.
        spread: What they are divided by.
        rounds: The rounds that are done.
        attempt: How often the next round was stopped before anything was opened.
        units: The number of units, with noise; None if it is not known yet.
        reserved: What is paid from.
        opened: Names of all totals that were opened.
    """

    digest: bytes
    run: bytes
    seed: bytes
    weights: bytes
    shift: bytes
    spread: bytes
    rounds: tuple[Round, ...] = ()
    attempt: int = 0
    units: float | None = None
    reserved: Reserved | None = None
    opened: tuple[str, ...] = ()


def begin(weights: int, columns: int, entropy: Entropy) -> Checkpoint:
    """Return the beginning of a training of so many weights, all of them 0, on scaled columns."""
    run, seed = entropy(ID_BYTES), entropy(prg.SEED_BYTES)
    return Checkpoint(
        b"", run, seed, bytes(8 * weights), bytes(8 * columns), floats(np.ones(columns))
    )


def floats(numbers: npt.NDArray[np.float64]) -> bytes:
    """Return numbers as a checkpoint has them."""
    return numbers.astype("<f8").tobytes()


def numbers(data: bytes) -> npt.NDArray[np.float64]:
    """Return a checkpoint's numbers, flat."""
    return np.frombuffer(data, "<f8").astype(np.float64)


def save(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Write a checkpoint; an earlier one stays until this is on the disk.

    Raises:
        ParameterError: It cannot be written.
    """
    body = msgspec.msgpack.encode(checkpoint)
    write_output(Path(path), _MAGIC + hashlib.sha256(body).digest() + body, [])


def load(
    path: str | os.PathLike[str], digest: bytes, weights: int, columns: int
) -> Checkpoint | None:
    """Read a checkpoint; None if there is no file.

    Args:
        path: The file.
        digest: Of the training that goes on.
        weights: How many it has.
        columns: How many columns are scaled.

    Raises:
        ParameterError: The file cannot be read.
        DecodeError: It is no checkpoint, or damaged.
        KeyMismatchError: It is another training's.
    """
    if not Path(path).exists():
        return None
    data = read_bytes(Path(path))
    head = len(_MAGIC)
    body = data[head + 32 :]
    if not data.startswith(_MAGIC) or hashlib.sha256(body).digest() != data[head : head + 32]:
        raise DecodeError(
            f"{path}: is no checkpoint of a training, or damaged; put an untouched copy back, or "
            "name another file to begin anew"
        )
    try:
        found = msgspec.msgpack.decode(body, type=Checkpoint)
    except msgspec.DecodeError as error:
        raise DecodeError(f"{path}: is no checkpoint of this version: {error}") from None
    if found.digest != digest:
        raise KeyMismatchError(
            f"{path}: is the checkpoint of another training: sites, columns, scaling, protocol or "
            "terms differ; give the same as before, or name another file to begin anew"
        )
    sizes = [len(found.weights), len(found.shift), len(found.spread)]
    drawn = [len(found.run), len(found.seed)]
    if sizes != [8 * weights, 8 * columns, 8 * columns] or drawn != [ID_BYTES, prg.SEED_BYTES]:
        raise DecodeError(f"{path}: the checkpoint has not the weights that were agreed on")
    return found


@dataclass(frozen=True, slots=True)
class CheckpointFile:
    """The file of a training that can be resumed, or none.

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
        return load(self.path, self.digest, weights, columns)

    def save(self, state: Checkpoint) -> None:
        """Write the file."""
        if self.path is not None:
            save(self.path, msgspec.structs.replace(state, digest=self.digest))

    @property
    def folder(self) -> Path | None:
        """Folder of the marks, beside the file."""
        return None if self.path is None else Path(f"{os.fspath(self.path)}.rounds")
