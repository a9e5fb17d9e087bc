"""Jobs that take no time, on a clock that they turn themselves."""

import itertools

from securecomp.errors import WrongResultError
from securecomp.overhead.job import Communication, Job


class FakeClock:
    """A clock that stands still until somebody works."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def work(self, seconds, result=None):
        """Return a function that takes so many seconds; of several, one after the other."""
        turns = itertools.cycle([seconds] if isinstance(seconds, float) else seconds)

        def work(*_):
            self.now += next(turns)
            return result

        return work


def equal(plain, secure):
    if plain != secure:
        raise WrongResultError("not plaintext's")
    return 0.0


def job(clock, plain=0.001, secure=0.25, setup=None, **facts):
    """Return a job of plaintext and secure work of so many seconds."""
    return Job(
        sizes={"elements": 10},
        plain=clock.work(plain, 7),
        secure=clock.work(secure, 7),
        setup=None if setup is None else clock.work(setup, "keys"),
        **{"check": equal, "cost": lambda *_: Communication(20, 60, 2, 6, {"hospital": 20})}
        | facts,
    )


SPREADS = ("plain", "online", "secure", "ratio")


def row(name="a", samples=(1.0,) * 7, plain=None, **facts):
    """Return a row of a run, as far as `compare` reads it."""
    plain = plain or (0.1,) * len(samples)
    seconds = sorted(samples)[len(samples) // 2]
    return {
        "case": name,
        "title": name.upper(),
        "series": "",
        "sizes": {"elements": 10},
        "secure": {"median": seconds},
        "plain": {"median": sorted(plain)[len(plain) // 2]},
        "ratio": {"median": seconds / sorted(plain)[len(plain) // 2]},
        "samples": {"plain": list(plain), "setup": [0.0] * len(samples), "online": list(samples)},
        "bytes_total": 100,
        "peak_memory": 1000,
        **facts,
    }


def run(*rows, **machine):
    """Return a run on a machine."""
    return {
        "format": 1,
        "quick": True,
        "machine": {
            "cpu": "C",
            "cores": 2,
            "memory_bytes": 8,
            "os": "L",
            "python": "P",
            "blas": "B",
        }
        | machine,
        "versions": {"securecomp": "1", "numpy": "2"},
        "rows": list(rows),
        "fits": [],
        "peers": [],
    }
