"""The example runs as it stands."""

import os
import subprocess
import sys
from pathlib import Path

from securecomp.ckks.model import LogisticModel

EXAMPLE = Path(__file__).parents[2] / "examples" / "federated_training.py"


def test_federated_training(tmp_path):
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-W", "error", EXAMPLE, "model.json"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONIOENCODING": "utf-8", "PYTHONPATH": str(EXAMPLE.parents[1])},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "in the clear: the same bits" in done.stdout
    assert "left of the budget: epsilon 6" in done.stdout
    difference = float(done.stdout.split("maximum of the likelihood: ")[1].split()[0])
    assert difference < 1e-3
    model = LogisticModel.from_json((tmp_path / "model.json").read_text())
    assert model.features[0] == "log(los)"
