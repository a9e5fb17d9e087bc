"""Products of matrices that have the same bits on every processor."""

import numpy as np
from cases import each_case

from securecomp.core.plain_products import product


@each_case(
    "left, right",
    [((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((0,), (0, 2))],
)
def test_a_product_is_that_of_its_terms_from_first_to_last(left, right):
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=left), rng.normal(size=right)
    found = product(a, b)
    assert found.shape == (a @ b).shape
    np.testing.assert_allclose(found, a @ b, rtol=1e-14, atol=1e-15)


def test_terms_are_added_in_their_order():
    """2^53 + 1 is 2^53; in another order both ones would count."""
    assert product(np.array([2.0**53, 1, 1]), np.ones(3)) == 2.0**53
    assert product(np.array([1, 1, 2.0**53]), np.ones(3)) == 2.0**53 + 2
