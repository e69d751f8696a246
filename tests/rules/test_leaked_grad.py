"""Gradients that end up in the parameters of another optimizer, and flows that are meant."""

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
    "student_pollutes_discriminator": """
        for x, y in data:
            (disc(gen(torch.randn(5, 2)).detach()).mean() - disc(x).mean()).backward()
            d_opt.step()
            d_opt.zero_grad()
            g_loss = -disc(gen(torch.randn(5, 2))).mean()
            g_loss.backward()  # fault
            g_opt.step()
            g_opt.zero_grad()
        """,
    "fake_not_detached": """
        for x, y in data:
            fake = gen(torch.randn(5, 2))
            d_opt.zero_grad()
            d_loss = disc(fake).mean() - disc(x).mean()
            d_loss.backward()  # fault
            d_opt.step()
            (-disc(gen(torch.randn(5, 2))).mean()).backward()
            g_opt.step()
            g_opt.zero_grad()
        """,
    "critic_attached": """
        actor, critic = net(3, 4, 2), net(3, 4, 1)
        a_opt, c_opt = torch.optim.Adam(actor.parameters()), torch.optim.Adam(critic.parameters())
        for x, y in data:
            dist = torch.distributions.Categorical(logits=actor(x))
            action = dist.sample()
            value = critic(x).squeeze(1)
            advantage = y.squeeze(1) - value
            policy_loss = -(dist.log_prob(action) * advantage).mean()
            a_opt.zero_grad(); c_opt.zero_grad()
            policy_loss.backward(retain_graph=True)  # fault
            advantage.pow(2).mean().backward()
            a_opt.step(); c_opt.step()
        """,
    "ddpg_actor_pollutes_critic": """
        actor, critic = net(3, 4, 2), net(5, 4, 1)
        a_opt, c_opt = torch.optim.Adam(actor.parameters()), torch.optim.Adam(critic.parameters())
        for x, y in data:
            q = critic(torch.cat([x, torch.rand(5, 2)], 1))
            F.mse_loss(q, y).backward()
            c_opt.step()
            c_opt.zero_grad()
            a_loss = -critic(torch.cat([x, actor(x)], 1)).mean()
            a_loss.backward()  # fault
            a_opt.step()
            a_opt.zero_grad()
        """,
    "judge_in_between": """
        for x, y in data:
            g_opt.zero_grad(); d_opt.zero_grad()
            fake = gen(torch.randn(5, 2))
            (-disc(fake).mean()).backward()  # fault
            (disc(fake.detach()).mean() - disc(x).mean()).backward()
            g_opt.step(); d_opt.step()
        """,
    "both_losses_reach_both_networks": """
        for x, y in data:
            g_opt.zero_grad(); d_opt.zero_grad()
            fake = gen(torch.randn(5, 2))
            d_loss = disc(fake).mean() - disc(x).mean()
            g_loss = -disc(fake).mean()
            d_loss.backward(retain_graph=True)  # fault
            g_loss.backward()
            d_opt.step(); g_opt.step()
        """,
    "encoder_polluted_by_the_policy": """
        encoder, policy = net(3, 4), net(4, 2)
        e_opt, p_opt = torch.optim.Adam(encoder.parameters()), torch.optim.Adam(policy.parameters())
        def represent(x):
            encoder(x).pow(2).mean().backward()
            e_opt.step()
            e_opt.zero_grad()
        def control(x):
            p_opt.zero_grad()
            policy(encoder(x)).pow(2).mean().backward()  # fault
            p_opt.step()
        for x, y in data:
            represent(x)
            control(x)
        """,
    "attack_leaves_gradients": """
        def attack(x, y):
            x = x.clone().requires_grad_()
            for _ in range(3):
                x.grad = None
                F.mse_loss(model(x), y).backward()  # fault
                x.data += 0.1 * x.grad.sign()
            return x.detach()
        for x, y in data:
            opt.zero_grad()
            F.mse_loss(model(attack(x, y)), y).backward()
            opt.step()
        """,
    "target_network": """
        q, target = net(3, 4, 1), net(3, 4, 1)
        q_opt = torch.optim.Adam(q.parameters())
        for x, y in data:
            loss = F.mse_loss(q(x), y + 0.9 * target(x))
            q_opt.zero_grad()
            loss.backward()  # fault
            q_opt.step()
            for p, t in zip(q.parameters(), target.parameters()):
                t.data.mul_(0.9).add_(0.1 * p.data)
        """,
    "teacher_in_the_norm": """
        both = nn.ModuleDict({"big": net(3, 9, 1), "small": net(3, 4, 1)})
        s_opt = torch.optim.SGD(both["small"].parameters(), lr=0.1)
        for x, y in data:
            s_opt.zero_grad()
            F.mse_loss(both["small"](x), both["big"](x)).backward()  # fault
            nn.utils.clip_grad_norm_(both.parameters(), 1.0)
            s_opt.step()
        """,
    "target_network_called_in_a_forward": """
        class Byol(nn.Module):
            def __init__(self):
                super().__init__()
                self.online, self.target = net(3, 4, 1), net(3, 4, 1)
            def forward(self, x):
                guess = self.online(x)
                return F.mse_loss(guess, self.target(x))
        byol = Byol()
        opt = torch.optim.SGD(byol.online.parameters(), lr=0.1)
        for x, _ in data:
            loss = byol(x)
            opt.zero_grad()
            loss.backward()  # fault
            opt.step()
            with torch.no_grad():
                for p, t in zip(byol.online.parameters(), byol.target.parameters()):
                    t.mul_(0.9).add_(p, alpha=0.1)
        """,
}

GOOD = {
    "layers_called_q_and_v": """
        class Head(nn.Module):
            def __init__(self):
                super().__init__()
                self.q, self.v, self.d = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 1)
            def forward(self, h):
                return self.d(torch.sigmoid(self.q(h)) * self.v(h))
        trunk, head = net(3, 4), Head()
        t_opt, h_opt = torch.optim.Adam(trunk.parameters()), torch.optim.Adam(head.parameters())
        for x, y in data:
            t_opt.zero_grad()
            h_opt.zero_grad()
            F.mse_loss(head(trunk(x)), y).backward()
            (0.1 * F.mse_loss(head(torch.randn(5, 4)), y)).backward()
            t_opt.step()
            h_opt.step()
        """,
    "discount_and_general_losses": """
        body, heads = net(3, 4), nn.ModuleList([nn.Linear(4, 1), nn.Linear(4, 1)])
        b_opt, h_opt = torch.optim.Adam(body.parameters()), torch.optim.Adam(heads.parameters())
        for x, y in data:
            b_opt.zero_grad()
            h_opt.zero_grad()
            h = body(x)
            discount_loss = F.mse_loss(heads[0](h), y)
            discount_loss.backward(retain_graph=True)
            general_loss = F.mse_loss(heads[1](h), y)
            general_loss.backward()
            b_opt.step()
            h_opt.step()
        """,
    "gan": """
        for x, y in data:
            fake = gen(torch.randn(5, 2))
            d_opt.zero_grad()
            (disc(fake.detach()).mean() - disc(x).mean()).backward()
            d_opt.step()
            g_opt.zero_grad()
            (-disc(fake).mean()).backward()
            g_opt.step()
        """,
    "gan_frozen_judge": """
        for x, y in data:
            g_opt.zero_grad(); d_opt.zero_grad()
            fake = gen(torch.randn(5, 2))
            disc.requires_grad_(False)
            (-disc(fake).mean()).backward()
            disc.requires_grad_(True)
            (disc(fake.detach()).mean() - disc(x).mean()).backward()
            g_opt.step(); d_opt.step()
        """,
    "several_discriminator_turns": """
        for x, y in data:
            for _ in range(2):
                d_opt.zero_grad()
                disc(x).mean().backward()
                disc(gen(torch.randn(5, 2)).detach()).mean().backward()
                d_opt.step()
            g_opt.zero_grad()
            (-disc(gen(torch.randn(5, 2))).mean()).backward()
            g_opt.step()
        """,
    "autoencoder_with_two_optimizers": """
        enc, dec = net(3, 4, 2), net(2, 4, 3)
        e_opt, d_opt = torch.optim.Adam(enc.parameters()), torch.optim.Adam(dec.parameters())
        for x, y in data:
            e_opt.zero_grad(); d_opt.zero_grad()
            z = enc(x)
            F.mse_loss(dec(z), x).backward(retain_graph=True)
            z.pow(2).mean().backward()
            e_opt.step(); d_opt.step()
        """,
    "trunk_and_heads_in_phases": """
        trunk, heads = net(3, 4), [net(4, 1), net(4, 1)]
        t_opt = torch.optim.Adam(trunk.parameters())
        h_opts = [torch.optim.Adam(head.parameters()) for head in heads]
        for x, y in data:
            t_opt.zero_grad()
            h_opts[0].zero_grad()
            F.mse_loss(heads[0](trunk(x)), y).backward()
            h_opts[0].step()
            h_opts[1].zero_grad()
            F.l1_loss(heads[1](trunk(x)), y).backward()
            h_opts[1].step()
            t_opt.step()
        """,
    "one_layer_in_two_optimizers": """
        trunk, actor, critic = net(3, 4), net(4, 2), net(4, 1)
        a_opt = torch.optim.Adam([*trunk.parameters(), *actor.parameters()])
        c_opt = torch.optim.Adam([*trunk.parameters(), *critic.parameters()])
        for x, y in data:
            a_opt.zero_grad(); c_opt.zero_grad()
            h = trunk(x)
            (actor(h).log_softmax(1)[:, 0] * y.squeeze(1)).mean().backward(retain_graph=True)
            F.mse_loss(critic(h), y).backward()
            a_opt.step(); c_opt.step()
        """,
    "embedding_attack_meant": """
        for x, y in data:
            opt.zero_grad()
            F.mse_loss(model(x), y).backward()
            weight = model[0].weight
            with torch.no_grad():
                shift = 0.1 * weight.grad / weight.grad.norm()
                weight.add_(shift)
            F.mse_loss(model(x), y).backward()
            with torch.no_grad():
                weight.sub_(shift)
            opt.step()
        """,
    "random_target_of_the_same_shape": """
        teacher, student = net(3, 4, 1), net(3, 4, 1)
        s_opt = torch.optim.Adam(student.parameters())
        for x, _ in data:
            s_opt.zero_grad()
            F.mse_loss(student(x), teacher(x)).backward()
            s_opt.step()
        """,
    "target_without_graph": """
        q, target = net(3, 4, 1), net(3, 4, 1)
        q_opt = torch.optim.Adam(q.parameters())
        for x, y in data:
            with torch.no_grad():
                goal = y + 0.9 * target(x)
            q_opt.zero_grad()
            F.mse_loss(q(x), goal).backward()
            q_opt.step()
            with torch.no_grad():
                for p, t in zip(q.parameters(), target.parameters()):
                    t.lerp_(p, 0.1)
        """,
    "lazy_backbone": """
        body, head = net(3, 4), net(4, 1)
        h_opt = torch.optim.Adam(head.parameters())
        for x, y in data:
            h_opt.zero_grad()
            F.mse_loss(head(body(x)), y).backward()
            h_opt.step()
        """,
    "image_is_optimized": """
        features = net(3, 4)
        image = torch.randn(5, 3, requires_grad=True)
        i_opt = torch.optim.Adam([image])
        for x, y in data:
            i_opt.zero_grad()
            F.mse_loss(features(image), features(x)).backward()
            i_opt.step()
        """,
    "teacher_cleared_by_the_module": """
        both = nn.ModuleDict({"teacher": net(3, 4, 1), "student": net(3, 4, 1)})
        s_opt = torch.optim.SGD(both["student"].parameters(), lr=0.1)
        for x, y in data:
            both.zero_grad()
            F.mse_loss(both["student"](x), both["teacher"](x)).backward()
            s_opt.step()
        """,
    "attack_that_clears": """
        def attack(x, y):
            x = x.clone().requires_grad_()
            F.mse_loss(model(x), y).backward()
            return (x + 0.1 * x.grad.sign()).detach()
        for x, y in data:
            moved = attack(x, y)
            opt.zero_grad()
            F.mse_loss(model(moved), y).backward()
            opt.step()
        """,
    "update_by_hand_and_optimizer": """
        scale = torch.ones(1, requires_grad=True)
        for x, y in data:
            opt.zero_grad()
            F.mse_loss(scale * model(x), y).backward()
            opt.step()
            with torch.no_grad():
                scale -= 0.1 * scale.grad
                scale.grad = None
        """,
    "generator_alone_once_more": """
        enc, dec = net(3, 4, 2), net(2, 4, 3)
        e_opt, g_opt = torch.optim.Adam(enc.parameters()), torch.optim.Adam(dec.parameters())
        for x, y in data:
            e_opt.zero_grad(); g_opt.zero_grad()
            F.mse_loss(dec(enc(x)), x).backward()
            enc.requires_grad_(False)
            z = torch.randn(5, 2)
            F.mse_loss(enc(dec(z)), z).backward()
            enc.requires_grad_(True)
            e_opt.step(); g_opt.step()
        """,
    "gradient_reversal": """
        class Reverse(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x.view_as(x)
            @staticmethod
            def backward(ctx, grad): return -grad
        features, label, domain = net(3, 4), net(4, 1), net(4, 1)
        f_opt = torch.optim.Adam(features.parameters())
        h_opt = torch.optim.Adam([*label.parameters(), *domain.parameters()])
        for x, y in data:
            f_opt.zero_grad(); h_opt.zero_grad()
            h = features(x)
            label_loss, d_loss = F.mse_loss(label(h), y), domain(Reverse.apply(h)).mean()
            label_loss.backward(retain_graph=True)
            d_loss.backward()
            f_opt.step(); h_opt.step()
        """,
    "two_speeds": """
        body, head = net(3, 4), net(4, 1)
        b_opt, h_opt = torch.optim.SGD(body.parameters(), lr=0.1), torch.optim.SGD(head.parameters(), lr=0.1)
        for i, (x, y) in enumerate(data * 2):
            h_opt.zero_grad()
            F.mse_loss(head(body(x)), y).backward()
            h_opt.step()
            if i % 4 == 3:
                b_opt.step()
                b_opt.zero_grad()
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
    assert _alarms(reports[name]) == [("leaked-grad", line)]


def test_where_a_module_calls_its_target(reports: dict[str, Any]) -> None:
    lines = (_START + _dedent(BAD["target_network_called_in_a_forward"])).splitlines()
    (finding,) = reports["target_network_called_in_a_forward"]["findings"]
    called = next(number for number, line in enumerate(lines, 1) if "self.target(x)" in line)
    assert called in [
        related["line"]
        for related in finding["related"]
        if related["message"] == "these parameters are reached through this line"
    ]


@pytest.mark.parametrize("name", GOOD)
def test_right_code_is_silent(name: str, reports: dict[str, Any]) -> None:
    assert not {rule for rule, _ in _alarms(reports[name])} & OURS
