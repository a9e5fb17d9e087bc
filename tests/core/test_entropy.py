"""Where randomness comes from, and that it comes from nowhere else."""

import ast
import inspect
import secrets
from pathlib import Path

from cases import each_case

import securecomp
from securecomp.core import entropy

SOURCES = sorted(Path(inspect.getfile(securecomp)).parent.rglob("*.py"))
HOME = Path(inspect.getfile(entropy))
MEASURED = "exact_noise.py"  # times numpy's samplers: they are the plaintext side of its rows
FORBIDDEN = {"random", "secrets", "uuid", "numpy.random", "os.urandom", "os.getrandom"}


@each_case("size", [0, 1, 16, 32, 1000])
def test_system(size):
    drawn = entropy.system(size)
    assert type(drawn) is bytes
    assert len(drawn) == size


def test_system_draws_anew():
    assert len({entropy.system(16) for _ in range(100)}) == 100


def test_system_asks_the_operating_system(monkeypatch):
    asked = []

    def recorded(size):
        asked.append(size)
        return b"x" * size

    monkeypatch.setattr(secrets, "token_bytes", recorded)
    assert entropy.system(5) == b"xxxxx"
    assert asked == [5]


def sources_of_chance(code):
    """What a source imports, or uses by its full name, that draws random numbers."""
    names = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.update((node.module, *(f"{node.module}.{a.name}" for a in node.names)))
        elif isinstance(node, ast.Attribute):
            full = ast.unparse(node).replace("np.", "numpy.", 1)
            names.add(full if full.startswith(("numpy.", "os.")) else None)
    return FORBIDDEN & names


@each_case("source", [s for s in SOURCES if s != HOME and s.name != MEASURED])
def test_nothing_else_draws(source):
    assert sources_of_chance(source.read_text(encoding="utf-8")) == set()


@each_case(
    "code, found",
    [
        ("import random", "random"),
        ("import numpy as np, random as r", "random"),
        ("from random import randint", "random"),
        ("from numpy import random", "numpy.random"),
        ("from numpy.random import default_rng", "numpy.random"),
        ("import numpy as np\nx = np.random.rand(3)", "numpy.random"),
        ("import os\nx = os.urandom(3)", "os.urandom"),
        ("from os import urandom", "os.urandom"),
        ("def f():\n    import secrets\n", "secrets"),
    ],
)
def test_the_search_would_find_it(code, found):
    assert sources_of_chance(code) == {found}


def test_the_search_finds_the_one_source():
    assert sources_of_chance(HOME.read_text(encoding="utf-8")) == {"secrets"}


def test_replay_gives_the_same_again(replay):
    """The tests' own source: what makes them repeatable."""
    first, second = replay("seed"), replay("seed")
    drawn = [first(size) for size in (1, 0, 15, 16, 33)]
    assert drawn == [second(size) for size in (1, 0, 15, 16, 33)]
    assert [len(d) for d in drawn] == [1, 0, 15, 16, 33]
    assert replay("seed")(65) == b"".join(drawn)
    assert replay("other")(32) != replay("seed")(32)
    assert replay(1)(32) != replay("1")(32)
    assert first(16) != replay("seed")(16)
