"""Every Python snippet of the README and of the pages runs as it stands."""

import os
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from securecomp import Study
from securecomp.errors import RefutedError
from securecomp.models import LogisticModel
from securecomp.privacy.ledger import Ledger
from securecomp.privacy.sensitivity import Neighbours

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SNIPPET = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def snippets(page):
    return SNIPPET.findall(page.read_text(encoding="utf-8"))


def frame(first):
    """Return a site's rows, with the columns that pages ask about."""
    n = (np.arange(40) * 7919 + first) % 1009
    return pd.DataFrame(
        {
            "los": n % 30,
            "age": 20 + n % 70,
            "days": 1 + n % 300,
            "died": (n // 3) % 3 % 2,
            "arm": np.where(n % 2, "a", "b"),
            "ward": np.where(n % 5 < 2, "a", "b"),
            "type": 1 + n % 3,
            "drug": n // 7 % 2,
        }
    )


def basic(_):
    """Return the names that most pages take for granted: three sites, and a fitted model."""
    x = np.random.default_rng(1).normal(size=(60, 3))
    sites = {"north": frame(1), "south": frame(2), "west": frame(3)}
    return {
        **sites,
        "sites": sites,
        "hospitals": sites,
        "new_rows": frame(4),
        "rows": x[:5],
        "fitted": LogisticRegression().fit(x, x[:, 0] > 0),
    }


def training(folder):
    """Return hospitals with the columns of the page, a budget, and labelled rows."""
    n = np.arange(400)
    sites = {
        name: pd.DataFrame(
            {
                "los": 1 + (n * 7 + shift) % 40,
                "hmo": n // 3 % 2,
                "white": n // 5 % 2,
                "age80": n // 7 % 2,
                "type": 1 + n // 11 % 3,
                "died": (n * 7 + shift) % 40 // 13 % 2,
            }
        )
        for name, shift in (("north", 1), ("south", 5), ("west", 9))
    }
    Ledger.create(
        folder / "budget",
        dataset="stays",
        epsilon=3,
        delta="1e-5",
        neighbours=Neighbours("add/remove", "record"),
    )
    x = np.random.default_rng(2).normal(size=(300, 4))
    return {"hospitals": sites, "new_rows": sites["west"], "rows": x, "labels": x[:, 0] > 0}


def audits(folder):
    """Return a file of people, and a model that learned some of them."""
    n = np.arange(200)
    people = pd.DataFrame(
        {
            "age": 20 + n % 60,
            "sex": np.where(n % 2, "f", "m"),
            "postcode": 1000 + n % 7,
            "diagnosis": np.where(n % 3, "a", "b"),
        }
    )
    sites = {
        name: pd.DataFrame(
            {"los": n % 30 + 1, "hmo": (n + s) % 2, "died": ((n + s) * 7 % 30 > 14).astype(int)}
        )
        for s, name in enumerate(("north", "south"))
    }
    fitted = LogisticRegression().fit(sites["north"][["los", "hmo"]], sites["north"]["died"])
    (folder / "model.json").write_text(LogisticModel.from_sklearn(fitted).to_json())
    for name in ("in", "out"):
        sites["north"].to_csv(folder / f"{name}.csv", index=False)
    return {
        "frame": people,
        "estimator": GaussianNB(),
        "outlier": load_breast_cancer().data[300:301],
        "label": np.array([1]),
        "fitted": fitted,
        "study": Study(sites),
        "score": lambda texts: np.array([float(sum(map(ord, text))) for text in texts]),
        "times": [1] * 10 + [0] * 10,
    }


GIVEN = {"docs/training.md": training, "docs/audits.md": audits}
NEEDS = {"private_training(": "opacus"}
"""Words of a snippet to the package that it needs, which the tests may lack."""


@pytest.mark.parametrize(
    "page", [p.relative_to(ROOT).as_posix() for p in PAGES if SNIPPET.search(p.read_text())]
)
def test_a_page_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = GIVEN.get(page, basic)(tmp_path)
    for number, text in enumerate(snippets(ROOT / page), 1):
        if any(word in text and not find_spec(package) for word, package in NEEDS.items()):
            continue
        code = compile(text, f"{page}, snippet {number}", "exec")
        try:
            exec(code, names)  # noqa: S102
        except RefutedError:
            assert "# RefutedError" in text
    capsys.readouterr()


def test_links_to_files_of_the_repository_lead_somewhere():
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in [*PAGES, ROOT / "SECURITY.md", ROOT / "CONTRIBUTING.md"]
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert not broken, "\n".join(broken)


def test_every_snippet_compiles():
    for page in PAGES:
        for number, text in enumerate(snippets(page), 1):
            compile(text, f"{os.fspath(page)}, snippet {number}", "exec")
