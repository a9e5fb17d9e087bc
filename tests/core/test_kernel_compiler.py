"""Kernels compile where no cache can be written, and are kept where one can."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from numba import float64, uint64

import securecomp
from securecomp.core.kernel_compiler import kernel

READ_ONLY = """
import tempfile

def refuse(*_, **__):
    raise OSError(30, "Read-only file system")

tempfile.TemporaryFile = refuse  # how numba finds out whether a folder takes files
"""


def run(code, **environment):
    """What a new process prints: one that has compiled nothing yet."""
    command = [sys.executable, "-W", "error", "-c", code]
    settings = {**os.environ, **environment}
    done = subprocess.run(command, capture_output=True, text=True, env=settings)  # noqa: S603
    assert not done.returncode, done.stderr
    return done.stdout


def test_numba_itself_refuses_where_no_cache_can_be_written():
    """The fault that is worked around; without it the other tests would show nothing."""
    kept = "numba.njit([numba.uint64(numba.uint64)], cache=True)(securecomp.core.prg.join)"
    code = f"{READ_ONLY}import numba, securecomp.core.prg\n"
    code += f"try:\n    {kept}\nexcept RuntimeError as error:\n    print(error)"
    assert "no locator available" in run(code)


def test_a_read_only_installation_computes():
    code = f"""{READ_ONLY}
import numpy as np
from securecomp.ckks.native.ring import primes, ring
from securecomp.core import bit_kernels, field, field_kernels
from securecomp.ckks.native import ring_kernels

print(field.add(np.uint64([5]), np.uint64([field.MODULUS - 2]))[0])
some = ring(64, primes(64, 30, 1))
values = some.residues(np.arange(64))
some.to_values(values)
some.to_coefficients(values)
print((values[0] == np.arange(64)).all())
rows = np.zeros((64, 1), np.uint64)
bit_kernels.transpose(np.uint64([1, 3]), rows)
print(rows[0, 0], rows[1, 0])
"""
    assert run(code) == "3\nTrue\n3 2\n"


def test_a_full_disk_is_no_reason_either(monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(numba.core.caching.IndexDataCacheFile, "save", full)

    @kernel(uint64(uint64))
    def twice(x):
        return x + x

    assert twice(np.uint64(21)) == 42


def test_an_error_of_the_function_itself_is_not_hidden():
    @kernel(float64(float64))
    def wrong(x):
        return x + "one"

    with pytest.raises(numba.TypingError):
        wrong(1.0)


def test_compiled_code_is_kept(tmp_path):
    code = (
        "from securecomp.core import field_kernels\n"
        "stats = field_kernels.add.compiled().stats\n"
        "print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))"
    )
    assert run(code, NUMBA_CACHE_DIR=str(tmp_path)) == "0 1\n"
    assert run(code, NUMBA_CACHE_DIR=str(tmp_path)) == "1 0\n"


def test_nothing_else_asks_numba_for_a_cache():
    package = Path(securecomp.__file__).parent
    files = [
        str(p.relative_to(package)) for p in package.rglob("*.py") if "cache=True" in p.read_text()
    ]
    assert files == ["core/kernel_compiler.py"]
