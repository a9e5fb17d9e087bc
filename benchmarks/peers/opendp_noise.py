"""Integer noise in OpenDP: `python opendp_noise.py ELEMENTS RUNS`.

Executed by the Python of an environment that has opendp; it imports nothing of ours. Discrete
Laplace and discrete Gaussian noise on a vector of i64 (its `int` would be 32 bits); times of some
draws are scaled to ELEMENTS. Prints one JSON object.
"""

import json
import sys
import time
from importlib.metadata import version

import numpy as np
import opendp.prelude as dp

FEW = 20_000
SCALE, SIGMA = 10.0, 10.0

dp.enable_features("contrib")


def measurements():
    domain = dp.vector_domain(dp.atom_domain(T="i64"), size=FEW)
    yield "laplace", dp.m.make_laplace(domain, dp.l1_distance(T="i64"), SCALE), 2 * SCALE**2
    yield "gaussian", dp.m.make_gaussian(domain, dp.l2_distance(T="i64"), SIGMA), SIGMA**2


def run(elements):
    phases = {}
    for name, measurement, variance in measurements():
        start = time.perf_counter()
        noised = measurement([0] * FEW)
        seconds = (time.perf_counter() - start) / FEW * elements
        phases[name] = {"seconds": seconds, "cpu": seconds, "bytes_sent": [0]}
        if not 0.8 < np.var(noised) / variance < 1.2:
            sys.exit("wrong noise")
    return phases


def main():
    elements, runs = map(int, sys.argv[1:3])
    run(elements)  # warm-up
    measured = [run(elements) for _ in range(runs)]
    versions = {"opendp": version("opendp")}
    print(json.dumps({"versions": versions, "elements": elements, "runs": measured}))


main()
