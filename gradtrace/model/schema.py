"""Reads plain values, as JSON has them, back into the model's own: the types of the fields are the one description.

    Reader().read(Node, {"id": 1, "kind": "op", "op": "AddBackward0"})
    plain(Node(1, "op", op="AddBackward0"))   # the way there

What does not fit raises `DamagedError`, whose message says where and why. Fields that are missing have their default;
fields that are not known, from a newer gradtrace, are passed over unless the reader is `strict`.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeAlias, Union, get_args, get_origin, get_type_hints

from gradtrace.model.site import Held, Site, Stack

#: makes a value of a field from its plain one
Read: TypeAlias = Callable[[Any], Any]
#: beyond this, up or down, no number of ours lies, and arithmetic may fail
_LARGEST = 2**62
_LONGEST_QUOTE = 40
_REQUIRED = object()


class DamagedError(ValueError):
    """A document is not what it should be; the message says where in it, and what."""

    def __init__(self, what: str, where: str = "") -> None:
        super().__init__(f"{where}: {what}" if where else what)
        self._what = what
        self._where = where

    def inside(self, outer: str) -> DamagedError:
        """The same one level further out: `outer` is `nodes` or `[3]`."""
        separator = "" if not self._where or self._where.startswith("[") else "."
        return DamagedError(self._what, f"{outer}{separator}{self._where}")


def parsed(text: str) -> Any:
    """The value of a JSON text. Raises `DamagedError`."""
    try:
        return json.loads(text)
    except RecursionError:
        raise DamagedError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise DamagedError(f"it is not JSON: {error}") from None
    except ValueError:  # more digits than Python converts
        raise DamagedError("it holds a huge number") from None


class Reader:
    """`special` reads fields of certain types in another way, such as a stack that is written as a number."""

    def __init__(self, special: Mapping[Any, Read] | None = None, *, strict: bool = False) -> None:
        self._strict = strict
        self._known: dict[Any, Read] = {int: _integer, str: _text, bool: _truth, float: _real, **(special or {})}

    def read(self, hint: Any, value: Any) -> Any:
        """The value of type `hint`: a class of the model, or a type made of such and of plain ones."""
        found = self._known.get(hint)
        if found is None:
            found = self._known[hint] = self._reader(hint)
        return found(value)

    def _reader(self, hint: Any) -> Read:
        origin, arguments = get_origin(hint), get_args(hint)
        if origin in (Union, UnionType):
            return self._optional(arguments) if NoneType in arguments else self._one_of(arguments)
        if origin in (tuple, frozenset):
            return self._many(origin, arguments)
        if isinstance(hint, type) and issubclass(hint, Enum):
            return _enum(hint)
        return self._record(hint)

    def _optional(self, arguments: tuple[Any, ...]) -> Read:
        (inner,) = [one for one in arguments if one is not NoneType]
        return lambda value: None if value is None else self.read(inner, value)

    def _one_of(self, kinds: tuple[Any, ...]) -> Read:
        """Of several classes: the plain value names its class as `event`."""
        known = {kind.__name__: kind for kind in kinds}

        def read(value: Any) -> Any:
            if not isinstance(value, dict) or value.get("event") not in known:
                raise _wrong(f"one of {', '.join(known)}", value)
            return self.read(known[value["event"]], {name: one for name, one in value.items() if name != "event"})

        return read

    def _many(self, kind: Any, arguments: tuple[Any, ...]) -> Read:
        fixed = kind is tuple and arguments[-1] is not Ellipsis

        def read(value: Any) -> Any:
            if not isinstance(value, list):
                raise _wrong("a list", value)
            if fixed and len(value) != len(arguments):
                raise _wrong(f"a list of {len(arguments)}", value)
            found: list[Any] = []
            try:
                for one in value:
                    found.append(self.read(arguments[len(found) if fixed else 0], one))
            except DamagedError as error:
                raise error.inside(f"[{len(found)}]") from None
            return kind(found)

        return read

    def _record(self, kind: Any) -> Read:
        defaults, hints = _fields(kind)

        def read(value: Any) -> Any:
            if not isinstance(value, dict):
                raise _wrong("an object", value)
            if self._strict:
                _know(value, defaults)
            given = {}
            name = ""
            try:
                for name, default in defaults.items():
                    if name in value:
                        given[name] = self.read(hints[name], value[name])
                    elif default is _REQUIRED:
                        raise DamagedError("it is missing")
            except DamagedError as error:
                raise error.inside(name) from None
            made = kind(**given)
            return checked_site(made) if kind is Site else made

        return read


def plain(value: Any) -> Any:
    """The plain value that a `Reader` reads back. What has its default is left out."""
    if isinstance(value, Site):
        return value.plain()
    if isinstance(value, Enum):
        return str(value) if isinstance(value, int) else value.value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, (tuple, frozenset)):
        return [plain(one) for one in value]
    if not is_dataclass(value):
        return value
    found = {}
    for one in fields(value):
        held = getattr(value, one.name)
        if one.default is MISSING or held != one.default:
            found[one.name] = plain(held)
    return found


def checked_site(site: Site) -> Site:
    """The site. Raises `DamagedError` where its numbers are none of lines and columns."""
    if site.line < 1 or (site.end_line is not None and site.end_line < 1):
        raise DamagedError("lines count from 1", "line")
    if (site.column or 0) < 0 or (site.end_column or 0) < 0:
        raise DamagedError("columns are not negative", "column")
    return site


@cache
def _fields(kind: Any) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The default of each field, `_REQUIRED` where it has none, and the type of each."""
    # these some modules import for type checkers alone
    names = {**vars(sys.modules[kind.__module__]), "Site": Site, "Stack": Stack, "Held": Held}
    hints = get_type_hints(kind, names)
    if not is_dataclass(kind):
        return {name: kind._field_defaults.get(name, _REQUIRED) for name in kind._fields}, hints
    defaults: dict[str, Any] = {}
    for one in fields(kind):
        has_default = one.default is not MISSING or one.default_factory is not MISSING
        defaults[one.name] = None if has_default else _REQUIRED
    return defaults, hints


def _know(value: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    for name in value:
        if name not in known:
            raise DamagedError(f"there is no field {_quoted(name)}")


def _integer(value: Any) -> int:
    if type(value) is not int:
        raise _wrong("a whole number", value)
    if abs(value) > _LARGEST:
        raise DamagedError("the number is out of range")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _wrong("a text", value)
    return value


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _wrong("true or false", value)
    return value


def _real(value: Any) -> float:
    """JSON has no NaN and no infinity: they are texts."""
    if isinstance(value, float) or value in ("nan", "inf", "-inf"):
        return float(value)
    return float(_integer(value))


def _enum(kind: type[Enum]) -> Read:
    known = {plain(one): one for one in kind}

    def read(value: Any) -> Enum:
        if not isinstance(value, str) or value not in known:
            raise _wrong(f"one of {', '.join(known)}", value)
        return known[value]

    return read


def _wrong(wanted: str, value: Any) -> DamagedError:
    return DamagedError(f"{_quoted(value)} is not {wanted}")


def _quoted(value: Any) -> str:
    """A plain value as JSON in ASCII, cut where it is long."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    if type(value) is int and abs(value) > _LARGEST:
        return "a huge number"
    text = json.dumps(value)
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}..."
