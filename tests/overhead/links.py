"""Two network namespaces joined by a line of known speed: netem's, or one that delays packets here.

Not every kernel has netem. Where it is missing, each namespace gets a TUN device, and threads of
this process carry its packets over, as late as the line would: after what is before them, at the
line's speed, and half a round trip later.
"""

import contextlib
import fcntl
import json
import os
import queue
import select
import shutil
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from securecomp.overhead.line_model import Line

ENDS = (("ovr-a", "10.77.0.1"), ("ovr-b", "10.77.0.2"))
_TUN, _NO_INFO, _SET = 0x0001, 0x1000, 0x400454CA
Packets = queue.SimpleQueue[tuple[float, bytes]]
"""Packets on their way, and when they arrive."""
_MTU = {False: 1500, True: 9000}  # fast lines: fewer packets for Python


def run(*command: str) -> None:
    """Run a command, or say what it said."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")


def needed() -> None:
    """Skip where namespaces cannot be made."""
    if not sys.platform.startswith("linux") or os.geteuid():
        pytest.skip("network namespaces need Linux and root")
    missing = [name for name in ("ip", "tc") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"no {' and no '.join(missing)}: apt-get install iproute2")


@contextlib.contextmanager
def namespaces() -> Iterator[None]:
    """Two namespaces that go away again."""
    try:
        for name, _ in ENDS:
            run("ip", "netns", "add", name)
            slow = "net.ipv4.tcp_slow_start_after_idle=0"  # what is warm stays warm
            run("ip", "netns", "exec", name, "sysctl", "-qw", slow)
    except OSError as error:
        remove()
        pytest.skip(f"no network namespaces here: {error}")
    try:
        yield
    finally:
        remove()


def remove() -> None:
    """Take the namespaces away, with all that is in them."""
    for name, _ in ENDS:
        with contextlib.suppress(OSError):
            run("ip", "netns", "delete", name)


def both(script: str, *arguments: str) -> list[Any]:
    """Run a script in each namespace, one listening and one connecting; return what they print."""
    with contextlib.ExitStack() as stack:
        started = []
        for (name, _), role in zip(ENDS, ("listen", "connect"), strict=True):
            command = ["ip", "netns", "exec", name, sys.executable, script, role, ENDS[0][1]]
            process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE)  # noqa: S603
            started.append(stack.enter_context(process))
            stack.callback(process.kill)
        return [json.loads(process.communicate(timeout=60)[0]) for process in started]


@contextlib.contextmanager
def netem(line: Line) -> Iterator[None]:
    """Join the namespaces by a pair of devices with netem on both; skips where it is missing."""
    first, second = (name for name, _ in ENDS)
    run(
        "ip", "link", "add", "ovr0", "netns", first, "type", "veth", "peer", "ovr0", "netns", second
    )
    for name, address in ENDS:
        rules = ["delay", f"{line.round_trip * 500:g}ms", "rate", f"{line.bandwidth:.0f}bit"]
        queueing = ("root", "netem", *rules, "limit", "100000")
        try:
            run("tc", "-n", name, "qdisc", "add", "dev", "ovr0", *queueing)
        except OSError as error:
            pytest.skip(f"this kernel has no netem: {error}")
        _up(name, "ovr0", address)
    yield


@contextlib.contextmanager
def packets(line: Line) -> Iterator[None]:
    """Join the namespaces by devices whose packets this process carries."""
    descriptors: list[int] = []
    threads: list[threading.Thread] = []
    over = threading.Event()
    try:
        for index, (name, address) in enumerate(ENDS):
            try:
                descriptors.append(_device(f"ovr{index}"))
            except OSError as error:
                pytest.skip(f"no TUN device: {error}")
            run("ip", "link", "set", f"ovr{index}", "netns", name)
            _up(name, f"ovr{index}", address, _MTU[line.bandwidth > 2e8])
        for source, sink in (descriptors, descriptors[::-1]):
            waiting: Packets = queue.SimpleQueue()
            threads.append(threading.Thread(target=_collect, args=(source, line, waiting, over)))
            threads.append(threading.Thread(target=_deliver, args=(sink, waiting)))
        for thread in threads:
            thread.start()
        yield
    finally:
        over.set()
        for thread in threads:  # before a descriptor's number is given to something else
            thread.join()
        for descriptor in descriptors:
            os.close(descriptor)


def _device(name: str) -> int:
    descriptor = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(descriptor, _SET, struct.pack("16sH22x", name.encode(), _TUN | _NO_INFO))
    return descriptor


def _up(name: str, device: str, address: str, mtu: int = 1500) -> None:
    run("ip", "-n", name, "address", "add", f"{address}/24", "dev", device)
    run("ip", "-n", name, "link", "set", device, "mtu", str(mtu), "txqueuelen", "10000", "up")


def _collect(source: int, line: Line, waiting: Packets, over: threading.Event) -> None:
    """Note when each packet of a device arrives at the other end."""
    free = 0.0
    while not over.is_set():
        if select.select([source], [], [], 0.1)[0]:
            packet = os.read(source, 1 << 16)
            free = max(free, time.monotonic()) + 8 * len(packet) / line.bandwidth
            waiting.put((free + line.round_trip / 2, packet))
    waiting.put((0.0, b""))


def _deliver(sink: int, waiting: Packets) -> None:
    """Write each packet when it is due."""
    while (next_ := waiting.get())[1]:
        due, packet = next_
        time.sleep(max(0.0, due - time.monotonic()))
        os.write(sink, packet)
