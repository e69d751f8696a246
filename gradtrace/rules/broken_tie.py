"""Two modules that shared a parameter now train two separate parameters.

Why it matters
    Weight tying works only while both modules hold the same Parameter object. Replacing one of them, copying one of the two
    modules, or load_state_dict(assign=True) makes two parameters, and each step moves them further apart.

Bad
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.encode, self.decode = nn.Linear(8, 1, bias=False), nn.Linear(8, 1, bias=False)
            self.decode.weight = self.encode.weight

        def forward(self, x):
            return self.encode(x) + self.decode(x.flip(1))

    tied = Tied()
    tied.encode.weight = nn.Parameter(torch.randn(1, 8))  # pretrained
    optimizer = torch.optim.SGD(tied.parameters(), lr=0.01)
    for x, y in data:
        optimizer.zero_grad()
        loss_fn(tied(x), y).backward()
        optimizer.step()

Good
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.encode, self.decode = nn.Linear(8, 1, bias=False), nn.Linear(8, 1, bias=False)
            self.decode.weight = self.encode.weight

        def forward(self, x):
            return self.encode(x) + self.decode(x.flip(1))

    tied = Tied()
    with torch.no_grad():
        tied.encode.weight.copy_(torch.randn(1, 8))  # pretrained
    optimizer = torch.optim.SGD(tied.parameters(), lr=0.01)
    for x, y in data:
        optimizer.zero_grad()
        loss_fn(tied(x), y).backward()
        optimizer.step()

The finding is at the line that replaced one of the two. It is a note where the replacement is a copy of the shared values, which
is how people untie weights on purpose.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradtrace.model.events import Event
from gradtrace.model.finding import Finding, Level, Needs
from gradtrace.model.truths import BrokenTie
from gradtrace.rules.base import Rule
from gradtrace.rules.judging.naming import names_of


class BrokenTieRule(Rule):
    id = "broken-tie"
    level = Level.WARNING
    events = (BrokenTie,)
    needs = Needs(steps=2)

    def see(self, event: Event) -> Iterable[Finding]:
        if not isinstance(event, BrokenTie):
            return []
        return self.finding(
            event.parted or event.tied,
            f"{names_of(event.names, len(event.names))} were one parameter and are now two: the optimizer moves them apart",
            "copy the values into the shared parameter (copy_() under torch.no_grad()), or tie the two again after this line",
            ((event.tied, "they were tied here"), (event.parted[1:], "called from here")),
            Level.NOTE if event.on_purpose else None,
        )
