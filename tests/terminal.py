"""A terminal of our own: keys go in, and what is shown comes out."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import termios
from pathlib import Path
from time import monotonic
from typing import Any

_ESCAPES = re.compile(r"\x1b(\[[0-9;?]*[ -/]*[@-~]|[@-Z\\-_78=>])|\x1b\][^\x07]*\x07")
#: seconds after which what is waited for will not come
PATIENCE = 60.0


class Terminal:
    """One program in a terminal, with control of it."""

    def __init__(self, command: list[str], directory: Path, environment: dict[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        self._before = termios.tcgetattr(theirs)
        self._theirs = theirs
        self.process = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=directory,
            env={**environment, "TERM": "xterm", "COLUMNS": "200"},
            start_new_session=True,
            preexec_fn=_take_control,
        )
        #: all that was shown, and how much of it has been waited for
        self.shown = ""
        self._read_up_to = 0

    def wait_for(self, text: str) -> str:
        """Waits until this is shown; gives what was shown since the last wait, up to its end."""
        until = monotonic() + PATIENCE
        while True:
            plain = _ESCAPES.sub("", self.shown).replace("\r", "")
            at = plain.find(text, self._read_up_to)
            if at >= 0:
                begun, self._read_up_to = self._read_up_to, at + len(text)
                return plain[begun : self._read_up_to]
            assert monotonic() < until, f"waited for {text!r} in vain:\n{plain[self._read_up_to :]}"
            if not self._read():
                raise AssertionError(f"ended without {text!r}:\n{plain[self._read_up_to :]}")

    def type(self, line: str) -> None:
        """Types a line, and Enter."""
        os.write(self._ours, f"{line}\n".encode())

    def ask(self, line: str) -> str:
        """Types a line at the prompt and gives what is shown up to the next prompt."""
        self.type(line)
        return self.wait_for("(Pdb) ")

    def interrupt(self) -> None:
        """Ctrl-C."""
        os.write(self._ours, b"\x03")

    def interrupt_until(self, text: str) -> None:
        """Ctrl-C until this is shown: what is typed while the prompt takes the terminal over is lost."""
        until = monotonic() + PATIENCE
        while text not in _ESCAPES.sub("", self.shown)[self._read_up_to :]:
            assert monotonic() < until, f"interrupted, and waited for {text!r} in vain"
            self.interrupt()
            self._read()
        self.wait_for(text)

    def end(self) -> tuple[int, str]:
        """Waits for the end; gives the exit status and what was shown since the last wait."""
        until = monotonic() + PATIENCE
        while self.process.poll() is None and monotonic() < until:
            self._read()
        while self._read(wait=0.0):
            pass
        plain = _ESCAPES.sub("", self.shown).replace("\r", "")
        assert self.process.returncode is not None, plain[self._read_up_to :]
        return self.process.returncode, plain[self._read_up_to :]

    @property
    def is_as_it_was(self) -> bool:
        """Whether the settings are those of the beginning."""
        return termios.tcgetattr(self._theirs) == self._before

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self._ours)
        os.close(self._theirs)

    def _read(self, wait: float = 0.2) -> bool:
        ready, _, _ = select.select([self._ours], [], [], wait)
        if not ready:
            return wait > 0 and self.process.poll() is None
        try:
            some = os.read(self._ours, 65536)
        except OSError:
            return False
        self.shown += some.decode(errors="replace")
        return bool(some)


def _take_control() -> Any:
    """Makes the terminal that of the new session, so that Ctrl-C reaches it."""
    import fcntl

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
