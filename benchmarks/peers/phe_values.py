"""Paillier in python-paillier: `python phe_values.py BITS ELEMENTS RUNS`.

Executed by the Python of an environment that has phe and gmpy2; it imports nothing of ours. One
value a ciphertext, as phe has it; times of a few values are scaled to ELEMENTS. Prints one JSON
object.
"""

import json
import secrets
import sys
import time
from importlib.metadata import version

from phe import paillier

BOUND = 2**40
FEW = 20


def run(public, private, elements):
    values = [secrets.randbelow(2 * BOUND) - BOUND for _ in range(FEW)]
    phases = {}

    def clocked(name, work, sent=0):
        start = time.perf_counter()
        results = [work(i) for i in range(FEW)]
        seconds = (time.perf_counter() - start) / FEW * elements
        phases[name] = {"seconds": seconds, "cpu": seconds, "bytes_sent": [sent]}
        return results

    encrypted = clocked("encrypt", lambda i: public.encrypt(values[i]))
    size = len(json.dumps({"v": str(encrypted[0].ciphertext()), "e": encrypted[0].exponent}))
    phases["encrypt"]["bytes_sent"] = [size * elements]
    added = clocked("add", lambda i: encrypted[i] + encrypted[i])
    plain = clocked("decrypt", lambda i: private.decrypt(added[i]))
    if plain != [2 * value for value in values]:
        sys.exit("wrong sum")
    return phases


def main():
    bits, elements, runs = map(int, sys.argv[1:4])
    public, private = paillier.generate_paillier_keypair(n_length=bits)
    run(public, private, elements)  # warm-up
    measured = [run(public, private, elements) for _ in range(runs)]
    versions = {name: version(name) for name in ("phe", "gmpy2")}
    print(json.dumps({"versions": versions, "elements": elements, "runs": measured}))


main()
