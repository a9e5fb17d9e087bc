"""A headless Chromium, told what to do over a pipe: what a page looks like, asks for, complains of.

Chromium's own protocol (CDP), one JSON object a message, ended by a zero byte; no port, no package.
"""

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


class Browser:
    """One page of a running browser; what it logged and asked for since it was opened."""

    def __init__(self, reader: int, writer: int) -> None:
        self._reader, self._writer = reader, writer
        self._rest = b""
        self._number = 0
        self._session: dict[str, str] = {}
        self.complaints: list[str] = []
        self.requests: list[str] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": attached["sessionId"]}
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its answer; note the events that come before it."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters, **self._session}
        os.write(self._writer, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != self._number:
            self._note(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def open(self, page: Path | str, *, width: int = 900, dark: bool = False) -> None:
        """Show a file or an address, and wait until it is there."""
        phone = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.ask("Emulation.setDeviceMetricsOverride", **phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        # By way of an empty page: another fragment of the same one is loaded anew, too.
        for address in ("about:blank", page.as_uri() if isinstance(page, Path) else page):
            self.complaints.clear()
            self.requests.clear()
            loader = self.ask("Page.navigate", url=address)
            assert "errorText" not in loader, loader
            while (event := self._read()).get("method") != "Page.loadEventFired":
                self._note(event)

    def press(self, key: str, code: int) -> None:
        """Press a key, as a keyboard sends it."""
        for kind in ("rawKeyDown", "keyUp"):
            facts = {"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code}
            self.ask("Input.dispatchKeyEvent", **facts)

    def value(self, expression: str) -> Any:
        """Return what JavaScript makes of an expression in the page."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            data = os.read(self._reader, 1 << 20)
            if not data:
                raise EOFError("the browser ended")
            self._rest += data
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    def _note(self, event: dict[str, Any]) -> None:
        method, facts = event.get("method", ""), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(facts["request"]["url"])
        elif method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            self.complaints.append(json.dumps(facts))


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Browser]:
    """Run a browser with a profile of its own; skips where there is none."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(PROGRAMS)} is installed")
    ours, theirs = os.pipe(), os.pipe()  # what we say, what it says
    # It reads descriptor 3 and writes 4; the shell puts them there, whatever they were.
    command = f'exec "$0" "$@" 3<&{ours[0]} 4>&{theirs[1]}'
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    options += ["--remote-debugging-pipe", f"--user-data-dir={folder}", "--no-first-run"]
    process = subprocess.Popen(  # noqa: S603
        ["bash", "-c", command, program, *options],  # noqa: S607
        pass_fds=(ours[0], theirs[1]),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(ours[0])
    os.close(theirs[1])
    try:
        yield Browser(theirs[0], ours[1])
    finally:
        process.kill()
        process.wait()
        os.close(theirs[0])
        os.close(ours[1])
