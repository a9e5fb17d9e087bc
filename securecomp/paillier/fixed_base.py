"""Powers of one base, from a table: exponents of w bits each are one multiplication.

For a base g and exponents of b bits: g^e = product over i of T[i][e_i], where e_i are the digits
of e in base 2^w and T[i][d] = g^(d 2^(w i)). The widest w that the memory limit affords is taken.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from gmpy2 import mpz

from securecomp.core.secret import Secret
from securecomp.errors import ParameterError

DEFAULT_MEMORY = 1 << 26
"""Bytes that the tables of one base may take."""


def table_bytes(bits: int, window: int, element_bytes: int) -> int:
    """Return the memory of a table (the numbers; Python adds about 50 bytes each)."""
    return -(-bits // window) * ((1 << window) - 1) * (element_bytes + 50)


class FixedBase(Secret):
    """A table of powers of one base modulo one modulus, either of which may be secret."""

    def __init__(self, base: Any, modulus: Any, bits: int, window: int) -> None:
        """Compute the table for exponents of so many bits."""
        self.window = window
        self.bits = bits
        self.modulus = modulus
        self.made = 0
        self._rows: list[list[Any]] = []
        step = mpz(base) % modulus
        for _ in range(-(-bits // window)):
            row = [mpz(1), step]
            for _ in range((1 << window) - 2):
                row.append(row[-1] * step % modulus)
            self._rows.append(row)
            step = row[-1] * step % modulus

    def power(self, exponent: int) -> Any:
        """Return base^exponent, for an exponent in [0, 2^bits)."""
        mask = (1 << self.window) - 1
        modulus = self.modulus
        result = mpz(1)
        self.made += 1
        for row in self._rows:
            digit = exponent & mask
            if digit:
                result = result * row[digit] % modulus
            exponent >>= self.window
        return result


def choose_window(bits: int, element_bytes: int, powers: int, memory: int) -> int:
    """Return the window that is fastest for so many powers, the table included.

    Raises:
        ParameterError: Not even the smallest table fits the memory.
    """
    fitting = [w for w in range(1, 17) if table_bytes(bits, w, element_bytes) <= memory]
    if not fitting:
        raise ParameterError(
            f"a table for exponents of {bits} bits needs at least "
            f"{table_bytes(bits, 1, element_bytes)} bytes; {memory} are allowed"
        )
    return min(fitting, key=lambda w: -(-bits // w) * ((1 << w) - 1 + powers))


class PowerTables(Secret):
    """The tables that were used last, each under its base, modulus and length of exponents."""

    def __init__(self, most: int) -> None:
        """Keep at most so many tables."""
        self._most = most
        self._kept: OrderedDict[tuple[int, int, int], FixedBase] = OrderedDict()

    def get(self, base: int, modulus: int, bits: int, powers: int, memory: int) -> FixedBase:
        """Return a table; an older one that is wider is used again.

        The powers that were made before count too: a key that is used again and again is worth a
        wider table. As a widening waits for as much use as pays for it, it never costs much.

        Args:
            base: The base.
            modulus: The modulus.
            bits: Length of the exponents.
            powers: How many powers are wanted now.
            memory: Bytes that the table may take.
        """
        size = (modulus.bit_length() + 7) // 8
        key = (base, modulus, bits)
        table = self._kept.get(key)
        made = table.made if table else 0
        window = choose_window(bits, size, max(made, powers), memory)
        if table is None or table.window < window or table_bytes(bits, table.window, size) > memory:
            self._kept.pop(key, None)  # its memory goes before the next one is made
            del table
            table = FixedBase(mpz(base), mpz(modulus), bits, window)
            table.made = made
        self._kept.pop(key, None)  # to the end
        self._kept[key] = table
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return table


public_tables = PowerTables(8)
"""This process's tables of public bases. Those modulo p^2 and q^2 belong to their private key."""


def multi_power(bases: Sequence[Any], exponents: Sequence[int], modulus: Any) -> Any:
    """Return the product of bases[i]^exponents[i]: one chain of squarings for all (Straus).

    Exponents are signed; a negative one inverts its base.

    Raises:
        ZeroDivisionError: A base with a negative exponent is not invertible.
    """
    from gmpy2 import invert

    window = 4
    tables = []
    absolute = []
    for base, exponent in zip(bases, exponents, strict=True):
        if exponent == 0:
            continue
        step = mpz(base) if exponent > 0 else invert(mpz(base), modulus)
        row = [mpz(1), step]
        for _ in range((1 << window) - 2):
            row.append(row[-1] * step % modulus)
        tables.append(row)
        absolute.append(abs(int(exponent)))
    result = mpz(1)
    longest = max((e.bit_length() for e in absolute), default=0)
    for position in range(-(-longest // window) * window - window, -1, -window):
        for _ in range(window):
            result = result * result % modulus
        for row, exponent in zip(tables, absolute, strict=True):
            digit = exponent >> position & 15
            if digit:
                result = result * row[digit] % modulus
    return result
