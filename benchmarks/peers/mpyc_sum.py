"""The private sum of one vector a party in MPyC: `python mpyc_sum.py [ELEMENTS] [RUNS] -M3`.

Executed by the Python of an environment that has mpyc and numpy; it imports nothing of ours.
Party 0 prints one JSON object. Every phase starts when all parties are ready for it.
"""

import asyncio
import json
import sys
import time
from importlib.metadata import PackageNotFoundError, version

import numpy as np
from mpyc.runtime import mpc

MODULUS = 2**61 - 1
BOUND = 2**40
PACKAGES = ("mpyc", "numpy", "gmpy2", "uvloop")


class Clock:
    """Measures phases: seconds of the slowest party, CPU seconds of all, bytes that each sent."""

    def __init__(self):
        self.phases = {}

    async def start(self):
        """Wait until all parties are here."""
        await mpc.transfer(0)
        self._start = _now()

    async def stop(self, phase):
        """End a phase and collect what it took of all parties."""
        taken = [after - before for after, before in zip(_now(), self._start, strict=True)]
        seconds, cpu, sent = zip(*await mpc.transfer(taken), strict=True)
        self.phases[phase] = {"seconds": max(seconds), "cpu": sum(cpu), "bytes_sent": sent}


def _now():
    sent = sum(peer.protocol.nbytes_sent for peer in mpc.parties if peer.pid != mpc.pid)
    return time.perf_counter(), time.process_time(), sent


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


def installed():
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


async def main():
    elements = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    loop = asyncio.get_running_loop()
    everywhere = loop.create_server
    # MPyC would listen on every interface of the machine.
    loop.create_server = lambda *args, **options: everywhere(*args, host="127.0.0.1", **options)
    await mpc.start()
    parties = len(mpc.parties)
    vectors = np.random.default_rng(0).integers(-BOUND, BOUND + 1, (parties, elements))
    secfld = mpc.SecFld(MODULUS)
    await run(secfld, vectors)  # warm-up
    measured = [await run(secfld, vectors) for _ in range(runs)]
    await mpc.shutdown()
    if mpc.pid == 0:
        print(json.dumps({"versions": installed(), "elements": elements, "runs": measured}))


mpc.run(main())
