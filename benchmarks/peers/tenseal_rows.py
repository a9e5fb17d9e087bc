"""Encrypted logits in TenSEAL: `python tenseal_rows.py ELEMENTS RUNS`.

Executed by the Python of an environment that has tenseal and numpy; it imports nothing of ours. One
encrypted vector a row of 30 features, a plain model on the server, no activation, the parameters of
its tutorials; times of a few rows are scaled to ELEMENTS. Prints one JSON object.
"""

import json
import sys
import time
from importlib.metadata import version

import numpy as np
import tenseal

FEATURES = 30
FEW = 64
DEGREE = 8192
MODULI = [60, 40, 40, 60]
SCALE = 2**40
TOLERANCE = 1e-3


def keys():
    """Return the client's context and the bytes of the server's, which has no secret key."""
    context = tenseal.context(tenseal.SCHEME_TYPE.CKKS, DEGREE, coeff_mod_bit_sizes=MODULI)
    context.global_scale = SCALE
    context.generate_galois_keys()
    return context, context.serialize(save_secret_key=False)


def run(elements):
    """Return what each phase took."""
    phases = {}
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(FEW, FEATURES)).clip(-8, 8)
    weights, intercept = generator.normal(size=FEATURES).clip(-3, 3), 0.25

    def clocked(phase, scale, work):
        cpu, start = time.process_time(), time.perf_counter()
        result = work()
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        phases[phase] = {"seconds": seconds * scale, "cpu": cpu * scale, "bytes_sent": [0, 0]}
        return result

    def each(phase, work, items):
        return clocked(phase, elements / FEW, lambda: [work(item) for item in items])

    context, public = clocked("setup", 1.0, keys)
    server = tenseal.context_from(public)
    model = weights.tolist()
    data = each("encrypt", lambda row: tenseal.ckks_vector(context, row), rows.tolist())
    upload = each("save", lambda vector: vector.serialize(), data)
    data = each("load", lambda buffer: tenseal.ckks_vector_from(server, buffer), upload)
    result = each("predict", lambda vector: vector.dot(model) + intercept, data)
    download = each("reply", lambda vector: vector.serialize(), result)
    result = each("open", lambda buffer: tenseal.ckks_vector_from(context, buffer), download)
    logits = each("decrypt", lambda vector: vector.decrypt()[0], result)
    error = float(np.abs(np.array(logits) - (rows @ weights + intercept)).max())
    if not error <= TOLERANCE:
        sys.exit(f"wrong logits: off by {error}")
    phases["setup"]["bytes_sent"] = [len(public), 0]
    phases["encrypt"]["bytes_sent"] = [round(sum(map(len, upload)) / FEW * elements), 0]
    phases["predict"]["bytes_sent"] = [0, round(sum(map(len, download)) / FEW * elements)]
    return {phase: {**taken, "error": error} for phase, taken in phases.items()}


def main():
    elements, runs = map(int, sys.argv[1:3])
    run(elements)  # warm-up
    measured = [run(elements) for _ in range(runs)]
    versions = {name: version(name) for name in ("tenseal", "numpy")}
    print(json.dumps({"versions": versions, "elements": elements, "runs": measured}))


main()
