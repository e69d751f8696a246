"""no-graph, on scripts as people write them, and on events written by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gradtrace.model.events import Backward, Cut, Step, Use
from gradtrace.model.site import Site, Stack
from gradtrace.rules.no_graph import NoGraph

BAD = {
    "argmax in the prediction": """
        model = nn.Linear(4, 3)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
            pred = model(x).argmax(1)  # <- no-graph
            loss = F.mse_loss(pred.float(), y.float())
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "beside a target network, which is cut off rightly": """
        net, target = nn.Linear(4, 1), nn.Linear(4, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(4):
            x, reward = torch.randn(8, 4), torch.randn(8, 1)
            with torch.no_grad():
                wanted = reward + 0.9 * target(x)
            q = net(x)
            loss = F.mse_loss(wanted, q.data)  # <- no-graph
            loss.requires_grad = True
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "beside a target that is detached, which is right": """
        net, target = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)), nn.Sequential(nn.Linear(4, 1), nn.Tanh())
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            wanted = target(torch.randn(8, 4)).detach()
            q = net(torch.randn(8, 4)).detach()  # <- no-graph
            loss = F.mse_loss(wanted, q)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "max, of which only the indices are kept": """
        model = nn.Linear(4, 3)
        x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
        _, pred = torch.max(model(x), 1)  # <- no-graph
        ((pred - y).float() ** 2).mean().backward()
    """,
    "a threshold in a metric used as the loss": """
        def iou(pred, target):
            hard = (pred > 0.5).float()  # <- no-graph
            inter = (hard * target).sum()
            return 1 - inter / (hard + target).clamp(max=1).sum()

        class Loss(nn.Module):
            def forward(self, logits, target):
                return iou(torch.sigmoid(logits), target)

        net, criterion = nn.Conv2d(1, 1, 3, padding=1), Loss()
        loss = criterion(net(torch.rand(2, 1, 8, 8)), torch.rand(2, 1, 8, 8).round())
        loss.backward()
    """,
    "accuracy as the loss": """
        def accuracy(logits, y):
            correct = logits.argmax(-1) == y  # <- no-graph
            return correct.float().mean()

        model = nn.Linear(4, 3)
        loss = 1 - accuracy(model(torch.randn(8, 4)), torch.randint(0, 3, (8,)))
        loss.backward()
    """,
    "the number of the loss": """
        model = nn.Linear(4, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        def train(x, y):
            opt.zero_grad()
            loss = F.mse_loss(model(x), y).item()  # <- no-graph
            loss.backward()
            opt.step()
        train(torch.randn(8, 4), torch.randn(8, 1))
    """,
    "numbers of a list that require grad again": """
        model = nn.Linear(4, 2)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            logs = []
            for _ in range(5):
                probs = model(torch.randn(4)).log_softmax(0)
                logs.append(probs[torch.multinomial(probs.exp(), 1).item()].item())  # <- no-graph
            loss = -(torch.tensor(logs) * torch.rand(5)).sum()
            loss.requires_grad = True
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "another name for a detached tensor": """
        from torch.autograd import Variable
        model = nn.Linear(4, 2)
        out = model(torch.randn(8, 4))
        seen = Variable(out.data)  # <- no-graph
        loss = torch.cdist(seen, seen).mean()
        loss.backward()
    """,
    "a detached prediction": """
        model = nn.Linear(4, 1)
        x, y = torch.randn(8, 4), torch.randn(8, 1)
        out = model(x).detach()  # <- no-graph
        loss = F.mse_loss(out, y)
        loss.backward()
    """,
    "detached inside of forward": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 1)

            def forward(self, x):
                h = torch.relu(self.body(x))
                return self.head(h).detach()  # <- no-graph

        F.mse_loss(Net()(torch.randn(8, 4)), torch.randn(8, 1)).backward()
    """,
    ".data of the output": """
        model = nn.Linear(4, 1)
        out = model(torch.randn(8, 4))
        loss = (out.data - 1).pow(2).mean()  # <- no-graph
        loss.backward()
    """,
    "through numpy and back": """
        import numpy as np

        def smooth(x):
            return torch.from_numpy(np.convolve(x.detach().numpy(), np.ones(3) / 3, "same"))  # <- no-graph

        model = nn.Linear(4, 1)
        out = model(torch.randn(8, 4)).squeeze(1)
        loss = smooth(out).pow(2).mean()
        loss.backward()
    """,
    "the loss of another library": """
        def mean_squared_error(a, b):
            return sum((x - y) ** 2 for x, y in zip(a, b)) / len(a)

        model = nn.Linear(4, 1)
        out = model(torch.randn(8, 4)).squeeze(1)
        loss = torch.tensor(mean_squared_error(out.tolist(), [0.0] * 8))  # <- no-graph
        loss.backward()
    """,
    "item() in the sum of losses": """
        model = nn.Linear(4, 1)
        total = 0.0
        for x in torch.randn(3, 8, 4):
            total += model(x).pow(2).mean().item()  # <- no-graph
        loss = torch.tensor(total)
        loss.backward()
    """,
    "torch.tensor of a list of losses": """
        model = nn.Linear(4, 1)
        losses = [model(x).pow(2).mean() for x in torch.randn(3, 8, 4)]
        loss = torch.tensor(losses).mean()  # <- no-graph
        loss.backward()
    """,
    "torch.Tensor of a list of losses": """
        model = nn.Linear(4, 1)
        losses = [model(x).pow(2).mean() for x in torch.randn(3, 8, 4)]
        loss = torch.Tensor(losses).mean()  # <- no-graph
        loss.backward()
    """,
    "a loss put into a tensor again": """
        model = nn.Linear(4, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            loss = model(torch.randn(8, 4)).pow(2).mean()
            loss = torch.tensor(loss, requires_grad=True)  # <- no-graph
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "losses put into a tensor again, in a list": """
        model = nn.Linear(4, 2)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            out = model(torch.randn(8, 4))
            parts = torch.tensor([out[:, 0].pow(2).mean(), out[:, 1].abs().mean()], requires_grad=True)  # <- no-graph
            loss = parts.sum()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "requires_grad_ to silence the error": """
        model = nn.Linear(4, 3)
        opt = torch.optim.Adam(model.parameters())
        for _ in range(3):
            x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
            pred = model(x).argmax(1).float()  # <- no-graph
            loss = F.mse_loss(pred, y.float())
            loss.requires_grad_()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "requires_grad = True to silence the error": """
        class Trainer:
            def __init__(self):
                self.model = nn.Linear(4, 1)
                self.opt = torch.optim.Adam(self.model.parameters())

            def step(self, x):
                loss = self.model(x).pow(2).mean().detach()  # <- no-graph
                loss.requires_grad = True
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()

        trainer = Trainer()
        for _ in range(3):
            trainer.step(torch.randn(8, 4))
    """,
    "Variable of the loss's data": """
        from torch.autograd import Variable

        model = nn.Linear(4, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            loss = model(torch.randn(8, 4)).pow(2).mean()
            loss = Variable(loss.data, requires_grad=True)  # <- no-graph
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "a number made into a loss": """
        model = nn.Linear(4, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            error = model(torch.randn(8, 4)).pow(2).mean().item()  # <- no-graph
            loss = torch.tensor(error, requires_grad=True)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "a forward under no_grad": """
        model = nn.Linear(4, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            with torch.no_grad():  # <- no-graph
                out = model(torch.randn(8, 4))
            loss = out.pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "a forward decorated with no_grad": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 1)

            @torch.no_grad()  # <- no-graph
            def forward(self, x):
                return self.b(torch.relu(self.a(x)))

        Net()(torch.randn(8, 4)).pow(2).mean().backward()
    """,
    "inference mode in a helper": """
        model = nn.Linear(4, 1)

        @torch.inference_mode()  # <- no-graph
        def predict(x):
            return model(x)

        def train():
            out = predict(torch.randn(8, 4))
            loss = out.pow(2).mean()
            loss.backward()

        train()
    """,
    "gradients switched off for evaluation and never on again": """
        model = nn.Linear(4, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)

        def evaluate():
            torch.set_grad_enabled(False)  # <- no-graph
            return model(torch.randn(8, 4)).pow(2).mean().item()

        for epoch in range(2):
            loss = model(torch.randn(8, 4)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            print(evaluate())
    """,
    "frozen features under inference mode": """
        class Features(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(4, 4).requires_grad_(False)
            def forward(self, x):
                return torch.relu(self.body(x))
        features, head = Features(), nn.Linear(4, 1)
        def extract(x):
            with torch.inference_mode():  # <- no-graph
                return features(x)
        F.mse_loss(head(extract(torch.randn(8, 4))), torch.zeros(8, 1)).backward()
    """,
    "one of two losses is put into a tensor again": """
        q, pi = nn.Linear(4, 1), nn.Linear(4, 1)
        trunk = nn.Linear(4, 4)
        opt = torch.optim.Adam([*trunk.parameters(), *q.parameters(), *pi.parameters()])
        for _ in range(4):
            h = trunk(torch.randn(8, 4))
            q_loss = q(h).pow(2).mean() + h.pow(2).mean()
            q_loss = torch.tensor(q_loss.item(), requires_grad=True)  # <- no-graph
            pi_loss = -pi(h).mean()
            opt.zero_grad()
            q_loss.backward()
            pi_loss.backward()
            opt.step()
    """,
    "the wrong phase": """
        model = nn.Linear(4, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for phase in ["training", "val"]:
            with torch.set_grad_enabled(phase == "train"):  # <- no-graph
                loss = model(torch.randn(8, 4)).pow(2).mean()
                if phase == "training":
                    opt.zero_grad()
                    loss.backward()
                    opt.step()
    """,
    "features under no_grad, and no head": """
        class Extractor(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))

            def forward(self, x):
                with torch.no_grad():  # <- no-graph
                    x = self.body(x)
                return F.normalize(x, dim=1)

        z = Extractor()(torch.randn(8, 4))
        loss = (z[:4] - z[4:]).pow(2).mean()
        loss.backward()
    """,
    "all parameters frozen": """
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        for p in model.parameters():
            p.requires_grad = False  # <- no-graph
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        loss = model(torch.randn(8, 4)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    """,
    "frozen by requires_grad_": """
        def freeze(net):
            net.requires_grad_(False)  # <- no-graph

        model = nn.Linear(4, 1)
        freeze(model)
        model(torch.randn(8, 4)).pow(2).mean().backward()
    """,
    "weights that were never asked to require grad": """
        w = torch.randn(3, 1)  # <- no-graph
        b = torch.zeros(1)
        for _ in range(2):
            loss = (torch.randn(8, 3) @ w + b).pow(2).mean()
            loss.backward()
            w = w - 0.1 * w.grad
    """,
    "an image in an optimizer, without requires_grad": """
        net = nn.Conv2d(1, 2, 3).requires_grad_(False)
        content = torch.rand(1, 1, 8, 8)
        image = content.clone()  # <- no-graph
        opt = torch.optim.Adam([image], lr=0.1)
        for _ in range(2):
            loss = F.mse_loss(net(image), net(content) + 1)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "an attack on an input that does not require grad": """
        model = nn.Linear(4, 3)
        for p in model.parameters():
            p.requires_grad_(False)

        def fgsm(x, y, eps):
            adv = x.clone()  # <- no-graph
            loss = F.cross_entropy(model(adv), y)
            loss.backward()
            return adv + eps * adv.grad.sign()

        fgsm(torch.randn(8, 4), torch.randint(0, 3, (8,)), 0.1)
    """,
    "sampled actions in the loss": """
        policy = nn.Linear(4, 2)
        dist = torch.distributions.Categorical(logits=policy(torch.randn(8, 4)))
        action = dist.sample()  # <- no-graph
        loss = -(action.float() * torch.randn(8)).mean()
        loss.backward()
    """,
    "weights taken from the state_dict": """
        model = nn.Linear(4, 1)
        weights = model.state_dict()  # <- no-graph
        loss = (torch.randn(8, 4) @ weights["weight"].t()).pow(2).mean()
        loss.backward()
    """,
    "rounded to integers": """
        model = nn.Linear(4, 1)
        level = (model(torch.randn(8, 4)) * 255).long()  # <- no-graph
        loss = (level - 128).abs().float().mean()
        loss.backward()
    """,
    "a mask instead of the scores": """
        scores = nn.Linear(4, 1)
        x = torch.randn(8, 4)
        keep = scores(x).squeeze(1) >= 0  # <- no-graph
        loss = torch.where(keep, x[:, 0], x[:, 1]).mean()
        loss.backward()
    """,
    "top indices": """
        scores = nn.Linear(4, 6)
        best = scores(torch.randn(8, 4)).topk(2).indices  # <- no-graph
        loss = torch.arange(6.0)[best].mean()
        loss.backward()
    """,
    "a confusion matrix": """
        model = nn.Linear(4, 3)

        def f1(logits, y):
            pred = logits.argmax(1)  # <- no-graph
            matrix = torch.zeros(3, 3)
            for p, t in zip(pred, y):
                matrix[p, t] += 1
            return 1 - matrix.diag().sum() / matrix.sum()

        loss = f1(model(torch.randn(8, 4)), torch.randint(0, 3, (8,)))
        loss.backward()
    """,
    "autograd.grad without a graph": """
        model = nn.Linear(4, 1)
        x = torch.randn(8, 4, requires_grad=True)
        out = model(x.detach()).detach()  # <- no-graph
        torch.autograd.grad(out.sum(), x)
    """,
    "pretrained embeddings, frozen by default": """
        vectors = torch.randn(9, 4)
        emb = nn.Embedding.from_pretrained(vectors)  # <- no-graph
        loss = emb(torch.randint(0, 9, (6,))).pow(2).mean()
        loss.backward()
    """,
    "a parameter made with requires_grad=False": """
        class Scale(nn.Module):
            def __init__(self):
                super().__init__()
                self.w = nn.Parameter(torch.ones(3), requires_grad=False)  # <- no-graph

            def forward(self, x):
                return x * self.w

        loss = Scale()(torch.randn(8, 3)).pow(2).mean()
        loss.backward()
    """,
    "freezing by a name that nothing has": """
        net = nn.ModuleDict({"body": nn.Linear(4, 8), "classifier": nn.Linear(8, 2)})
        for name, param in net.named_parameters():
            param.requires_grad = "head" in name  # <- no-graph
        out = net["classifier"](torch.relu(net["body"](torch.randn(6, 4))))
        F.cross_entropy(out, torch.zeros(6, dtype=torch.long)).backward()
    """,
    "an error in numpy, wrapped": """
        import numpy as np

        model = nn.Linear(4, 1)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            out = model(torch.randn(8, 4))
            error = np.mean(out.detach().numpy() ** 2)  # <- no-graph
            loss = torch.tensor(error, requires_grad=True)
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "an LSTM under no_grad": """
        class Encoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.lstm = nn.LSTM(3, 4, batch_first=True)

            @torch.no_grad()  # <- no-graph
            def encode(self, x):
                out, (h, c) = self.lstm(x)
                return h[-1]

        enc = Encoder()
        z = enc.encode(torch.randn(2, 5, 3))
        loss = (z[0] - z[1]).pow(2).sum()
        loss.backward()
    """,
    "a latent code that was never asked": """
        class Inverter:
            def __init__(self, gen):
                self.gen = gen.requires_grad_(False)
                self.z = torch.zeros(1, 2)  # <- no-graph
                self.opt = torch.optim.Adam([self.z], lr=0.1)

            def fit(self, target):
                for _ in range(2):
                    loss = F.mse_loss(self.gen(self.z), target)
                    self.opt.zero_grad()
                    loss.backward()
                    self.opt.step()

        Inverter(nn.Linear(2, 4)).fit(torch.randn(1, 4))
    """,
    "a mean of detached losses": """
        model = nn.Linear(4, 1)
        losses = []
        for x in torch.randn(3, 8, 4):
            losses.append(model(x).pow(2).mean().detach())  # <- no-graph
        total = torch.stack(losses).mean()
        total.backward()
    """,
    "clustering distances through integers": """
        net = nn.Linear(4, 2)
        centers = torch.randn(3, 2)
        z = net(torch.randn(10, 4))
        nearest = torch.cdist(z, centers).min(dim=1).indices  # <- no-graph
        loss = (centers[nearest] ** 2).mean()
        loss.backward()
    """,
    "copied by clone and detach in a replay": """
        class Memory:
            def __init__(self):
                self.rows = []

            def push(self, x):
                self.rows.append(x.clone().detach())  # <- no-graph

            def all(self):
                return torch.stack(self.rows)

        value = nn.Linear(4, 1)
        memory = Memory()
        for s in torch.randn(5, 4):
            memory.push(value(s))
        loss = (memory.all() - 1).pow(2).mean()
        loss.backward()
    """,
}

GOOD = {
    "features that enter a reentrant checkpoint": """
        from torch.utils.checkpoint import checkpoint
        body, head = nn.Linear(4, 8), nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
        opt = torch.optim.Adam(head.parameters())
        for _ in range(4):
            feats = body(torch.randn(8, 4)).detach().requires_grad_()
            loss = checkpoint(head, feats, use_reentrant=True).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "logging beside the loss": """
        model = nn.Linear(4, 3)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
            logits = model(x)
            loss = F.cross_entropy(logits, y)
            acc = (logits.argmax(1) == y).float().mean().item()
            shown = loss.detach().numpy()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "a straight-through estimator": """
        model, dec = nn.Linear(4, 3), nn.Linear(3, 4)
        opt = torch.optim.SGD([*model.parameters(), *dec.parameters()], lr=0.1)
        for _ in range(3):
            x = torch.randn(8, 4)
            soft = model(x).softmax(1)
            hard = F.one_hot(soft.argmax(1), 3).float()
            opt.zero_grad()
            F.mse_loss(dec(hard + soft - soft.detach()), x).backward()
            opt.step()
    """,
    "a frozen backbone": """
        backbone, head = nn.Linear(4, 8), nn.Linear(8, 3)
        for p in backbone.parameters():
            p.requires_grad = False
        opt = torch.optim.SGD(head.parameters(), lr=0.1)
        for _ in range(3):
            with torch.no_grad():
                f = backbone(torch.randn(8, 4))
            opt.zero_grad()
            head(f).pow(2).mean().backward()
            opt.step()
    """,
    "an error that the script catches": """
        x = torch.randn(3, requires_grad=True)
        (x * 2).sum().backward()
    """,
    "gradient descent that makes a new leaf each time": """
        w = torch.randn(2, requires_grad=True)
        for _ in range(3):
            loss = (w - 1).pow(2).sum()
            loss.backward()
            w = (w - 0.1 * w.grad).detach().requires_grad_()
    """,
    "an optimised image made from a detached one": """
        net = nn.Conv2d(1, 2, 3)
        start = net(torch.rand(1, 1, 8, 8)).mean(1, keepdim=True).detach()
        image = start.requires_grad_()
        opt = torch.optim.Adam([image], lr=0.1)
        for _ in range(3):
            loss = image.pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
    """,
    "sampling from an energy model between its steps": """
        energy = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
        opt = torch.optim.Adam(energy.parameters())
        x = torch.randn(8, 2)
        for _ in range(3):
            energy.requires_grad_(False)
            for _ in range(2):
                x = (x + 0.0 * energy(x)).detach().requires_grad_()
                energy(x).sum().backward()
                x = (x - 0.1 * x.grad).detach()
            energy.requires_grad_(True)
            opt.zero_grad()
            (energy(torch.randn(8, 2)).mean() - energy(x).mean()).backward()
            opt.step()
    """,
    "a gradient that is handed over by hand": """
        lower, upper = nn.Linear(4, 8), nn.Linear(8, 1)
        opt = torch.optim.SGD(lower.parameters(), lr=0.1)
        for _ in range(3):
            upper.requires_grad_(False)
            f = lower(torch.randn(8, 4))
            g = f.detach().requires_grad_()
            upper(g).pow(2).mean().backward()
            opt.zero_grad()
            f.backward(g.grad)
            opt.step()
    """,
    "a temperature that is learned": """
        teacher, log_t = nn.Linear(4, 3), torch.zeros((), requires_grad=True)
        opt = torch.optim.Adam([log_t])
        for _ in range(3):
            with torch.no_grad():
                logits = teacher(torch.randn(8, 4))
            opt.zero_grad()
            F.cross_entropy(logits / log_t.exp(), logits.argmax(1)).backward()
            opt.step()
    """,
}


@pytest.mark.parametrize("script", BAD.values(), ids=BAD)
def test_the_cause_is_named(check: Callable[[str], Any], script: str) -> None:
    checked = check(script)
    assert checked.by("no-graph") == checked.marked, checked.text


@pytest.mark.parametrize("script", GOOD.values(), ids=GOOD)
def test_silence(check: Callable[[str], Any], script: str) -> None:
    checked = check(script)
    assert not checked.alarms, checked.text


NO_GRAPH = "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn"


def at(line: int) -> Stack:
    return (Site("/nowhere/train.py", line, "train"),)


def call(error: str | None = NO_GRAPH, **facts: Any) -> Backward:
    return Backward(1, "backward", at(9), "loss", -1, False, False, 0, error=error, **facts)


@pytest.mark.parametrize("why", ["detached", "copied", "no_grad", "not differentiable", "frozen", "unasked"])
def test_the_line_of_the_cut(why: str) -> None:
    (finding,) = NoGraph().see(call(cuts=(Cut("argmax()", why, at(4)),)))
    assert finding.site.line == 4
    assert finding.message.startswith("`loss` has no graph")
    assert [related.site.line for related in finding.related] == [9]


def test_gradients_switched_off_by_a_call() -> None:
    (finding,) = NoGraph().see(call(cuts=(Cut("linear()", "no_grad", at(4), switched=at(2)),)))
    assert finding.site.line == 2


def test_what_is_known_comes_before_what_is_suspected() -> None:
    (finding,) = NoGraph().see(
        call(cuts=(Cut(">", "not differentiable", at(4)),), suspects=(Cut("item()", "detached", at(5)),))
    )
    assert finding.site.line == 4
    (finding,) = NoGraph().see(call(suspects=(Cut("item()", "detached", at(5)),)))
    assert finding.site.line == 5


def test_nothing_is_known() -> None:
    (finding,) = NoGraph().see(call())
    assert finding.site.line == 9


def test_other_errors() -> None:
    assert not list(NoGraph().see(call("RuntimeError: grad can be implicitly created only for scalar outputs")))
    assert not list(NoGraph().see(call(cuts=(Cut("autograd.grad()", "constant gradient", at(4)),))))


def test_a_loss_that_was_made_a_leaf_again() -> None:
    idle = call(error=None, rewrapped=(Cut("torch.tensor()", "copied", at(4)),))
    use = Use((), 0, (), ("model.weight",), 1)

    def found(*events: Backward | Step) -> list[int]:
        rule = NoGraph()
        return [finding.site.line for event in events for finding in rule.see(event)]

    assert found(idle, Step(1, "Adam", 7, at(10), ())) == [4]
    assert found(idle, Step(1, "Adam", 7, at(10), (use,))) == []
    assert found(idle, Step(1, "Adam", 7, at(10), (), unknown=True)) == []
    assert found(idle, Step(1, "", 7, at(10), ())) == []
    assert found(idle, call(error=None), Step(1, "Adam", 7, at(10), ())) == []
