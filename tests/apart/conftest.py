"""Tests that cut connections."""

from pathlib import Path

from cut_connections import collected, ignore_in

__all__ = ["collected"]


def pytest_collection_modifyitems(items):
    ignore_in(Path(__file__).parent, items)
