"""Secure aggregation in Flower: `python flower_secagg.py [CLIENTS] [ELEMENTS] [RUNS]`.

Executed by the Python of an environment that has flwr; it imports nothing of ours. The clients'
work is Flower's own functions of `secaggplus_mod`; the server's is the loop of its workflow's
unmask stage over the same functions of the package, without the messaging. Prints one JSON object.
"""

import json
import sys
import time
from importlib import import_module
from importlib.metadata import version

import numpy as np
from flwr.common import Parameters, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.common.secure_aggregation.crypto.shamir import combine_shares
from flwr.common.secure_aggregation.crypto.symmetric_encryption import generate_shared_key
from flwr.common.secure_aggregation.ndarrays_arithmetic import (
    get_parameters_shape,
    parameters_addition,
    parameters_mod,
    parameters_subtraction,
)
from flwr.common.secure_aggregation.secaggplus_constants import Key
from flwr.common.secure_aggregation.secaggplus_utils import pseudo_rand_gen
from flwr.supercore.primitives.asymmetric import bytes_to_private_key, bytes_to_public_key

# The package binds the function of the same name over the module.
mod = import_module("flwr.client.mod.secure_aggregation.secaggplus_mod")

CLIP = 8.0
TARGET = 1 << 16
MODULUS = 1 << 32


def run(clients, elements):
    """Return what each phase of one aggregation took, no client and a tenth of them dropping."""
    phases = {}
    threshold = clients // 2 + 1
    states = {i: mod.SecAggPlusState() for i in range(1, clients + 1)}
    keys = {}
    for nid, state in states.items():
        state.nid = nid
        setup = {
            Key.SAMPLE_NUMBER: clients,
            Key.SHARE_NUMBER: clients,
            Key.THRESHOLD: threshold,
            Key.CLIPPING_RANGE: CLIP,
            Key.TARGET_RANGE: TARGET,
            Key.MOD_RANGE: MODULUS,
            Key.MAX_WEIGHT: 1.0,
        }
        public = mod._setup(state, setup)
        keys[str(nid)] = (public[Key.PUBLIC_KEY_1], public[Key.PUBLIC_KEY_2])
    boxes = {i: ([], []) for i in states}
    times = []
    sent = 0
    for nid, state in states.items():
        start = time.perf_counter()
        out = mod._share_keys(state, dict(keys))
        times.append(time.perf_counter() - start)
        sent = sum(map(len, out[Key.CIPHERTEXT_LIST]))
        for to, box in zip(out[Key.DESTINATION_LIST], out[Key.CIPHERTEXT_LIST], strict=True):
            boxes[to][0].append(nid)
            boxes[to][1].append(box)
    phases["client_share"] = phase(times, sent)
    vector = np.random.default_rng(0).uniform(-1, 1, elements).astype(np.float32)
    parameters = ndarrays_to_parameters([vector])
    masked, times = {}, []
    for nid, state in states.items():
        configs = {Key.SOURCE_LIST: boxes[nid][0], Key.CIPHERTEXT_LIST: boxes[nid][1]}
        start = time.perf_counter()
        out = mod._collect_masked_vectors(state, configs, 1, parameters)
        times.append(time.perf_counter() - start)
        sent = sum(map(len, out[Key.MASKED_PARAMETERS]))
        # What the message holds, read back as the server does.
        masked[nid] = [
            parameters_to_ndarrays(Parameters([part], "numpy.ndarray"))[0]
            for part in out[Key.MASKED_PARAMETERS]
        ]
    phases["client_mask"] = phase(times, sent)
    for name, dropped in (("server", 0), ("server_drop", clients // 10)):
        active = [nid for nid in states if nid > dropped]
        total = masked[active[0]]
        for nid in active[1:]:
            total = parameters_addition(total, masked[nid])
        total = parameters_mod(total, MODULUS)
        dead = [nid for nid in states if nid <= dropped]
        collected = {nid: [] for nid in states}
        for nid in active:
            configs = {Key.ACTIVE_NODE_ID_LIST: active, Key.DEAD_NODE_ID_LIST: dead}
            out = mod._unmask(states[nid], configs)
            for owner, share in zip(out[Key.NODE_ID_LIST], out[Key.SHARE_LIST], strict=True):
                collected[owner].append(share)
        start = time.perf_counter()
        total = unmask(total, collected, set(active), keys)
        phases[name] = phase([time.perf_counter() - start], 0)
        check(total, vector, len(active))
    return phases


def unmask(total, collected, active, keys):
    """Take the masks off, as the workflow's unmask stage does."""
    for nid, shares in collected.items():
        secret = combine_shares(shares)
        shape = get_parameters_shape(total)
        if nid in active:
            total = parameters_subtraction(total, pseudo_rand_gen(secret, MODULUS, shape))
            continue
        for other in collected:
            if other == nid:
                continue
            shared = generate_shared_key(
                bytes_to_private_key(secret), bytes_to_public_key(keys[str(other)][0])
            )
            mask = pseudo_rand_gen(shared, MODULUS, shape)
            operation = parameters_addition if nid > other else parameters_subtraction
            total = operation(total, mask)
    return parameters_mod(total, MODULUS)


def check(total, vector, active):
    if total[0][0] != active * TARGET:
        sys.exit(f"wrong weight: {total[0][0]}")
    mean = total[1] / active * (2 * CLIP) / TARGET - CLIP
    if np.abs(mean - vector).max() > 4 * CLIP / TARGET:
        sys.exit("wrong mean")


def phase(times, sent):
    seconds = float(np.median(times))
    return {"seconds": seconds, "cpu": seconds, "bytes_sent": [sent]}


def main():
    clients, elements, runs = map(int, sys.argv[1:4] if len(sys.argv) > 3 else (20, 100_000, 5))
    run(clients, elements)  # warm-up
    measured = [run(clients, elements) for _ in range(runs)]
    versions = {name: version(name) for name in ("flwr", "numpy", "cryptography", "pycryptodome")}
    print(json.dumps({"versions": versions, "elements": elements, "runs": measured}))


main()
