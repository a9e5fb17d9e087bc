"""What all tests share: two Hypothesis profiles, and randomness that can be replayed."""

import math
import os
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import settings
from replaying import Replay
from threadpoolctl import threadpool_limits

settings.register_profile("thorough", derandomize=True, deadline=None, database=None)
settings.register_profile("securecomp", settings.get_profile("thorough"), max_examples=40)
settings.load_profile("securecomp")


def pytest_xdist_auto_num_workers() -> int:
    """More processes than cores: those of network tests wait most of their time."""
    return 3 * (os.cpu_count() or 2) // 2


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    """BLAS with a thread: for matrices so small several only wait, as for each other's workers."""
    with threadpool_limits(1), pytest.MonkeyPatch.context() as patch:
        for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
            patch.setenv(name, "1")  # of what is loaded later, and of processes that tests start
        yield


@pytest.fixture(scope="session")
def replay() -> type[Replay]:
    """`replay(seed)` is an `Entropy` that starts anew each time."""
    return Replay


@pytest.fixture(scope="session")
def random_residues() -> Callable[..., npt.NDArray[np.uint64]]:
    """`random_residues(seed, *shape)` are residues modulo 2^61-1, the same for the same seed."""

    def draw(seed: int | str, *shape: int) -> npt.NDArray[np.uint64]:
        words = np.frombuffer(Replay(seed)(8 * math.prod(shape)), "<u8")
        return (words % np.uint64((1 << 61) - 1)).reshape(shape)

    return draw
