"""Sites on other processors: their BLAS has other kernels, and a model is the same to the bit."""

import contextlib
import json
import os
import subprocess
import sys
import threading

import pytest
from consortium import Consortium, rows
from test_hospital_networks import SITES

from securecomp.net import simulation

ASKED = """
[[analyses]]
ask = "glm"
formula = "died ~ age + weight + los"
[[analyses]]
ask = "cox"
time = "days"
event = "died"
covariates = ["age", "arm"]
times = [100, 200, 300, 400]
"""
KERNELS = dict(zip(SITES, ("Haswell", "Nehalem"), strict=True))
PROBE = """
import hashlib, numpy, threadpoolctl
rows = numpy.random.default_rng(1).normal(size=(500, 7))
kernels = {one.get("architecture") for one in threadpoolctl.threadpool_info()}
print(sorted(map(str, kernels)), hashlib.sha256((rows.T @ rows).tobytes()).hexdigest())
"""


def on(kernel, command):
    """A command whose BLAS takes a processor for another."""
    return ["/usr/bin/env", f"OPENBLAS_CORETYPE={kernel}", *command]


def probed(kernel):
    return subprocess.run(  # noqa: S603 - our own command
        on(kernel, [sys.executable, "-c", PROBE]), capture_output=True, text=True, check=True
    ).stdout.split("] ")


@pytest.mark.slow
@pytest.mark.skipif(not os.access("/usr/bin/env", os.X_OK), reason="there is no env here")
def test_regressions_are_bit_equal_where_kernels_differ(tmp_path):
    (one, ours), (other, theirs) = map(probed, KERNELS.values())
    if "Haswell" not in one or "Nehalem" not in other or ours == theirs:
        pytest.skip("this machine's BLAS has one kernel")
    consortium = Consortium(tmp_path, ASKED, sites=SITES)
    servers = [
        threading.Thread(target=consortium.server, args=(name,)) for name in consortium.servers
    ]
    with contextlib.ExitStack() as stack:
        stack.enter_context(consortium.relay())
        for server in servers:
            server.start()
        running = {}
        for site, kernel in KERNELS.items():
            key, data = (tmp_path / f"{site}.{end}" for end in ("identity", "csv"))
            rows(site).to_csv(data, index=False)
            command = simulation.join_command(
                consortium.path, site, data, key, consortium.url, "--json"
            )
            running[site] = stack.enter_context(
                simulation.started(on(kernel, command), tmp_path / f"{site}.out")
            )
        for site, process in running.items():
            assert process.wait(120) == 0, (tmp_path / f"{site}.out.errors").read_text()
        for server in servers:
            server.join(60)
    texts = {(tmp_path / f"{site}.out").read_text() for site in SITES}
    (text,) = texts
    assert [one["ask"][:3] for one in json.loads(text)["results"]] == ["glm", "cox"]
    assert len(text) > 2000
