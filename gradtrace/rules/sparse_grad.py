"""An optimizer, or the clipping of gradients, refuses sparse gradients.

Why it matters
    With `sparse=True` an embedding gives a sparse gradient, which holds only the rows that were looked up. SGD, Adagrad and
    SparseAdam use such gradients; Adam, AdamW, RMSprop and most others raise an error at the first step, and so do weight
    decay and clip_grad_norm_.

Bad
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(100, 8, sparse=True)
            self.out = nn.Linear(8, 5)

        def forward(self, x):
            return self.out(self.embed(x))

    tagger = Tagger()
    optimizer = torch.optim.Adam(tagger.parameters())
    F.cross_entropy(tagger(torch.arange(8)), torch.zeros(8, dtype=torch.long)).backward()
    optimizer.step()

Good
    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(100, 8)
            self.out = nn.Linear(8, 5)

        def forward(self, x):
            return self.out(self.embed(x))

    tagger = Tagger()
    optimizer = torch.optim.Adam(tagger.parameters())
    F.cross_entropy(tagger(torch.arange(8)), torch.zeros(8, dtype=torch.long)).backward()
    optimizer.step()

The finding is where the embedding is created, or looked up, with `sparse=True`. SparseAdam refuses dense gradients in turn:
give it the embeddings alone, and the other parameters to another optimizer. An error that the code catches is not reported.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event, SparseRefused
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.naming import names_of, receiver

_WHAT = {
    "sparse": "`{optimizer}` does not take the sparse {gradient} of {names}",
    "decay": "`{optimizer}` with a weight decay does not take the sparse {gradient} of {names}",
    "clip": "the norm of the sparse {gradient} of {names} cannot be taken to clip gradients",
    "dense": "`{optimizer}` takes sparse gradients alone, but {names} got {dense}",
}
_FIX = {
    "sparse": "remove `{option}`, or give this parameter to torch.optim.SparseAdam and the others to {optimizer}",
    "decay": "remove `{option}`, or set weight_decay=0 for the group of this parameter",
    "clip": "remove `{option}`, or clip the other parameters alone",
    "dense": "create the embedding with `sparse=True`; give parameters that are no embeddings to another optimizer, such as "
    "torch.optim.Adam",
}


class SparseGrad(Rule):
    id = "sparse-grad"
    level = Level.ERROR
    events = (SparseRefused,)
    needs = Needs(calls=1)

    def see(self, event: Event) -> Iterable[Finding]:
        assert isinstance(event, SparseRefused)
        words = {
            "optimizer": event.optimizer,
            "option": event.option,
            "names": names_of(event.names, event.count),
            "gradient": "gradient" if event.count == 1 else "gradients",
            "dense": "a dense one" if event.count == 1 else "dense ones",
        }
        dense = event.kind == "dense"
        cause = event.optimizer_stack if dense else event.made
        step = f"`{receiver(event.stack) or event.optimizer}.step()`" if event.optimizer else "this"
        return self.finding(
            cause or event.stack,
            _WHAT[event.kind].format(**words),
            _FIX[event.kind].format(**words),
            (
                (event.stack, f"{step} raises the error"),
                (event.made if dense else event.optimizer_stack, _other(event)),
                (event.backward, "this call computes the gradient"),
                (cause[1:], "called from here"),
            ),
        )


def _other(event: SparseRefused) -> str:
    return "it is created here" if event.kind == "dense" else f"{event.optimizer} is created here"
