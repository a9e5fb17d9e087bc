"""Executors for the tests of batches, where new processes can find them."""

import os
from concurrent.futures import Executor, Future, ProcessPoolExecutor


def dies(work, task, chosen):
    if chosen:
        os._exit(1)
    return work(task)


class Dying(ProcessPoolExecutor):
    """One of its tasks takes the worker with it."""

    def __init__(self, position, **options):
        super().__init__(**options)
        self.position = position

    def map(self, work, tasks):
        tasks = list(tasks)
        chosen = [i == self.position for i in range(len(tasks))]
        return super().map(dies, [work] * len(tasks), tasks, chosen)


class Here(Executor):
    """An executor that is none of Python's: it works at once, and notes the tasks."""

    def __init__(self, fault=None, at=0):
        self.fault, self.at, self.tasks = fault, at, []

    def submit(self, work, /, *args):
        future = Future()
        self.tasks.append(args)
        if self.fault is not None and len(self.tasks) > self.at:
            future.set_exception(self.fault)
        else:
            future.set_result(work(*args))
        return future
