"""What a node saved for its backward, read without running a hook of the user's and without torch's own checks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch

from gradtrace.watcher import compat
from gradtrace.watcher.compat import raw_attribute, saved_tensor_names, unpacked_attribute

#: in the message of the error that torch raises over an overwritten tensor
MODIFIED = "has been modified by an inplace operation"

_NAMES: dict[type, tuple[str, ...]] = {}
_PLAIN = (torch.Tensor, torch.nn.Parameter)


class Broken(NamedTuple):
    """A tensor that a node saved and that was written to since. Holds a node: not to be kept."""

    node: Any
    #: what the node calls it: `self`, `weight`, `result`
    name: str
    #: None where this torch does not hand it out
    tensor: torch.Tensor | None
    #: torch's own words
    message: str


class Access:
    """Whether saved tensors can be read without running code of the script's."""

    is_open = True


def is_hooked(raw: Any) -> bool:
    """Whether a hook of the script's lies before a saved tensor, or may."""
    if isinstance(raw, (list, tuple)):
        return any(map(is_hooked, raw))
    return getattr(raw, "unpack_hook", None) is not None if compat.SHOWS_SAVED else not Access.is_open


def tensors(node: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors that a node saved, as they are now, each with the node's name for it.

    What lies behind `saved_tensors_hooks` is left out: to unpack it would run the user's code.
    """
    for name in _names(node):
        yield from ((name, value) for value in _values(node, name))


def broken(nodes: Sequence[Any], message: str) -> Broken | None:
    """Of all saved tensors that were written to since, the one that `message`, the engine's error, is about."""
    wanted = _fact(message)
    others: list[Broken] = []
    for node in nodes:
        for name in _names(node):
            raised = _complaint(node, name)
            if raised is None:
                continue
            found = Broken(node, name, _first_written(node, name, raised), raised)
            if _fact(raised) == wanted:
                return found
            others.append(found)
    return others[0] if others else None


def expected_version(message: str) -> int:
    """The version at which the tensor was saved, from torch's words: "is at version 2; expected version 1 instead"."""
    _, _, after = message.partition("expected version ")
    digits = after.split(" ", 1)[0]
    return int(digits) if digits.isdigit() else -1


def memory(tensor: torch.Tensor) -> int:
    """The address where the memory begins in which a tensor lies, the same for all its views; 0 where there is none."""
    if type(tensor) not in _PLAIN or tensor.layout is not torch.strided:
        return 0
    try:
        return max(tensor.data_ptr() - int(tensor.storage_offset()) * tensor.element_size(), 0)
    except (RuntimeError, NotImplementedError):  # inside torch.func transforms
        return 0


def place_of(tensor: torch.Tensor) -> int:
    """The address of a tensor's first element; 0 where there is none, or none is known."""
    if type(tensor) not in _PLAIN or tensor.layout is not torch.strided:
        return 0
    try:
        return tensor.data_ptr()
    except RuntimeError:  # inside torch.func transforms
        return 0


def is_same_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors are the same values: those of one memory, laid out in the same way."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    place = place_of(one)
    return place != 0 and place == place_of(other) and one.stride() == other.stride()


def span(tensor: torch.Tensor) -> tuple[int, int]:
    """The addresses of a tensor's first element and of the end of its last."""
    start, size = tensor.data_ptr(), tensor.element_size()
    reach = sum((length - 1) * stride for length, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return start, start + (reach + 1) * size


def _names(node: Any) -> tuple[str, ...]:
    kind = type(node)
    if kind not in _NAMES:
        _NAMES[kind] = saved_tensor_names(kind)
    return _NAMES[kind]


def _raws(node: Any, name: str) -> list[Any]:
    """Nothing once the node is freed."""
    try:
        raws = getattr(node, raw_attribute(name))
    except RuntimeError:
        return []
    return list(raws) if isinstance(raws, (list, tuple)) else [raws]


def _values(node: Any, name: str) -> list[torch.Tensor]:
    found = map(_value, _raws(node, name)) if compat.SHOWS_SAVED else _unpacked(node, name)
    return [value for value in found if isinstance(value, torch.Tensor)]


def _value(raw: Any) -> Any:
    try:
        return None if is_hooked(raw) else raw.data
    except RuntimeError:
        return None


def _unpacked(node: Any, name: str) -> list[Any]:
    """As torch unpacks them: none where one was overwritten."""
    try:
        value = getattr(node, unpacked_attribute(type(node), name)) if Access.is_open else None
    except RuntimeError:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _complaint(node: Any, name: str) -> str | None:
    """Torch's error over this saved tensor, if it was written to."""
    if is_hooked(_raws(node, name)) or not Access.is_open:
        return None
    try:
        getattr(node, unpacked_attribute(type(node), name))
    except RuntimeError as error:
        return str(error) if MODIFIED in str(error) else None
    return None


def _first_written(node: Any, name: str, message: str) -> torch.Tensor | None:
    """Of the tensors saved under one name the one that was written to: it has left the expected version behind."""
    expected = expected_version(message)
    shape = _fact(message).partition("[")[2]
    values = _values(node, name)
    written = [value for value in values if value._version > expected and str(list(value.shape)) in shape]
    return next(iter(written or values), None)


def _fact(message: str) -> str:
    """The message without its hint, which differs in anomaly mode."""
    return message.partition(" Hint:")[0]
