"""What every test needs."""

from __future__ import annotations

import signal

# a shell that starts the tests in the background has them, and what they start, ignore Ctrl-C: its tests would wait for ever
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
