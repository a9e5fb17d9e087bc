"""Processes that only move bytes, or add a few numbers, load no compiler and no data frames."""

import os
import subprocess
import sys
from pathlib import Path

from cases import each_case

HEAVY = ("numba", "scipy", "pandas", "formulaic", "matplotlib", "tenseal", "sklearn", "torch")
REPORT = f"""
import sys
print(*(name for name in {HEAVY!r} if name in sys.modules))
"""
TABLES = """
import pyarrow as pa
from securecomp.cli.without_pandas import without_pandas
without_pandas()
site = pa.table({"los": list(range(30)), "ward": ["a", "b", "c"] * 10, "died": [0, 1] * 15})
sites = {name: site for name in ("north", "south", "west")}
from securecomp import Study
"""


def loaded(code):
    """Which of the heavy packages a new process has loaded after some code."""
    command = [sys.executable, "-c", code + REPORT]
    path = os.pathsep.join(filter(None, (str(Path.cwd()), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)  # noqa: S603
    assert not done.returncode, done.stderr
    return done.stdout.split()


IMPORTS = {
    "study": "from securecomp import Study",
    "relay": "import securecomp.net.relay, securecomp.net.simulation",
    "server": "import securecomp.net.sum_server, securecomp.net.programs",
    "commands": "import securecomp.cli.consortium, securecomp.cli.questions, securecomp.cli.stats",
    "protocols": "from securecomp.protocol import sum_protocols as s; s.protocol('masking')",
}
SUMS = {
    "sharing": "Study(sites).mean('los', by='ward')",
    "masking": "Study(sites, protocol='masking').variance('los')",
    "paillier": "Study(sites, protocol='paillier').count(by='ward')",
}


@each_case("case", IMPORTS.values())
def test_nothing_heavy_is_imported(case):
    assert loaded(case) == []


@each_case("case", SUMS.values())
def test_a_small_sum_loads_no_compiler(case):
    assert loaded(TABLES + case) == []


def test_a_test_loads_scipy_alone():
    assert loaded(TABLES + "Study(sites).t_test('los', mu=3)") == ["scipy"]


def test_a_formula_loads_what_its_package_needs_and_no_compiler():
    found = loaded(TABLES + "Study(sites).glm('died ~ los', family='linear')")
    assert "numba" not in found
    assert {"formulaic", "pandas"} <= set(found)


def test_pandas_is_there_for_those_who_use_it_later():
    code = TABLES + "Study(sites).mean('los')\nimport pandas as pd\n"
    code += "frames = {name: pd.DataFrame({'los': [1, 2, 3] * 10}) for name in 'ab'}\n"
    code += "assert Study(frames).mean('los').value == 2\n"
    assert loaded(code) == ["pandas"]
