"""Predicts fold angles of crease patterns; callbacks watch the training."""
import os

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Callback:
    def after_backward(self, trainer): ...

    def after_fit(self, trainer): ...


class GradientPeaks(Callback):
    """The largest gradient norm that each weight ever had."""

    def __init__(self):
        self.peaks = None

    def after_backward(self, trainer):
        norms = torch._foreach_norm([w.grad for w in trainer.weights])
        norms = torch.stack(norms)
        self.peaks = norms if self.peaks is None else torch.maximum(self.peaks, norms)

    def after_fit(self, trainer):
        peaks = dict(zip(trainer.names, self.peaks.tolist()))
        name = max(peaks, key=peaks.get)
        print(f"steepest: {name} {peaks[name]:.3f}")


class MeanLoss(Callback):
    def __init__(self):
        self.total = torch.zeros((), device=device)

    def after_backward(self, trainer):
        self.total += trainer.loss.detach()

    def after_fit(self, trainer):
        print(f"loss {self.total.item() / trainer.step:.4f}")


class Crease(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.back = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(self.norms[0](x)).chunk(3, -1))
        x = x + self.back(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.narrow(F.gelu(self.widen(self.norms[1](x))))


class Trainer:
    def __init__(self, model, callbacks):
        self.model, self.callbacks, self.step = model.to(device), callbacks, 0
        self.names, self.weights = zip(*self.model.named_parameters())
        self.opt = torch.optim.AdamW(self.weights, lr=2e-4, fused=True)

    def tell(self, event):
        for callback in self.callbacks:
            getattr(callback, event)(self)

    def fit(self, papers):
        for creases, angles in papers:
            with torch.autocast(device.type, torch.bfloat16):
                self.loss = F.mse_loss(self.model(creases).float(), angles)
            self.opt.zero_grad(set_to_none=True)
            self.loss.backward()
            self.step += 1
            self.tell("after_backward")
            self.opt.step()
        self.tell("after_fit")


def papers(batch, folds, number):
    g = torch.Generator(device).manual_seed(14)
    sheet = torch.randn(8, batch, folds, 16, device=device, generator=g)
    angle = sheet.roll(1, 2).mean(-1, keepdim=True)
    for i in range(number):
        yield sheet[i % 8], angle[i % 8]


torch.manual_seed(3)
width, heads, depth, batch, folds, number = (32, 2, 2, 2, 8, 5) if TINY else (384, 6, 24, 64, 256, 420)
body = [Crease(width, heads) for _ in range(depth)]
Trainer(nn.Sequential(nn.Linear(16, width), *body, nn.LayerNorm(width), nn.Linear(width, 1)), [MeanLoss(), GradientPeaks()]).fit(papers(batch, folds, number))
