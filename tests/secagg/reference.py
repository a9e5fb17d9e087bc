"""Secure aggregation written a second time, from the papers and the documentation alone.

Python ints and bytes only; of the package it uses nothing. It is slow and checks nothing: it says
what bytes an honest run must produce from given randomness. `python -m secagg.reference` (in the
folder of the tests) writes `vectors/secagg.json` anew.
"""

import hashlib
import json
import platform
import struct
from importlib.metadata import version
from pathlib import Path

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sharing.reference import BLOCK, P, derive, join, mask, pair

VECTORS = Path(__file__).parents[1] / "vectors" / "secagg.json"
KINDS = {
    "advertise": 16,
    "keys": 17,
    "share": 18,
    "boxes": 19,
    "mask": 20,
    "survivors": 21,
    "consent": 22,
    "consents": 23,
    "unmask": 24,
    "total": 25,
}
LIMIT = 2**62 - 1


def stream(seed):
    """Draw i of n bytes is the first n bytes of SHAKE-256 of "seed/i"."""
    draws = iter(range(10**9))
    return lambda size: hashlib.shake_256(f"{seed}/{next(draws)}".encode()).digest(size)


def sha256(*context):
    return hashlib.sha256(join(*context)).digest()


def lanes(key, length, width):
    """Words of 32 or 64 bits: the keystream of blocks of 32768 elements, counter from 2."""
    out = []
    for block in range(-(-length // BLOCK)):
        count = min(BLOCK, length - block * BLOCK)
        start = struct.pack(">IQI", 0, block, 2)
        cipher = Cipher(algorithms.AES(key), modes.CTR(start)).encryptor()
        stream_ = cipher.update(bytes(count * width // 8))
        out += struct.unpack(f"<{count}{'I' if width == 32 else 'Q'}", stream_)
    return out


def body(facts, residues=None, bits=61):
    """MessagePack after its length, zeros to 8 bytes, then a string of bits in words of 64."""
    packed = msgspec.msgpack.encode(facts)
    packed = struct.pack("<I", len(packed)) + packed
    packed += bytes(-len(packed) % 8)
    if not residues:
        return packed
    text = "".join(f"{r:0{bits}b}" for r in reversed(residues))
    return packed + int(text, 2).to_bytes(-(-len(text) // 64) * 8, "little")


def limbs(secret):
    """32 bytes as five numbers of seven bytes."""
    return [int.from_bytes(secret[i : i + 7], "little") for i in range(0, 32, 7)]


def public(secret):
    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def shared(secret, key):
    return X25519PrivateKey.from_private_bytes(secret).exchange(
        X25519PublicKey.from_public_bytes(key)
    )


def graph(clients, degree, session_id, names):
    if degree == clients - 1:
        return [[v for v in range(clients) if v != u] for u in range(clients)]
    ranks = mask(derive(sha256("secagg graph", session_id, *names), "secagg graph"), clients)
    ring = sorted(range(clients), key=ranks.__getitem__)
    near = [[]] * clients
    for place, client in enumerate(ring):
        steps = [s for s in range(-(degree // 2), degree // 2 + 1) if s]
        near[client] = sorted(ring[(place + s) % clients] for s in steps)
    return near


class Run:
    """One aggregation: every message of it, in the order in which they are made."""

    def __init__(self, case):
        """Do all the steps; `case` is as in the file of vectors."""
        self.case = case
        n = case["clients"]
        self.names = [f"c{i}" for i in range(n)]
        self.terms = case["terms"]
        parties = dict.fromkeys([*self.names, "server", *case["receivers"]])
        self.secrets, self.keys = {}, {}
        for name in parties:
            secret = stream(f"identity of {name}")(32)
            self.secrets[name], self.keys[name] = pair(secret)
            self.secrets[name, "signs"] = Ed25519PrivateKey.from_private_bytes(
                derive(secret, "identity ed25519")
            )
        self.draw = {name: stream(f"{case['seed']}/{name}") for name in [*self.names, "server"]}
        self.id = stream(f"{case['seed']}/session")(16)
        facts = ["masking/sum/1", self.id, 0, self.names, ["server"], case["receivers"]]
        facts += [sorted(self.keys.items()), case["length"], str(case["bound"]), [], str(LIMIT)]
        facts += [sorted(self.terms.items())]
        self.agreement = hashlib.sha256(msgspec.msgpack.encode(facts)).digest()
        self.messages = []
        self.near = graph(n, self.terms["degree"], self.id, self.names)
        self.run({step: set(names) for step, names in case["drops"].items()})

    def there(self, drops, step, among):
        return [i for i in among if self.names[i] not in drops.get(step, ())]

    def run(self, drops):
        active = self.terms["active"]
        agreement, names = self.agreement, self.names
        ring, commitments, boxes = {}, {}, {}

        clients = self.there(drops, "advertise", range(len(names)))
        advertised = {}
        for i in clients:
            cipher, masks = self.draw[names[i]](32), self.draw[names[i]](32)
            ring[i] = cipher, masks
            keys = public(cipher), public(masks)
            signature = b""
            if active:
                statement = join("signature", "secagg keys", agreement, names[i], *keys)
                signature = self.secrets[names[i], "signs"].sign(statement)
            advertised[i] = [*keys, signature]
            self.seal("advertise", names[i], "server", body(advertised[i]))
        lists = {i: sorted(j for j in (*self.near[i], i) if j in advertised) for i in clients}
        for i in clients:
            self.seal(
                "keys", "server", names[i], body([lists[i], [advertised[j] for j in lists[i]]])
            )

        complete = self.terms["degree"] == len(names) - 1
        seen = [part for i in clients for part in (i, *advertised[i][:2])]
        roster = sha256("secagg keys", *seen) if complete else b""
        clients, held, seeds = self.there(drops, "share", clients), {}, {}
        for i in clients:
            seeds[i], polynomial = self.draw[names[i]](32), self.draw[names[i]](32)
            rows = self.split(limbs(seeds[i]) + limbs(ring[i][1]), polynomial, lists[i])
            for j in lists[i]:
                held[i, j] = rows[j]
                if j == i:
                    continue
                key = derive(shared(ring[i][0], advertised[j][0]), "secagg box", agreement, i, j)
                transcript = sha256(
                    "secagg transcript", agreement, roster, *advertised[i][:2], *advertised[j][:2]
                )
                plain = struct.pack("<10Q", *rows[j])
                boxes[i, j] = AESGCM(key).encrypt(bytes(12), plain, transcript)
            peers = [j for j in lists[i] if j != i]
            commitments[i] = sha256("secagg commitment", agreement, i, seeds[i])
            together = b"".join(boxes[i, j] for j in peers)
            self.seal("share", names[i], "server", body([commitments[i], peers, together]))
        senders = {i: [j for j in self.near[i] if j in seeds] for i in clients}
        for i in clients:
            together = b"".join(boxes[j, i] for j in senders[i])
            self.seal("boxes", "server", names[i], body([senders[i], together]))

        bits, width = self.terms["bits"], 32 if self.terms["bits"] <= 32 else 64
        length = self.case["length"] + bool(self.terms["max_weight"])
        survivors = self.there(drops, "mask", clients)
        for i in survivors:
            vector = self.input(i)
            masks = [(1, derive(seeds[i], "secagg self mask", agreement, i))]
            for j in senders[i]:
                pairwise = shared(ring[i][1], advertised[j][1])
                key = derive(pairwise, "secagg pair mask", agreement, min(i, j), max(i, j))
                masks.append((1 if i < j else -1, key))
            for sign, key in masks:
                words = lanes(key, length, width)
                vector = [v + sign * w for v, w in zip(vector, words, strict=True)]
            residues = [v % 2**bits for v in vector]
            self.seal("mask", names[i], "server", body([[bits, length]], residues, bits))
        for i in survivors:
            self.seal("survivors", "server", names[i], body([survivors]))

        last = survivors
        if active:
            last = self.there(drops, "consent", survivors)
            listed = struct.pack(f"<{len(survivors)}I", *survivors)
            statement = join("signature", "secagg survivors", agreement, listed, b"")
            signatures = [self.secrets[names[i], "signs"].sign(statement) for i in last]
            for i, signature in zip(last, signatures, strict=True):
                self.seal("consent", names[i], "server", body([signature]))
            for i in last:
                self.seal("consents", "server", names[i], body([last, signatures]))

        for i in self.there(drops, "unmask", last):
            owners = sorted({i, *senders[i]})
            shares = [held[o, i][:5] if o in survivors else held[o, i][5:] for o in owners]
            flat = [word for share in shares for word in share]
            self.seal("unmask", names[i], "server", body([owners, [61, len(flat)]], flat))
        columns = zip(*(self.input(i) for i in survivors), strict=True)
        self.total = [sum(column) for column in columns] if length else []
        residues = [v % 2**bits for v in self.total]
        for name in self.case["receivers"]:
            self.seal("total", "server", name, body([survivors, [bits, length]], residues, bits))
        self.survivors = [names[i] for i in survivors]

    def input(self, i):
        """Element k of client i, spread over [-bound, bound]; its weight comes last."""
        span = 2 * self.case["bound"] + 1
        values = [
            ((i + 1) * 7919 * (k + 1) ** 3) % span - self.case["bound"]
            for k in range(self.case["length"])
        ]
        if not self.terms["max_weight"]:
            return values
        weight = i % (self.terms["max_weight"] + 1)
        return [weight * v for v in values] + [weight]

    def split(self, secrets, seed, holders):
        """A polynomial for each secret; party i gets its value at i + 1."""
        threshold, count = self.terms["threshold"], len(secrets)
        drawn = mask(derive(seed, "shamir coefficients"), (threshold - 1) * count)
        polynomials = [[secret, *drawn[m::count]] for m, secret in enumerate(secrets)]
        rows = {}
        for i in holders:
            rows[i] = [
                sum(a * (i + 1) ** j for j, a in enumerate(polynomial)) % P
                for polynomial in polynomials
            ]
        return rows

    def seal(self, step, sender, recipient, plain):
        kind, salt = KINDS[step], self.draw[sender](32)
        head = b"SCMP" + struct.pack(">BB16sI32s", 1, kind, self.id, 0, self.agreement)
        for name in (sender, recipient):
            head += bytes([len(name)]) + name.encode()
        head += struct.pack(">Q", 32 + len(plain) + 16) + salt
        secret = self.secrets[sender].exchange(
            X25519PublicKey.from_public_bytes(self.keys[recipient][:32])
        )
        context = (self.agreement, kind, sender, recipient)
        key = derive(secret, "sealed message", *context, salt=salt)
        self.messages.append((step, head + AESGCM(key).encrypt(bytes(12), plain, head)))

    def digest(self):
        """SHA-256 over all messages, each after its length in 8 bytes."""
        whole = hashlib.sha256()
        for _, data in self.messages:
            whole.update(struct.pack(">Q", len(data)) + data)
        return whole.hexdigest()


def case(name, clients, length, bound, terms, drops=None, receivers=("server",)):
    full = {"clients": clients, "degree": clients - 1, "max_weight": 0, "active": 0}
    return {
        "name": name,
        "seed": f"securecomp/secagg/{name}",
        "clients": clients,
        "length": length,
        "bound": bound,
        "receivers": list(receivers),
        "terms": full | {"corrupt": 0, "dropout": 0} | terms,
        "drops": drops or {},
    }


CASES = [
    case("three clients", 3, 5, 1000, {"threshold": 2, "minimum": 3, "bits": 13}),
    case("nothing to add", 3, 0, 1000, {"threshold": 2, "minimum": 3, "bits": 13}),
    case("whole words", 3, 65, 715827882, {"threshold": 2, "minimum": 3, "bits": 32}),
    case("two blocks", 3, 32770, 1 << 40, {"threshold": 2, "minimum": 3, "bits": 43}),
    case(
        "dropouts at every step",
        7,
        9,
        1000,
        {"threshold": 4, "minimum": 4, "bits": 14},
        {"advertise": ["c6"], "share": ["c0"], "mask": ["c3"], "unmask": []},
        ("c1", "server", "registry"),
    ),
    case(
        "active and weighted",
        7,
        9,
        1000,
        {"threshold": 5, "minimum": 5, "bits": 20, "max_weight": 50, "active": 1},
        {"share": ["c2"], "mask": ["c4"]},
    ),
    case(
        "a sparse graph",
        12,
        6,
        1000,
        {"degree": 8, "threshold": 4, "minimum": 9, "bits": 15, "corrupt": 330, "dropout": 250},
        {"share": ["c5"], "mask": ["c9", "c10"], "unmask": ["c1"]},
    ),
]


def vectors():
    cases = []
    for facts in CASES:
        run = Run(facts)
        shortest = min((data for _, data in run.messages), key=len)
        cases.append(
            facts
            | {
                "agreement": run.agreement.hex(),
                "survivors": run.survivors,
                "messages": len(run.messages),
                "sha256": run.digest(),
                "shortest_message": shortest.hex(),
            }
        )
    note = (
        "Made by tests/secagg/reference.py, which is written from Bonawitz et al. 2017, Bell et "
        "al. 2020 and the documentation with Python ints, hmac, X25519, Ed25519, AES-CTR, AES-GCM "
        "and MessagePack alone and uses nothing of the package; "
        f"Python {platform.python_version()}, cryptography {version('cryptography')}, "
        f"msgspec {version('msgspec')}. Randomness: draw i (from 0) of n bytes is the first n "
        "bytes of SHAKE-256 of the text '<stream>/<i>'; a party's identity is the first draw of "
        "'identity of <name>', the session id that of '<seed>/session', and every party draws "
        "from '<seed>/<name>': a client its cipher key, its mask key and a salt; the seed of its "
        "self-mask, that of its polynomials and a salt; then, as the server, a salt a message. "
        "Element k of client i (both from 0) is (i + 1) 7919 (k + 1)^3 mod (2 bound + 1) - bound, "
        "its weight i mod (max_weight + 1). 'drops' names who stops before a step. 'sha256' is "
        "over all messages, step by step, the clients' in their order before the server's, each "
        "after its length in 8 bytes, big-endian."
    )
    return {"note": note, "cases": cases}


if __name__ == "__main__":
    VECTORS.write_text(json.dumps(vectors(), indent=1, ensure_ascii=False) + "\n", "utf-8")
