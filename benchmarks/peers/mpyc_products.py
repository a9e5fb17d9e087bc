"""Products and comparisons on shares in MPyC: `python mpyc_products.py [JOBS] [RUNS] -M3`.

Executed by the Python of an environment that has mpyc and numpy; it imports nothing of ours but the
clock beside it. JOBS is a list such as `products=1000000,compare=100000`; both by default. The
inputs are shared before, the result is opened after, and compared with numpy's. Party 0 prints one
JSON object. A phase starts when all parties are ready for it, and ends with the slowest.
"""

import json
import sys

import numpy as np
from mpyc.runtime import mpc
from mpyc_phases import Clock, installed, start

MODULUS = 2**61 - 1
FACTOR = 2**29
BITS = 32
FEW = 1000  # comparisons that are timed; the rest is scaled


async def products(name, elements):
    """Return what the products took: arrays of the field's elements, on numpy."""
    secfld = mpc.SecFld(MODULUS)
    a, b = np.random.default_rng(0).integers(-FACTOR, FACTOR + 1, (2, elements))
    x, y = (mpc.input(secfld.array(values.copy()), senders=0) for values in (a, b))
    return await clocked(name, x, y, np.multiply, lambda found: found.value, (a * b) % MODULUS)


async def compare(name, elements):
    """Return what the comparisons took, scaled: arrays of integers of 32 bits."""
    secint = mpc.SecInt(BITS)
    few, bound = min(FEW, elements), 2 ** (BITS - 2)
    a, b = np.random.default_rng(0).integers(-bound, bound + 1, (2, few))
    x, y = (mpc.input(secint.array(values.astype(object)), senders=0) for values in (a, b))
    took = await clocked(name, x, y, np.less, lambda found: found, a < b)
    scale = elements / few
    sent = [round(number * scale) for number in took["bytes_sent"]]
    return {"seconds": took["seconds"] * scale, "cpu": took["cpu"] * scale, "bytes_sent": sent}


async def clocked(name, x, y, work, read, expected):
    """Time a job from shares to shares, and check it."""
    await mpc.gather(x, y)
    clock = Clock()
    await clock.start()
    z = work(x, y)
    await mpc.gather(z)
    await clock.stop(name)
    if not np.array_equal(read(await mpc.output(z)), expected):
        sys.exit(f"wrong result of {name}")
    return clock.phases[name]


JOBS = {"products": (products, 1_000_000), "compare": (compare, 100_000)}


async def run(jobs):
    """Return what each job took, once."""
    return {
        name: {**await JOBS[name][0](name, elements), "elements": elements}
        for name, elements in jobs.items()
    }


async def main():
    jobs = {name: elements for name, (_, elements) in JOBS.items()}
    if len(sys.argv) > 1:
        pairs = (job.split("=") for job in sys.argv[1].split(","))
        jobs = {name: int(elements) for name, elements in pairs}
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    await start()
    await run(jobs)  # warm-up
    measured = [await run(jobs) for _ in range(runs)]
    await mpc.shutdown()
    if mpc.pid == 0:
        print(json.dumps({"versions": installed(), "runs": measured}))


mpc.run(main())
