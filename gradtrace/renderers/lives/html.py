"""The lives of parameters as one page that needs nothing else: a table to sort, curves, the life of each on a click."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files

from gradtrace.model.lives import Life
from gradtrace.renderers.lives.json import document

# read now: a script may change the directory or the path
_PAGE = files("gradtrace.renderers.lives").joinpath("page.html").read_text(encoding="utf-8")


def page(lives: Sequence[Life], script: str) -> str:
    """The page. All text in it comes from the user's program: it is data, never markup."""
    # `</script>` in a string would end the script
    data = json.dumps(document(lives, script)).replace("<", "\\u003c")
    return _PAGE.replace("__TITLE__", escape(script)).replace("__DATA__", data)
