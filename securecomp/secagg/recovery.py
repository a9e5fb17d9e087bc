"""Reconstruction of clients' secrets from shares, some of which may be wrong, and their masks."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from securecomp.core.field import Residues
from securecomp.errors import ParameterError, ThresholdError
from securecomp.protocol.identity import exchange
from securecomp.secagg import masking
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
    """Yield the secrets of shares, shape (holders, secrets, limbs); None for an invalid one."""
    flat = rows.reshape(len(holders), -1)
    for residues in shamir.reconstruct([h + 1 for h in holders], flat).reshape(-1, SHARE_LIMBS):
        try:
            yield shamir.to_bytes(residues, SECRET_BYTES)
        except ParameterError:
            yield None


def group_by_holders(
    owners: Sequence[int],
    graph: Sequence[Sequence[int]],
    holders: Collection[int],
    threshold: int,
    names: Sequence[str],
) -> dict[tuple[int, ...], list[int]]:
    """Return the owners of secrets by who holds their shares: equal groups are solved at one go.

    Args:
        owners: Indices of the clients whose secrets are wanted.
        graph: Each client's neighbours, who hold its shares as it does itself.
        holders: The clients that sent shares.
        threshold: How many shares give a secret.
        names: The clients' names, for the error.

    Raises:
        ThresholdError: Too few shares of a secret came back.
    """
    groups: dict[tuple[int, ...], list[int]] = {}
    for owner in owners:
        group = tuple(sorted(v for v in (*graph[owner], owner) if v in holders))
        if len(group) < threshold:
            raise ThresholdError(
                threshold, len(group), f"too few shares of {names[owner]}'s secret came back"
            )
        groups.setdefault(group, []).append(owner)
    return groups


def leftover_masks(
    secrets: Mapping[int, bytes],
    survivors: Collection[int],
    graph: Sequence[Sequence[int]],
    mask_keys: Mapping[int, bytes],
    agreement: bytes,
) -> tuple[list[bytes], list[bytes]]:
    """Return the keys of the masks that are left in the sum: what is added and subtracted.

    Args:
        secrets: Client to the seed of its self-mask if it survived, else to its mask key.
        survivors: Whose vectors are in the sum.
        graph: Each client's neighbours.
        mask_keys: Each client's public mask key.
        agreement: The session's.
    """
    plus: list[bytes] = []
    minus: list[bytes] = []
    for owner, secret in secrets.items():
        if owner in survivors:
            minus.append(masking.self_key(secret, agreement, owner))
            continue
        key = X25519PrivateKey.from_private_bytes(secret)
        for peer in graph[owner]:
            if peer in survivors:
                pair = masking.pair_key(exchange(key, mask_keys[peer]), agreement, owner, peer)
                # The survivor added it if its index is the lower one.
                (minus if peer < owner else plus).append(pair)
    return plus, minus
