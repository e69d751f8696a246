"""Which parameters of optimizers never receive a gradient, and why not.

Of parameters without a gradient at an optimizer's first step, the next iterations are looked at closely: which operations
take them in, and where paths from them end.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Mapping, Sequence
from types import FrameType
from typing import Any

import torch
from torch.optim import Optimizer

from gradtrace.model.events import Cut, Unreached
from gradtrace.model.site import Stack
from gradtrace.source import questions
from gradtrace.watcher.code import function_source
from gradtrace.watcher.code.holders import Holders, look
from gradtrace.watcher.compat import function_of, local_part, node_number
from gradtrace.watcher.core.backward import BackwardCall
from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.lineage import VIEWING, Constant, Origins
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall, tensors_in
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.core.steps import parameters
from gradtrace.watcher.graph import ops, query
from gradtrace.watcher.parameters.births import Birth, Births, CreatedOptimizer

Tensor = torch.Tensor

#: steps of an optimizer before anything is said of it
_STEPS = 3
#: steps after which the values of idle parameters are looked at
LOOKS = frozenset((1, 2, 3, 4, 6, *(2**power for power in range(3, 31))))
#: past optimizers that are reported, calls looked at, walks made and searches for names, at most
_PAST = 64
_CALLS = 200_000
_WALKS = 64
_SEARCHES = 6
_NAMES = 6
#: backward calls whose graphs are searched for constants
_GRAPHS = 256
#: places of cuts behind such constants
_ENTERED = 1_024
#: calls that use parameters and give several tensors
_SEVERAL = (*ops.RECURRENT_FUNCTIONS, torch.nn.functional.multi_head_attention_forward)
#: what takes a value out as it is
_TAKEN_OUT = (Tensor.detach, Tensor.data.__get__)  # type: ignore[attr-defined]
#: cuts by which a value leaves torch: as often for a log as for a loss
_NUMBERS = {
    Tensor.item: "item()",
    Tensor.tolist: "tolist()",
    Tensor.numpy: "numpy()",
    Tensor.__float__: "float()",
    Tensor.__int__: "int()",
    Tensor.__index__: "int()",
}
_INDICES = (Tensor.__int__, Tensor.__index__)


class _Suspect:
    """A parameter without a gradient so far."""

    __slots__ = ("birth", "derived", "elsewhere", "mark", "number", "off", "used", "withheld")

    def __init__(self, tensor: Tensor, birth: Birth | None) -> None:
        self.birth = birth
        self.mark = fingerprint(tensor)
        #: where an operation used it, with gradients on and with gradients off
        self.used: Stack = ()
        self.off: Stack = ()
        #: the backward of a custom Function that used it, and gave no gradient for it
        self.withheld: Stack = ()
        #: where its own value was taken out of torch
        self.number: Cut | None = None
        #: a call gave it a gradient that was cleared before its optimizer made a step
        self.elsewhere = False
        #: a derivative was taken of something computed from it: that need not depend on it, as on a last bias
        self.derived = False

    @property
    def is_gone(self) -> bool:
        """Its module is no more: another tensor may lie where it has lain."""
        return self.birth is not None and not self.birth.in_forward and self.birth.owner() is None


class _Group:
    """The parameters of one optimizer."""

    def __init__(self, optimizer: Optimizer, made: CreatedOptimizer | None) -> None:
        self.optimizer = weakref.ref(optimizer)
        self.kind = type(optimizer).__name__
        self.made = made
        #: its steps that had a backward call before them, and how many calls there had been at the last one
        self.steps = 0
        self.calls = 0
        self.suspects: dict[TensorId, _Suspect] = {}
        self.members: frozenset[TensorId] = frozenset()
        self.holders = Holders()

    @property
    def is_reportable(self) -> bool:
        """Whether it is known well enough that some of its parameters get no gradient."""
        return bool(self.suspects) and self.steps >= _STEPS

    @property
    def is_idle(self) -> bool:
        """Whether none of its parameters has ever received a gradient."""
        never = [suspect for suspect in self.suspects.values() if not suspect.elsewhere]
        return len(never) == len(self.members) > 0


class Reach(Observer):
    def __init__(self, session: Session, births: Births, cuts: Origins) -> None:
        super().__init__(session)
        self._births = births
        self._cuts = cuts
        self._groups: dict[TensorId, _Group] = {}
        #: of optimizers whose place another one has taken
        self._past: list[_Group] = []
        self._suspects: dict[TensorId, _Suspect] = {}
        #: the cuts behind constants of graphs that were run through, by place, the first one first, with what was made of
        #: the constant
        self._entered: dict[Stack, tuple[Cut, Constant]] = {}
        #: places of cuts whose values entered anything but a comparison
        self._computed_on: set[Stack] = set()
        #: values that were written into parameters, with the identities of the suspects behind them
        self._written_from: dict[Stack, tuple[Cut, set[TensorId]]] = {}
        #: places where whole numbers were computed, by which others are chosen
        self._indices: dict[Stack, Cut] = {}
        self._graphs_left = _GRAPHS
        self._calls_left, self._walks_left, self._searches_left = _CALLS, _WALKS, _SEARCHES

    def functions(self) -> Mapping[Any, Handler]:
        return {
            **dict.fromkeys(_SEVERAL, self._several),
            Tensor.copy_: self._written,
            **dict.fromkeys((*VIEWING, Tensor.__getitem__), self._viewed),
            **dict.fromkeys(_NUMBERS, self._leaves_torch),
        }

    def woken(self) -> Handler:
        return self._nodes

    def made_plain(self) -> Handler:
        return self._plain

    def idle(self, key: TensorId) -> bool:
        """Whether no parameter of this optimizer ever received a gradient, over several steps."""
        group = self._groups.get(key)
        return group is not None and group.steps >= _STEPS and group.is_idle

    def names_of_idle(self, leaves: Collection[TensorId]) -> tuple[str, ...]:
        """The user's names for those of these parameters that never received a gradient."""
        groups = [group for group in (*self._past, *self._groups.values()) if group.is_reportable]
        found = [(group, key) for group in groups for key, one in group.suspects.items() if not one.elsewhere]
        return tuple(group.holders.names.get(key, "") for group, key in found if key in leaves)

    def excuse(self, key: int) -> None:
        """Another finding explains why this optimizer's parameters are idle."""
        self._groups.pop(key, None)

    # what the operations use

    def _watching(self) -> bool:
        if not self._suspects or self._calls_left <= 0:
            return False
        self._calls_left -= 1
        return True

    def _several(self, call: TorchCall) -> None:
        if self._watching():
            self._note_inputs(call, call.inputs)

    def _viewed(self, call: TorchCall) -> None:
        if self._suspects and not torch.is_grad_enabled() and self._watching():
            stack = self.session.frames.stack(call.frame)
            if any(site.in_module_call for site in stack):  # elsewhere it is looked at
                self._note_inputs(call, tensors_in(call.args[:1]))

    def _written(self, call: TorchCall) -> None:
        """`linear.weight.data.copy_(u @ v)`: the layer computes with the values, and the path ends."""
        target, *given = call.inputs[:2]
        if not self._suspects or not given or not given[0].requires_grad or call.after == call.before:
            return
        place = target.data_ptr()
        held = (one for optimizer in self.session.optimizers() for one in parameters(optimizer))
        if any(one is not target and one.numel() and one.data_ptr() == place for one in held):
            self._note_written(Cut(".data.copy_()", "written", self.session.frames.stack(call.frame)), given)

    def _note_written(self, cut: Cut, sources: Sequence[Tensor]) -> None:
        known = self._written_from.get(cut.stack)
        if known is None and len(self._written_from) < _WALKS:
            known = self._written_from[cut.stack] = (cut, set())
        if known is not None and self._walks_left:
            self._walks_left -= 1
            known[1].update(self.session.ids.known(leaf) for leaf in query.leaves_of(sources))

    def _leaves_torch(self, call: TorchCall) -> None:
        if not self._suspects:
            return
        stack = self.session.frames.stack(call.frame)
        if call.func in _INDICES and call.args[0].requires_grad and len(self._indices) < _ENTERED:
            self._indices.setdefault(stack, Cut(_NUMBERS[call.func], "detached", stack))
        suspect = self._suspects.get(self.session.ids.known(call.args[0]))
        if suspect is None or suspect.is_gone or suspect.number is not None:
            return
        if not (stack and questions.shows(stack[0])):
            suspect.number = Cut(_NUMBERS[call.func], "detached", stack)

    def _nodes(self, call: TorchCall) -> None:
        if self._watching():
            self.session.wake()
            self._note_inputs(call, call.inputs)

    def _plain(self, call: TorchCall) -> None:
        if self._watching():
            self._note_inputs(call, call.inputs)

    def _note_inputs(self, call: TorchCall, inputs: Sequence[Tensor]) -> None:
        for tensor in inputs:
            suspect = self._suspects.get(self.session.ids.known(tensor))
            if suspect is None or suspect.is_gone:
                continue
            stack = self.session.frames.stack(call.frame) if not (suspect.used and suspect.off) else ()
            if call.after != call.before:
                suspect.used = suspect.used or stack
            elif not torch.is_grad_enabled() and _computed_with(tensor, call, stack):
                suspect.off = suspect.off or stack
            elif torch.is_grad_enabled() and type(call.out) is Tensor and call.func not in _TAKEN_OUT:
                suspect.used = suspect.used or stack

    # who receives gradients

    def before_backward(self, call: BackwardCall, frame: FrameType, outputs: Sequence[Any]) -> None:
        if self._suspects:
            self._note_constants(call)
            if not call.accumulates:
                self._clear(call.leaves)
            if call.create and not call.accumulates:
                self._derive(outputs)

    def _note_constants(self, call: BackwardCall) -> None:
        """What was cut off from its parameters, and is a part of this loss all the same."""
        if not self._graphs_left:
            return
        self._graphs_left -= 1
        for leaf in call.leaves:
            if self.session.ids.known(leaf) not in self._suspects:
                self._enters(Constant(self._cuts.of_leaf(leaf), ()), False)
        if not self._cuts.constants(call.nodes):
            return
        for node in call.nodes:
            for constant in self._cuts.constants([node]):
                self._enters(constant, ops.is_comparison(type(node).__name__))

    def _enters(self, constant: Constant, compared: bool) -> None:
        for cut in constant.cuts:
            if len(self._entered) < _ENTERED:
                self._entered.setdefault(cut.stack, (cut, constant))
            if not compared and len(self._computed_on) < _ENTERED:
                self._computed_on.add(cut.stack)

    def has_entered(self, place: Stack) -> bool:
        """Whether a value that was cut off at this place came back into a graph that was run through."""
        return place in self._entered

    def _derive(self, outputs: Sequence[Any]) -> None:
        if self._walks_left and not all(suspect.derived for suspect in self._suspects.values()):
            self._walks_left -= 1
            for leaf in query.leaves_of([one for one in outputs if isinstance(one, Tensor)]):
                if suspect := self._suspects.get(self.session.ids.known(leaf)):
                    suspect.derived = True

    def after_backward(self, call: BackwardCall, error: BaseException | None) -> None:
        if not self._suspects or not call.accumulates:
            return
        reached = [leaf for leaf in call.leaves if self.session.ids.known(leaf) in self._suspects]
        for leaf in reached:
            suspect = self._suspects[self.session.ids.known(leaf)]
            if leaf.grad is not None:  # whether a step finds it is to be seen
                suspect.elsewhere = True
            elif error is None and not suspect.withheld and self._walks_left:
                self._walks_left -= 1
                self._note_withheld(suspect, leaf, call)

    def _note_withheld(self, suspect: _Suspect, leaf: Tensor, call: BackwardCall) -> None:
        """A call ran through to the leaf, and gave it no gradient."""
        node = _custom_above(leaf, call)
        withheld = function_source.backward_of(type(node)) if node is not None else ()
        if withheld and self.session.frames.is_user(withheld[0].path):
            suspect.withheld = withheld
            suspect.used = self.session.trail.find(node_number(node))
        else:
            self._clear([leaf])

    def _clear(self, leaves: Sequence[Tensor]) -> None:
        for leaf in leaves:
            if self._suspects.pop(self.session.ids.known(leaf), None) is not None:
                for group in (*self._past, *self._groups.values()):
                    group.suspects.pop(self.session.ids.known(leaf), None)
        if not self._suspects:
            self._cuts.listen(self, False)

    def after_step(self, optimizer: Optimizer, stack: Stack) -> None:
        group = self._groups.get(self.session.ids.known(optimizer))
        if group is None or group.optimizer() is not optimizer:
            if group is not None and group.is_reportable and len(self._past) < _PAST:
                self._past.append(group)
            group = self._groups[self.session.ids.of(optimizer)] = self._begin(optimizer)
        if self.session.backward_calls == group.calls:
            return
        group.steps, group.calls = group.steps + 1, self.session.backward_calls
        if not group.suspects:
            return
        idle = [one for one in parameters(optimizer) if self.session.ids.known(one) in group.suspects]
        # what a module has replaced, as a codebook of moving averages does, is not expected to train
        self._clear(
            [one for one in idle if one.grad is not None or not one.requires_grad or self._births.is_replaced(one)]
        )
        if group.steps in LOOKS:
            self._clear([one for one in idle if self.session.ids.known(one) in group.suspects and self._changed(one)])
        if group.suspects and not group.holders.names and self._searches_left and group.steps <= _STEPS:
            self._searches_left -= 1
            group.holders = look(self.session.frames, self.session.ids.known)

    def _begin(self, optimizer: Optimizer) -> _Group:
        group = _Group(optimizer, self._births.optimizer(self.session.ids.known(optimizer)))
        given = list(parameters(optimizer))
        group.members = frozenset(self.session.ids.of(one) for one in given if one.requires_grad)
        # an optimizer of the user's own may take gradients from anywhere
        if type(optimizer).__module__.partition(".")[0] != "torch":
            return group
        for one in given:
            known = self.session.book.known(one)
            if one.requires_grad and one.grad is None and not (known is not None and known.fed):
                key = self.session.ids.of(one)
                group.suspects[key] = self._suspects[key] = _Suspect(one, self._births.of(one))
        if self._suspects:
            self.session.wake()
            self._cuts.listen(self)
        return group

    def _changed(self, tensor: Tensor) -> bool:
        return fingerprint(tensor) != self._suspects[self.session.ids.known(tensor)].mark

    # what it comes to

    def at_end(self) -> None:
        for group in (*self._past, *self._groups.values()):
            if group.is_reportable:
                self._report(group)

    so_far = at_end

    def _report(self, group: _Group) -> None:
        groups_found: dict[Any, list[tuple[TensorId, str, Stack, Cut | None]]] = {}
        for one, suspect in group.suspects.items():
            why, where, cut = self._reason(one, suspect, group)
            if (why == "ignored" and suspect.derived) or (why != "cut" and suspect.elsewhere):
                continue
            if why != "unused":
                groups_found.setdefault((why, where[:1]), []).append((one, "", where, cut))
                continue
            root = self._root(group, one)
            born = group.holders.born(suspect.birth.stack, root) if suspect.birth else ()
            groups_found.setdefault((why, born[:1], root.rpartition(".")[2]), []).append((one, root, born, cut))
        for (why, *_), found in groups_found.items():
            self._emit(why, group, found, group.made.stack if group.made else ())

    def _reason(self, key: TensorId, suspect: _Suspect, group: _Group) -> tuple[str, Stack, Cut | None]:
        if suspect.withheld:
            return "withheld", suspect.withheld, None
        cut = self._cut_behind_loss(key, suspect)
        if cut is not None:
            return "cut", cut.stack, cut
        if suspect.used:
            return "ignored", suspect.used, None
        return ("no_grad", suspect.off, None) if suspect.off else ("unused", (), None)

    def _cut_behind_loss(self, key: TensorId, suspect: _Suspect) -> Cut | None:
        """The first cut on a path from this parameter to a loss: rather a term of it than a factor, rather one that could
        have been differentiable than an index or a mask, which choose what goes on."""
        found = [cut for cut, behind in self._written_from.values() if key in behind]
        for cut, _ in self._entered.values():
            # a use with gradients off has a reason of its own, unless that was before the first step
            off_itself = cut.why == "no_grad" and bool(suspect.off) and not suspect.used
            if not off_itself and key in self._cuts.leaves_behind(cut):
                found.append(cut)
        if not found and suspect.used:
            found = [cut for cut in self._indices.values() if key in self._cuts.leaves_behind(cut)]
        return min(found, key=lambda cut: self._doubt(cut, suspect), default=None)

    def _doubt(self, cut: Cut, suspect: _Suspect) -> tuple[bool, bool, bool]:
        """What was also computed with gradients on lost them elsewhere."""
        _, constant = self._entered.get(cut.stack, (cut, None))
        off = cut.why == "no_grad" and bool(suspect.used)
        return off, cut.why == "not differentiable", constant is None or not constant.added

    def _root(self, group: _Group, key: TensorId) -> str:
        """The name of the outermost module of which no parameter of this optimizer is used; or of the parameter."""
        name = group.holders.names.get(key, "")
        others = [group.holders.names.get(one, "") for one in group.members if not self._never_used(group, one)]
        for above in group.holders.above(name):
            if not any(other.startswith((f"{above}.", f"{above}[")) for other in others):
                return above
        return name

    def _never_used(self, group: _Group, key: TensorId) -> bool:
        suspect = group.suspects.get(key)
        return suspect is not None and not (suspect.used or suspect.off or suspect.number)

    def _emit(self, why: str, group: _Group, found: list[tuple[TensorId, str, Stack, Cut | None]], made: Stack) -> None:
        first, root, where, cut = found[0]
        suspect = group.suspects[first]
        holders, birth = group.holders, suspect.birth
        names = [root or holders.names.get(one, "") for one, root, _, _ in found]
        names = [
            name or self._kind_name(group.suspects[one].birth) for (one, *_), name in zip(found, names, strict=True)
        ]
        path = self._path(group, first, root)
        self.session.emit(
            Unreached(
                why,
                tuple(dict.fromkeys(names))[:_NAMES],
                len(found),
                group.kind,
                made,
                group.steps,
                where if why in ("unused", "withheld") else birth.stack if birth else (),
                holders.modules[root].kind if root in holders.modules else birth.kind if birth else "",
                (root or names[0]).rpartition(".")[2],
                tuple(dict.fromkeys(site.path for site in birth.stack)) if birth else (),
                suspect.used or suspect.off or (suspect.number.stack if suspect.number else ()),
                cut,
                group.is_idle,
                self._excuse(group, first, root, birth, path),
                cut is not None and cut.stack in self._entered and self._entered[cut.stack][1].straight_through,
            )
        )

    def _is_compared(self, key: TensorId) -> bool:
        """Whether the constants that a network computed with this parameter entered losses, and there comparisons alone."""
        cuts = [cut for cut, _ in self._entered.values() if key in self._cuts.leaves_behind(cut)]
        by_network = all(
            ops.is_layer(cut.op) if cut.why == "no_grad" else cut.behind not in ("", "leaf") for cut in cuts
        )
        return bool(cuts) and by_network and self._computed_on.isdisjoint(cut.stack for cut in cuts)

    @staticmethod
    def _kind_name(birth: Birth | None) -> str:
        return f"{birth.kind}.{birth.name}" if birth else "a parameter"

    @staticmethod
    def _path(group: _Group, key: TensorId, root: str) -> list[str]:
        return group.holders.above(group.holders.names.get(key, root))

    def _excuse(self, group: _Group, key: TensorId, root: str, birth: Birth | None, path: list[str]) -> str:
        modules = group.holders.modules
        if not modules:
            return "unknown"  # of later optimizers the modules are not searched for
        above = next((name for name in reversed(path) if root.startswith(f"{name}.") and name != root), "")
        if above and modules[above].container:
            return "picked"
        if birth is None or not birth.own:
            return "library"
        if self._births.is_loaded(key):
            return "loaded"
        if self._is_compared(key):
            return "compared"
        return "evaluating" if path and not modules[path[-1]].training else ""


def _custom_above(leaf: Tensor, call: BackwardCall) -> Any:
    """The nearest node of a custom Function above a leaf, None where there is none."""
    taker = next(iter(query.takers_of(leaf, call.nodes)), None)
    return next((node for node in query.path_up(taker, call.users) if function_of(type(node)) is not None), None)


def fingerprint(tensor: Tensor) -> tuple[Any, ...]:
    """Whether the code writes to a parameter, also through `.data`, which counts no versions."""
    few: list[Any] = []
    if tensor.layout is torch.strided and tensor.numel() and not tensor.is_meta:
        few = local_part(tensor).detach().reshape(-1)[:4].tolist()
    return tensor._version, tensor.data_ptr() if tensor.layout is torch.strided else 0, *few


def _computed_with(tensor: Tensor, call: TorchCall, stack: Stack) -> bool:
    """Whether an operation with gradients off is one of a forward pass: not of an average of parameters, or a look at
    them."""
    others = [one for one in call.inputs if one is not tensor]
    if not others or call.func.__name__.startswith("_foreach"):
        return call.func not in _TAKEN_OUT and any(site.in_module_call for site in stack)
    return any(one.shape != tensor.shape for one in others)
