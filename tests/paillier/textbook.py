"""Paillier by the book, in Python's integers: what the package is compared with."""

import base64
import hashlib
import json
import math


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
