"""Powers from tables, and products of powers."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import gmpy2
import pytest
from cases import each_case, examples
from hypothesis import given
from hypothesis import strategies as st

from securecomp.errors import ParameterError
from securecomp.paillier import PrivateKey, encrypt
from securecomp.paillier.fixed_base import (
    FixedBase,
    PowerTables,
    choose_window,
    multi_power,
    table_bytes,
)

MODULUS = (2**89 - 1) * (2**107 - 1)
BASE = 3**100
TABLES = PowerTables(8)


class TestTables:
    @each_case("window", range(1, 11))
    @each_case("bits", [1, 7, 30, 64])
    def test_a_table_gives_the_power(self, window, bits):
        table = FixedBase(BASE, MODULUS, bits, window)
        top = (1 << bits) - 1
        exponents = {0, 1, 2, top, top - 1, top // 2, top // 2 + 1, top // 3, 1 << (bits - 1)}
        exponents |= {1 << i for i in range(bits)} | {top ^ (1 << i) for i in range(bits)}
        for exponent in exponents:
            if 0 <= exponent <= top:
                assert table.power(exponent) == pow(BASE, exponent, MODULUS)

    @examples(60)
    @given(st.integers(1, 12), st.integers(1, 300), st.data())
    def test_any_exponent(self, window, bits, data):
        exponent = data.draw(st.integers(0, (1 << bits) - 1))
        assert FixedBase(BASE, MODULUS, bits, window).power(exponent) == pow(
            BASE, exponent, MODULUS
        )

    def test_a_base_above_the_modulus(self):
        table = FixedBase(BASE + 5 * MODULUS, MODULUS, 16, 4)
        assert table.power(54321) == pow(BASE, 54321, MODULUS)

    @each_case(
        "bits, window, element, size",
        [(1024, 1, 512, 1024 * 562), (1024, 8, 512, 128 * 255 * 562), (10, 3, 0, 4 * 7 * 50)],
    )
    def test_the_memory_that_a_table_takes(self, bits, window, element, size):
        assert table_bytes(bits, window, element) == size

    @each_case("window", range(1, 9))
    def test_the_estimate_counts_every_number(self, window):
        table = FixedBase(BASE, MODULUS, 60, window)
        numbers = sum(len(row) - 1 for row in table._rows)  # but for the shared one
        assert table_bytes(60, window, 25) == numbers * 75


class TestWindows:
    @given(
        st.integers(1, 2048),
        st.integers(16, 1024),
        st.integers(0, 10**7),
        st.integers(1, 1 << 30),
    )
    def test_the_fastest_that_fits(self, bits, element, powers, memory):
        fitting = [w for w in range(1, 17) if table_bytes(bits, w, element) <= memory]
        if not fitting:
            reason = (
                f"^a table for exponents of {bits} bits needs at least .*; {memory} are allowed$"
            )
            with pytest.raises(ParameterError, match=reason):
                choose_window(bits, element, powers, memory)
            return
        window = choose_window(bits, element, powers, memory)
        assert table_bytes(bits, window, element) <= memory

        def multiplications(w):
            return -(-bits // w) * ((1 << w) - 1 + powers)

        assert multiplications(window) == min(map(multiplications, fitting))

    def test_more_powers_are_worth_a_wider_table(self):
        windows = [choose_window(1024, 512, powers, 1 << 26) for powers in (0, 1, 10, 10**3, 10**6)]
        assert windows == sorted(windows)
        assert windows[0] == 1
        assert windows[-1] == max(
            w for w in range(17) if w and table_bytes(1024, w, 512) <= 1 << 26
        )

    def test_too_little_memory(self, public, private):
        reason = (
            r"^a table for exponents of 256 bits needs at least 45568 bytes; 45567 are allowed$"
        )
        with pytest.raises(ParameterError, match=reason):
            encrypt(public, [1], bound=1, memory=45567)
        assert encrypt(public, [1], bound=1, memory=45568).length == 1
        # The owner has two tables of half the size, in the same memory.
        with pytest.raises(ParameterError, match=r"needs at least 29184 bytes; 29183 are allowed$"):
            encrypt(public, [1], bound=1, memory=2 * 29183, owner=private)
        assert encrypt(public, [1], bound=1, memory=2 * 29184, owner=private).length == 1

    def test_the_limit_is_kept_with_a_table_that_is_there(self):
        """A wider table that was made with more memory is not used with less."""
        wide = TABLES.get(BASE, MODULUS, 96, 10**6, 1 << 22)
        limit = table_bytes(96, 3, 25)
        narrow = TABLES.get(BASE, MODULUS, 96, 10**6, limit)
        assert narrow.window == 3 < wide.window
        assert narrow.power(2**96 - 1) == wide.power(2**96 - 1) == pow(BASE, 2**96 - 1, MODULUS)

    def test_a_wider_table_is_used_again(self):
        wide = TABLES.get(BASE + 1, MODULUS, 96, 10**6, 1 << 20)
        assert TABLES.get(BASE + 1, MODULUS, 96, 1, 1 << 20) is wide
        assert TABLES.get(BASE + 2, MODULUS, 96, 1, 1 << 20).window < wide.window

    def test_a_table_that_is_much_used_becomes_wider(self):
        first = TABLES.get(BASE + 3, MODULUS, 96, 10, 1 << 20)
        assert TABLES.get(BASE + 3, MODULUS, 96, 10, 1 << 20) is first
        for exponent in range(500):
            first.power(exponent)
        second = TABLES.get(BASE + 3, MODULUS, 96, 10, 1 << 20)
        assert second.window == choose_window(96, 25, 500, 1 << 20) > first.window
        assert second.power(2**96 - 1) == pow(BASE + 3, 2**96 - 1, MODULUS)

    def test_tables_of_different_bases_moduli_and_lengths_are_apart(self):
        for base, modulus, bits in ((5, 77, 8), (6, 77, 8), (5, 91, 8), (5, 77, 9), (5, 77, 8)):
            table = TABLES.get(base, modulus, bits, 10, 1 << 20)
            assert table.power(200) == pow(base, 200, modulus)

    def test_a_table_for_all_that_will_be_encrypted(self, public, monkeypatch):
        """Chunks are short; the table is chosen for the whole vector."""
        wanted = []
        get = PowerTables.get

        def spy(tables, base, modulus, bits, powers, memory):
            wanted.append(powers)
            return get(tables, base, modulus, bits, powers, memory)

        monkeypatch.setattr(PowerTables, "get", spy)
        vector = encrypt(public, range(2000), bound=2000)
        assert set(wanted) == {len(vector.ciphertexts)}
        assert len(wanted) > 1

    def test_the_owners_tables_go_with_its_key(self):
        """Powers modulo p^2 show p: no cache of the process keeps them."""
        key = PrivateKey.generate(512, insecure_for_tests=True)
        with ThreadPoolExecutor(1) as threads:
            for executor in (None, threads):
                encrypt(key.public, [1, 2], bound=2, owner=key, executor=executor)
        tables = weakref.ref(key.tables)
        assert tables() is not None
        del key
        gc.collect()
        assert tables() is None


class TestProducts:
    @given(
        st.lists(st.tuples(st.integers(1, MODULUS - 1), st.integers(-(2**70), 2**70)), max_size=6)
    )
    def test_against_single_powers(self, pairs):
        pairs = [(b, e) for b, e in pairs if gmpy2.gcd(b, MODULUS) == 1]
        want = 1
        for base, exponent in pairs:
            want = want * pow(base, exponent, MODULUS) % MODULUS
        assert multi_power([b for b, _ in pairs], [e for _, e in pairs], MODULUS) == want

    @each_case("exponent", [0, 1, 15, 16, 17, 255, 256, 2**64 - 1, 2**64, -1, -16])
    def test_one_power(self, exponent):
        assert multi_power([BASE], [exponent], MODULUS) == pow(BASE, exponent, MODULUS)

    def test_nothing(self):
        assert multi_power([], [], MODULUS) == multi_power([5, 7], [0, 0], MODULUS) == 1

    def test_a_base_that_is_not_invertible(self):
        bad = 5 * (2**89 - 1)
        assert multi_power([bad, 3], [2, 1], MODULUS) == bad * bad * 3 % MODULUS
        assert multi_power([bad, 3], [0, 1], MODULUS) == 3
        with pytest.raises(ZeroDivisionError):
            multi_power([3, bad], [1, -1], MODULUS)

    def test_as_many_exponents_as_bases(self):
        with pytest.raises(ValueError, match="zip"):
            multi_power([3], [1, 2], MODULUS)
