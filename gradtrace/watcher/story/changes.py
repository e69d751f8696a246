"""What the user's tensors are like at one moment, and what is not as it was at the moment before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from gradtrace.model.story import Built, Fact, Graded, Made, Required, Value, Written
from gradtrace.watcher.code import names
from gradtrace.watcher.compat import node_number
from gradtrace.watcher.core.book import Book
from gradtrace.watcher.core.lineage import Origins
from gradtrace.watcher.graph import saved
from gradtrace.watcher.story import lineage
from gradtrace.watcher.story.lineage import Lineage
from gradtrace.watcher.story.valuing import value

Tensor = torch.Tensor
#: places of memory remembered to which `.data`, NumPy and the like can write without a trace
_EXPOSED = 4_096
#: leaves named in one fact
_NAMES = 64


@dataclass(slots=True)
class _Known:
    """A tensor as it was. Found again by its `id()`, and so only while the user holds it."""

    name: str
    version: int
    memory: int
    requires_grad: bool
    value: Value
    #: of the .grad: id and version, None where there is none
    seen: tuple[int, int] | None
    grad: Value | None


@dataclass(frozen=True, slots=True)
class Statement:
    """What a statement gives a value (`targets`), and its place."""

    path: str
    first: int
    last: int
    targets: tuple[str, ...]


class Changes:
    """Compares moments. Holds plain values alone between them."""

    def __init__(self, lineage: Lineage, cuts: Origins, book: Book) -> None:
        self._lineage = lineage
        self._book = book
        self._cuts = cuts
        self._known: dict[int, _Known] = {}
        self._exposed: set[int] = set()
        #: the `id()` of what each variable was last seen to hold that is no tensor
        self._holders: dict[str, int] = {}
        #: names that the running function has for tensors
        self.local: dict[int, str] = {}
        #: the `id()` of each buffer of a module that is in sight
        self._buffers: set[int] = set()

    def name(self, tensor: Tensor) -> str:
        """The user's name for a tensor, the running function's own first; empty where there is none."""
        known = self._known.get(id(tensor))
        return self.local.get(id(tensor)) or (known.name if known else "")

    def expose(self, tensor: Tensor) -> None:
        """From now on it may be written to in a way that its version does not show."""
        if len(self._exposed) < _EXPOSED:
            self._exposed.add(saved.memory(tensor))

    def in_order(self, texts: Iterable[str]) -> tuple[str, ...]:
        """Names in the order in which the user's code has them."""
        order = {known.name: at for at, known in enumerate(self._known.values())}
        return tuple(sorted(texts, key=lambda text: order.get(text, len(order))))

    def look(self, found: Iterable[tuple[str, Any]], scope: Mapping[str, Any], outer: Mapping[str, Any]) -> None:
        """Takes the moment in without telling what changed."""
        for _ in self.facts(found, Statement("", 0, 0, ()), scope, outer, False, False):
            pass

    def facts(
        self,
        found: Iterable[tuple[str, Any]],
        statement: Statement,
        scope: Mapping[str, Any],
        outer: Mapping[str, Any],
        step: bool,
        asked: bool,
    ) -> list[Fact]:
        """Takes the moment in; what changed since the last one, because of the statement.

        `step`: an optimizer's step ran in it; `asked`: a backward call did.
        """
        tensors: dict[int, tuple[str, Tensor]] = {}
        self._buffers.clear()
        for name, one in found:
            if isinstance(one, Tensor) and not is_lazy(one):
                tensors.setdefault(id(one), (name, one))
            elif isinstance(one, torch.nn.Module):
                self._buffers.update(map(id, one._buffers.values()))
        before, self._known = self._known, {}
        old_names: dict[int, str] = {}
        for known in before.values():
            old_names.setdefault(known.memory, known.name)
        for key, (name, tensor) in tensors.items():
            self._known[key] = self._moment(name, tensor, before.get(key))
        self.local = {id(one): name for held in (outer, scope) for name, one in held.items() if isinstance(one, Tensor)}
        built, given = self._built(statement, scope, outer)
        facts: list[Fact] = []
        for key, (name, tensor) in tensors.items():
            was = before.get(key)
            if was is None and not _within(name, built) and (key in given or _short(name)):
                facts.append(self._made(given.get(key, name), tensor, statement, before, old_names))
            elif was is None and asked and self._known[key].grad is not None:
                facts.append(Graded(self.name(tensor), "new", None, self._known[key].grad))
            elif was is not None and (was is not self._known[key] or key in given):
                if key in given and given[key] != was.name and was.version == self._known[key].version:
                    facts.append(self._made(given[key], tensor, statement, before, old_names, same=was.name))
                facts += self._changed(self.name(tensor), was, self._known[key], tensor, step, asked)
        return [*built.values(), *sorted(facts, key=_order)]

    def _moment(self, name: str, tensor: Tensor, before: _Known | None) -> _Known:
        version, memory, grad = _version(tensor), saved.memory(tensor), _grad(tensor)
        seen = None if grad is None else (id(grad), _version(grad))
        same = before is not None and (before.version, before.memory) == (version, memory)
        same = same and memory not in self._exposed
        kept = before is not None and before.seen == seen and (grad is None or not self._is_exposed(grad))
        if before is not None and same and kept and (before.name, before.requires_grad) == (name, tensor.requires_grad):
            return before
        numbers = before.value if before is not None and same else value(tensor)
        grad_then = before.grad if before is not None and kept else None if grad is None else value(grad)
        return _Known(name, version, memory, tensor.requires_grad, numbers, seen, grad_then)

    def _is_exposed(self, tensor: Tensor) -> bool:
        return bool(self._exposed) and saved.memory(tensor) in self._exposed

    def _built(
        self, statement: Statement, scope: Mapping[str, Any], outer: Mapping[str, Any]
    ) -> tuple[dict[str, Built], dict[int, str]]:
        """The modules and optimizers that the statement makes, by name, and its tensors by their `id()`."""
        built: dict[str, Built] = {}
        given: dict[int, str] = {}
        for target in statement.targets:
            held = names.value_of(target, scope, outer) if target.replace(".", "").isidentifier() else None
            if isinstance(held, Tensor):
                given[id(held)] = target
                continue
            # the head of a loop runs once more at its end, and then gives nothing
            last, self._holders[target] = self._holders.get(target), id(held)
            if last == id(held):
                continue
            if isinstance(held, torch.nn.Module):
                built[target] = _parts(target, list(held.named_parameters()), type(held).__name__)
            elif isinstance(held, torch.optim.Optimizer):
                held_by = [(self.name(one), one) for group in held.param_groups for one in group["params"]]
                built[target] = _parts("", held_by, type(held).__name__, target)
        return built, given

    def state(self, text: str, tensor: Tensor) -> Made:
        """A tensor as it is now, and what freed its graph."""
        made = self._made(text, tensor, Statement("", 0, 0, ()), {}, {})
        node = self._lineage.node_of(tensor)
        return made if node is None else replace(made, freed_line=lineage.freed_at(node))

    def _made(
        self,
        name: str,
        tensor: Tensor,
        statement: Statement,
        before: Mapping[int, _Known],
        old_names: Mapping[int, str],
        same: str = "",
    ) -> Made:
        node = self._lineage.node_of(tensor)
        behind = self.in_order(self._lineage.behind(node)) if node is not None else ()
        base = tensor._base if not same and tensor._is_view() else None
        view = self.name(base) if base is not None else ""
        memory = saved.memory(tensor)
        shares = old_names.get(memory, "") if memory and not same else ""
        cut, sources = self._cut(tensor, statement)
        return Made(
            name=name,
            value=value(tensor),
            requires_grad=tensor.requires_grad,
            leaf=tensor.is_leaf,
            parameter=isinstance(tensor, torch.nn.Parameter),
            op=type(node).__name__ if node is not None else "",
            formula=self._lineage.formula(node_number(node)) if node is not None else "",
            reaches=behind[:_NAMES],
            reached=len(behind),
            same=same,
            shares="" if shares in (name, view) else shares,
            view=view,
            cut=cut,
            cut_from=sources,
        )

    def _cut(self, tensor: Tensor, statement: Statement) -> tuple[str, tuple[str, ...]]:
        """Why the statement ended a path at this tensor, and whose."""
        if tensor.requires_grad or not statement.first:
            return "", ()
        here = [
            cut
            for cut in self._cuts.of(tensor)
            if cut.stack and cut.stack[0].path == statement.path
            if statement.first <= cut.stack[0].line <= statement.last
        ]
        sources = tuple(dict.fromkeys(cut.source for cut in here if cut.source))
        return (here[0].op if here[0].why in ("detached", "copied") else here[0].why, sources) if here else ("", ())

    def _changed(
        self, name: str, before: _Known, now: _Known, tensor: Tensor, step: bool, asked: bool
    ) -> Iterator[Fact]:
        if before.requires_grad != now.requires_grad and tensor.is_leaf:
            yield Required(name, now.requires_grad)
        if not _same(before.value, now.value):
            saver = self._lineage.saver(tensor) if not step else None
            line = saver.stack[0].line if saver and saver.stack else 0
            versions = before.version, now.version
            op = saver.op if saver else ""
            yield Written(name, before.value, now.value, versions, step, op, line, self._part(tensor))
        change = _change(before, now, asked)
        if change:
            unused = change in ("cleared", "zeroed") and self._is_unused(tensor)
            yield Graded(name, change, before.grad, now.grad, unused)

    def _part(self, tensor: Tensor) -> str:
        if isinstance(tensor, torch.nn.Parameter):
            return "parameter"
        return "buffer" if id(tensor) in self._buffers else "tensor"

    def _is_unused(self, tensor: Tensor) -> bool:
        """Whether a gradient that was just cleared had something in it that no step has used."""
        leaf = self._book.known(tensor)
        return leaf is not None and (leaf.wasted or leaf.unused)


def _change(before: _Known, now: _Known, asked: bool) -> str:
    """What became of a .grad; empty where nothing did."""
    if now.grad is None:
        return "cleared" if before.grad is not None else ""
    if before.seen == now.seen and (before.grad is None or _same(before.grad, now.grad)):
        return ""
    if before.grad is None:
        return "new"
    if now.grad.zero and not asked:
        return "" if before.grad.zero else "zeroed"
    if asked:
        return "accumulated"
    return "" if _same(before.grad, now.grad) else "written"


def _same(one: Value, other: Value) -> bool:
    """Whether the numbers are the same; NaN is the same as NaN."""
    return one is other or repr(one) == repr(other)


def _grad(tensor: Tensor) -> Tensor | None:
    # of other tensors the mere question makes torch warn
    return tensor.grad if tensor.is_leaf or tensor.retains_grad else None


def _version(tensor: Tensor) -> int:
    return -1 if tensor.is_inference() else tensor._version


def _parts(prefix: str, parameters: list[tuple[str, Tensor]], kind: str, optimizer: str = "") -> Built:
    texts = tuple(f"{prefix}.{name}" if prefix else name or str(list(one.shape)) for name, one in parameters)
    parameters = [(name, one) for name, one in parameters if not is_lazy(one)]
    numbers = sum(one.numel() for _, one in parameters)
    return Built(optimizer or prefix, kind, bool(optimizer), texts[:_NAMES], len(texts), numbers)


def _within(name: str, built: Mapping[str, Any]) -> bool:
    return any(name.startswith((f"{owner}.", f"{owner}[")) for owner in built)


def _short(name: str) -> bool:
    """Whether a name is a variable, an attribute or an element of one: what lies deeper is internal to an object."""
    return name.count(".") + name.count("[") <= 1


def _order(fact: Fact) -> int:
    """Gradients first, then what was written, then what got a name."""
    return {"Graded": 0, "Written": 1, "Required": 2}.get(type(fact).__name__, 3)
