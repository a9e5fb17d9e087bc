"""Results on fixed data are what they were: numbers, structure and words."""

import pytest
from golden.capture import DOCUMENTS, committed, differences, document


@pytest.mark.parametrize("name", DOCUMENTS)
def test_results_are_what_they_were(name):
    found = differences(committed(name), document(name))
    assert not found, "\n".join(found)


def test_a_difference_is_noticed():
    was = {"a": [1, 2.0, "x"]}
    assert differences(was, {"a": [1, 2.0 + 1e-7, "x"]}) == ["/a/1: 2.0 is now 2.0000001"]
    assert differences(was, {"a": [2, 2.0, "x"]}) == ["/a/0: 1 is now 2"]
    other = {"a": [1, 2.0, "y"]}
    assert differences(was, other)
    assert not differences(was, other, words=False)
    assert differences(was, {}) == ["/a: only before"]
