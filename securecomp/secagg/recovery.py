"""Putting secrets together from shares of which some may be wrong."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from securecomp.core.field import Residues
from securecomp.errors import ParameterError
from securecomp.secagg.keyring import SECRET_BYTES, SHARE_LIMBS
from securecomp.sharing import shamir


def recover(
    holders: Sequence[int],
    owners: Sequence[int],
    rows: Residues,
    threshold: int,
    fits: Callable[[int, bytes], bool],
) -> dict[int, bytes]:
    """Return owner to secret, for the owners whose secret comes out of some holders' shares.

    A choice of holders is tried on all the secrets that are still missing: whose shares are wrong
    is found once and not for each secret, also if different secrets have different liars.

    Args:
        holders: Indices of the clients that sent shares, at least `threshold`.
        owners: Indices of the clients whose secrets were shared among them.
        rows: The shares, shape (holders, owners, SHARE_LIMBS).
        threshold: How many shares give a secret.
        fits: Whether these bytes are this owner's secret.
    """
    secrets: dict[int, bytes] = {}
    missing = list(range(len(owners)))
    for chosen in _choices(len(holders), threshold):
        joined = _join([holders[i] for i in chosen], rows[np.ix_(chosen, missing)])
        for place, secret in zip(missing, joined, strict=True):
            if secret is not None and fits(owners[place], secret):
                secrets[owners[place]] = secret
        missing = [place for place in missing if owners[place] not in secrets]
        if not missing:
            break
    return secrets


def _choices(holders: int, threshold: int) -> Iterator[list[int]]:
    """Yield the runs of `threshold` holders in a ring.

    The first few leave out everybody once: one liar costs no more than these. Several liars about
    one secret are left out together if they sit within a stretch of `holders - threshold`.
    """
    spare = holders - threshold
    starts = [*range(0, holders, spare), *range(holders)] if spare else [0]
    for start in dict.fromkeys(starts):
        yield [(start + step) % holders for step in range(threshold)]


def _join(holders: Sequence[int], rows: Residues) -> Iterator[bytes | None]:
    """Yield the secrets of shares, shape (holders, secrets, limbs); None for what is none."""
    flat = rows.reshape(len(holders), -1)
    for residues in shamir.reconstruct([h + 1 for h in holders], flat).reshape(-1, SHARE_LIMBS):
        try:
            yield shamir.to_bytes(residues, SECRET_BYTES)
        except ParameterError:
            yield None
