"""An image is optimized so that a frozen network sees the content of one image in the style of another."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)


def gram_matrix(input):
    a, b, c, d = input.size()
    features = input.view(a * b, c * d)
    G = torch.mm(features, features.t())
    return G.div(a * b * c * d)


class ContentLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = target.detach()

    def forward(self, input):
        self.loss = F.mse_loss(input, self.target)
        return input


class StyleLoss(nn.Module):
    def __init__(self, target_feature):
        super().__init__()
        self.target = gram_matrix(target_feature).detach()

    def forward(self, input):
        G = gram_matrix(input)
        self.loss = F.mse_loss(G, self.target)
        return input


def get_model_and_losses(cnn, style_img, content_img):
    model, style_losses, content_losses = nn.Sequential(), [], []
    i = 0
    for layer in cnn.children():
        if isinstance(layer, nn.Conv2d):
            i += 1
        model.add_module(f"{type(layer).__name__}_{i}", layer)
        if isinstance(layer, nn.ReLU):
            style_loss = StyleLoss(model(style_img))
            model.add_module(f"style_loss_{i}", style_loss)
            style_losses.append(style_loss)
            if i == 2:
                content_loss = ContentLoss(model(content_img))
                model.add_module(f"content_loss_{i}", content_loss)
                content_losses.append(content_loss)
    return model, style_losses, content_losses


def run_style_transfer(cnn, content_img, style_img, input_img, num_steps=25, style_weight=1000, content_weight=1):
    model, style_losses, content_losses = get_model_and_losses(cnn, style_img, content_img)
    input_img.requires_grad_(True)
    model.eval()
    model.requires_grad_(False)
    optimizer = torch.optim.Adam([input_img], lr=0.05)
    for step in range(num_steps):
        with torch.no_grad():
            input_img.clamp_(0, 1)
        optimizer.zero_grad()
        model(input_img)
        style_score = 0
        content_score = 0
        for sl in style_losses:
            style_score = style_score + sl.loss
        for cl in content_losses:
            content_score = content_score + cl.loss
        loss = style_weight * style_score + content_weight * content_score
        loss.backward()
        optimizer.step()
        if step % 8 == 0:
            print(f"run {step}: style {style_score.item():.5f} content {content_score.item():.5f}")
    with torch.no_grad():
        input_img.clamp_(0, 1)
    return input_img


cnn = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 8, 3, padding=1), nn.ReLU()).eval()
content, style = torch.rand(1, 3, 12, 12), torch.rand(1, 3, 12, 12)
output = run_style_transfer(cnn, content, style, content.clone())
print(output.mean().item())
