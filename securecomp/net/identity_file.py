"""Files of long-term keys."""

import base64
import stat
from pathlib import Path

from securecomp.errors import ParameterError
from securecomp.protocol import storage
from securecomp.protocol.identity import SECRET_BYTES, Identity

_MAGIC = "securecomp-identity-1"


def create(path: Path) -> Identity:
    """Draw an identity and write it to a new file that only this user can read.

    Raises:
        ParameterError: The file exists, or cannot be written.
    """
    identity = Identity.generate()
    secret = base64.b64encode(identity.export()).decode()
    storage.write_new(path, f"{_MAGIC}\n{secret}", 0o600)
    return identity


def read(path: Path) -> Identity:
    """Read an identity.

    Raises:
        ParameterError: Not such a file, or others can read it.
    """
    text = storage.read_text(path)
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise ParameterError(f"{path}: other users can read this key; run: chmod 600 {path}")
    magic, _, secret = text.strip().partition("\n")
    try:
        raw = base64.b64decode(secret, validate=True)
    except ValueError:
        raw = b""
    if magic != _MAGIC or len(raw) != SECRET_BYTES:
        raise ParameterError(f"{path}: not an identity; securecomp identity new writes one")
    return Identity(raw)
