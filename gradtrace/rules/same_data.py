"""Every rank trains on the same samples, or each epoch gives them in the same order.

Why it matters
    Ranks that read the same batches compute the same gradients: a job of eight ranks then does the work of one eight times. A
    DataLoader knows nothing of ranks; a DistributedSampler gives each rank its part. It shuffles by its seed and the epoch,
    so that without `set_epoch` each epoch repeats the order of the first.

Bad
    model = DDP(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(dataset, batch_size=4)
    for x, y in loader:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()

Good
    model = DDP(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(dataset, batch_size=4, sampler=DistributedSampler(dataset))
    for epoch in range(2):
        loader.sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            loss_fn(model(x), y).backward()
            optimizer.step()

The finding is where the model is called, for equal inputs in every training step that was looked at; and at the loop over the
loader for a sampler that repeats its order. Inputs are compared by checksums, those of the first steps and then of fewer and
fewer. Jobs in which several ranks are to share a batch, as for tensor parallelism, do not wrap the model over all ranks.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.model.ranks import InputDigests, Job, SamplerOrder
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.between_ranks import is_whole, side_by_side

#: steps whose inputs must be equal: fewer may be one warm-up batch that all ranks share
_CALLS = 4


class SameData(Rule):
    id = "same-data"
    level = Level.WARNING
    events = (Job, SamplerOrder)
    reads = (InputDigests,)
    needs = Needs(calls=_CALLS)

    def see(self, event: Event) -> Iterable[Finding]:
        if isinstance(event, SamplerOrder):
            return self._same_order(event)
        if not isinstance(event, Job) or not is_whole(event):
            return []
        return [found for inputs in side_by_side(event, InputDigests) for found in self._same_inputs(inputs)]

    def _same_inputs(self, inputs: tuple[InputDigests, ...]) -> list[Finding]:
        first = inputs[0]
        equal = all(one.values == first.values and one.calls == first.calls for one in inputs)
        if not equal or not first.whole or len(first.calls) < _CALLS:
            return []
        return self.finding(
            first.called,
            f"all {len(inputs)} ranks train on the same samples: the inputs of the model were equal in each of the "
            f"{len(first.calls)} steps that were compared",
            "give the DataLoader sampler=DistributedSampler(dataset); with data made at random, seed by rank after the "
            "model is wrapped",
            ((first.made, "the model is wrapped here"),),
        )

    def _same_order(self, event: SamplerOrder) -> list[Finding]:
        if not event.trains:
            return []
        return self.finding(
            event.used,
            f"the DistributedSampler gives the same order in {event.times} epochs: its epoch was {event.epoch} each time",
            "call sampler.set_epoch(epoch) at the beginning of each epoch",
        )
