"""What the tests of attacks share."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """So small a matrix is slower with several threads than with one."""
    with threadpool_limits(1):
        yield
