"""The committed runs, and a run in the form that `securecomp bench` writes."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
NAMES = ("sharing-masking", "paillier", "computing", "ckks")


@pytest.fixture(scope="session")
def runs() -> dict[str, dict[str, Any]]:
    """The committed runs, by name."""
    return {name: json.loads((RESULTS / f"{name}.json").read_text()) for name in NAMES}


@pytest.fixture
def run(runs: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """One of them, to change."""
    return copy.deepcopy(runs["computing"])
