"""Every private name of torch and of Python that gradtrace uses: it is read here and nowhere else.

Each stands in `PIECES` with the releases that have it, and what becomes of gradtrace where it is missing. To follow a
new release of torch, or to support an older one, is work in this file alone.
"""

from __future__ import annotations

import operator
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, ModuleType
from typing import Any, NamedTuple

import torch
import torch.autograd.graph

from gradtrace.errors import TorchError
from gradtrace.model.finding import SAVED_VALUES


def _release(version: str) -> tuple[int, ...]:
    """(2, 13) for 2.13.0+cpu and for 2.13.0a0."""
    return tuple(int(part) for part in version.split(".")[:2])


VERSION = _release(str(torch.__version__))
#: the releases of torch with which the tests pass: see "Tested versions" in README.md
OLDEST, NEWEST = (2, 6), (2, 15)
_SUPPORTED = "torch {}.{} to {}.{}".format(*OLDEST, *NEWEST)


class Piece(NamedTuple):
    """A private name, what has it, what gradtrace does without it, and what it then cannot do ("" where all works)."""

    name: str
    versions: str
    fallback: str
    lost: str = ""


#: without these gradtrace does not start
CORE = "cannot watch at all"
_UNPACKED = "saved tensors are unpacked; not any more once the script uses saved_tensors_hooks, or a checkpoint"
PIECES = (
    Piece("torch._C._len_torch_function_stack", "torch >= 2.0", "none", CORE),
    Piece("torch._C._get_function_stack_at", "torch >= 2.0", "none", CORE),
    Piece("torch._C._pop_torch_function_stack", "torch >= 2.0", "none", CORE),
    Piece("torch._C._push_on_torch_function_stack", "torch >= 2.0", "none", CORE),
    Piece("torch._C.DisableTorchFunction", "all", "none", CORE),
    Piece("torch._C._DisableTorchDispatch", "all", "none", CORE),
    Piece("torch._C._len_torch_dispatch_stack", "torch >= 2.0", "none", CORE),
    Piece("torch._C._functorch.peek_interpreter_stack", "torch >= 2.0", "none", CORE),
    Piece("torch._C.TensorBase", "torch >= 2.1", "none", CORE),
    Piece("torch.autograd._get_sequence_nr", "torch >= 2.1", "none", CORE),
    Piece("torch.autograd.graph._engine_run_backward", "torch >= 2.3", "none", CORE),
    Piece("torch.nn.Module._call_impl", "all", "none", CORE),
    Piece("Node._sequence_nr", "torch >= 2.1", "none", CORE),
    Piece("Node._input_metadata", "torch >= 2.6", "none", CORE),
    Piece("Node._raw_saved_*", "all", "none", CORE),
    Piece("Node._saved_*", "all", "the attribute counts as missing"),
    Piece("Node._forward_cls", "all", "a custom Function looks like any operation"),
    Piece("SavedTensor.data", "torch >= 2.13", _UNPACKED, SAVED_VALUES),
    Piece("SavedTensor.unpack_hook", "torch >= 2.13", _UNPACKED, SAVED_VALUES),
    Piece("torch._C._set_grad_enabled", "all", "none", CORE),
    Piece("torch._C._get_tracing_state", "all", "nothing counts as traced by torch.jit"),
    Piece("torch._C._nn", "all", "its functions are not known as ones that write in place"),
    Piece("torch._VF", "all", "its functions are not known as ones that write in place"),
    Piece(
        "torch._C._dynamo.eval_frame.get_eval_frame_callback", "torch >= 2.6", "no compiled function counts as running"
    ),
    Piece("torch._C._dynamo.eval_frame.set_code_exec_strategy", "torch >= 2.7", "torch.compile looks at code of ours"),
    Piece(
        "torch._dynamo.eval_frame.OptimizeContext.enter_exit_hooks", "torch >= 2.1", "compiled functions are watched"
    ),
    Piece("torch._dynamo.utils.counters", "torch >= 2.1", "no remark of what was compiled"),
    Piece("_BaseDataLoaderIter._index_sampler", "all", "no DataLoader counts as shuffling"),
    Piece("DTensor._local_tensor", "torch >= 2.0", "none", CORE),
    Piece("torch.distributed.distributed_c10d._get_default_store", "torch >= 2.0", "ranks are joined on one machine"),
    Piece("SequentialLR._schedulers", "all", "schedulers that another one steps are judged by themselves"),
    Piece("warnings._showwarnmsg", "CPython 3.6 to 3.14", "warnings name the lines they name by themselves"),
)


def _find(path: str) -> Any:
    """What `torch._C.name` names; None where this torch lacks it."""
    found: Any = torch
    for name in path.split(".")[1:]:
        found = getattr(found, name, None)
    return found


# The stack of function modes.
mode_height: Callable[[], int] = _find("torch._C._len_torch_function_stack")
mode_at: Callable[[int], Any] = _find("torch._C._get_function_stack_at")
pop_mode: Callable[[], Any] = _find("torch._C._pop_torch_function_stack")
push_mode: Callable[[Any], None] = _find("torch._C._push_on_torch_function_stack")
DisableTorchFunction: Any = _find("torch._C.DisableTorchFunction")

# The stack of dispatch modes.
dispatch_height: Callable[[], int] = _find("torch._C._len_torch_dispatch_stack")
DisableTorchDispatch: Any = _find("torch._C._DisableTorchDispatch")

#: the innermost transform of torch.func that runs, or None
func_transform: Callable[[], Any] = _find("torch._C._functorch.peek_interpreter_stack")
#: what torch.jit traces into, or None
tracing_state: Callable[[], Any] = _find("torch._C._get_tracing_state") or (lambda: None)
#: holds the methods of tensors that are written in C++
TensorBase: Any = _find("torch._C.TensorBase")
set_grad_enabled: Any = _find("torch._C._set_grad_enabled")
#: the frame through which every `module(...)` goes
MODULE_CALL: CodeType = torch.nn.Module._call_impl.__code__
#: functions written in C++ that torch's own Python code calls
NN_FUNCTIONS: Any = _find("torch._C._nn") or ModuleType("nothing")
VARIABLE_FUNCTIONS: Any = _find("torch._VF") or ModuleType("nothing")

# Nodes.
#: the number that the next node of this thread will have
next_number: Callable[[], int] = _find("torch.autograd._get_sequence_nr")
#: the number of a node, which grows with each one made; AccumulateGrad has 2^64-1
node_number: Callable[[Any], int] = operator.methodcaller("_sequence_nr")
#: of each output of a node its shape, dtype and device
output_metadata: Callable[[Any], Any] = operator.attrgetter("_input_metadata")

_RAW, _SAVED = "_raw_saved_", "_saved_"
_SavedTensor = _find("torch._C._autograd.SavedTensor")
#: a saved tensor says whether a hook of the script's lies before it, and shows itself without running that
SHOWS_SAVED = hasattr(_SavedTensor, "data") and hasattr(_SavedTensor, "unpack_hook")


def saved_tensor_names(kind: type) -> tuple[str, ...]:
    """The names of the tensors that nodes of a type save: `self`, `weight`, `result`, `tensors` of a custom Function."""
    return tuple(name.removeprefix(_RAW) for name in dir(kind) if name.startswith(_RAW))


def raw_attribute(name: str) -> str:
    """The attribute of a node that hands out a saved tensor as it lies, unchecked."""
    return _RAW + name


def unpacked_attribute(kind: type, name: str) -> str:
    """The attribute of a node that unpacks a saved tensor, with torch's checks and the user's hooks."""
    # a custom Function has no `_saved_tensors`
    return _SAVED + name if hasattr(kind, _SAVED + name) else f"saved_{name}"


def unpacked_attributes(node: Any) -> list[str]:
    """The attributes of a node behind which saved values of any kind lie."""
    return [name for name in dir(node) if name.startswith(_SAVED) or name == "saved_tensors"]


def saved_argument(node: Any, name: str) -> Any:
    """What a node remembers of an argument that is no tensor, its `dim` for one; None where there is nothing."""
    return getattr(node, _SAVED + name, None)


def function_of(kind: type) -> Any:
    """The custom Function whose nodes are of this type; None for an operation of torch's own."""
    return getattr(kind, "_forward_cls", None)


# The engine.
#: imported by name in both modules
ENGINE_MODULES: tuple[Any, ...] = torch.autograd, torch.autograd.graph
ENGINE = "_engine_run_backward"

# torch.compile.
_eval_frame: Any = _find("torch._C._dynamo.eval_frame")
#: what torch.compile has put in place to see each frame, None where no compiled function runs
compile_callback: Callable[[], Any] = getattr(_eval_frame, "get_eval_frame_callback", None) or (lambda: None)
can_spare = hasattr(_eval_frame, "set_code_exec_strategy")
DYNAMO = "torch._dynamo.eval_frame"


def spare(code: CodeType, callees: bool = True) -> None:
    """Has torch.compile leave this code alone and, with `callees`, all that it calls."""
    if can_spare:
        act = _eval_frame._FrameAction
        rest = act.SKIP if callees else act.DEFAULT
        _eval_frame.set_code_exec_strategy(code, _eval_frame._FrameExecStrategy(act.SKIP, rest))


def compiled_pieces() -> int:
    """How many pieces of code torch.compile has compiled so far, as torch itself counts them."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    counters = getattr(dynamo, "counters", None)
    return int(counters["frames"]["ok"]) if counters else 0


# Data.
#: the file of torch that puts samples together to a batch
COLLATE = os.path.join("torch", "utils", "data", "_utils", "collate.py")


def index_sampler(iterator: Any) -> Any:
    """The sampler from which the iterator of a DataLoader takes its indices; None for anything else."""
    return getattr(iterator, "_index_sampler", None)


def held_schedulers(scheduler: Any) -> Iterable[Any]:
    """The learning rate schedulers that another one steps."""
    return getattr(scheduler, "_schedulers", ())


# Python.
SHOW_WARNING = "_showwarnmsg"
show_warning: Callable[[Any], None] | None = getattr(warnings, SHOW_WARNING, None)


def require_support() -> None:
    """Raises `TorchError` where gradtrace cannot work with this torch."""
    if VERSION < OLDEST:
        raise TorchError(f"this is torch {torch.__version__}, and gradtrace needs {_SUPPORTED}; install a newer torch")
    lacking = ", ".join(piece.name for piece in missing() if piece.lost is CORE)
    if lacking:
        raise TorchError(
            f"this is torch {torch.__version__}, which has no {lacking}; gradtrace needs {_SUPPORTED}: "
            "install one of these, or a newer gradtrace"
        )


def remarks() -> Iterator[str]:
    """What the reader must know of this torch."""
    if VERSION > NEWEST:
        yield f"torch {torch.__version__} is newer than any that gradtrace was tested with ({_SUPPORTED})"


def missing(pieces: Iterable[Piece] = PIECES) -> Iterator[Piece]:
    """The pieces that this torch or Python lacks, as far as that shows before anything ran."""
    node = torch.empty(0, requires_grad=True).exp().grad_fn
    homes = {
        "Node": {*dir(node), f"{_RAW}*", f"{_SAVED}*", "_forward_cls"},
        "SavedTensor": set(dir(_SavedTensor)),
        "warnings": set(dir(warnings)),
    }
    for piece in pieces:
        home, _, name = piece.name.rpartition(".")
        if home in homes:
            if name not in homes[home]:
                yield piece
        elif home.startswith("torch.") and not home.startswith("torch._dynamo") and _find(piece.name) is None:
            yield piece


def local_part(tensor: torch.Tensor) -> torch.Tensor:
    """The part of a DTensor that lies on this rank; any other tensor itself. Operations on a DTensor may talk to the other
    ranks, which do not listen when we ask."""
    if type(tensor) in _WHOLE:
        return tensor
    part = getattr(tensor, "_local_tensor", None)
    return part if isinstance(part, torch.Tensor) else tensor


def placement(tensor: torch.Tensor) -> str:
    """How a DTensor lies on its ranks: "Shard(0) of 4 ranks"; empty for any other tensor."""
    if local_part(tensor) is tensor:
        return ""
    places, mesh = getattr(tensor, "placements", ()), getattr(tensor, "device_mesh", None)
    # as `repr` has them: Shard(dim=0), Replicate(), Partial(sum)
    words = [repr(place).replace("dim=", "").removesuffix("()") for place in places]
    return f"{', '.join(words)} of {mesh.size()} ranks" if mesh is not None else ", ".join(words)


def is_part(tensor: torch.Tensor) -> bool:
    """Whether this rank holds only a part of a DTensor, or of what is to be summed up to it."""
    return local_part(tensor) is not tensor and any(
        repr(one) != "Replicate()" for one in getattr(tensor, "placements", ())
    )


_WHOLE = (torch.Tensor, torch.nn.Parameter)


def job_store() -> Any:
    """The store through which the processes of the default group found each other; None where that is not known."""
    from torch.distributed import distributed_c10d

    get = getattr(distributed_c10d, "_get_default_store", None)
    return None if get is None else get()


def leaf_hooks(leaf: torch.Tensor) -> int:
    """How many hooks of the user's a leaf has, those that run after its gradient was accumulated included."""
    kinds = ("_backward_hooks", "_post_accumulate_grad_hooks")  # the second since torch 2.1
    return sum(len(getattr(leaf, kind, None) or ()) for kind in kinds)
