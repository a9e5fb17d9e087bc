"""Work in threads, over the cores of one machine. The numeric kernels release the GIL.

Nothing forks. Threads live as long as the object that started them.
"""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

from securecomp.errors import ParameterError

T = TypeVar("T")
R = TypeVar("R")

SMALLEST_PART = 16
"""Items that pay for a thread: starting one costs as much as working on some of them."""
_MOST_THREADS = 256


def check_workers(workers: int) -> None:
    """Refuse a number of threads that cannot work.

    Raises:
        ParameterError: Fewer than 1 worker.
    """
    if workers < 1:
        raise ParameterError(f"there must be at least 1 worker, not {workers}")


class Threads:
    """Threads that take items one after the other, and are used again by the next call."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None  # it starts threads as they are needed

    def each(self, work: Callable[[T], R], items: Sequence[T], workers: int) -> list[R]:
        """Do work on each item and return the results in order.

        The calling thread is one of the workers. After an error nobody begins another item, and
        the error is raised when all have stopped.

        Raises:
            ParameterError: Fewer than 1 worker.
        """
        check_workers(workers)
        helpers = min(workers, len(items)) - 1
        if helpers < 1:
            return [work(item) for item in items]
        todo = deque(enumerate(items))
        done: dict[int, R] = {}

        def take() -> None:
            while True:
                try:
                    place, item = todo.popleft()
                except IndexError:  # nothing is left
                    return
                try:
                    done[place] = work(item)
                except BaseException:
                    todo.clear()
                    raise

        if self._pool is None:
            self._pool = ThreadPoolExecutor(_MOST_THREADS)
        pool = self._pool
        running: list[Future[None]] = []
        try:
            running += [pool.submit(take) for _ in range(helpers)]
            take()
        finally:
            todo.clear()
            # Cancel tasks that have not started.
            running = [task for task in running if not task.cancel()]
            wait(running)
        for task in running:
            task.result()
        return [done[place] for place in range(len(items))]

    def close(self) -> None:
        """End the threads; a later call starts new ones."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None


def run_parts(work: Callable[[Sequence[T]], R], items: Sequence[T], workers: int) -> list[R]:
    """Do work on parts of the items, one part a worker, and return the results in order.

    Few items are not divided. The threads end with the call.

    Raises:
        ParameterError: Fewer than 1 worker.
    """
    check_workers(workers)
    size = max(SMALLEST_PART, -(-len(items) // workers))
    parts = [items[i : i + size] for i in range(0, len(items), size)]
    threads = Threads()
    try:
        return threads.each(work, parts, max(1, len(parts)))
    finally:
        threads.close()
