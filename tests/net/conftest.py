"""Connections that are cut in the middle, as a kill cuts them, leave sockets to the collector."""

import gc
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in Path(item.fspath).parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
            item.add_marker(
                pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
            )


@pytest.fixture(autouse=True)
def _collected():
    """What a test leaves is collected within it, where its filters hold."""
    yield
    gc.collect()
