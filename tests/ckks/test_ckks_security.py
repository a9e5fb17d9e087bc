"""No ring beyond the published tables."""

import math

import pytest
from cases import each_case, examples
from ckks.parties import linear_model
from hypothesis import given
from hypothesis import strategies as st

from securecomp.ckks import planner
from securecomp.ckks.native import security
from securecomp.ckks.native.ring import primes
from securecomp.ckks.native.ring_parameters import LinearParameters
from securecomp.errors import ParameterError

# HomomorphicEncryption.org (2018), table 1: uniform ternary secret, 128 bits, classical.
STANDARD = {1024: 27, 2048: 54, 4096: 109, 8192: 218, 16384: 438, 32768: 881}
# Bossuat et al. (2024), ternary secret, 128 bits, classical.
GUIDELINES = {1024: 26, 2048: 53, 4096: 106, 8192: 214, 16384: 430, 32768: 868}


def test_the_stricter_of_the_two_tables():
    assert {n: min(STANDARD[n], GUIDELINES[n]) for n in STANDARD} == security.LARGEST


@each_case("degree", STANDARD)
def test_the_border(degree):
    most = min(STANDARD[degree], GUIDELINES[degree])
    security.check(degree, 2**most - 1)
    with pytest.raises(ParameterError, match=f"{most + 1} bits is not 128-bit secure"):
        security.check(degree, 2**most)


@each_case("degree", [0, 512, 3000, 65536, -2048])
def test_a_degree_in_no_table(degree):
    with pytest.raises(ParameterError, match="no security estimate"):
        security.check(degree, 3)


@each_case("degree, bits, count", [(2048, 54, 1), (4096, 54, 2), (8192, 54, 4)])
def test_a_circuit_beyond_the_tables_is_refused(degree, bits, count):
    with pytest.raises(ParameterError, match="not 128-bit secure"):
        LinearParameters(degree, primes(degree, bits, count), 10, 0, 10)


@given(
    features=st.integers(1, 40),
    outputs=st.sampled_from([1, 3]),
    scale=st.floats(-6, 6),
    precision=st.floats(-12, -0.1),
    kind=st.sampled_from([{}, {"protect_model": True}, {"encrypted": True}]),
)
@examples(25)
def test_no_plan_is_beyond_them(features, outputs, scale, precision, kind):
    model = linear_model(features, outputs, scale=10**scale)
    try:
        circuit = planner.plan(model, precision=10**precision, backend="native", **kind).circuit
    except ParameterError:
        return
    modulus = math.prod(circuit.primes)
    assert modulus < 2 ** min(STANDARD[circuit.degree], GUIDELINES[circuit.degree])
