"""Arithmetic on shares in SPU: `python spu_arithmetic.py PROTOCOL PARTIES [JOBS] [RUNS]`.

Executed by the Python of an environment that has spu, jax and numpy; it imports nothing of ours.
JOBS is a list such as `products=1000000,compare=100000`; all by default. What SPU's own simulator
does, a thread a party and links in memory, but with runtimes that stay and hold the shared inputs,
so that the computation is timed alone: neither compiling, sharing nor revealing. Every result is
compared with numpy's before anything is printed. Prints one JSON object.
"""

import json
import os
import re
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from math import isqrt
from threading import Barrier

import jax
import numpy as np
from spu import api, libspu
from spu.utils import frontend

BITS = 16
UNIT = 2.0**-BITS
SECRET = libspu.Visibility.VIS_SECRET
SENT = re.compile(r"Link details: total send bytes (\d+)")
SMALL = 16.0  # absolute fixed-point numbers: far below where its truncation fails now and then


def integers(bound):
    """Return a function that draws integers."""
    return lambda generator, shape: generator.integers(-bound, bound + 1, shape)


def fractions(generator, shape):
    """Return multiples of 2^-16."""
    return integers(round(SMALL / UNIT))(generator, shape) * UNIT


def multiply(x, y):
    return x * y


def matmul(x, y):
    return x @ y


def less(x, y):
    return x < y


def sigmoid(x):
    return jax.nn.sigmoid(x)


# Function, its plaintext, how many inputs, how to draw them, largest error, elements by default.
# A truncated product is off by one unit at most, and by another half from rounding to the grid.
JOBS = {
    "products": (multiply, np.multiply, 2, integers(1 << 29), 0.0, 1_000_000),
    "truncated": (multiply, np.multiply, 2, fractions, 2 * UNIT, 1_000_000),
    "matmul": (matmul, np.matmul, 2, integers(1 << 20), 0.0, 500**2),
    "matmul_truncated": (matmul, np.matmul, 2, fractions, 2 * UNIT, 500**2),
    "compare": (less, np.less, 2, integers(1 << 40), 0.0, 100_000),
    "sigmoid": (sigmoid, lambda x: 1 / (1 + np.exp(-x)), 1, fractions, 0.01, 100_000),
}


class Parties:
    """A runtime a party, each with a thread."""

    def __init__(self, protocol, parties, **options):
        config = libspu.RuntimeConfig(
            protocol=getattr(libspu.ProtocolKind, protocol.upper()),
            field=libspu.FieldType.FM64,
            fxp_fraction_bits=BITS,
        )
        for name, value in options.items():
            setattr(config, name, value)
        self.count = parties
        self._io = api.Io(parties, config)
        self._pool = ThreadPoolExecutor(parties)
        links = libspu.link.Desc()
        for rank in range(parties):
            links.add_party(f"id_{rank}", f"thread_{rank}")

        def runtime(rank):
            link = libspu.link.create_mem(links, rank)
            return api.Runtime(link, libspu.RuntimeConfig(config))

        self._runtimes = list(self._pool.map(runtime, range(parties)))

    def share(self, names, arrays):
        """Give every party its shares of the inputs."""
        for name, array in zip(names, arrays, strict=True):
            shares = self._io.make_shares(array, SECRET)
            for runtime, share in zip(self._runtimes, shares, strict=True):
                runtime.set_var(name, share)

    def run(self, executable):
        """Return the seconds from the common start to the last party's end, and CPU seconds."""
        ready = Barrier(self.count)

        def work(rank):
            ready.wait()
            start = time.perf_counter()
            self._runtimes[rank].run(executable)
            return start, time.perf_counter()

        cpu = time.process_time()
        started, ended = zip(*self._pool.map(work, range(self.count)), strict=True)
        return max(ended) - min(started), time.process_time() - cpu

    def reveal(self):
        """Return the result."""
        return self._io.reconstruct([runtime.get_var("out") for runtime in self._runtimes])


def measure(parties, counting, log, name, elements, runs):
    """Return `runs` entries of what a job took."""
    function, plain, inputs, draw, tolerance, _ = JOBS[name]
    shape = (isqrt(elements),) * 2 if "matmul" in name else (elements,)
    generator = np.random.default_rng(0)
    arrays = [draw(generator, shape) for _ in range(inputs)]
    names = [f"in{i}" for i in range(inputs)]
    executable, _ = frontend.compile(
        frontend.Kind.JAX, function, arrays, {}, names, [SECRET] * inputs, lambda _: ["out"]
    )
    expected = plain(*arrays)

    def error():
        found = parties.reveal()
        # As float64 for booleans too; whole numbers below 2^63 that differ do not look equal.
        off = float(np.abs(np.subtract(found, expected, dtype=np.float64)).max())
        exact = bool(np.array_equal(found, expected))
        if found.shape != expected.shape or not (off <= tolerance if tolerance else exact):
            sys.exit(f"wrong result of {name}: off by {off}")
        return off

    # The profile says what crosses the links; it is written by runtimes that are not timed.
    counting.share(names, arrays)
    counting.run(executable)
    sent = [int(number) for number in SENT.findall(log.read())]
    if len(sent) != counting.count:
        sys.exit("SPU's log does not say what crossed the links")
    parties.share(names, arrays)
    parties.run(executable)
    measured = []
    worst = error()
    for _ in range(runs):
        seconds, cpu = parties.run(executable)
        worst = max(worst, error())
        measured.append({"seconds": seconds, "cpu": cpu, "bytes_sent": sent, "elements": elements})
    return [{**one, "error": worst} for one in measured]


def main():
    protocol, parties = sys.argv[1], int(sys.argv[2])
    jobs = {name: job[-1] for name, job in JOBS.items()}
    if len(sys.argv) > 3:
        pairs = (job.split("=") for job in sys.argv[3].split(","))
        jobs = {name: int(elements) for name, elements in pairs}
    runs = int(sys.argv[4]) if len(sys.argv) > 4 else 5
    jax.config.update("jax_enable_x64", True)
    with tempfile.TemporaryDirectory() as folder:
        options = libspu.logging.LogOptions()
        options.enable_console_logger = False
        options.system_log_path = os.path.join(folder, "spu.log")
        libspu.logging.setup_logging(options)
        timed = Parties(protocol, parties)
        counting = Parties(protocol, parties, enable_pphlo_profile=True)
        with open(options.system_log_path) as log:
            found = {
                name: measure(timed, counting, log, name, elements, runs)
                for name, elements in jobs.items()
            }
    measured = [
        dict(zip(found, phases, strict=True)) for phases in zip(*found.values(), strict=True)
    ]
    versions = {name: version(name) for name in ("spu", "jax", "numpy")}
    print(json.dumps({"versions": versions, "parties": parties, "runs": measured}))


main()
