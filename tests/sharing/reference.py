"""The private sum written a second time, from the words of the documentation alone.

Python ints and bytes only; of the package it uses nothing. It is slow and checks nothing: it says
what bytes an honest run must produce from given randomness.
"""

import hashlib
import hmac
import struct

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

P = 2**61 - 1
BLOCK = 32768
DEAL, PARTIAL = 1, 2


def msgpack(value):
    """MessagePack's shortest form, of text, bytes, small numbers and lists."""
    if isinstance(value, int):
        if value < 128:
            return bytes([value])
        return b"\xcc" + bytes([value]) if value < 256 else b"\xcd" + struct.pack(">H", value)
    if isinstance(value, bytes):
        return b"\xc4" + bytes([len(value)]) + value
    if isinstance(value, str):
        text = value.encode()
        return (
            bytes([0xA0 | len(text)]) if len(text) < 32 else b"\xd9" + bytes([len(text)])
        ) + text
    return bytes([0x90 | len(value)]) + b"".join(map(msgpack, value))


def join(*context):
    """A context as bytes: after the version, each part with its length and its type."""
    whole = b""
    for part in (b"securecomp/1", *context):
        if isinstance(part, int):
            part = b"i" + struct.pack(">Q", part)
        else:
            part = b"s" + part.encode() if isinstance(part, str) else b"b" + part
        whole += struct.pack(">I", len(part)) + part
    return whole


def derive(secret, purpose, *context, salt=b""):
    """HKDF-SHA256 (RFC 5869) to one block of output."""
    key = hmac.digest(salt or bytes(32), secret, "sha256")
    return hmac.digest(key, join(purpose, *context) + b"\x01", "sha256")


def mask(key, length):
    """The residues that a derived key stands for. (A rejected word has probability 2^-61.)"""
    residues = []
    for block in range(-(-length // BLOCK)):
        count = min(BLOCK, length - block * BLOCK)
        start = struct.pack(">IQI", 0, block, 2)
        stream = Cipher(algorithms.AES(key), modes.CTR(start)).encryptor().update(bytes(8 * count))
        residues += [word & P for word in struct.unpack(f"<{count}Q", stream)]
    assert P not in residues
    return residues


def body(facts, residues=()):
    packed = msgpack(facts)
    packed = struct.pack("<I", len(packed)) + packed
    packed += bytes(-len(packed) % 8)
    if not residues:
        return packed
    bits = "".join(f"{r:061b}" for r in reversed(residues))
    return packed + int(bits, 2).to_bytes(-(-len(bits) // 64) * 8, "little")


def pair(secret):
    """A party's sealing key, and its public key: that of sealing, then that of signing."""
    seals = X25519PrivateKey.from_private_bytes(derive(secret, "identity x25519"))
    signs = Ed25519PrivateKey.from_private_bytes(derive(secret, "identity ed25519"))
    return seals, seals.public_key().public_bytes_raw() + signs.public_key().public_bytes_raw()


class Run:
    """One private sum: every message of it, in the order in which they are made."""

    def __init__(self, inputs, servers, receivers, bound, entropy):
        """Draw keys and a session id, then do both rounds."""
        contributors = tuple(inputs)
        names = dict.fromkeys((*contributors, *servers, *receivers))
        self.entropy = entropy
        self.secrets, self.keys = {}, {}
        for name in names:
            self.secrets[name], self.keys[name] = pair(entropy(32))
        self.id = entropy(16)
        length = len(next(iter(inputs.values())))
        facts = ["sharing/sum/1", self.id, 0, contributors, servers, receivers]
        facts += [sorted(self.keys.items()), length, str(bound), (), str((P - 1) // 2), []]
        self.agreement = hashlib.sha256(msgpack(facts)).digest()
        self.messages = []
        dealings = []
        sums = {server: [0] * length for server in servers}
        for place, (sender, values) in enumerate(inputs.items()):
            own = sender if sender in servers else servers[place % len(servers)]
            seeds = {server: entropy(32) for server in servers if server != own}
            dealing = entropy(16)
            dealings.append(dealing)
            rest = [v % P for v in values]
            for server, seed in seeds.items():
                share = mask(derive(seed, "additive share", self.agreement, sender, server), length)
                rest = [(a - b) % P for a, b in zip(rest, share, strict=True)]
                sums[server] = [(a + b) % P for a, b in zip(sums[server], share, strict=True)]
            sums[own] = [(a + b) % P for a, b in zip(sums[own], rest, strict=True)]
            sealed = {
                s: self.seal(DEAL, sender, s, body([dealing, seed])) for s, seed in seeds.items()
            }
            sealed[own] = self.seal(DEAL, sender, own, body([dealing, [61, length]], rest))
            self.messages += [(sender, server, sealed[server]) for server in servers]
        marks = hashlib.sha256(join("dealings", *dealings)).digest()
        for server in servers:
            for receiver in receivers:
                data = self.seal(
                    PARTIAL, server, receiver, body([marks, [61, length]], sums[server])
                )
                self.messages.append((server, receiver, data))
        self.total = [
            (r + (P - 1) // 2) % P - (P - 1) // 2
            for r in map(sum, zip(*sums.values(), strict=True))
        ]

    def seal(self, kind, sender, recipient, plain):
        salt = self.entropy(32)
        head = b"SCMP" + struct.pack(">BB16sI32s", 1, kind, self.id, 0, self.agreement)
        for name in (sender, recipient):
            head += bytes([len(name.encode())]) + name.encode()
        head += struct.pack(">Q", 32 + len(plain) + 16) + salt
        peer = X25519PublicKey.from_public_bytes(self.keys[recipient][:32])
        shared = self.secrets[sender].exchange(peer)
        context = (self.agreement, kind, sender, recipient)
        key = derive(shared, "sealed message", *context, salt=salt)
        return head + AESGCM(key).encrypt(bytes(12), plain, head)

    def digest(self):
        """SHA-256 over all messages, each after its length in 8 bytes."""
        whole = hashlib.sha256()
        for _, _, data in self.messages:
            whole.update(struct.pack(">Q", len(data)) + data)
        return whole.hexdigest()
