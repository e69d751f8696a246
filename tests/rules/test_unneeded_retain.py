"""unneeded-retain, on scripts as people write them, and on events written by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gradtrace.model.events import Backward, End, Event, Step
from gradtrace.model.finding import Finding
from gradtrace.model.site import Site, Stack
from gradtrace.rules.unneeded_retain import UnneededRetain

BAD = {
    "retained for no reason": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            loss = model(torch.randn(8, 3)).pow(2).mean()
            opt.zero_grad()
            loss.backward(retain_graph=True)  # <- unneeded-retain
            opt.step()
    """,
    "retained in a method, where nothing outlives the call": """
        class Trainer:
            def __init__(self):
                self.model = nn.Linear(3, 1)
                self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1)

            def step(self, x):
                loss = self.model(x).pow(2).mean()
                self.opt.zero_grad()
                loss.backward(retain_graph=True)  # <- unneeded-retain
                self.opt.step()
                return loss.item()

        trainer = Trainer()
        for _ in range(3):
            trainer.step(torch.randn(8, 3))
    """,
    "a state that is detached, and retained all the same": """
        cell, head = nn.GRUCell(3, 4), nn.Linear(4, 1)
        opt = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
        h = torch.zeros(2, 4)
        for _ in range(3):
            h = cell(torch.randn(2, 3), h.detach())
            loss = head(h).pow(2).mean()
            opt.zero_grad()
            loss.backward(retain_graph=True)  # <- unneeded-retain
            opt.step()
    """,
    "the second of two losses": """
        trunk, a, b = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
        opt = torch.optim.Adam([*trunk.parameters(), *a.parameters(), *b.parameters()])
        for _ in range(3):
            f = torch.tanh(trunk(torch.randn(8, 4)))
            opt.zero_grad()
            a(f).pow(2).mean().backward(retain_graph=True)
            b(f).pow(2).mean().backward(retain_graph=True)  # <- unneeded-retain
            opt.step()
    """,
    "a gan whose discriminator gets a detached fake": """
        G, D = nn.Linear(2, 3), nn.Linear(3, 1)
        opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
        for _ in range(3):
            fake = torch.tanh(G(torch.randn(8, 2)))
            d_loss = F.softplus(D(fake.detach())).mean() + F.softplus(-D(torch.randn(8, 3))).mean()
            opt_d.zero_grad()
            d_loss.backward(retain_graph=True)  # <- unneeded-retain
            opt_d.step()
            g_loss = F.softplus(-D(fake)).mean()
            opt_g.zero_grad()
            g_loss.backward()
            opt_g.step()
    """,
    "a gan whose generator comes last": """
        G, D = nn.Linear(2, 3), nn.Linear(3, 1)
        opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())

        def step(real):
            fake = torch.tanh(G(torch.randn(8, 2)))
            d_loss = F.softplus(D(fake)).mean() + F.softplus(-D(real)).mean()
            opt_d.zero_grad()
            d_loss.backward(retain_graph=True)
            opt_d.step()
            g_loss = F.softplus(-D(fake)).mean()
            opt_g.zero_grad()
            g_loss.backward(retain_graph=True)  # <- unneeded-retain
            opt_g.step()

        for _ in range(3):
            step(torch.randn(8, 3))
    """,
    "a closure of LBFGS": """
        model = nn.Linear(3, 1)
        opt = torch.optim.LBFGS(model.parameters(), max_iter=4)
        x, y = torch.randn(20, 3), torch.randn(20, 1)

        def closure():
            opt.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward(retain_graph=True)  # <- unneeded-retain
            return loss

        for _ in range(2):
            opt.step(closure)
    """,
    "create_graph for a gradient that is only looked at": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            x = torch.randn(8, 3, requires_grad=True)
            loss = torch.tanh(model(x)).mean()
            (g,) = torch.autograd.grad(loss, x, create_graph=True)  # <- unneeded-retain
            print(g.norm().item())
    """,
    "create_graph in backward": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            loss = torch.tanh(model(torch.randn(8, 3))).mean()
            opt.zero_grad()
            loss.backward(create_graph=True)  # <- unneeded-retain
            opt.step()
    """,
    "an attack that needs first derivatives only": """
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))

        def pgd(x, y, steps=3):
            adv = x.clone()
            for _ in range(steps):
                adv.requires_grad_(True)
                loss = F.cross_entropy(model(adv), y)
                grad = torch.autograd.grad(loss, adv, retain_graph=True, create_graph=False)[0]  # <- unneeded-retain
                adv = (adv + 0.01 * grad.sign()).detach()
            return adv

        for _ in range(2):
            pgd(torch.randn(8, 4), torch.randint(0, 3, (8,)))
    """,
    "an inner loop of Reptile": """
        meta = torch.randn(3, 1)
        for task in range(2):
            w, x, y = meta.clone().requires_grad_(), torch.randn(8, 3), torch.randn(8, 1)
            for _ in range(3):
                loss = F.mse_loss(torch.tanh(x @ w), y)
                (g,) = torch.autograd.grad(loss, w, create_graph=True)  # <- unneeded-retain
                w = w - 0.1 * g
            meta += 0.1 * (w.detach() - meta)
    """,
    "the outermost derivative": """
        w = torch.randn(3, requires_grad=True)
        for _ in range(3):
            x = torch.randn(5, 3)
            (inner,) = torch.autograd.grad((x @ w).tanh().sum(), w, create_graph=True)
            (outer,) = torch.autograd.grad((w - 0.1 * inner).pow(2).sum(), w, create_graph=True)  # <- unneeded-retain
            with torch.no_grad():
                w -= 0.01 * outer
    """,
    "losses of groups that share nothing": """
        nets = [nn.Linear(3, 1) for _ in range(3)]
        opts = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets]
        for _ in range(3):
            for net, opt in zip(nets, opts):
                opt.zero_grad()
                net(torch.randn(8, 3)).pow(2).mean().backward(retain_graph=True)  # <- unneeded-retain
                opt.step()
    """,
    "losses in a list, all of them retained": """
        trunk = nn.Linear(3, 4)
        heads = nn.ModuleList(nn.Linear(4, 1) for _ in range(3))
        opt = torch.optim.SGD([*trunk.parameters(), *heads.parameters()], lr=0.1)
        for _ in range(4):
            f = torch.tanh(trunk(torch.randn(8, 3)))
            opt.zero_grad()
            for head in heads:
                head(f).pow(2).mean().backward(retain_graph=True)  # <- unneeded-retain
            opt.step()
    """,
    "a helper that is told to retain": """
        class Runner:
            def __init__(self, net):
                self.net = net
                self.opt = torch.optim.Adam(net.parameters())

            def backward(self, loss, retain_graph=False):
                self.opt.zero_grad()
                loss.backward(retain_graph=retain_graph)
                self.opt.step()

        a, b = Runner(nn.Linear(3, 1)), Runner(nn.Linear(3, 1))
        for _ in range(3):
            a.backward(a.net(torch.randn(8, 3)).pow(2).mean(), retain_graph=True)  # <- unneeded-retain
            b.backward(b.net(torch.randn(8, 3)).pow(2).mean())
    """,
    "a gradient scaler": """
        model = nn.Linear(3, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu")
        for _ in range(3):
            opt.zero_grad()
            scaler.scale(model(torch.randn(8, 3)).pow(2).mean()).backward(retain_graph=True)  # <- unneeded-retain
            scaler.step(opt)
            scaler.update()
    """,
    "kept against an error that is gone": """
        model, memory = nn.Linear(3, 4), torch.zeros(4)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            z = model(torch.randn(8, 3))
            loss = (z - memory).pow(2).mean()
            memory = (0.9 * memory + 0.1 * z.mean(0)).detach()
            opt.zero_grad()
            torch.autograd.backward(loss, retain_graph=True)  # <- unneeded-retain
            opt.step()
    """,
    "retained by default, in a method of a layer": """
        class Style(nn.Module):
            def forward(self, x):
                self.loss = x.pow(2).mean()
                return x
            def backward(self, retain_graph=True):
                self.loss.backward(retain_graph=retain_graph)  # <- unneeded-retain
                return self.loss
        style = Style()
        net = nn.Sequential(nn.Linear(3, 2), style)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(3):
            opt.zero_grad()
            net(torch.randn(8, 3))
            style.backward()
            opt.step()
    """,
}

GOOD = {
    "a regulariser whose turn does not come in a short run": """
        model = nn.Linear(4, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(6):
            x = torch.randn(8, 4, requires_grad=True)
            out = model(x)
            opt.zero_grad()
            out.pow(2).mean().backward(retain_graph=True)
            if step % 16 == 15:
                (slope,) = torch.autograd.grad(out.sum(), x, create_graph=True)
                slope.pow(2).sum().backward()
            opt.step()
    """,
    "two losses on one trunk": """
        trunk, a, b = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
        opt = torch.optim.Adam([*trunk.parameters(), *a.parameters(), *b.parameters()])
        for _ in range(3):
            f = torch.tanh(trunk(torch.randn(8, 4)))
            opt.zero_grad()
            a(f).pow(2).mean().backward(retain_graph=True)
            b(f).pow(2).mean().backward()
            opt.step()
    """,
    "a gan that uses one fake twice": """
        G, D = nn.Linear(2, 3), nn.Linear(3, 1)
        opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
        for _ in range(3):
            fake = torch.tanh(G(torch.randn(8, 2)))
            opt_d.zero_grad()
            F.softplus(D(fake)).mean().backward(retain_graph=True)
            opt_d.step()
            opt_g.zero_grad()
            F.softplus(-D(fake)).mean().backward()
            opt_g.step()
    """,
    "a gradient penalty with both options": """
        D = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
        opt = torch.optim.Adam(D.parameters())
        for _ in range(3):
            x = torch.randn(8, 3, requires_grad=True)
            score = D(x)
            grad = torch.autograd.grad(
                outputs=score,
                inputs=x,
                grad_outputs=torch.ones_like(score),
                create_graph=True,
                retain_graph=True,
                only_inputs=True,
            )[0]
            opt.zero_grad()
            ((grad.norm(2, dim=1) - 1) ** 2).mean().backward()
            opt.step()
    """,
    "rows of a jacobian": """
        def jacobian(f, x):
            y = f(x)
            return torch.stack([torch.autograd.grad(y[i], x, retain_graph=True)[0] for i in range(len(y))])

        w = torch.randn(3, 3)
        for _ in range(3):
            J = jacobian(lambda x: torch.tanh(w @ x), torch.randn(3, requires_grad=True))
    """,
    "rows of a Hessian at the top of a script": """
        w = torch.randn(3, requires_grad=True)
        loss = (w.sin() * w.flip(0)).sum()
        (g,) = torch.autograd.grad(loss, w, create_graph=True)
        rows = []
        for i in range(3):
            rows.append(torch.autograd.grad(g[i], w, retain_graph=True)[0])
    """,
    "functions of torch.autograd.functional": """
        from torch.autograd.functional import hessian, hvp, jacobian

        for _ in range(2):
            x = torch.randn(3)
            hessian(lambda x: x.sin().prod(), x)
            jacobian(lambda x: x.sin().sum(), x)
            hvp(lambda x: x.sin().prod(), x, torch.ones(3))
    """,
    "torch.func": """
        from torch.func import grad, hessian, jacrev, vmap

        f = lambda x: x.sin().prod()
        for _ in range(2):
            grad(f)(torch.randn(3))
            vmap(grad(f))(torch.randn(4, 3))
            jacrev(f)(torch.randn(3))
            hessian(f)(torch.randn(3))
    """,
    "power iteration with Hessian products": """
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        params = list(model.parameters())

        def top_eigenvalue(steps=3):
            loss = model(torch.randn(8, 3)).pow(2).mean()
            grads = torch.autograd.grad(loss, params, create_graph=True)
            v = [torch.randn_like(p) for p in params]
            for _ in range(steps):
                hv = torch.autograd.grad(grads, params, grad_outputs=v, retain_graph=True)
                norm = sum(h.pow(2).sum() for h in hv).sqrt()
                v = [h / norm for h in hv]
            return norm

        for _ in range(3):
            top_eigenvalue()
    """,
    "MAML, and its evaluation with the same inner loop": """
        w0 = torch.randn(3, 1, requires_grad=True)
        opt = torch.optim.SGD([w0], lr=0.1)

        def adapt(w, x, y):
            for _ in range(2):
                (g,) = torch.autograd.grad(F.mse_loss(torch.tanh(x @ w), y), w, create_graph=True)
                w = w - 0.1 * g
            return w

        def task():
            return torch.randn(8, 3), torch.randn(8, 1)

        for _ in range(3):
            x, y = task()
            w = adapt(w0, x, y)
            opt.zero_grad()
            F.mse_loss(torch.tanh(x @ w), y).backward()
            opt.step()
            test_losses = []
            for _ in range(3):
                x, y = task()
                w = adapt(w0, x, y)
                test_losses.append(F.mse_loss(torch.tanh(x @ w), y))
    """,
    "a second backward now and then": """
        model = nn.Linear(3, 2)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        kept = []
        for step in range(8):
            out = torch.tanh(model(torch.randn(8, 3)))
            opt.zero_grad()
            out.pow(2).mean().backward(retain_graph=True)
            if step % 4 == 0:
                out.abs().mean().backward()
            opt.step()
            kept = out
    """,
    "a state carried on purpose": """
        cell = nn.GRUCell(3, 4)
        h, total = torch.zeros(2, 4), 0
        for _ in range(3):
            h = cell(torch.randn(2, 3), h)
            h.pow(2).mean().backward(retain_graph=True)
    """,
    "derivatives of a physics-informed network": """
        net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
        opt = torch.optim.Adam(net.parameters())
        for _ in range(3):
            xt = torch.rand(16, 2, requires_grad=True)
            u = net(xt)
            du = torch.autograd.grad(u, xt, torch.ones_like(u), create_graph=True, retain_graph=True)[0]
            uxx = torch.autograd.grad(du[:, 0], xt, torch.ones(16), create_graph=True)[0][:, 0]
            opt.zero_grad()
            (du[:, 1] - 0.1 * uxx).pow(2).mean().backward()
            opt.step()
    """,
    "an optimizer that takes second derivatives itself": """
        class Newton(torch.optim.Optimizer):
            def __init__(self, params):
                super().__init__(params, {})

            def step(self):
                params = [p for g in self.param_groups for p in g["params"]]
                z = [torch.randn_like(p) for p in params]
                hz = torch.autograd.grad([p.grad for p in params], params, grad_outputs=z)
                with torch.no_grad():
                    for p, h, v in zip(params, hz, z):
                        p -= 0.01 * p.grad / ((h * v).abs() + 1.0)

        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        opt = Newton(model.parameters())
        for _ in range(3):
            opt.zero_grad()
            model(torch.randn(8, 3)).pow(2).mean().backward(create_graph=True)
            opt.step()
    """,
    "the weights of several losses by their gradient norms": """
        shared, heads = nn.Linear(3, 4), nn.ModuleList(nn.Linear(4, 1) for _ in range(2))
        weights = nn.Parameter(torch.ones(2))
        opt = torch.optim.Adam([*shared.parameters(), *heads.parameters()])
        opt_w = torch.optim.Adam([weights])
        for _ in range(3):
            f = torch.tanh(shared(torch.randn(8, 3)))
            losses = torch.stack([head(f).pow(2).mean() for head in heads])
            opt.zero_grad()
            (weights * losses).sum().backward(retain_graph=True)
            opt_w.zero_grad()
            norms = torch.stack([
                torch.autograd.grad(w * l, shared.weight, retain_graph=True, create_graph=True)[0].norm()
                for w, l in zip(weights, losses)
            ])
            weights.grad = torch.autograd.grad((norms - norms.mean().detach()).abs().sum(), weights)[0]
            opt.step()
            opt_w.step()
    """,
    "all but the last": """
        model = nn.Linear(3, 4)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        held = None
        for _ in range(3):
            out = torch.tanh(model(torch.randn(8, 3)))
            opt.zero_grad()
            for i in range(4):
                out[:, i].pow(2).mean().backward(retain_graph=i < 3)
            opt.step()
            held = out
    """,
    "products with a Hessian in a helper, until they are good enough": """
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        params = list(model.parameters())
        opt = torch.optim.SGD(params, lr=0.1)
        for _ in range(3):
            loss = model(torch.randn(8, 3)).pow(2).mean()
            flat = torch.cat([g.flatten() for g in torch.autograd.grad(loss, params, create_graph=True)])

            def product(v):
                return torch.cat([h.flatten() for h in torch.autograd.grad(flat @ v, params, retain_graph=True)])

            v = flat.detach()
            for _ in range(3):
                v = v - 0.1 * product(v)
            opt.zero_grad()
            for p, part in zip(params, v.split([p.numel() for p in params])):
                p.grad = part.view_as(p)
            opt.step()
    """,
    "per-sample gradients in a function": """
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))

        def per_sample(x):
            losses = model(x).pow(2).squeeze(1)
            grads = []
            for loss in losses:
                grads.append(torch.autograd.grad(loss, list(model.parameters()), retain_graph=True))
            return grads

        for _ in range(3):
            per_sample(torch.randn(4, 3))
    """,
}


@pytest.mark.parametrize("script", BAD.values(), ids=BAD)
def test_the_cause_is_named(check: Callable[[str], Any], script: str) -> None:
    checked = check(script)
    assert checked.by("unneeded-retain") == checked.marked, checked.text


@pytest.mark.parametrize("script", GOOD.values(), ids=GOOD)
def test_silence(check: Callable[[str], Any], script: str) -> None:
    checked = check(script)
    assert not checked.alarms, checked.text


@pytest.mark.parametrize("keep", ["losses", "losses[:2]"])
def test_a_loop_that_keeps_its_last_graph_too_is_noted(check: Callable[[str], Any], keep: str) -> None:
    checked = check(f"""
        trunk, heads = nn.Linear(3, 4), nn.ModuleList(nn.Linear(4, 1) for _ in range(3))
        params = [*trunk.parameters(), *heads.parameters()]
        opt = torch.optim.SGD(params, lr=0.1)
        for _ in range(4):
            f = torch.tanh(trunk(torch.randn(8, 3)))
            losses = [head(f).pow(2).mean() for head in heads]
            opt.zero_grad()
            for loss in {keep}:
                loss.backward(retain_graph=True)  # <- unneeded-retain
            opt.step()
    """)
    assert checked.by("unneeded-retain") == checked.marked, checked.text
    assert not checked.alarms, checked.text


SOURCE = """\
def train(loader):
    for x in loader:
        first.backward(retain_graph=True)
        second.backward(retain_graph=True)
        library(x)
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    path = tmp_path / "train.py"
    path.write_text(SOURCE)
    return str(path)


def call(path: str, number: int, line: int, entered: tuple[int, ...] = (), **facts: Any) -> Backward:
    stack: Stack = (Site(path, line, "train"),)
    known: dict[str, Any] = {"retain_graph": True, "create_graph": False}
    return Backward(number, "backward", stack, "loss", number, nodes=3, entered=entered, **(known | facts))


def found(*events: Event) -> list[Finding]:
    rule = UnneededRetain()
    return [finding for event in (*events, End()) for finding in rule.see(event)]


def step(*held: int) -> Step:
    return Step(1, "Adam", 7, (), (), held=held)


def test_a_graph_that_nothing_enters(path: str) -> None:
    (finding,) = found(call(path, 1, 3), call(path, 2, 3))
    assert finding.site.line == 3
    assert finding.help == "remove retain_graph=True"


def test_a_graph_that_the_next_line_needs(path: str) -> None:
    assert not found(call(path, 1, 3), call(path, 2, 4, (1,), retain_graph=False))


def test_the_last_of_each_turn_is_held_through_the_step(path: str) -> None:
    turns = [[call(path, n, 3), call(path, n + 1, 3, (n,)), step(n + 1)] for n in (1, 3, 5)]
    (finding,) = found(*(event for turn in turns for event in turn))
    assert "3 graphs were held" in finding.message
    rows = [[call(path, n, 3), call(path, n + 1, 3, (n,)), step()] for n in (1, 3, 5)]
    assert not found(*(event for turn in rows for event in turn))


def test_a_graph_that_another_line_needs_now_and_then(path: str) -> None:
    assert not found(
        call(path, 1, 3), step(1), call(path, 2, 3), step(1, 2), call(path, 3, 4, (2,), retain_graph=False)
    )


def test_an_option_that_a_library_sets(path: str) -> None:
    assert not found(call(path, 1, 5))


def test_a_call_that_failed(path: str) -> None:
    assert not found(call(path, 1, 3, error="RuntimeError: no"))


def test_a_run_that_ended_before_the_call_that_needs_it(path: str) -> None:
    rule = UnneededRetain()
    rule.see(call(path, 1, 3))
    assert not list(rule.see(End(held=(1,))))
    rule.see(call(path, 2, 3))
    assert list(rule.see(End(held=(2,))))


def test_a_long_run_keeps_little(path: str) -> None:
    rule = UnneededRetain()
    for number in range(1, 1_000):
        rule.see(call(path, number, 3))
    (line,) = rule._lines.values()
    assert len(line.pending) <= 64
