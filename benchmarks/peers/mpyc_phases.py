"""What the scripts that MPyC's parties execute have in common: a clock, loopback, versions."""

import asyncio
import time
from importlib.metadata import PackageNotFoundError, version

from mpyc.runtime import mpc

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


async def start():
    """Connect the parties over the loopback interface."""
    loop = asyncio.get_running_loop()
    everywhere = loop.create_server
    # MPyC would listen on every interface of the machine.
    loop.create_server = lambda *args, **options: everywhere(*args, host="127.0.0.1", **options)
    await mpc.start()


def installed():
    """Return the versions of what MPyC runs on."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found
