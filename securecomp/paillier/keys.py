"""Paillier keys: generation, validation, and the forms in which they travel.

n = p q; a plaintext m in Z_n encrypts to (1 + m n) r^n mod n^2. The public key may carry
h_s = (-x^2)^n mod n^2, with which encryption raises a fixed base to a short exponent. Whoever
encrypts under an h_s must have it from the key holder: a foreign one can make its ciphertexts
traceable. `PublicKey.id` binds both.

Sources: Paillier, EUROCRYPT 1999; Damgård, Jurik, Nielsen, Int. J. Inf. Secur. 9 (2010), section
4.2 (h_s, exponents of half the length); NIST SP 800-57 (2048 bits for 112, 3072 for 128 bits).
"""

import base64
import binascii
import hashlib
import json
from functools import cached_property
from typing import Any, ClassVar

import gmpy2
from gmpy2 import mpz

from securecomp.core import checks, prg
from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.core.secret import Secret
from securecomp.errors import DecodeError, ParameterError
from securecomp.paillier.fixed_base import PowerTables

DEFAULT_BITS = 3072
LEAST_BITS = 2048
MOST_BITS = 16384
_FERMAT_STEPS = 64
_PRIME_ROUNDS = 40


class PublicKey:
    """A key to encrypt and add under.

    Attributes:
        n: The modulus.
        h_s: The base of fast encryption, None if the key holder gave none.
        holders: Number of key holders: the private key has one.
        threshold: How many of them decrypt together.
    """

    holders: ClassVar[int] = 1
    threshold: ClassVar[int] = 1

    def __init__(self, n: int, h_s: int | None = None, *, insecure_for_tests: bool = False) -> None:
        """Check and take a public key.

        Raises:
            ParameterError: Not the modulus of a key, too short, or h_s out of range.
        """
        checks.truth(insecure_for_tests, "insecure_for_tests")
        self.n = _whole(n, "a modulus")
        if self.n < 0:
            raise ParameterError("a modulus is positive")
        self.n2 = self.n * self.n
        self.h_s = None if h_s is None else _whole(h_s, "h_s")
        self._check(insecure_for_tests)

    def _check(self, insecure_for_tests: bool) -> None:
        check_bits(self.bits, insecure_for_tests)
        if self.n % 2 == 0 or gmpy2.is_prime(self.n, 5):
            raise ParameterError("not a Paillier modulus: it is even or prime")
        if gmpy2.is_power(self.n) or _factors_too_close(self.n):
            raise ParameterError("an unsafe modulus: its factors are equal or too close")
        if self.h_s is not None and not (
            1 < self.h_s < self.n2
            and gmpy2.gcd(self.h_s, self.n) == 1
            # The powers of 1 + k n and of -1 hide nothing.
            and self.h_s % self.n not in (1, self.n - 1)
        ):
            raise ParameterError("h_s is not an element of the group; get it from the key holder")

    @property
    def public(self) -> "PublicKey":
        """This key, as a threshold key's `public` is the key to encrypt under."""
        return self

    @property
    def bits(self) -> int:
        """The modulus's length."""
        return int(self.n.bit_length())

    @property
    def ciphertext_bytes(self) -> int:
        """Bytes of one ciphertext."""
        return int((self.n2.bit_length() + 7) // 8)

    @cached_property
    def id(self) -> bytes:
        """SHA-256 over n and h_s: what agreements and ciphertext files name."""
        size = self.ciphertext_bytes
        h_s = b"" if self.h_s is None else int(self.h_s).to_bytes(size, "big")
        return hashlib.sha256(
            prg.join("paillier key", int(self.n).to_bytes(size, "big"), h_s)
        ).digest()

    @property
    def kid(self) -> str:
        """The id as key files show it."""
        return f"securecomp {self.id.hex()[:16]}"

    def check_ciphertexts(self, ciphertexts: list[Any], where: str = "ciphertexts") -> None:
        """Refuse what no encryption under this key can be.

        Raises:
            DecodeError: One is not in [1, n^2) or shares a factor with n; the message says which.
        """
        product = mpz(1)
        for index, ciphertext in enumerate(ciphertexts):
            if not 0 < ciphertext < self.n2:
                raise DecodeError(f"{where}: number {index + 1} is not in [1, n^2)")
            product = product * ciphertext % self.n
        if gmpy2.gcd(product, self.n) != 1:
            bad = next(i for i, c in enumerate(ciphertexts) if gmpy2.gcd(c, self.n) != 1)
            raise DecodeError(f"{where}: number {bad + 1} shares a factor with the modulus")

    def to_json(self) -> str:
        """Return the key in the form of phe's `pheutil`, h_s in a field of its own."""
        fields = {
            "kty": "DAJ",
            "alg": "PAI-GN1",
            "key_ops": ["encrypt"],
            "n": _to_base64(self.n),
            "kid": self.kid,
        }
        if self.h_s is not None:
            fields["securecomp_h_s"] = _to_base64(self.h_s)
        return json.dumps(fields)

    @classmethod
    def from_json(cls, text: str, *, insecure_for_tests: bool = False) -> "PublicKey":
        """Read `to_json`'s output or a public key file of `pheutil`.

        Raises:
            DecodeError: Not such a file.
            ParameterError: An unsafe key.
        """
        return cls._from_fields(_parse(text), insecure_for_tests)

    @classmethod
    def _from_fields(cls, fields: dict[str, Any], insecure: bool) -> "PublicKey":
        if fields.get("kty") != "DAJ" or fields.get("alg") != "PAI-GN1":
            raise DecodeError("not a Paillier public key file (kty DAJ, alg PAI-GN1)")
        h_s = fields.get("securecomp_h_s")
        key = cls(
            _from_base64(fields, "n"),
            None if h_s is None else _from_base64(fields, "securecomp_h_s"),
            insecure_for_tests=insecure,
        )
        stated = fields.get("kid")
        if isinstance(stated, str) and stated.startswith("securecomp ") and stated != key.kid:
            raise DecodeError("the file shows the id of another key; get it from the key holder")
        return key

    @classmethod
    def from_phe(cls, key: Any, *, insecure_for_tests: bool = False) -> "PublicKey":
        """Take a `phe.PaillierPublicKey`."""
        return cls(key.n, insecure_for_tests=insecure_for_tests)

    def to_phe(self) -> Any:
        """Return a `phe.PaillierPublicKey`."""
        from phe import PaillierPublicKey

        return PaillierPublicKey(int(self.n))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PublicKey) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"PublicKey({self.bits} bits, id {self.id.hex()[:16]})"


class PrivateKey(Secret):
    """The factors of n, which decrypt everything.

    Attributes:
        public: The public key.
        tables: Powers modulo p^2 and q^2. They are secret, and go with the key.
    """

    def __init__(
        self, p: int, q: int, h_s: int | None = None, *, insecure_for_tests: bool = False
    ) -> None:
        """Check and take the factors.

        Raises:
            ParameterError: Not two distinct primes of equal length that make a safe modulus.
        """
        checks.truth(insecure_for_tests, "insecure_for_tests")
        p, q = sorted(_whole(factor, "a factor of the private key") for factor in (p, q))
        if p < 3 or not (gmpy2.is_prime(p, _PRIME_ROUNDS) and gmpy2.is_prime(q, _PRIME_ROUNDS)):
            raise ParameterError("a factor of the private key is not an odd prime")
        if p == q or p.bit_length() != q.bit_length():
            raise ParameterError("the factors of the private key are equal or of other lengths")
        if (q - p).bit_length() < p.bit_length() - 100 and not insecure_for_tests:
            raise ParameterError("the factors of the private key are too close to each other")
        if gmpy2.gcd(p * q, (p - 1) * (q - 1)) != 1:
            raise ParameterError("the factors of the private key do not make a Paillier modulus")
        self.public = PublicKey(p * q, h_s, insecure_for_tests=insecure_for_tests)
        self.tables = PowerTables(2)
        self._p, self._q = p, q
        self._p2, self._q2 = p * p, q * q
        self._q2_inverse = gmpy2.invert(self._q2, self._p2)
        self._q_inverse = gmpy2.invert(q, p)
        self._hp = gmpy2.invert(self._log(self.public.n + 1, p, self._p2), p)
        self._hq = gmpy2.invert(self._log(self.public.n + 1, q, self._q2), q)

    @classmethod
    def generate(
        cls,
        bits: int = DEFAULT_BITS,
        *,
        insecure_for_tests: bool = False,
        entropy: Entropy = entropy_.system,
    ) -> "PrivateKey":
        """Draw a key: p = q = 3 mod 4, gcd(p - 1, q - 1) = 2, and an h_s.

        Args:
            bits: Length of n: even, at least 2048.
            insecure_for_tests: Allow less.
            entropy: Source of the primes.

        Raises:
            ParameterError: An odd or impossible length.
        """
        check_bits(bits, insecure_for_tests)
        while True:
            p, q = (random_prime(bits // 2, entropy) for _ in range(2))
            close = (q - p).bit_length() < bits // 2 - 100
            if p != q and gmpy2.gcd(p - 1, q - 1) == 2 and (insecure_for_tests or not close):
                break
        return cls(p, q, draw_base(p * q, entropy), insecure_for_tests=insecure_for_tests)

    def raw_decrypt(self, ciphertext: Any) -> Any:
        """Return the plaintext in [0, n) of a ciphertext that was checked."""
        mp = self._log(ciphertext, self._p, self._p2) * self._hp % self._p
        mq = self._log(ciphertext, self._q, self._q2) * self._hq % self._q
        return mq + self._q * ((mp - mq) * self._q_inverse % self._p)

    @staticmethod
    def _log(ciphertext: Any, prime: Any, square: Any) -> Any:
        # The exponent is secret; powmod_sec takes the same time for all of one length.
        power = gmpy2.powmod_sec(ciphertext % square, prime - 1, square)
        return (power - 1) // prime

    def power_n(self, base: Any) -> Any:
        """Return base^n mod n^2, by the Chinese remainder theorem."""
        n = self.public.n
        a = gmpy2.powmod_sec(base % self._p2, n % (self._p * (self._p - 1)), self._p2)
        b = gmpy2.powmod_sec(base % self._q2, n % (self._q * (self._q - 1)), self._q2)
        return b + self._q2 * ((a - b) * self._q2_inverse % self._p2)

    def squares(self) -> tuple[Any, Any, Any]:
        """Return p^2, q^2 and 1/q^2 mod p^2, for arithmetic by remainders."""
        return self._p2, self._q2, self._q2_inverse

    def to_json(self) -> str:
        """Return the key in the form of `pheutil`. Keep the file secret, mode 0600."""
        return json.dumps(
            {
                "kty": "DAJ",
                "key_ops": ["decrypt"],
                "p": _to_base64(self._p),
                "q": _to_base64(self._q),
                "pub": json.loads(self.public.to_json()),
                "kid": self.public.kid,
            }
        )

    @classmethod
    def from_json(cls, text: str, *, insecure_for_tests: bool = False) -> "PrivateKey":
        """Read `to_json`'s output or a private key file of `pheutil`.

        Raises:
            DecodeError: Not such a file, or its public part is not of this key.
            ParameterError: An unsafe key.
        """
        fields = _parse(text)
        if fields.get("kty") != "DAJ" or fields.get("key_ops") != ["decrypt"]:
            raise DecodeError("not a Paillier private key file (kty DAJ, key_ops decrypt)")
        public = fields.get("pub")
        if not isinstance(public, dict):
            raise DecodeError("the private key file has no public part")
        stated = PublicKey._from_fields(public, insecure_for_tests)
        p, q = _from_base64(fields, "p"), _from_base64(fields, "q")
        if stated.n != p * q:
            raise DecodeError("the file's p and q do not multiply to its n")
        h_s = None if stated.h_s is None else int(stated.h_s)
        if str(fields.get("kid")).startswith("securecomp ") and fields["kid"] != stated.kid:
            raise DecodeError("the file shows the id of another key")
        return cls(p, q, h_s, insecure_for_tests=insecure_for_tests)

    @classmethod
    def from_phe(cls, key: Any, *, insecure_for_tests: bool = False) -> "PrivateKey":
        """Take a `phe.PaillierPrivateKey`."""
        return cls(key.p, key.q, insecure_for_tests=insecure_for_tests)

    def to_phe(self) -> Any:
        """Return a `phe.PaillierPrivateKey`."""
        from phe import PaillierPrivateKey

        return PaillierPrivateKey(self.public.to_phe(), int(self._p), int(self._q))

    def __repr__(self) -> str:
        return f"PrivateKey(of {self.public!r})"


def check_bits(bits: int, insecure_for_tests: bool) -> None:
    """Refuse a key length that is odd, impossible, or unsafe."""
    checks.integer(bits, "a key's length")
    checks.truth(insecure_for_tests, "insecure_for_tests")
    if bits % 2 or not 64 <= bits <= MOST_BITS:
        raise ParameterError(f"a key has an even number of bits up to {MOST_BITS}, not {bits}")
    if bits < LEAST_BITS and not insecure_for_tests:
        raise ParameterError(
            f"a key of {bits} bits is not safe; use at least {LEAST_BITS}, better {DEFAULT_BITS}"
        )


def _whole(value: Any, what: str) -> Any:
    """Return an integer of Python's or gmpy2's; it may be secret, and no error shows it."""
    if type(value) not in (int, type(mpz())):
        raise ParameterError(f"{what} is an integer, not a {type(value).__name__}")
    return mpz(value)


def random_prime(bits: int, entropy: Entropy) -> Any:
    """Return a prime = 3 mod 4 whose two highest bits are set."""
    while True:
        candidate = mpz(int.from_bytes(entropy((bits + 7) // 8), "big")) % (mpz(1) << bits)
        candidate |= (mpz(3) << (bits - 2)) | 3
        if gmpy2.is_prime(candidate, _PRIME_ROUNDS):
            return candidate


def random_below(limit: Any, entropy: Entropy) -> Any:
    """Return a number that is uniform in [0, limit), up to 2^-128."""
    size = (limit.bit_length() + 7) // 8 + 16
    return mpz(int.from_bytes(entropy(size), "big")) % limit


def draw_base(n: Any, entropy: Entropy) -> int:
    """Return h_s = (-x^2)^n mod n^2 for a random x."""
    x = random_below(n, entropy)
    while gmpy2.gcd(x, n) != 1:
        x = random_below(n, entropy)
    return int(gmpy2.powmod(-x * x % n, n, n * n))


def _factors_too_close(n: Any) -> bool:
    """Run a few steps of Fermat's factoring."""
    a = gmpy2.isqrt(n) + 1
    return any(gmpy2.is_square((a + i) ** 2 - n) for i in range(_FERMAT_STEPS))


def _parse(text: str) -> dict[str, Any]:
    if len(text) > 8 * MOST_BITS:
        raise DecodeError("too long for a key file")
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        raise DecodeError("not a key file: it is not JSON") from None
    if not isinstance(fields, dict):
        raise DecodeError("not a key file: it is not a JSON object")
    return fields


def _to_base64(number: Any) -> str:
    data = int(number).to_bytes((number.bit_length() + 7) // 8, "big")
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _from_base64(fields: dict[str, Any], name: str) -> int:
    text = fields.get(name)
    if not isinstance(text, str) or len(text) > MOST_BITS:
        raise DecodeError(f"the key file has no valid number {name!r}")
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise DecodeError(f"the key file's {name!r} is not base64url") from None
    return int.from_bytes(data, "big")
