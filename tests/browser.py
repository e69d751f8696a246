"""A headless Chromium, spoken to over a pipe: enough of the DevTools protocol to test a page."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_KEYS = {"Enter": "\r"}


class Browser:
    """Opens pages from disk, runs JavaScript in them and remembers what they complained of and asked for."""

    def __init__(self, directory: Path) -> None:
        ours, theirs = os.pipe(), os.pipe()

        def give() -> None:
            """The protocol is spoken on descriptors 3 and 4."""
            reads, writes = os.dup(ours[0]), os.dup(theirs[1])
            os.dup2(reads, 3)
            os.dup2(writes, 4)

        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run"]
        command = [str(CHROMIUM), *options, f"--user-data-dir={directory}", "--window-size=1400,900", "about:blank"]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(command, preexec_fn=give, close_fds=False, stdout=quiet, stderr=quiet)
        os.close(ours[0])
        os.close(theirs[1])
        self._write, self._read = ours[1], theirs[0]
        self._rest, self._number, self._session = b"", 0, ""
        self.events: list[dict[str, Any]] = []
        pages = [one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page"]
        self._session = self.call("Target.attachToTarget", targetId=pages[0]["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            read = os.read(self._read, 1 << 20)
            assert read, "the browser is gone"
            self._rest += read
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        self.events.append(message)
        return message

    def open(self, page: Path) -> None:
        self.events.clear()
        self.call("Page.navigate", url=page.resolve().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self._next()

    def run(self, script: str) -> Any:
        """The value of an expression, or of its promise."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, *keys: str) -> None:
        for key in keys:
            text = {"text": _KEYS.get(key, key)} if len(key) == 1 or key in _KEYS else {}
            self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
            self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def picture(self) -> bytes:
        return base64.b64decode(self.call("Page.captureScreenshot")["data"])

    @property
    def complaints(self) -> list[str]:
        bad = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
        return [json.dumps(event) for event in self.events if event.get("method") in bad]

    @property
    def requests(self) -> list[str]:
        sent = (event for event in self.events if event.get("method") == "Network.requestWillBeSent")
        return [event["params"]["request"]["url"] for event in sent]

    def close(self) -> None:
        self.call("Browser.close")
        self._process.wait(timeout=30)
        os.close(self._write)
        os.close(self._read)
