"""Every rule has a manual, whose bad example it reports and whose good example it does not."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent
from typing import Any

import pytest

from gradtrace.model.manual import Manual
from gradtrace.model.ranks import Job, is_rank_fact_kind
from gradtrace.rules import all_rules, manuals

#: what the examples take for granted
SETTING = """
import copy
import numpy as np
from torch.nn.utils import clip_grad_norm_

def batches(number=4, size=16, width=1):
    return [(torch.randn(size, 8), torch.randn(size, width)) for _ in range(number)]

data = batches()
x, y = data[0]
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
loss_fn = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
"""
#: what single ones take for granted beyond that
BEFORE = {
    "broadcast-loss": "prices = torch.randn(16)",
    "cleared-grad": "batches = [batches() for _ in range(4)]",
    "double-softmax": "classifier, labels = nn.Linear(8, 4), torch.randint(4, (16,))",
    "freed-graph": """
        rnn = nn.RNN(8, 1)
        chunks = [(torch.randn(5, 3, 8), torch.randn(5, 3, 1)) for _ in range(3)]
    """,
    "grad-shape": "classifier, one_hot = nn.Linear(8, 4), F.one_hot(torch.randint(4, (16,)), 4).float()",
    "graph-growth": "data = batches(12)",
    "hidden-write": "windows = [(np.random.randn(16, 8).astype('float32'), y) for _ in range(3)]",
    "hook-growth": """
        data = batches(12)
        def log_activation(module, inputs, output):
            pass
    """,
    "inplace-saved": "known = torch.rand(16, 1) > 0.5",
    "leaked-grad": """
        gen = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8))
        disc = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
        g_opt, d_opt = (torch.optim.SGD(net.parameters(), lr=0.01) for net in (gen, disc))
        data = [(torch.randn(16, 8), torch.randn(16, 4)) for _ in range(4)]
    """,
    "mixed-batch": "x, head = torch.randn(16, 5, 8), nn.Linear(16, 1)",
    "no-graph": "classifier, labels = nn.Linear(8, 4), torch.randint(4, (16,))",
    "zero-gradient": "threshold = nn.Parameter(torch.zeros(8)); optimizer.add_param_group({'params': [threshold]})",
}
#: how a class of an example is used
AFTER = {
    "unoptimized-parameter": """
        heads = Heads()
        optimizer = torch.optim.SGD(heads.parameters(), lr=0.01)
        for x, y in batches(12):
            optimizer.zero_grad()
            hidden = heads.body(x).tanh()
            loss = loss_fn(heads.heads["price"](hidden), y) + loss_fn(heads.heads["area"](hidden), y)
            loss.backward()
            optimizer.step()
    """,
    "unreached-parameter": """
        tower = Tower()
        optimizer = torch.optim.SGD(tower.parameters(), lr=0.01)
        for x, y in batches(12):
            optimizer.zero_grad()
            loss_fn(tower(x), y).backward()
            optimizer.step()
    """,
}


#: rules that judge jobs of several ranks
BETWEEN_RANKS = {rule.id for rule in all_rules() if any(kind is Job or is_rank_fact_kind(kind) for kind in rule.events)}
BEFORE_RANKS = {
    "same-data": "dataset = TensorDataset(torch.randn(24, 8), torch.randn(24, 1))",
}


def script(rule: str, example: str) -> str:
    return "\n".join([SETTING, dedent(BEFORE.get(rule, "")), example, dedent(AFTER.get(rule, ""))])


@pytest.mark.parametrize("manual", manuals(), ids=lambda manual: manual.rule)
class TestManual:
    def test_has_all_parts(self, manual: Manual) -> None:
        assert manual.summary.endswith(".")
        assert "\n" not in manual.summary
        assert all((manual.why, manual.bad, manual.good, manual.notes)), manual

    def test_has_a_bad_example_that_is_reported(
        self, manual: Manual, check: Callable[..., Any], check_ranks: Callable[..., Any]
    ) -> None:
        if manual.rule in BETWEEN_RANKS:
            checked = check_ranks(f"{BEFORE_RANKS.get(manual.rule, '')}\n{manual.bad}")
            assert checked.by(manual.rule), checked.text
            return
        checked = check(script(manual.rule, manual.bad), gradcheck=manual.rule == "wrong-backward")
        assert checked.by(manual.rule), checked.text

    def test_has_a_good_example_that_is_not(
        self, manual: Manual, check: Callable[..., Any], check_ranks: Callable[..., Any]
    ) -> None:
        if manual.rule in BETWEEN_RANKS:
            checked = check_ranks(f"{BEFORE_RANKS.get(manual.rule, '')}\n{manual.good}")
            assert not checked.found, checked.text
            assert checked.explained, checked.text
            return
        checked = check(script(manual.rule, manual.good), gradcheck=manual.rule == "wrong-backward")
        assert not checked.found, checked.text
