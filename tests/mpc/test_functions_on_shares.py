"""Sigmoid, reciprocal, division, square root and clamping: within what they promise, everywhere."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from securecomp.errors import ParameterError, RangeError
from securecomp.mpc import Computation, clamp, divide, functions, reciprocal, sigmoid, sqrt
from securecomp.protocol.local_carrier import LocalCarrier


@pytest.fixture(scope="module")
def together():
    return Computation(["a", "b"], LocalCarrier())


def grid(values, bits):
    return np.rint(np.asarray(values) * 2.0**bits) / 2.0**bits


class TestSigmoid:
    @pytest.mark.parametrize("bits", [0, 4, 11, 16, 22])
    def test_everywhere(self, together, bits):
        x = np.concatenate([np.linspace(-9, 9, 2001), [-1e4, 1e4, -8, 8, 0, -8.001, 8.001]])
        found = sigmoid(together.share("a", x, bound=10**4, bits=bits))
        assert found.scale == 1 << 14
        error = np.abs(found.reveal() - expit(grid(x, bits)))
        assert error.max() <= functions.SIGMOID_ERROR

    def test_its_error_is_not_overstated_by_much(self, together):
        x = np.linspace(-8, 8, 4001)
        found = sigmoid(together.share("a", x, bound=8, bits=20)).reveal()
        assert np.abs(found - expit(x)).max() > functions.SIGMOID_ERROR / 4

    def test_shapes(self, together):
        x = np.arange(6).reshape(2, 3) - 3
        assert sigmoid(together.share("a", x, bound=3, bits=3)).shape == (2, 3)
        assert sigmoid(together.share("a", 0.5, bound=3, bits=3)).reveal() == pytest.approx(
            expit(0.5), abs=functions.SIGMOID_ERROR
        )

    def test_of_decimals(self, together):
        with pytest.raises(ParameterError, match="share them with bits="):
            sigmoid(together.share("a", [0.5], bound=1, decimals=1))


class TestReciprocal:
    @pytest.mark.parametrize(("bound", "bits"), [(1, 10), (1000, 10), (2**29, 0), (3, 28), (8, 1)])
    def test_in_the_whole_domain(self, together, bound, bits):
        x = grid(np.geomspace(2.0**-bits, bound, 300), bits)
        units = [1, 2, 3, bound * 2**bits - 1, bound * 2**bits]
        x = np.concatenate([x, np.array(units) / 2.0**bits])
        x = x[(x > 0) & (x <= bound)]
        found = reciprocal(together.share("a", x, bound=bound, bits=bits))
        error = np.abs(found.reveal() - 1 / x)
        assert np.all(error <= functions.RELATIVE_ERROR / x + 1 / found.scale)

    def test_of_what_is_not_positive(self, together):
        assert reciprocal(together.share("a", [0, -1, -7], bound=8, bits=4)).reveal().tolist() == [
            0,
            0,
            0,
        ]

    def test_of_too_wide_values(self, together):
        with pytest.raises(RangeError, match="a smaller bound or fewer digits"):
            reciprocal(together.share("a", [1], bound=2**20, bits=11))

    def test_division(self, together):
        rng = np.random.default_rng(0)
        x, y = rng.uniform(-50, 50, 200), rng.uniform(0.05, 100, 200)
        found = divide(
            together.share("a", x, bound=50, bits=8), together.share("b", y, bound=100, bits=12)
        )
        expected = grid(x, 8) / grid(y, 12)
        assert np.abs(found.reveal() - expected).max() <= 50 * 20 * 2.0**-20


class TestSqrt:
    @pytest.mark.parametrize(("bound", "bits"), [(1, 10), (1000, 9), (2**29, 0), (3, 27), (8, 1)])
    def test_in_the_whole_domain(self, together, bound, bits):
        x = grid(np.geomspace(2.0**-bits, bound, 300), bits)
        x = np.concatenate([x[x <= bound], [2.0**-bits, 3 * 2.0**-bits, bound]])
        found = sqrt(together.share("a", x, bound=bound, bits=bits))
        error = np.abs(found.reveal() - np.sqrt(x))
        assert np.all(error <= functions.RELATIVE_ERROR * np.sqrt(x) + 1 / found.scale)

    def test_of_what_is_not_positive(self, together):
        found = sqrt(together.share("a", [0, -1, 4], bound=8, bits=4)).reveal()
        assert found[:2].tolist() == [0, 0]
        assert found[2] == pytest.approx(2, rel=functions.RELATIVE_ERROR)


@settings(max_examples=20)
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


@pytest.mark.parametrize("bits", [8, 16, 20])
@pytest.mark.parametrize("bound", [4, 64, 500])
def test_wide_numbers_are_divided_by_wide_numbers(together, bound, bits):
    """Where a reciprocal of 24 digits would leave the field, it has fewer; the error is stated."""
    x = np.array([bound, -bound, 1, 0, bound / 3])
    y = np.array([bound, 2.0**-bits, 3, 1, bound / 7])
    shared = [together.share(n, v, bound=bound, bits=bits) for n, v in (("a", x), ("b", y))]
    found = divide(*shared)
    want = np.round(x * 2**bits) / np.round(y * 2**bits)
    digits = (found.scale // shared[0].scale).bit_length() - 1
    assert digits >= 8
    allowed = np.abs(want) * 2.0**-22 + np.abs(x) * 2.0 ** -(digits + 1) + 1 / found.scale
    assert (np.abs(found.reveal() - want) <= allowed).all()
