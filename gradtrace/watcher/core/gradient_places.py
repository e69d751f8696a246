"""Whose gradient a tensor is, by where its values lie: an operation in place on `p.grad` gets the tensor alone."""

from __future__ import annotations

import torch

from gradtrace.watcher.core.identity import TensorId
from gradtrace.watcher.core.session import Session
from gradtrace.watcher.core.steps import parameters
from gradtrace.watcher.graph.saved import place_of


class GradientPlaces:
    """The gradients of what optimizers hold, looked up at most once between two backward calls or steps."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._since = (-1, -1)
        self._leaves: dict[int, TensorId] = {}

    def leaf_of(self, gradient: torch.Tensor) -> TensorId:
        """The number of the parameter; 0 where the tensor is no gradient of one."""
        session = self._session
        since = session.backward_calls, session.steps
        if self._since != since:
            self._since = since
            held = [leaf for one in session.optimizers() for leaf in parameters(one)]
            self._leaves = {place_of(one.grad): session.ids.known(one) for one in held if one.grad is not None}
        return self._leaves.get(place_of(gradient), 0)
