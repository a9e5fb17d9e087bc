"""Sigmoid, square root and clamping: within what they promise, everywhere."""

import numpy as np
import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from securecomp.errors import ParameterError, RangeError
from securecomp.mpc import Computation, clamp, functions, sigmoid, sqrt
from securecomp.protocol.local_carrier import LocalCarrier


@pytest.fixture(scope="module")
def together():
    return Computation(["a", "b"], LocalCarrier())


def grid(values, bits):
    return np.rint(np.asarray(values) * 2.0**bits) / 2.0**bits


def test_sigmoid_everywhere(together):
    x = np.concatenate([np.linspace(-9, 9, 2001), [-1e4, 1e4, -8, 8, 0, -8.001, 8.001]])
    for bits in (0, 4, 11, 16, 22):
        found = sigmoid(together.share("a", x, bound=10**4, bits=bits))
        assert found.scale == 1 << 14
        error = np.abs(found.reveal() - expit(grid(x, bits)))
        assert error.max() <= functions.SIGMOID_ERROR, bits


def test_the_error_of_sigmoid_is_not_overstated_by_much(together):
    x = np.linspace(-8, 8, 4001)
    found = sigmoid(together.share("a", x, bound=8, bits=20)).reveal()
    assert np.abs(found - expit(x)).max() > functions.SIGMOID_ERROR / 4


def test_shapes_of_sigmoid(together):
    x = np.arange(6).reshape(2, 3) - 3
    assert sigmoid(together.share("a", x, bound=3, bits=3)).shape == (2, 3)
    assert sigmoid(together.share("a", 0.5, bound=3, bits=3)).reveal() == pytest.approx(
        expit(0.5), abs=functions.SIGMOID_ERROR
    )


def test_functions_of_decimals_are_refused(together):
    x = together.share("a", [0.5], bound=1, decimals=1)
    for function in (sigmoid, sqrt):
        with pytest.raises(ParameterError, match="share them with bits="):
            function(x)


def test_square_roots_in_the_whole_domain(together):
    for bound, bits in ((1, 10), (1000, 9), (2**29, 0), (3, 27), (8, 1)):
        x = grid(np.geomspace(2.0**-bits, bound, 300), bits)
        x = np.concatenate([x[x <= bound], [2.0**-bits, 3 * 2.0**-bits, bound]])
        found = sqrt(together.share("a", x, bound=bound, bits=bits))
        error = np.abs(found.reveal() - np.sqrt(x))
        allowed = functions.SQRT_ERROR * np.sqrt(x) + 1 / found.scale
        assert np.all(error <= allowed), (bound, bits)


def test_square_roots_of_what_is_not_positive(together):
    found = sqrt(together.share("a", [0, -1, 4], bound=8, bits=4)).reveal()
    assert found[:2].tolist() == [0, 0]
    assert found[2] == pytest.approx(2, rel=functions.SQRT_ERROR)


def test_square_roots_of_too_wide_values(together):
    with pytest.raises(RangeError, match=r"too wide for sqrt, .* a smaller bound or fewer digits"):
        sqrt(together.share("a", [1], bound=2**20, bits=11))


@examples(20)
@given(
    values=st.lists(st.integers(-(2**20), 2**20), min_size=1, max_size=20),
    limit=st.integers(1, 300),
)
def test_clamping_is_exact(values, limit):
    together = Computation(["a", "b"], LocalCarrier())
    x = np.array(values) / 256
    found = clamp(together.share("a", x, bound=4096, bits=8), limit)
    assert found.reveal().tolist() == np.clip(x, -limit, limit).tolist()
    assert found.bound == min(limit, 4096) * 256
