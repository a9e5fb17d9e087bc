"""The private sum of one vector a party in MPyC: `python mpyc_sum.py [ELEMENTS] [RUNS] -M3`.

Executed by the Python of an environment that has mpyc and numpy; it imports nothing of ours but the
clock beside it. Party 0 prints one JSON object. A phase starts when all parties are ready for it.
"""

import json
import sys

import numpy as np
from mpyc.runtime import mpc
from mpyc_phases import Clock, installed, start

MODULUS = 2**61 - 1
BOUND = 2**40


async def run(secfld, vectors):
    """Return what each phase of one sum took."""
    clock, expected = Clock(), np.add.reduce(vectors)

    await clock.start()
    mine = secfld.array(vectors[mpc.pid].copy())
    await clock.stop("encode")

    await clock.start()
    shares = mpc.input(mine)
    await mpc.gather(shares)
    await clock.stop("input")

    await clock.start()
    total = await mpc.output(sum(shares[1:], start=shares[0]), receivers=0)
    await clock.stop("output_one")
    check(total if mpc.pid == 0 else None, expected)

    await clock.start()
    total = await mpc.output(sum(shares[1:], start=shares[0]))
    await clock.stop("output_all")

    await clock.start()
    signed = total.signed_().astype(np.int64)
    await clock.stop("decode")
    check(total, expected)
    if not np.array_equal(signed, expected):
        sys.exit("wrong sum")
    return clock.phases


def check(total, expected):
    if total is not None and not np.array_equal(total.value, expected % MODULUS):
        sys.exit("wrong sum")


async def main():
    elements = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    await start()
    parties = len(mpc.parties)
    vectors = np.random.default_rng(0).integers(-BOUND, BOUND + 1, (parties, elements))
    secfld = mpc.SecFld(MODULUS)
    await run(secfld, vectors)  # warm-up
    measured = [await run(secfld, vectors) for _ in range(runs)]
    await mpc.shutdown()
    if mpc.pid == 0:
        print(json.dumps({"versions": installed(), "elements": elements, "runs": measured}))


mpc.run(main())
