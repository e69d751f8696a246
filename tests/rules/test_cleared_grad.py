"""Gradients that are computed and cleared before any step uses them, and clearing that is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

_START = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
def net(*sizes):
    return nn.Sequential(*(part for a, b in zip(sizes, sizes[1:]) for part in (nn.Linear(a, b), nn.Tanh())))
model = net(3, 4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
data = [(torch.randn(5, 3), torch.randn(5, 1)) for _ in range(8)]
gen, disc = net(2, 4, 3), net(3, 4, 1)
g_opt, d_opt = torch.optim.Adam(gen.parameters()), torch.optim.Adam(disc.parameters())
"""

#: rules that follow gradients from the backward call to the step
OURS = {"cleared-grad", "leaked-grad", "late-clip", "step-without-grad"}

#: the line at fault is marked
BAD = {
    "zero_in_micro_batches": """
        for _ in range(3):
            for x, y in data[:4]:
                model.zero_grad(set_to_none=False)  # fault
                F.mse_loss(model(x), y).backward()
            opt.step()
        """,
    "cleared_before_a_scaler_steps": """
        scaler = torch.amp.GradScaler("cpu")
        for x, y in data:
            scaler.scale(F.mse_loss(model(x), y)).backward()
            opt.zero_grad()  # fault
            scaler.step(opt)
            scaler.update()
        """,
    "cleared_by_hand_before_the_step": """
        for x, y in data:
            F.mse_loss(model(x), y).backward()
            for p in model.parameters():
                if p.grad is not None:
                    p.grad.zero_()  # fault
            opt.step()
        """,
    "cleared_data_before_the_step": """
        for x, y in data:
            F.mse_loss(model(x), y).backward()
            for p in model.parameters():
                p.grad.data.zero_()  # fault
            opt.step()
        """,
    "zero_step_backward": """
        for x, y in data:
            opt.zero_grad()
            opt.step()  # fault
            F.mse_loss(model(x), y).backward()
        """,
    "window_cut_by_the_epoch": """
        seen = 0
        for epoch in range(4):
            opt.zero_grad()  # fault
            for x, y in data:
                F.mse_loss(model(x), y).backward()
                seen += 1
                if seen % 5 == 0:
                    opt.step()
                    opt.zero_grad()
        """,
    "one_step_an_epoch": """
        for epoch in range(4):
            for x, y in data:
                opt.zero_grad()  # fault
                F.mse_loss(model(x), y).backward()
            opt.step()
        """,
    "step_after_all_epochs": """
        for x, y in data:
            opt.zero_grad()  # fault
            F.mse_loss(model(x), y).backward()
        opt.step()
        """,
    "second_optimizer_cleared_too_early": """
        body, head = net(3, 4), net(4, 1)
        b_opt, h_opt = torch.optim.SGD(body.parameters(), lr=0.1), torch.optim.SGD(head.parameters(), lr=0.1)
        for x, y in data:
            F.mse_loss(head(body(x)), y).backward()
            b_opt.step()
            b_opt.zero_grad()
            h_opt.zero_grad()  # fault
            h_opt.step()
        """,
    "real_part_dropped": """
        for x, y in data:
            d_opt.zero_grad()
            (-disc(x).mean()).backward()
            fake = gen(torch.randn(5, 2))
            d_opt.zero_grad()  # fault
            disc(fake.detach()).mean().backward()
            d_opt.step()
            g_opt.zero_grad()
            (-disc(fake).mean()).backward()
            g_opt.step()
        """,
    "scaler_zeroed_before_step": """
        scaler = torch.amp.GradScaler("cpu")
        for x, y in data:
            scaler.scale(F.mse_loss(model(x), y)).backward()
            scaler.unscale_(opt)
            opt.zero_grad()  # fault
            scaler.step(opt)
            scaler.update()
        """,
    "cleared_by_a_probe_of_another_function": """
        def probe(x, y):
            model.zero_grad()  # fault
            return torch.autograd.grad(F.mse_loss(model(x), y), model[0].weight)[0].norm()
        for x, y in data:
            F.mse_loss(model(x), y).backward()
            probe(x, y)
            opt.step()
        """,
    "in_micro_batches_from_the_middle_of_the_run_on": """
        for i, (x, y) in enumerate(data * 4):
            opt.zero_grad()
            for part in x.split(2):
                if i >= 16:
                    opt.zero_grad()  # fault
                model(part).pow(2).mean().backward()
            opt.step()
        """,
    "step_before_backward": """
        for x, y in data:
            opt.zero_grad()
            loss = F.mse_loss(model(x), y)
            opt.step()  # fault
            loss.backward()
        """,
    "step_before_backward_and_a_clearing_at_the_end": """
        def update():
            opt.step()
        def train_step(x, y):
            loss = F.mse_loss(model(x), y)
            update()  # fault
            loss.backward()
            model.zero_grad()
        for x, y in data:
            train_step(x, y)
        """,
}

GOOD = {
    "per_sample_gradients_collected_by_hooks": """
        sums = {}
        def collect(layer, grads_in, grads_out):
            one = torch.einsum("ni,nj->nij", grads_out[0] * len(layer.seen), layer.seen)
            part = (one / one.flatten(1).norm(dim=1).clamp(min=1.0).view(-1, 1, 1)).sum(0)
            sums[layer] = sums.get(layer, 0) + part
        first = model[0]
        first.register_forward_hook(lambda layer, args, out: setattr(layer, "seen", args[0].detach()))
        first.register_full_backward_hook(collect)
        opt = torch.optim.SGD([first.weight], lr=0.1)
        for batch in (data[:3], data[3:6], data[5:]):
            for x, y in batch:
                opt.zero_grad()
                F.mse_loss(model(x.clone().requires_grad_()), y).backward()
            first.weight.grad = sums.pop(first) / 15 + 0.1 * torch.randn_like(first.weight)
            opt.step()
        """,
    "first_step_beyond_the_run": """
        def train_step(step, x, start=500):
            fake = gen(torch.randn(5, 2))
            g_opt.zero_grad()
            F.l1_loss(fake, x).backward()
            g_opt.step()
            d_opt.zero_grad()
            d_loss = disc(fake.detach()).mean() - disc(x).mean()
            d_loss.backward()
            if step >= start:
                d_opt.step()
        for step, (x, _) in enumerate(data):
            train_step(step, x)
        """,
    "scaler_skips_every_step": """
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127, backoff_factor=0.999)
        for x, y in data:
            opt.zero_grad()
            scaler.scale(100 * F.mse_loss(model(x), y)).backward()
            scaler.unscale_(opt)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(opt)
            scaler.update()
        """,
    "tasks_in_turn_over_one_trunk": """
        heads = [nn.Linear(3, 1), nn.Linear(3, 1)]
        opts = [torch.optim.SGD([*gen.parameters(), *head.parameters()], lr=0.1) for head in heads]
        for turn, (x, y) in enumerate(data):
            z = torch.randn(5, 2)
            losses = torch.stack([F.mse_loss(head(gen(z)), y) for head in heads])
            opts[turn % 2].zero_grad()
            losses[turn % 2].backward()
            opts[turn % 2].step()
        """,
    "read_and_cleared_on_one_line": """
        for x, y in data:
            for part in (x, 2 * x):
                opt.zero_grad()
                part.requires_grad_()
                F.mse_loss(model(part), y).backward()
                seen = part.grad.clone(); part.grad.data.zero_()
            opt.zero_grad()
            F.mse_loss(model((part + seen).detach()), y).backward()
            opt.step()
        """,
    "gan": """
        for x, y in data:
            fake = gen(torch.randn(5, 2))
            g_opt.zero_grad()
            (-disc(fake).mean()).backward()
            g_opt.step()
            d_opt.zero_grad()
            (disc(fake.detach()).mean() - disc(x).mean()).backward()
            d_opt.step()
        """,
    "gan_losses_before_steps": """
        for x, y in data:
            fake = gen(torch.randn(5, 2))
            g_opt.zero_grad()
            (-disc(fake).mean()).backward()
            d_opt.zero_grad()
            (disc(fake.detach()).mean() - disc(x).mean()).backward()
            g_opt.step()
            d_opt.step()
        """,
    "one_line_for_all": """
        def update(loss, optimizer):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        for x, y in data:
            for name in ("d", "g", "d"):
                fake = gen(torch.randn(5, 2))
                loss = disc(fake).mean() - disc(x).mean()
                update(loss if name == "d" else -loss, d_opt if name == "d" else g_opt)
        """,
    "accumulation": """
        for epoch in range(3):
            opt.zero_grad()
            for i, (x, y) in enumerate(data, 1):
                F.mse_loss(model(x), y).backward()
                if i % 3 == 0 or i == len(data):
                    opt.step()
                    opt.zero_grad()
        """,
    "skipped_batches": """
        for epoch in range(4):
            for i, (x, y) in enumerate(data):
                F.mse_loss(model(x), y).backward()
                if nn.utils.clip_grad_norm_(model.parameters(), 1.0) > 1e9 or i % 4 == 1:
                    opt.zero_grad()
                    continue
                opt.step()
                opt.zero_grad()
        """,
    "saliency_in_training": """
        for x, y in data:
            x = x.clone().requires_grad_()
            model(x).sum().backward()
            shown = x.grad.abs()
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            opt.step()
        """,
    "attack_with_clean_gradients": """
        def attack(x, y):
            x = x.clone().requires_grad_()
            for _ in range(3):
                F.mse_loss(model(x), y).backward()
                x.data += 0.1 * x.grad.sign()
                x.grad.zero_()
            model.zero_grad()
            return x.detach()
        for x, y in data:
            opt.zero_grad()
            F.mse_loss(model(attack(x, y)), y).backward()
            opt.step()
        """,
    "lbfgs": """
        opt = torch.optim.LBFGS(model.parameters(), max_iter=4)
        x, y = data[0]
        def closure():
            opt.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            return loss
        for _ in range(5):
            opt.step(closure)
        """,
    "sharpness_aware": """
        for x, y in data:
            F.mse_loss(model(x), y).backward()
            with torch.no_grad():
                moves = [0.05 * p.grad for p in model.parameters()]
                for p, m in zip(model.parameters(), moves):
                    p.add_(m)
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            with torch.no_grad():
                for p, m in zip(model.parameters(), moves):
                    p.sub_(m)
            opt.step()
            opt.zero_grad()
        """,
    "sanity_check_then_training": """
        F.mse_loss(model(data[0][0]), data[0][1]).backward()
        assert all(p.grad is not None for p in model.parameters())
        model.zero_grad()
        for x, y in data:
            F.mse_loss(model(x), y).backward()
            opt.step()
            opt.zero_grad()
        """,
    "gradients_shown_only": """
        for x, y in data:
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            print([p.grad.norm() for p in model.parameters()])
        """,
    "hooks_listen": """
        seen = []
        for x, y in data:
            hidden = model[0](x)
            hidden.register_hook(lambda g: seen.append(g.norm()))
            model[2](hidden).sum().backward()
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            opt.step()
        """,
    "scaler_skips": """
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 127)
        for x, y in data * 3:
            opt.zero_grad()
            scaler.scale(F.mse_loss(model(x), y) * 1e3).backward()
            scaler.step(opt)
            scaler.update()
        """,
    "pcgrad": """
        for x, y in data:
            grads = []
            for loss in (F.mse_loss(model(x), y), model(x).abs().mean()):
                opt.zero_grad()
                loss.backward()
                grads.append([p.grad.clone() for p in model.parameters()])
            for p, a, b in zip(model.parameters(), *grads):
                p.grad = a + b
            opt.step()
        """,
    "inner_model_copied": """
        import copy
        for x, y in data:
            inner = copy.deepcopy(model)
            inner_opt = torch.optim.SGD(inner.parameters(), lr=0.1)
            for _ in range(2):
                inner_opt.zero_grad()
                F.mse_loss(inner(x), y).backward()
                inner_opt.step()
            inner.zero_grad()
            F.mse_loss(inner(x), y).backward()
            for p, q in zip(model.parameters(), inner.parameters()):
                p.grad = q.grad
            opt.step()
        """,
    "step_within_backward": """
        opts = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}
        def step(p):
            opts[p].step()
            opts[p].zero_grad()
        for p in model.parameters():
            p.register_post_accumulate_grad_hook(step)
        for x, y in data:
            F.mse_loss(model(x), y).backward()
        """,
}


@pytest.fixture(scope="module")
def reports(check_all: Callable[[dict[str, str]], dict[str, Any]]) -> dict[str, Any]:
    return check_all({name: _START + _dedent(text) for name, text in (BAD | GOOD).items()})


def _dedent(text: str) -> str:
    return "\n".join(line[8:] for line in text.splitlines())


def _alarms(report: Any) -> list[tuple[str, int]]:
    assert not report["remarks"]
    return [(found["rule"], found["line"]) for found in report["findings"] if found["level"] != "note"]


@pytest.mark.parametrize("name", BAD)
def test_the_line_is_found(name: str, reports: dict[str, Any]) -> None:
    lines = (_START + _dedent(BAD[name])).splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "# fault" in text)
    assert _alarms(reports[name]) == [("cleared-grad", line)]


def test_where_the_function_that_clears_is_called(reports: dict[str, Any]) -> None:
    lines = (_START + _dedent(BAD["cleared_by_a_probe_of_another_function"])).splitlines()
    (finding,) = reports["cleared_by_a_probe_of_another_function"]["findings"]
    called = lines.index("    probe(x, y)") + 1
    assert called in [related["line"] for related in finding["related"] if related["message"] == "called from here"]


def test_a_step_that_comes_first_is_to_be_moved(reports: dict[str, Any]) -> None:
    (finding,) = reports["step_before_backward"]["findings"]
    assert finding["help"] == "move `opt.step()` below `loss.backward()`"


@pytest.mark.parametrize("name", GOOD)
def test_right_clearing_is_silent(name: str, reports: dict[str, Any]) -> None:
    assert not {rule for rule, _ in _alarms(reports[name])} & OURS
