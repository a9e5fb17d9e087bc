"""A plan whose noise, error or polynomial do not go with its circuit is refused when it is read."""

import json
import math

import msgspec
import pytest
from cases import each_case
from ckks.parties import linear_model

from securecomp.ckks import InferencePlan, planner
from securecomp.ckks.seal import sigmoid_plan

KINDS = {"plain": {}, "protected": {"protect_model": True}, "encrypted": {"encrypted": True}}


def facts(plan):
    return json.loads(msgspec.json.encode(plan))


def with_circuit(plan, **changes):
    found = facts(plan)
    found["circuit"] |= changes
    return found


def refused(found, reason):
    with pytest.raises(msgspec.ValidationError, match=reason):
        msgspec.json.decode(json.dumps(found), type=InferencePlan)


@each_case(
    "choices, field",
    [({"protect_model": True}, "flood_bits"), ({"shareable_rows": 9}, "release_bits")],
)
def test_noise_that_the_modulus_does_not_hold(choices, field):
    plan = planner.plan(linear_model(5), **choices)
    whole = math.prod(plan.circuit.primes).bit_length()
    for bits in (whole - 1, whole, whole + 1, 400):
        refused(with_circuit(plan, **{field: bits}), "does not hold its largest logit")
    # Nor if it holds either and not both.
    both = planner.plan(linear_model(5), protect_model=True, shareable_rows=9)
    room = math.prod(both.circuit.primes) // 2
    room -= int((both.logit_bound + 1) * 2**both.circuit.scale_bits)
    most = room.bit_length() - 1
    assert 1 << most <= room < 2 << most
    found = with_circuit(both, flood_bits=most, release_bits=most)
    refused(found, "does not hold its largest logit")


@each_case("choices", [{"protect_model": True}, {"shareable_rows": 9}])
def test_an_error_below_the_noise(choices):
    plan = planner.plan(linear_model(5), **choices)
    hiding = plan.circuit.hiding / 2.0**plan.circuit.scale_bits
    assert 0 < hiding < plan.error
    reason = "less than its digits and noise allow"
    refused(facts(plan) | {"error": hiding * 0.99}, reason)


@each_case("kind", KINDS.values())
def test_an_error_that_leaves_rounding_no_half(kind):
    plan = planner.plan(linear_model(5), **kind)
    assert plan.error <= plan.precision / 2
    refused(facts(plan) | {"error": plan.precision * 0.501}, "more than half of its")


def test_a_polynomial_of_another_depth():
    plan = planner.plan(linear_model(4), activation="server", degree=3, domain=2.0)
    for degree in (1, 5, 7, 15):
        refused(with_circuit(plan, degree=degree), "another number of moduli")
    for moduli in (plan.circuit.moduli[:-1], plan.circuit.moduli[1:]):
        refused(with_circuit(plan, moduli=moduli), "another number of moduli")


def test_an_error_below_the_polynomials():
    plan = planner.plan(linear_model(4), activation="server", degree=3, domain=2.0)
    for error in (plan.error * 0.99, plan.circuit.polynomial_error):
        refused(facts(plan) | {"error": error}, "less than its circuit's")
    refused(with_circuit(plan, numeric_error=0.5), "less than its circuit's")


def test_more_features_than_a_polynomials_circuit_takes():
    plan = planner.plan(linear_model(4), activation="server", degree=3, domain=2.0)
    many = sigmoid_plan.MOST_FEATURES + 1
    found = facts(plan) | {"features": [f"x{i}" for i in range(many)], "bounds": [1.0] * many}
    refused(found, "more features than its circuit takes")
