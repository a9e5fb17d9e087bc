"""Work in threads. The kernels release the GIL; nothing forks, and no pool outlives its work."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from securecomp.errors import ParameterError

T = TypeVar("T")
R = TypeVar("R")


WORTH = 16
"""Blocks that pay for a thread: starting one costs as much as working on some of them."""


def run(work: Callable[[Sequence[T]], R], items: Sequence[T], workers: int) -> list[R]:
    """Do work on parts of the items, one part a thread, in order.

    Few items are not divided.

    Raises:
        ParameterError: Fewer than 1 worker.
    """
    if workers < 1:
        raise ParameterError(f"there is at least 1 worker, not {workers}")
    size = max(WORTH, -(-len(items) // workers))
    parts = [items[i : i + size] for i in range(0, len(items), size)]
    if len(parts) <= 1:
        return [work(part) for part in parts]
    with ThreadPoolExecutor(len(parts)) as pool:
        return list(pool.map(work, parts))
