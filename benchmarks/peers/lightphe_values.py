"""Paillier in LightPHE: `python lightphe_values.py BITS ELEMENTS RUNS`.

Executed by the Python of an environment that has lightphe; it imports nothing of ours. One value a
ciphertext; times of a few values are scaled to ELEMENTS. Prints one JSON object.
"""

import json
import secrets
import sys
import time
from importlib.metadata import version

from lightphe import LightPHE

BOUND = 2**40
FEW = 5


def run(system, elements):
    values = [secrets.randbelow(BOUND) for _ in range(FEW)]
    phases = {}

    def clocked(name, work):
        start = time.perf_counter()
        results = [work(i) for i in range(FEW)]
        seconds = (time.perf_counter() - start) / FEW * elements
        phases[name] = {"seconds": seconds, "cpu": seconds, "bytes_sent": [0]}
        return results

    encrypted = clocked("encrypt", lambda i: system.encrypt(plaintext=values[i]))
    phases["encrypt"]["bytes_sent"] = [len(str(encrypted[0].value)) * elements]
    added = clocked("add", lambda i: encrypted[i] + encrypted[i])
    plain = clocked("decrypt", lambda i: system.decrypt(added[i]))
    if plain != [2 * value for value in values]:
        sys.exit("wrong sum")
    return phases


def main():
    bits, elements, runs = map(int, sys.argv[1:4])
    system = LightPHE(algorithm_name="Paillier", key_size=bits)
    run(system, elements)  # warm-up
    measured = [run(system, elements) for _ in range(runs)]
    versions = {"lightphe": version("lightphe")}
    print(json.dumps({"versions": versions, "elements": elements, "runs": measured}))


main()
