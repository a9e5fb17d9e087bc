"""Threshold keys: any t of m key holders decrypt together, fewer learn nothing.

A dealer draws safe primes p = 2 p' + 1 and q = 2 q' + 1, shares the decryption exponent d (0 mod
p' q', 1 mod n) by a polynomial over Z_(n p' q'), publishes a verification key for each share, and
must erase p, q, d and the polynomial: any of them is enough to decrypt alone. `deal` returns only
what may be kept. Run it on a machine that is wiped afterwards, and hand over each share in person.

t - 1 holders and everyone else learn the decrypted totals and nothing else (semi-honest or
malicious holders, honest dealer, random oracle). They know the polynomial modulo n, because d is
1 there; modulo p' q' every share alone is uniform, up to 2^-128.

Sources: Damgård, Jurik, PKC 2001, section 4 (s = 1); Shoup, EUROCRYPT 2000.
"""

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import gmpy2
from gmpy2 import invert, mpz, powmod, powmod_sec

from securecomp.core import checks, prg
from securecomp.core import entropy as entropy_
from securecomp.core.entropy import Entropy
from securecomp.core.secret import Secret
from securecomp.errors import DecodeError, ParameterError
from securecomp.paillier import keys
from securecomp.paillier.keys import PublicKey, random_below

MOST_HOLDERS = 1000


@dataclass(frozen=True)
class ThresholdKey:
    """The public part of a threshold key.

    Attributes:
        public: The key to encrypt under.
        threshold: Number of holders that decrypt together.
        base: A square v that generates the squares modulo n^2, but for a negligible chance.
        verification: For each holder v^(delta s_i).
    """

    public: PublicKey
    threshold: int
    base: Any
    verification: tuple[Any, ...]

    @property
    def holders(self) -> int:
        """Number of key holders."""
        return len(self.verification)

    @cached_property
    def id(self) -> bytes:
        """SHA-256 over everything public: an agreement names it."""
        numbers = (self.base, *self.verification)
        size = self.public.ciphertext_bytes
        parts = [int(number).to_bytes(size, "big") for number in numbers]
        facts = prg.join("paillier threshold key", self.public.id, self.threshold, *parts)
        return hashlib.sha256(facts).digest()

    @property
    def delta(self) -> int:
        """Return m!, which clears the denominators of Lagrange's coefficients."""
        return math.factorial(self.holders)


@dataclass(frozen=True, slots=True, repr=False)
class KeyShare(Secret):
    """One holder's share of the private key.

    Attributes:
        key: The public part.
        index: The holder's number, from 1.
    """

    key: ThresholdKey
    index: int
    _secret: Any

    def to_json(self) -> str:
        """Return the share as text. Keep the file secret, mode 0600."""
        return json.dumps(
            {
                "kty": "securecomp paillier share",
                "pub": json.loads(self.key.public.to_json()),
                "threshold": self.key.threshold,
                "base": hex(self.key.base),
                "verification": [hex(v) for v in self.key.verification],
                "index": self.index,
                "secret": hex(self._secret),
            }
        )

    @classmethod
    def from_json(cls, text: str, *, insecure_for_tests: bool = False) -> "KeyShare":
        """Read `to_json`'s output.

        Raises:
            DecodeError: Not a key share.
        """
        try:
            fields = json.loads(text)
            if fields["kty"] != "securecomp paillier share":
                raise DecodeError("not a key share")
            public = PublicKey.from_json(
                json.dumps(fields["pub"]), insecure_for_tests=insecure_for_tests
            )
            verification = tuple(mpz(int(v, 16)) for v in fields["verification"])
            base, secret = mpz(int(fields["base"], 16)), mpz(int(fields["secret"], 16))
            threshold, index = fields["threshold"], fields["index"]
            if not (type(threshold) is int and type(index) is int):
                raise DecodeError("not a key share")
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            if isinstance(error, DecodeError | ParameterError):
                raise
            raise DecodeError("not a key share") from None
        holders = len(verification)
        if not (2 <= threshold <= holders <= MOST_HOLDERS and 1 <= index <= holders):
            raise DecodeError("the key share's numbers are impossible")
        if base < 2 or secret < 1:
            raise DecodeError("the key share's base or secret is too small")
        public.check_ciphertexts([base, *verification], "verification keys")
        # Whether a number is a square shows without the factors only in its Jacobi symbol. With a
        # base that is 1 or -1 modulo a factor, a proof binds a holder to no share.
        if gmpy2.jacobi(base, public.n) != 1 or gmpy2.gcd(base * base - 1, public.n) != 1:
            raise DecodeError("the key share's base does not generate the squares")
        key = ThresholdKey(public, threshold, base, verification)
        if powmod_sec(base, key.delta * secret, public.n2) != verification[index - 1]:
            raise DecodeError("the share does not belong to its verification key")
        return cls(key, index, secret)

    def __repr__(self) -> str:
        return f"KeyShare({self.index} of {self.key.holders}, threshold {self.key.threshold})"


def deal(
    holders: int,
    threshold: int,
    bits: int = keys.DEFAULT_BITS,
    *,
    insecure_for_tests: bool = False,
    progress: Callable[[int], None] | None = None,
    entropy: Entropy = entropy_.system,
) -> tuple[ThresholdKey, list[KeyShare]]:
    """Run the dealer.

    Args:
        holders: How many get a share.
        threshold: How many decrypt together, from 2 to `holders`.
        bits: Length of n; safe primes of 1024 bits take minutes.
        insecure_for_tests: Allow less than 2048 bits.
        progress: Called with the number of candidates tried so far.
        entropy: Source of randomness.

    Raises:
        ParameterError: Impossible numbers.
    """
    checks.integer(holders, "the number of holders")
    checks.integer(threshold, "the threshold")
    if not 2 <= threshold <= holders <= MOST_HOLDERS:
        raise ParameterError(
            f"the threshold must be from 2 to the number of holders (at most {MOST_HOLDERS}), not "
            f"{threshold} of {holders}"
        )
    keys.check_bits(bits, insecure_for_tests)
    tried = 0

    def count() -> None:
        nonlocal tried
        tried += 1
        if progress:
            progress(tried)

    while True:
        p, q = (safe_prime(bits // 2, entropy, count) for _ in range(2))
        if p != q:
            break
    n, order = p * q, ((p - 1) // 2) * ((q - 1) // 2)
    public = PublicKey(n, keys.draw_base(n, entropy), insecure_for_tests=insecure_for_tests)
    modulus = n * order
    # 0 modulo the group's order, 1 modulo n: c^d = 1 + m n.
    secret = order * invert(order, n)
    polynomial = [secret, *(random_below(modulus, entropy) for _ in range(threshold - 1))]
    base = powmod(random_below(public.n2 - 1, entropy) + 1, 2, public.n2)
    delta = math.factorial(holders)
    shares = []
    for index in range(1, holders + 1):
        value = mpz(0)
        for coefficient in reversed(polynomial):
            value = (value * index + coefficient) % modulus
        shares.append(value)
    verification = tuple(powmod_sec(base, delta * s, public.n2) for s in shares)
    key = ThresholdKey(public, threshold, base, verification)
    return key, [KeyShare(key, i + 1, s) for i, s in enumerate(shares)]


def safe_prime(bits: int, entropy: Entropy, count: Callable[[], None]) -> Any:
    """Return a prime p such that (p - 1)/2 is prime too, its two highest bits set."""
    while True:
        start = mpz(int.from_bytes(entropy((bits + 7) // 8), "big")) % (mpz(1) << (bits - 1))
        half = start | (mpz(3) << (bits - 3)) | 1
        count()
        # Both must survive small divisors before either gets an expensive test.
        if _small_factor(half) or _small_factor(2 * half + 1):
            continue
        if (
            gmpy2.is_strong_prp(half, 2)
            and gmpy2.is_strong_prp(2 * half + 1, 2)
            and gmpy2.is_prime(half, 40)
            and gmpy2.is_prime(2 * half + 1, 40)
        ):
            return 2 * half + 1


_SMALL = gmpy2.primorial(2000) // 2


def _small_factor(candidate: Any) -> bool:
    return bool(candidate > 2000 and gmpy2.gcd(candidate, _SMALL) != 1)
