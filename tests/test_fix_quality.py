"""What `fix` shows is a cure: the edit that an expert would make, and none that only makes the finding silent."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from conftest import ENVIRONMENT, ROOT

HEAD = """
    import torch
    from torch import nn
    import torch.nn.functional as F

    torch.manual_seed(0)
    x, y = torch.randn(8, 4), torch.randn(8, 1)
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
"""
#: a script, and the lines that come with the fix; None where no edit may be shown
CASES: dict[str, tuple[str, list[str] | None]] = {
    # both losses go on training the trunk
    "two losses on one trunk": (
        """
    trunk, a, b = nn.Linear(4, 5), nn.Linear(5, 1), nn.Linear(5, 1)
    opt = torch.optim.SGD([*trunk.parameters(), *a.parameters(), *b.parameters()], lr=0.05)
    for _ in range(4):
        f = torch.tanh(trunk(x))
        loss_a, loss_b = F.mse_loss(a(f), y), F.mse_loss(b(f), -y)
        opt.zero_grad()
        loss_a.backward()
        loss_b.backward()
        opt.step()
""",
        ["loss_a.backward(retain_graph=True)"],
    ),
    # the discriminator still learns from fakes
    "a fake that went through the generator": (
        """
    gen, disc = nn.Linear(2, 4), nn.Linear(4, 1)
    g_opt = torch.optim.SGD(gen.parameters(), lr=0.05)
    d_opt = torch.optim.SGD(disc.parameters(), lr=0.05)
    for _ in range(4):
        fake = gen(torch.randn(8, 2))
        g_loss = -disc(fake).mean()
        g_opt.zero_grad()
        g_loss.backward()
        g_opt.step()
        d_loss = disc(fake).mean() - disc(x).mean()
        d_opt.zero_grad()
        d_loss.backward()
        d_opt.step()
""",
        ["d_loss = disc(fake.detach()).mean() - disc(x).mean()"],
    ),
    # the average is still computed
    "a running mean that keeps its graph": (
        """
    mean = torch.zeros(())
    for _ in range(4):
        out = model(x).mean()
        mean = 0.9 * mean + 0.1 * out
        optimizer.zero_grad()
        ((model(x) - mean) ** 2).mean().backward()
        optimizer.step()
""",
        ["mean = mean.detach()"],
    ),
    # the window is kept
    "a step beside the window": (
        """
    for i in range(12):
        F.mse_loss(model(x), y).backward()
        if (i + 1) % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
        optimizer.step()
""",
        [],
    ),
    # the estimator passes the gradient on as it should
    "a straight-through sum": (
        """
    encoder, table = nn.Linear(4, 3), nn.Parameter(torch.randn(5, 3))
    opt = torch.optim.SGD([*encoder.parameters(), table], lr=0.05)
    for _ in range(6):
        z = encoder(x)
        q = table[torch.cdist(z, table).argmin(1)]
        out = z + (q - z).detach()
        opt.zero_grad()
        out.pow(2).mean().backward()
        opt.step()
""",
        None,
    ),
    # a copy in its place would not be what the layer uses
    "a bias that is set through a view": (
        """
    layer = nn.Linear(4, 6)
    bias = layer.bias.view(2, 3)
    bias[:, 0] += 1.0
    for _ in range(4):
        layer.zero_grad()
        layer(x).mean().backward()
        with torch.no_grad():
            layer.weight -= 0.1 * layer.weight.grad
""",
        ["bias = layer.bias.detach().view(2, 3)"],
    ),
    # what stands below the return would not run
    "a buffer that is updated in forward": (
        """
    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.ones(4))

        def forward(self, x):
            with torch.no_grad():
                self.scale.mul_(0.9).add_(0.1)
            return x * self.scale

    first, norm = nn.Linear(4, 4), Norm()
    opt = torch.optim.SGD(first.parameters(), lr=0.05)
    for _ in range(4):
        loss = (norm(first(x)) - norm(first(-x))).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
""",
        ["self.scale = self.scale.clone()"],
    ),
    # evaluation stays evaluation
    "dropout that is always on": (
        """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 6), nn.Linear(6, 1)

        def forward(self, x):
            return self.b(F.dropout(self.a(x), 0.5))

    net = Net()
    opt = torch.optim.SGD(net.parameters(), lr=0.05)
    for _ in range(3):
        net.train()
        for _ in range(4):
            opt.zero_grad()
            F.mse_loss(net(x), y).backward()
            opt.step()
        net.eval()
        with torch.no_grad():
            for _ in range(4):
                net(x)
""",
        ["return self.b(F.dropout(self.a(x), 0.5, training=self.training))"],
    ),
    # the side that lacks the dimension gets it
    "a column against a row": (
        """
    for _ in range(4):
        loss = ((model(x) - y.squeeze(1)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
        ["loss = ((model(x).squeeze(1) - y.squeeze(1)) ** 2).mean()"],
    ),
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """What scripts/fixes says of all of them, in one process that loads torch once."""
    folder: Path = tmp_path_factory.mktemp("scripts")
    names = {title.replace(" ", "_"): title for title in CASES}
    for name, title in names.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(HEAD) + textwrap.dedent(CASES[title][0]))
    out = folder / "results.json"
    command = [sys.executable, str(ROOT / "scripts" / "fixes"), "--json", str(out), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[dict[str, Any]]] = {title: [] for title in CASES}
    for one in json.loads(out.read_text()):
        found[names[one["script"]]].append(one)
    return found


@pytest.mark.parametrize("title", CASES)
def test_the_cure_is_shown(results: dict[str, list[dict[str, Any]]], title: str) -> None:
    wanted = CASES[title][1]
    found = [one for one in results[title] if one["level"] != "note"]
    assert found, "nothing was found"
    assert [one["fixed"] for one in found] == [wanted is not None] * len(found), found
    if wanted is not None:
        rows = [row for one in found for row in one["diff"].splitlines()]
        assert [row[1:].strip() for row in rows if row.startswith("+") and not row.startswith("+++")] == wanted
