"""What is not ours, in every output: names, messages and paths come from the user's program and from files.

Nothing in them may move a terminal's cursor, ring its bell, break a line or make a document invalid.
"""

from __future__ import annotations

import json
import re
from typing import Any

# control characters, what changes the direction of writing, separators of lines, and halves of characters
_UNSHOWABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\ufffe\uffff]"
)
#: in a JSON text: an escaped backslash, a character written in two halves, or a half alone
_HALVES = re.compile(r"\\\\|\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|(\\ud[89a-f][0-9a-f]{2})")


def visible(text: str) -> str:
    """The text with everything spelled out (`\\x1b`) that must not be shown as it is; lines and tabs remain."""
    if text.isascii() and text.isprintable():
        return text
    return _UNSHOWABLE.sub(_spelled_out, text)


def one_line(text: str) -> str:
    """The same, with line ends and tabs spelled out as well."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def ascii_json(value: Any, indent: int | None = None) -> str:
    """A JSON text in ASCII alone, so that no stream can refuse it, without half characters, which few parsers take.

    Raises `ValueError` for NaN and infinity.
    """
    separators = None if indent is not None else (",", ":")
    return whole_characters(json.dumps(value, indent=indent, separators=separators, allow_nan=False))


def whole_characters(text: str) -> str:
    """A JSON text in which half characters are spelled out."""
    return _HALVES.sub(_kept_or_escaped, text) if "\\ud" in text else text


def _kept_or_escaped(found: re.Match[str]) -> str:
    return f"\\{found[0]}" if found[1] else found[0]


def _spelled_out(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
