"""Reads and writes source files as Python does: their own encoding and line ends."""

from __future__ import annotations

import io
import os
import sysconfig
import tokenize
from importlib.util import decode_source
from pathlib import Path

from gradtrace.host import streams


def read_text(path: str) -> str:
    """The text, with its own line ends. Raises `OSError`, `SyntaxError` or `UnicodeDecodeError`."""
    raw = Path(path).read_bytes()
    text = decode_source(raw)
    return text.replace("\n", "\r\n") if b"\r\n" in raw else text


def write_text(path: str, text: str) -> None:
    """In the encoding that the file has. Raises `OutputError`."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(Path(path).read_bytes()).readline)
    streams.put_file(Path(path), text.encode(encoding))


def is_installed(path: str) -> bool:
    """Whether the file lies in a directory of installed packages."""
    folders = {sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib")}
    return any(os.path.realpath(path).startswith(os.path.join(os.path.realpath(folder), "")) for folder in folders)
