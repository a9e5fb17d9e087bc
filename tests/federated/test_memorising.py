"""The experiment of examples/private_training.py: a model that memorises, and noise against it.

Expected values are those of a published lesson, for one population: accuracy on others and the loss
attack's AUC for noise multipliers 0, 1, 2 and 4. Of 500 members and 500 others an accuracy scatters
by about .021 and an AUC by .016 from population to population, so that our means are held to twice
the first. The lesson does not say how the label noise of .5 is scaled: here, to a score of variance
1, which fits best (.5 of the unscaled score's unit gives .73 on others without noise, and .5 on the
rows' own scale .52).
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from replaying import Replay

from securecomp.federated.promise import simple_epsilon

PATH = Path(__file__).parents[2] / "examples" / "private_training.py"
PUBLISHED = {0: (0.65, 0.76), 1: (0.64, 0.66), 2: (0.60, 0.60), 4: (0.58, 0.56)}


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("private_training_example", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def means(example, seeds):
    found = {}
    for noise in PUBLISHED:
        runs = [example.memorise(noise, s, entropy=Replay(f"{noise} {s}")) for s in range(seeds)]
        found[noise] = np.mean([(r.train, r.test, r.attack) for r in runs], axis=0)
    return found


def documented():
    """What docs/training.md says, by noise."""
    rows = (PATH.parents[1] / "docs" / "training.md").read_text(encoding="utf-8").splitlines()
    start = next(i for i, row in enumerate(rows) if row.startswith("| noise multiplier | members"))
    cells = [[c.strip() for c in row.strip("|").split("|")] for row in rows[start + 2 : start + 6]]
    return {int(noise): shown for noise, *shown in cells}


def held(found, tolerance=0.045):
    for noise, (test, attack) in PUBLISHED.items():
        assert found[noise][1] == pytest.approx(test, abs=tolerance)
        assert found[noise][2] == pytest.approx(attack, abs=tolerance)
    assert found[0][0] > 0.985
    attacks = [found[noise][2] for noise in PUBLISHED]
    assert attacks == sorted(attacks, reverse=True)


def test_noise_makes_it_forget(example):
    held(means(example, 2))


@pytest.mark.slow
def test_noise_makes_it_forget_on_average(example):
    found = means(example, 25)
    held(found)
    for noise, shown in documented().items():
        assert [float(x) for x in shown[:3]] == pytest.approx(found[noise], abs=0.0051)


def test_epsilons(example):
    """Ours are smaller than the simple bound's, which are the published ones."""
    for noise, published in ((1, 28.5), (2, 9.8), (4, 4.2)):
        simple = simple_epsilon(noise, 0.1, 1000, 1e-5)
        assert simple == pytest.approx(published, abs=0.06)
        ours = example.memorise(noise, 0).epsilon
        assert ours < 0.89 * published
        assert documented()[noise][3:] == [f"{ours:.1f}", f"{simple:.1f}"]
