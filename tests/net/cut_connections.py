"""Connections that are cut in the middle, as a kill cuts them, leave sockets to the collector."""

import gc
from pathlib import Path

import pytest

IGNORED = ("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


def ignore_in(folder, items):
    """Let a folder's tests leave sockets."""
    for item in items:
        if folder in Path(item.fspath).parents:
            for what in IGNORED:
                item.add_marker(pytest.mark.filterwarnings(what))


@pytest.fixture(autouse=True)
def collected():
    """What a test leaves is collected within it, where its filters hold."""
    yield
    gc.collect()
