"""Paillier by the book, in Python's integers: what the package is compared with.

Written from the sources and the documentation of the formats, with hashes and AES alone. Run as a
script, it writes tests/vectors/paillier.json to standard output.
"""

import base64
import hashlib
import hmac
import json
import math
import platform
import struct

import cryptography
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes


def factors(private):
    """p and q of a key, as its file has them."""
    fields = json.loads(private.to_json())
    return tuple(number(fields[name]) for name in ("p", "q"))


def number(text):
    return int.from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), "big")


def text(integer):
    """A number as phe's key files have it."""
    data = integer.to_bytes(-(-integer.bit_length() // 8), "big")
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def encrypt(n, plaintext, r):
    """Paillier 1999, section 4, with g = n + 1."""
    return pow(n + 1, plaintext % n, n * n) * pow(r, n, n * n) % (n * n)


def decrypt(p, q, ciphertext):
    """Paillier 1999, section 4: one power to Carmichael's function; no remainders."""
    n = p * q
    order = math.lcm(p - 1, q - 1)
    plaintext = (pow(ciphertext, order, n * n) - 1) // n * pow(order, -1, n) % n
    return plaintext - n if 2 * plaintext > n else plaintext


def pack(values, slot, slots):
    """Balanced digits, the first value lowest."""
    parts = [values[i : i + slots] for i in range(0, len(values), slots)]
    return [sum(int(v) << (slot * i) for i, v in enumerate(part)) for part in parts]


def unpack(plaintexts, slot, slots, length):
    values = []
    for index, plaintext in enumerate(plaintexts):
        for _ in range(min(slots, length - index * slots)):
            digit = (plaintext + (1 << (slot - 1))) % (1 << slot) - (1 << (slot - 1))
            values.append(digit)
            plaintext = (plaintext - digit) >> slot
        assert plaintext == 0
    return values


def joined(*context):
    """How a context is hashed: each part with its length and type before it."""
    data = b""
    for part in (b"securecomp/1", *context):
        if isinstance(part, int):
            field = b"i" + part.to_bytes(8, "big")
        else:
            field = b"s" + part.encode() if isinstance(part, str) else b"b" + part
        data += len(field).to_bytes(4, "big") + field
    return data


def key_id(n, h_s=None):
    size = -(-(n * n).bit_length() // 8)
    base = b"" if h_s is None else h_s.to_bytes(size, "big")
    return hashlib.sha256(joined("paillier key", n.to_bytes(size, "big"), base)).digest()


def non_residue(a, prime):
    return pow(a, (prime - 1) // 2, prime) == prime - 1


def derive(secret, purpose, *context):
    """HKDF-SHA256 (RFC 5869) to 32 bytes, without a salt."""
    extracted = hmac.digest(bytes(32), secret, "sha256")
    return hmac.digest(extracted, joined(purpose, *context) + b"\x01", "sha256")


def keystream(key, size):
    """AES-256 in counter mode from where GCM with a nonce of zeros begins to encrypt."""
    cipher = Cipher(algorithms.AES(key), modes.CTR(bytes(15) + b"\x02"))
    return cipher.encryptor().update(bytes(size))


def pairwise(secret, agreement, low, high, n, count):
    """The masks that two contributors share: the lower adds them, the higher subtracts them."""
    size = -(-n.bit_length() // 8) + 16
    stream = keystream(derive(secret, "paillier blind", agreement, low, high), size * count)
    return [int.from_bytes(stream[i * size : (i + 1) * size]) for i in range(count)]


def layout(n, bound, additions):
    """Bits of a slot, and slots."""
    slot = max(1, bound.bit_length()) + 1 + math.ceil(math.log2(additions)) + 1
    return slot, (n.bit_length() - 2) // slot


def ciphertexts(n, values, bound, additions, masks):
    """Encryptions of a packed vector; `masks` are encryptions of zero, one a ciphertext."""
    plaintexts = pack(values, *layout(n, bound, additions))
    return [(1 + m * n) * z % (n * n) for m, z in zip(plaintexts, masks, strict=True)]


def vector_bytes(n, h_s, vector, length, bound, additions, weight=1, scale=1):
    """A vector's bytes: the format "SCPV" 1."""
    size = -(-(n * n).bit_length() // 8)

    def counted(integer):
        data = integer.to_bytes(-(-integer.bit_length() // 8))
        return struct.pack(">H", len(data)) + data

    slot, slots = layout(n, bound, additions)
    return b"".join(
        (
            b"SCPV\x01",
            key_id(n, h_s),
            counted(bound),
            struct.pack(">QIIQQ", additions, slot, slots, length, weight),
            counted(scale),
            *(c.to_bytes(size) for c in vector),
        )
    )


def table_bytes(header, vector):
    """A table's bytes: the format "SCPT" 1."""
    text_ = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    return struct.pack(">4sBI", b"SCPT", 1, len(text_)) + text_ + vector


def proof(n, identifier, delta, base, secret, index, c, nonce):
    """A holder's value, challenge and response for one ciphertext."""
    n2 = n * n
    size = -(-n2.bit_length() // 8)
    value = pow(c, 2 * delta * secret, n2)
    numbers = (
        base,
        pow(base, delta * secret, n2),
        c,
        value,
        pow(c, 4 * nonce, n2),
        pow(base, nonce, n2),
    )
    data = joined(
        "paillier partial decryption", identifier, index, *(x.to_bytes(size) for x in numbers)
    )
    challenge = hashlib.sha256(data).digest()
    response = nonce + int.from_bytes(challenge) * delta * secret
    return value.to_bytes(size), challenge, response.to_bytes(-(-response.bit_length() // 8))


# The published vectors. Primes are the first after the first 32 bytes of SHA-256 of a text with
# what a key wants of them, and all other numbers come from such hashes too.


def drawn(name, bits):
    data = b"".join(hashlib.sha256(f"{name} {i}".encode()).digest() for i in range(bits // 256 + 1))
    return int.from_bytes(data) >> (8 * len(data) - bits)


def probable_prime(number):
    return all(pow(a, number - 1, number) == 1 for a in (2, 3, 5, 7, 11, 13))


def prime(name, bits, safe=False):
    candidate = drawn(name, bits) | 3 << (bits - 2) | 3
    while not (probable_prime(candidate) and (not safe or probable_prime(candidate // 2))):
        candidate += 4
    return candidate


def published():
    """Everything that is in tests/vectors/paillier.json but for the note."""
    p, q = prime("p", 256), prime("q", 256)
    n = p * q
    n2 = n * n
    h_s = pow(-(drawn("x", 500) ** 2) % n, n, n2)
    key = {"p": hex(p), "q": hex(q), "h_s": hex(h_s), "id": key_id(n, h_s).hex()}
    encryptions = []
    for bound, additions, scale in ((1000, 100, 1), (2**40 - 1, 1024, 100), (10**25, 3, 1)):
        values = [(-1) ** i * (bound - i * i) for i in range(25)]
        count = -(-25 // layout(n, bound, additions)[1])
        for exponent in ("half", "full"):
            drawn_ = [drawn(f"r {bound} {exponent} {i}", 256) for i in range(count)]
            masks = [pow(h_s, r, n2) if exponent == "half" else pow(r, n, n2) for r in drawn_]
            vector = ciphertexts(n, values, bound, additions, masks)
            encryptions.append(
                {
                    "bound": bound,
                    "additions": additions,
                    "scale": scale,
                    "exponent": exponent,
                    "values": values,
                    "r": [hex(r) for r in drawn_],
                    "file": vector_bytes(n, h_s, vector, 25, bound, additions, 1, scale).hex(),
                }
            )
    frame = {"columns": ["los", "kosten"], "labels": {"station": ["süd"]}, "rows": 1}
    cells = [1250, -75]
    vector = ciphertexts(n, cells, 10**6, 7, [pow(h_s, drawn("table", 256), n2)])
    vector = [pow(c, 3, n2) for c in vector]  # three tables, as it were
    table = table_bytes(frame, vector_bytes(n, h_s, vector, 2, 10**6, 7, 3, 100))
    blind = [
        {
            "secret": drawn(f"secret {low}{high}", 256).to_bytes(32).hex(),
            "agreement": drawn("agreement", 256).to_bytes(32).hex(),
            "pair": [low, high],
            "masks": [
                hex(m % n)
                for m in pairwise(
                    drawn(f"secret {low}{high}", 256).to_bytes(32),
                    drawn("agreement", 256).to_bytes(32),
                    low,
                    high,
                    n,
                    2,
                )
            ],
        }
        for low, high in ((0, 1), (0, 2), (1, 2))
    ]
    return {
        "key": key,
        "encryptions": encryptions,
        "table": {
            "frame": frame,
            "values": [3 * c for c in cells],
            "weight": 3,
            "scale": 100,
            "file": table.hex(),
        },
        "blind": blind,
        "threshold": dealt(),
    }


def dealt():
    """Damgård and Jurik 2001, section 4.1, with s = 1: a dealer, 2 of 3, and what they send."""
    p, q = prime("safe p", 128, safe=True), prime("safe q", 128, safe=True)
    n, order = p * q, p // 2 * (q // 2)
    n2 = n * n
    h_s = pow(-(drawn("safe x", 200) ** 2) % n, n, n2)
    polynomial = [order * pow(order, -1, n), drawn("slope", 512) % (n * order)]
    base = pow(drawn("v", 500), 2, n2)
    secrets = [sum(c * i**k for k, c in enumerate(polynomial)) % (n * order) for i in (1, 2, 3)]
    values = [5, -3, 0, 9]
    masks = [pow(h_s, drawn("safe r", 128), n2)]
    (c,) = ciphertexts(n, values, 9, 4, masks)
    partials = [
        proof(n, key_id(n, h_s), 6, base, secret, i + 1, c, drawn(f"nonce {i}", 800))
        for i, secret in enumerate(secrets)
    ]
    return {
        "n": hex(n),
        "h_s": hex(h_s),
        "threshold": 2,
        "base": hex(base),
        "verification": [hex(pow(base, 6 * secret, n2)) for secret in secrets],
        "secrets": [hex(secret) for secret in secrets],
        "values": values,
        "vector": vector_bytes(n, h_s, [c], 4, 9, 4).hex(),
        "nonces": [hex(drawn(f"nonce {i}", 800)) for i in range(3)],
        "partials": [[part.hex() for part in partial] for partial in partials],
    }


NOTE = (
    "Made by tests/paillier/textbook.py, which is written from the documentation and the "
    "sources (Paillier 1999; Damgård, Jurik, Nielsen 2010; Damgård, Jurik 2001) in Python ints "
    "with hashlib, hmac and AES-CTR alone and uses nothing of the package; Python {}, "
    "cryptography {}. Numbers in hexadecimal, files too. 'r' of exponent half is what h_s is "
    "raised to, of exponent full what is raised to n. 'table' is three times the encrypted "
    "vector. 'masks' are those that two contributors share, modulo n. 'threshold' has three "
    "holders, all their secrets, and each one's value, challenge and response for the one "
    "ciphertext of the vector, with the nonces."
)

if __name__ == "__main__":
    note = NOTE.format(platform.python_version(), cryptography.__version__)
    print(json.dumps({"note": note} | published(), indent=1, ensure_ascii=False))
