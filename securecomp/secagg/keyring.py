"""A client's one-time secrets, and what is computed with them.

Dropped piece by piece as they are spent: the seed of the self-mask when the vector is masked, the
held shares when they are answered with, the keys when one of them was revealed.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from securecomp.core import field, prg
from securecomp.core.entropy import Entropy
from securecomp.core.field import Residues
from securecomp.core.secret import Secret
from securecomp.errors import ParameterError, RangeError
from securecomp.protocol.identity import exchange
from securecomp.secagg import masking
from securecomp.sharing import shamir

SECRET_BYTES = 32
SHARE_LIMBS = shamir.limbs(SECRET_BYTES)
BOX_BYTES = 2 * SHARE_LIMBS * 8 + 16
"""Two shares and a tag."""
_NONCE = bytes(12)  # every box has a key of its own


def public_of(secret: bytes) -> bytes:
    """Return the X25519 public key of 32 secret bytes."""
    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


class KeyRing(Secret, msgspec.Struct):
    """A client's secrets in one session and round.

    Attributes:
        cipher_key: X25519 secret for boxes.
        mask_key: X25519 secret for pairwise masks.
        seed: The self-mask's seed.
        roster: Digest of the whole list of keys, where all clients see the same one.
        peers: Index to public cipher and mask key, this client's own included.
        held: Index to this client's shares of that client's seed and mask key.
        survivors: Whom this client signed as survivors.
    """

    cipher_key: bytes = b""
    mask_key: bytes = b""
    seed: bytes = b""
    roster: bytes = b""
    peers: dict[int, tuple[bytes, bytes]] = {}
    held: dict[int, bytes] = {}
    survivors: list[int] = []
    shared: dict[int, bytes] = {}

    def __repr__(self) -> str:
        return f"KeyRing({len(self.peers)} peers)"

    def public(self) -> tuple[bytes, bytes]:
        """Return the public cipher and mask key."""
        return public_of(self.cipher_key), public_of(self.mask_key)

    def deal(
        self, me: int, threshold: int, agreement: bytes, entropy: Entropy
    ) -> tuple[list[int], bytes]:
        """Draw a seed, share it and the mask key, and seal a box for each peer.

        Returns:
            The peers, ascending, and their boxes one after the other.
        """
        self.seed, self.held = entropy(SECRET_BYTES), {}
        if not self.shared:
            secret = X25519PrivateKey.from_private_bytes(self.cipher_key)
            self.shared = {
                peer: exchange(secret, keys[0]) for peer, keys in self.peers.items() if peer != me
            }
        holders = sorted(self.peers)
        both = np.concatenate([shamir.from_bytes(self.seed), shamir.from_bytes(self.mask_key)])
        rows = shamir.split(both, threshold, [i + 1 for i in holders], entropy=entropy)
        boxes = []
        for holder, row in zip(holders, rows, strict=True):
            plain = row.astype("<u8").tobytes()
            if holder == me:
                self.held[me] = plain
            else:
                cipher, transcript = self._box(me, holder, holder, agreement)
                boxes.append(cipher.encrypt(_NONCE, plain, transcript))
        return [i for i in holders if i != me], b"".join(boxes)

    def open(self, me: int, sender: int, sealed: bytes, agreement: bytes) -> bytes:
        """Open a peer's box.

        Raises:
            ParameterError: It was changed on the way, or made for another list of keys.
            RangeError: It does not hold shares.
        """
        cipher, transcript = self._box(sender, me, sender, agreement)
        try:
            plain = cipher.decrypt(_NONCE, sealed, transcript)
        except InvalidTag:
            raise ParameterError(
                "its box was changed on the way, or made for another list of keys"
            ) from None
        try:
            field.check(np.frombuffer(plain, "<u8"))
        except RangeError:
            raise RangeError("its share is not below the modulus") from None
        return plain

    def _box(
        self, sender: int, recipient: int, other: int, agreement: bytes
    ) -> tuple[AESGCM, bytes]:
        """Return a box's cipher and what is authenticated with it: the keys as both saw them."""
        key = prg.derive(self.shared[other], "secagg box", agreement, sender, recipient)
        seen = (self.roster, *self.peers[sender], *self.peers[recipient])
        return AESGCM(key), masking.digest(prg.join("secagg transcript", agreement, *seen))

    def mask_keys(
        self, me: int, peers: Sequence[int], agreement: bytes
    ) -> tuple[list[bytes], list[bytes]]:
        """Return the keys of the masks that are added and subtracted, and forget the seed."""
        secret = X25519PrivateKey.from_private_bytes(self.mask_key)
        plus, minus = [masking.self_key(self.seed, agreement, me)], list[bytes]()
        for peer in peers:
            shared = exchange(secret, self.peers[peer][1])
            pair = masking.pair_key(shared, agreement, me, peer)
            (plus if me < peer else minus).append(pair)
        self.seed = b""
        return plus, minus

    def answer(self, alive: set[int]) -> tuple[list[int], Residues]:
        """Take out one share for each owner: of its seed if it is alive, else of its mask key.

        Returns:
            The owners, ascending, and the shares, shape (owners, SHARE_LIMBS). They are
            forgotten here.
        """
        owners = sorted(self.held)
        shares = np.empty((len(owners), SHARE_LIMBS), np.uint64)
        for row, owner in zip(shares, owners, strict=True):
            both = np.frombuffer(self.held[owner], "<u8")
            row[:] = both[:SHARE_LIMBS] if owner in alive else both[SHARE_LIMBS:]
        self.held = {}
        return owners, shares
