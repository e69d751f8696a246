"""frozen-moves, duplicate-parameter, broken-tie and misspelt-attribute: parameters that do not stay what they were meant to."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent
from typing import Any

import pytest

RULES = {"frozen-moves", "duplicate-parameter", "broken-tie", "misspelt-attribute"}

TIED = """
class LM(nn.Module):
    def __init__(self, words=12, width=6):
        super().__init__()
        self.embed, self.decoder = nn.Embedding(words, width), nn.Linear(width, words, bias=False)
        self.decoder.weight = self.embed.weight

    def forward(self, ids):
        return self.decoder(torch.tanh(self.embed(ids)))

def fit(lm, steps=5):
    opt = torch.optim.SGD(lm.parameters(), lr=0.1)
    for _ in range(steps):
        ids = torch.randint(12, (8,))
        opt.zero_grad()
        F.cross_entropy(lm(ids), ids).backward()
        opt.step()
lm = LM()
"""

BAD = {
    "frozen with a gradient of zeros": """
        body, head = nn.Linear(3, 4), nn.Linear(4, 1)
        opt = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1, momentum=0.9)
        for step in range(8):
            if step == 3:
                body.requires_grad_(False)  # <- frozen-moves
            opt.zero_grad(set_to_none=False)
            head(torch.tanh(body(torch.randn(8, 3)))).pow(2).mean().backward()
            opt.step()
    """,
    "frozen in a loop, decayed": """
        def freeze(module):
            for p in module.parameters():
                p.requires_grad = False  # <- frozen-moves

        body, head = nn.Linear(3, 4), nn.Linear(4, 1)
        opt = torch.optim.AdamW([*body.parameters(), *head.parameters()], lr=0.1)
        for epoch in range(2):
            for _ in range(4):
                head.zero_grad()
                for p in body.parameters():
                    if p.grad is not None:
                        p.grad.zero_()
                head(torch.tanh(body(torch.randn(8, 3)))).pow(2).mean().backward()
                opt.step()
            freeze(body)
    """,
    "a head that is listed beside the whole": """
        import warnings
        warnings.simplefilter("ignore")
        def build(net):
            groups = list(net.parameters()) + list(net[1].parameters())
            return torch.optim.Adam(groups, lr=0.01)  # <- duplicate-parameter
        net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
        opt = build(net)
        for _ in range(4):
            opt.zero_grad()
            net(torch.randn(8, 3)).pow(2).mean().backward()
            opt.step()
    """,
    "two optimizers step on one gradient": """
        class Trainer:
            def __init__(self, net):
                self.net = net
                self.opt = torch.optim.SGD(net.parameters(), lr=0.01)
                self.head_opt = torch.optim.Adam(net[1].parameters(), lr=0.1)

            def step(self, x):
                self.opt.zero_grad()
                self.net(x).pow(2).mean().backward()
                self.opt.step()
                self.head_opt.step()  # <- duplicate-parameter

        trainer = Trainer(nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1)))
        for _ in range(6):
            trainer.step(torch.randn(8, 3))
    """,
    "a pretrained table replaces the tied one": TIED
    + """
lm.embed.weight = nn.Parameter(torch.randn(12, 6))  # <- broken-tie
fit(lm)
""",
    "a decoder that is copied": TIED
    + """
import copy
lm.decoder = copy.deepcopy(lm.decoder)  # <- broken-tie
fit(lm)
""",
    "a larger table, in a helper": TIED
    + """
def resize(lm, words):
    old = lm.embed
    lm.embed = nn.Embedding(words, old.embedding_dim)  # <- broken-tie
    with torch.no_grad():
        lm.embed.weight[: old.num_embeddings] = old.weight
resize(lm, 14)
fit(lm)
""",
    "a state that is assigned": TIED
    + """
state = {name: value + 0.1 for name, value in lm.state_dict().items()}
lm.load_state_dict(state, assign=True)  # <- broken-tie
fit(lm)
""",
    "require_grad in a loop": """
        net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
        for name, p in net.named_parameters():
            if name.startswith("0"):
                p.require_grad = False  # <- misspelt-attribute
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            opt.zero_grad()
            net(torch.randn(8, 3)).pow(2).mean().backward()
            opt.step()
    """,
    "requires_gard of one tensor, late": """
        net = nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for step in range(20):
            if step == 10:
                net.bias.requires_gard = False  # <- misspelt-attribute
            opt.zero_grad()
            net(torch.randn(8, 3)).pow(2).mean().backward()
            opt.step()
    """,
    "requires_grad of a module": """
        def freeze(module):
            for child in module.children():
                child.requires_grad = False  # <- misspelt-attribute
        net = nn.Sequential(nn.Sequential(nn.Linear(3, 4), nn.Tanh()), nn.Linear(4, 1))
        freeze(net[0])
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            opt.zero_grad()
            net(torch.randn(8, 3)).pow(2).mean().backward()
            opt.step()
    """,
}

GOOD = {
    "frozen before the first gradient": """
        net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
        net[0].requires_grad_(False)
        opt = torch.optim.AdamW(net.parameters(), lr=0.1)
        for _ in range(4):
            opt.zero_grad(set_to_none=False)
            net(torch.randn(8, 3)).pow(2).mean().backward()
            opt.step()
    """,
    "a frozen backbone with batch norm in training mode": """
        body, head = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)), nn.Linear(4, 1)
        body.requires_grad_(False)
        opt = torch.optim.SGD(head.parameters(), lr=0.1)
        for _ in range(6):
            opt.zero_grad()
            head(body(torch.randn(8, 3))).pow(2).mean().backward()
            opt.step()
    """,
    "two optimizers that take turns": """
        net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
        one, two = torch.optim.SGD(net.parameters(), lr=0.1), torch.optim.Adam(net[1].parameters(), lr=0.1)
        for step in range(8):
            opt = (one, two)[step % 2]
            net.zero_grad()
            net(torch.randn(8, 3)).pow(2).mean().backward()
            opt.step()
    """,
    "an encoder that actor and critic train with losses of their own": """
        body, pi, v = nn.Linear(3, 4), nn.Linear(4, 2), nn.Linear(4, 1)
        a_opt = torch.optim.Adam([*body.parameters(), *pi.parameters()])
        c_opt = torch.optim.Adam([*body.parameters(), *v.parameters()])
        for _ in range(6):
            x = torch.randn(8, 3)
            c_opt.zero_grad()
            v(body(x)).pow(2).mean().backward()
            c_opt.step()
            a_opt.zero_grad()
            pi(body(x)).pow(2).mean().backward()
            a_opt.step()
    """,
    "an optimizer around another one": """
        class Lookahead(torch.optim.Optimizer):
            def __init__(self, base):
                self.base, self.k = base, 0
                super().__init__(base.param_groups, {})

            @torch.no_grad()
            def step(self, closure=None):
                self.base.step()
                self.k += 1

        net = nn.Linear(3, 1)
        opt = Lookahead(torch.optim.SGD(net.parameters(), lr=0.1))
        for _ in range(6):
            opt.zero_grad()
            net(torch.randn(8, 3)).pow(2).mean().backward()
            opt.step()
    """,
    "tied, and stays so": TIED
    + """
import copy
average = copy.deepcopy(lm)
lm.load_state_dict(copy.deepcopy(lm.state_dict()))
lm.double().float()
fit(lm)
""",
    "replaced and tied again": TIED
    + """
lm.embed = nn.Embedding(14, 6)
lm.decoder.weight = lm.embed.weight
fit(lm)
""",
    "an average that is copied from one of two tied modules": TIED
    + """
import copy
head = copy.deepcopy(lm.decoder).requires_grad_(False)
fit(lm)
""",
    "a setting of a module of its own": """
        class Frozen(nn.Module):
            def __init__(self, requires_grad=False):
                super().__init__()
                self.requires_grad = requires_grad
                self.table = nn.Linear(3, 4)
                self.scale = nn.Linear(4, 1)
                self.table.requires_grad_(requires_grad)

            def forward(self, x):
                return self.scale(self.table(x))

        net = Frozen()
        opt = torch.optim.SGD(net.scale.parameters(), lr=0.1)
        for _ in range(3):
            opt.zero_grad()
            net(torch.randn(8, 3)).pow(2).mean().backward()
            opt.step()
    """,
    "marks of other kinds on parameters": """
        net = nn.Linear(3, 1)
        net.weight.is_shared, net.bias.requires_decay = True, False
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            opt.zero_grad()
            net(torch.randn(8, 3)).pow(2).mean().backward()
            opt.step()
    """,
}

NOTES = {
    "a frozen backbone with batch norm in training mode": (GOOD, "frozen-moves"),
    "untied on purpose": (
        {
            "untied on purpose": TIED
            + """
lm.decoder.weight = nn.Parameter(lm.embed.weight.detach().clone())
fit(lm)
"""
        },
        "broken-tie",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_the_line_is_found(check: Callable[[str], Any], name: str) -> None:
    checked = check(dedent(BAD[name]))
    found = {pair for pair in checked.found if pair[0] in RULES}
    assert found == checked.marked, checked.text
    assert {one["rule"] for one in checked.alarms} <= RULES, checked.text


@pytest.mark.parametrize("name", GOOD)
def test_correct_code_is_silent(check: Callable[[str], Any], name: str) -> None:
    checked = check(dedent(GOOD[name]))
    assert not checked.alarms, checked.text


@pytest.mark.parametrize("name", NOTES)
def test_where_authors_disagree_there_is_a_note(check: Callable[[str], Any], name: str) -> None:
    scripts, rule = NOTES[name]
    checked = check(dedent(scripts[name]))
    assert checked.by(rule), checked.text
    assert not checked.alarms, checked.text
