"""Sparse gradients that an optimizer, or the clipping of gradients, refuses; and dense ones that SparseAdam refuses."""

from __future__ import annotations

from collections.abc import Mapping
from types import FrameType, TracebackType
from typing import Any

import torch
import torch.nn.functional as F
from torch.nn.modules import sparse
from torch.nn.utils import clip_grad
from torch.optim import Optimizer

from gradtrace.errors import first_line
from gradtrace.host.tracebacks import frames_of
from gradtrace.model.events import SparseRefused
from gradtrace.model.site import Stack
from gradtrace.watcher.code.names import variables
from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.observer import Handler, Observer, TorchCall
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.core.steps import parameters
from gradtrace.watcher.parameters.births import Births

#: parameters of which it is remembered where their gradients were made sparse; names that are reported
_MANY, _NAMES = 4_096, 6


class SparseGradients(Observer):
    def __init__(self, session: Session, births: Births) -> None:
        super().__init__(session)
        self._births = births
        #: where parameters were used in a way that makes their gradients sparse, by the user's own code
        self._asked: dict[TensorId, Stack] = {}
        #: those of them that were gathered from
        self._gathered: set[TensorId] = set()

    def functions(self) -> Mapping[Any, Handler]:
        return dict.fromkeys((F.embedding, F.embedding_bag, torch.gather), self._looked_up)

    def _looked_up(self, call: TorchCall) -> None:
        if len(self._asked) >= _MANY or not _is_sparse(call) or self._is_by_module(call.frame):
            return
        given = call.args[0 if call.func is torch.gather else 1 :][:1]
        weight = given[0] if given else call.kwargs.get("input" if call.func is torch.gather else "weight")
        if isinstance(weight, torch.Tensor) and weight.is_leaf:
            key = self.session.ids.of(weight)
            self._asked[key] = self.session.frames.stack(call.frame)
            if call.func is torch.gather:
                self._gathered.add(key)

    def _is_by_module(self, frame: FrameType | None) -> bool:
        """Whether one of torch's modules looks up, and not the user's own code."""
        while frame is not None and not self.session.frames.is_user(frame.f_code.co_filename):
            if frame.f_code.co_filename == sparse.__file__:
                return True
            frame = frame.f_back
        return False

    def crashed(self, error: BaseException, stack: Stack) -> None:
        if not isinstance(error, (RuntimeError, NotImplementedError)) or not stack:
            return
        optimizer, clipping = _who(error.__traceback__)
        if optimizer is None and not clipping:
            return
        held = [optimizer] if optimizer is not None else self.session.optimizers()
        leaves = [leaf for one in held for leaf in parameters(one) if leaf.grad is not None]
        thin = [leaf for leaf in leaves if leaf.grad is not None and leaf.grad.layout is not torch.strided]
        if optimizer is not None and "does not support dense" in str(error):
            dense = [leaf for leaf in leaves if leaf.grad is not None and leaf.grad.layout is torch.strided]
            self._report("dense", error, stack, optimizer, dense)
        elif thin and clipping:
            self._report("clip", error, stack, None, thin)
        elif thin and optimizer is not None and _is_about_layout(str(error)):
            decayed = any(group.get("weight_decay") for group in optimizer.param_groups)
            supported = "does not support" not in str(error)
            self._report("decay" if decayed and supported else "sparse", error, stack, optimizer, thin)

    def _report(
        self, kind: str, error: BaseException, stack: Stack, optimizer: Optimizer | None, leaves: list[torch.Tensor]
    ) -> None:
        if not leaves:
            return
        made: dict[Stack, int] = {}
        for leaf in leaves:
            where = self._made(leaf)
            made[where] = made.get(where, 0) + 1
        cause = next((where for where in made if where), ())
        names = tuple(dict.fromkeys(filter(None, self.session.book.names(leaves))))[:_NAMES]
        created = self._births.optimizer(self.session.ids.known(optimizer)) if optimizer is not None else None
        known = map(self.session.book.known, leaves)
        shares = next((one.shares for one in known if one is not None and one.shares), ())
        backward = shares[-1].call.origin.stack if shares else ()
        self.session.emit(
            SparseRefused(
                kind,
                stack,
                type(optimizer).__name__ if optimizer is not None else "",
                created.stack if created is not None else (),
                names,
                len(leaves),
                cause,
                "sparse_grad=True" if self.session.ids.known(leaves[0]) in self._gathered else "sparse=True",
                backward,
                first_line(error),
            )
        )

    def _made(self, leaf: torch.Tensor) -> Stack:
        """Where it is decided that its gradients are sparse: where it is looked up by the user's code, or where the module
        was made that does so."""
        asked = self._asked.get(self.session.ids.known(leaf))
        if asked is not None:
            return asked
        birth = self._births.of(leaf)
        owner = birth.owner() if birth is not None else None
        return birth.stack if birth is not None and isinstance(owner, (sparse.Embedding, sparse.EmbeddingBag)) else ()


def _is_sparse(call: TorchCall) -> bool:
    """Whether the call asks for a sparse gradient."""
    if call.func is torch.gather:
        return bool(call.kwargs.get("sparse_grad"))
    positions = {F.embedding: 6, F.embedding_bag: 7}
    at = positions[call.func]
    return bool(call.kwargs.get("sparse") or (len(call.args) > at and call.args[at] is True))


def _who(traceback: TracebackType | None) -> tuple[Optimizer | None, bool]:
    """The optimizer whose step raised an error, and whether the clipping of gradients did."""
    optimizer, clipping = None, False
    for frame in frames_of(traceback):
        if frame.f_code.co_filename == clip_grad.__file__:
            clipping = True
        elif frame.f_code.co_name == "step":
            found = variables(frame).get("self")
            optimizer = found if isinstance(found, Optimizer) else optimizer
    return optimizer, clipping


def _is_about_layout(text: str) -> bool:
    return "sparse" in text.lower()
