"""An encoder learns to classify and to hide a nuisance: two losses on one graph, two optimizers, one forward pass."""

import torch
from torch import nn
from torch.nn.functional import cross_entropy

torch.manual_seed(23)


class Encoder(nn.Module):
    def __init__(self, inputs=10, size=12):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(inputs, 24), nn.Tanh(), nn.Linear(24, size))

    def forward(self, x):
        return self.net(x)


def make_batch(size=20):
    content = torch.randint(0, 3, (size,))
    speaker = torch.randint(0, 2, (size,))
    x = torch.randn(size, 10) * 0.5
    x[:, :3] += nn.functional.one_hot(content, 3)
    x[:, 3:5] += nn.functional.one_hot(speaker, 2)
    return x, content, speaker


encoder = Encoder()
classifier = nn.Linear(12, 3)
adversary = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 2))
main_optimizer = torch.optim.Adam([*encoder.parameters(), *classifier.parameters()], lr=4e-3)
adversary_optimizer = torch.optim.SGD(adversary.parameters(), lr=0.1, momentum=0.5)


def train_step(strength):
    x, content, speaker = make_batch()
    code = encoder(x)
    guess = adversary(code)
    adversary_loss = cross_entropy(guess, speaker)
    main_loss = cross_entropy(classifier(code), content)

    # the adversary's own gradient comes first; the graph is used again for the encoder
    adversary_optimizer.zero_grad()
    adversary_gradients = torch.autograd.grad(adversary_loss, list(adversary.parameters()), retain_graph=True)

    main_optimizer.zero_grad()
    main_loss.backward(retain_graph=True)
    hiding = strength * adversary_loss
    encoder_gradients = torch.autograd.grad(hiding, list(encoder.parameters()))
    with torch.no_grad():
        for parameter, gradient in zip(encoder.parameters(), encoder_gradients, strict=True):
            parameter.grad -= gradient
        for parameter, gradient in zip(adversary.parameters(), adversary_gradients, strict=True):
            parameter.grad = gradient
    main_optimizer.step()
    adversary_optimizer.step()
    return main_loss.item(), adversary_loss.item()


@torch.no_grad()
def evaluate(batches=5):
    for module in (encoder, classifier, adversary):
        module.eval()
    right = torch.zeros(2)
    for _ in range(batches):
        x, content, speaker = make_batch()
        code = encoder(x)
        right[0] += (classifier(code).argmax(1) == content).float().mean()
        right[1] += (adversary(code).argmax(1) == speaker).float().mean()
    for module in (encoder, classifier, adversary):
        module.train()
    return (right / batches).tolist()


for step in range(36):
    main_value, adversary_value = train_step(strength=min(1.0, step / 20))
    if step % 12 == 11:
        content_accuracy, speaker_accuracy = evaluate()
        print(f"{step}: main {main_value:.3f} adversary {adversary_value:.3f}")
        print(f"   accuracy {content_accuracy:.3f} speaker {speaker_accuracy:.3f}")
