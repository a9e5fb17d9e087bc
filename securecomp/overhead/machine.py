"""The machine and the versions behind a number, and the memory and load of a process."""

import gc
import os
import platform
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

PACKAGES = ("securecomp", "numpy", "numba", "cryptography", "gmpy2")
_PROC = Path("/proc")
_BUSY = (0, 1, 2, 5, 6, 7)  # user, nice, system, irq, softirq, steal


def describe() -> dict[str, Any]:
    """Return CPU model, cores, memory, operating system, Python, BLAS and the load before."""
    config: Any = np.show_config(mode="dicts")
    blas = config["Build Dependencies"]["blas"]
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "os": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "blas": f"{blas['name']} {blas['version']}",
        "load_before": round(os.getloadavg()[0], 2),
    }


def versions() -> dict[str, str]:
    """Return the versions of what the numbers depend on."""
    return {name: version(name) for name in PACKAGES}


def told(report: Mapping[str, Any]) -> tuple[str, str]:
    """Return a run's machine and its software, a line each."""
    m = report["machine"]
    names = ", ".join(f"{name} {number}" for name, number in report["versions"].items())
    return (
        f"{m['cpu']}, {m['cores']} cores, {m['memory_bytes'] / 1e9:.0f} GB, {m['os']}",
        f"{m['python']}, {names}, BLAS: {m['blas']}",
    )


def _cpu() -> str:
    info = _PROC / "cpuinfo"
    if info.exists():
        for line in info.read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def peak(work: Callable[[], Any]) -> tuple[Any, int | None]:
    """Run `work`; return its result, and the largest memory of the process above that before.

    The memory becomes None if the system, unlike Linux, does not tell it.
    """
    reset = _PROC / "self/clear_refs"
    if not reset.exists():
        return work(), None
    gc.collect()
    before = _memory("VmRSS")
    reset.write_text("5")  # the high-water mark starts again from here
    result = work()
    return result, max(0, _memory("VmHWM") - before)


def _memory(name: str) -> int:
    for line in (_PROC / "self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(name)


class Elsewhere:
    """Measures how many cores other processes kept busy. They make a timing noisy."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._system = _system_seconds()
        self._own = sum(os.times()[:4])

    def cores(self) -> float | None:
        """Return the cores since the start; None if the system does not tell."""
        now = _system_seconds()
        if now is None or self._system is None:
            return None
        busy = now - self._system - (sum(os.times()[:4]) - self._own)
        return max(0.0, round(busy / (time.perf_counter() - self._start), 2))


def _system_seconds() -> float | None:
    stat = _PROC / "stat"
    if not stat.exists():
        return None
    ticks = stat.read_text().split("\n", 1)[0].split()[1:]
    return sum(int(ticks[i]) for i in _BUSY) / os.sysconf("SC_CLK_TCK")
