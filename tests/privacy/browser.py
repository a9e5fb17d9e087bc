"""Chromium without a window, spoken to over pipes by its own protocol."""

import contextlib
import json
import os
import select
import shutil
import subprocess
import time

CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
BASH = shutil.which("bash")


class Page:
    """One page of a browser.

    Attributes:
        complaints: What the browser logged: errors, refused scripts, failed requests.
    """

    def __init__(self, receive, send):
        self._receive, self._send = receive, send
        self._number = 0
        self._buffer = b""
        self._session = {}
        self.complaints = []

    def attach(self):
        target = next(t for t in self("Target.getTargets")["targetInfos"] if t["type"] == "page")[
            "targetId"
        ]
        found = self("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": found["sessionId"]}
        for domain in ("Page", "Runtime", "Log", "Network"):
            self(f"{domain}.enable")

    def __call__(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters, **self._session}
        os.write(self._send, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def _next(self):
        while b"\0" not in self._buffer:
            assert select.select([self._receive], [], [], 30)[0], "the browser does not answer"
            part = os.read(self._receive, 1 << 20)
            assert part, "the browser ended"
            self._buffer += part
        text, self._buffer = self._buffer.split(b"\0", 1)
        message = json.loads(text)
        if message.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown"):
            self.complaints.append(message["params"])
        return message

    def open(self, address):
        # By way of an empty page, so that also another fragment of the same page is loaded anew.
        for url in ("about:blank", address):
            self("Page.navigate", url=url)
            while self.run("`${document.readyState} ${location.href}`") != f"complete {url}":
                time.sleep(0.02)

    def run(self, code):
        """The value of an expression in the page."""
        found = self("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, key, code):
        """A key, as a keyboard sends it."""
        for kind in ("rawKeyDown", "keyUp"):
            self(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
            )

    def size(self, width, height, mobile):
        self(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2,
            mobile=mobile,
        )


@contextlib.contextmanager
def browser(folder):
    """A page of a browser whose profile is in this folder."""
    here_in, there_out = os.pipe()
    there_in, here_out = os.pipe()
    command = [
        BASH, "-c", f'exec "$0" "$@" 3<&{there_in} 4>&{there_out}', CHROMIUM, "--headless",
        "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe",
        f"--user-data-dir={folder}", "about:blank",
    ]  # fmt: skip
    process = subprocess.Popen(  # noqa: S603
        command,
        pass_fds=(there_in, there_out),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(there_in)
    os.close(there_out)
    try:
        page = Page(here_in, here_out)
        page.attach()
        yield page
    finally:
        process.terminate()
        process.wait(timeout=20)
        os.close(here_in)
        os.close(here_out)
