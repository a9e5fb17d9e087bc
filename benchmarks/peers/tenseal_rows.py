"""Encrypted logits in TenSEAL: `python tenseal_rows.py ELEMENTS RUNS`.

Executed by the Python of an environment that has tenseal and numpy; it imports nothing of ours. 30
features, a plain model on the server, no activation. Three ways: one encrypted vector a row with
Galois keys, the parameters of its tutorials (phases without a name before them); and one encrypted
vector a column, with the secret key (`secret`) or the public one (`public`), which is the best
program that we found in its vectors. (It has no intercept: without rescaling TenSEAL adds plain
numbers at the wrong scale.) Times are scaled to ELEMENTS. Prints one JSON object.
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
# A column: one prime for the data, which holds weights and values of 25 bits each and the logit.
SLOTS = 2048
COLUMN_MODULI = [60, 30]
COLUMN_SCALE = 2.0**25


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


def column_keys(kind):
    """Return the client's context, and the server's, which has no secret key."""
    context = tenseal.context(
        tenseal.SCHEME_TYPE.CKKS,
        2 * SLOTS,
        coeff_mod_bit_sizes=COLUMN_MODULI,
        encryption_type=kind,
    )
    context.global_scale = COLUMN_SCALE
    server = tenseal.context_from(context.serialize(save_secret_key=False))
    for side in (context, server):
        side.auto_rescale = side.auto_relin = side.auto_mod_switch = False
    return context, server


def weighted(vectors, weights):
    """Return the sum of encrypted columns times weights."""
    total = vectors[0] * weights[0]
    for vector, weight in zip(vectors[1:], weights[1:], strict=True):
        total += vector * weight
    return total


def run_columns(elements, name, kind):
    """Return what each phase took for full vectors of columns."""
    phases = {}
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(SLOTS, FEATURES)).clip(-8, 8)
    weights = generator.normal(size=FEATURES).clip(-3, 3)
    scale = elements / SLOTS

    def clocked(phase, scale, work):
        cpu, start = time.process_time(), time.perf_counter()
        result = work()
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        phases[f"{name}_{phase}"] = {
            "seconds": seconds * scale,
            "cpu": cpu * scale,
            "bytes_sent": [0, 0],
        }
        return result

    context, server = clocked("setup", 1.0, lambda: column_keys(kind))
    columns, model = rows.T.tolist(), weights.tolist()
    data = clocked("encrypt", scale, lambda: [tenseal.ckks_vector(context, c) for c in columns])
    upload = clocked("save", scale, lambda: [vector.serialize() for vector in data])
    data = clocked("load", scale, lambda: [tenseal.ckks_vector_from(server, b) for b in upload])
    result = clocked("predict", scale, lambda: weighted(data, model))
    download = clocked("reply", scale, result.serialize)
    result = clocked("open", scale, lambda: tenseal.ckks_vector_from(context, download))
    logits = clocked("decrypt", scale, result.decrypt)
    error = float(np.abs(np.array(logits) - rows @ weights).max())
    if not error <= TOLERANCE:
        sys.exit(f"wrong logits by columns, {name} key: off by {error}")
    phases[f"{name}_encrypt"]["bytes_sent"] = [round(sum(map(len, upload)) * scale), 0]
    phases[f"{name}_predict"]["bytes_sent"] = [0, round(len(download) * scale)]
    return {phase: {**taken, "error": error} for phase, taken in phases.items()}


def every_way(elements):
    """Return the phases of all three ways, which take turns."""
    kinds = tenseal.ENCRYPTION_TYPE
    return {
        **run(elements),
        **run_columns(elements, "secret", kinds.SYMMETRIC),
        **run_columns(elements, "public", kinds.ASYMMETRIC),
    }


def main():
    elements, runs = map(int, sys.argv[1:3])
    every_way(elements)  # warm-up
    measured = [every_way(elements) for _ in range(runs)]
    versions = {name: version(name) for name in ("tenseal", "numpy")}
    print(json.dumps({"versions": versions, "elements": elements, "runs": measured}))


main()
