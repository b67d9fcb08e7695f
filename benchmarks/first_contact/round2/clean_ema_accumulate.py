"""Gradient accumulation, clipping and an averaged copy of the weights."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class Average:
    def __init__(self, model, decay):
        self.model = copy.deepcopy(model).requires_grad_(False)
        self.slow, self.fast, self.decay = list(self.model.parameters()), list(model.parameters()), decay

    @torch.no_grad()
    def update(self):
        torch._foreach_lerp_(self.slow, self.fast, 1 - self.decay)


class Net(nn.Module):
    def __init__(self, d=1024, n=4, classes=256):
        super().__init__()
        self.emb = nn.Linear(192, d)
        self.layers = nn.Sequential(*[nn.TransformerEncoderLayer(d, 16, 4 * d, 0.0, F.gelu, batch_first=True, norm_first=True) for _ in range(n)])
        self.head = nn.Linear(d, classes)

    def forward(self, x):
        return self.head(self.layers(self.emb(x)).mean(1))


def main(micro=2, batch=64):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Net().to(device)
    average = Average(model, 0.999)
    opt = torch.optim.AdamW(model.parameters(), 3e-4, fused=True)
    warm = torch.optim.lr_scheduler.LinearLR(opt, 0.1, total_iters=100)
    x = torch.randn(4, batch, 196, 192, device=device, dtype=torch.bfloat16)
    y = torch.randint(0, 256, (4, batch), device=device)
    for step in range(300):
        for m in range(micro):
            with torch.autocast(device, dtype=torch.bfloat16):
                loss = F.cross_entropy(model(x[(step + m) % 4]), y[(step + m) % 4]) / micro
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        opt.step()
        opt.zero_grad(set_to_none=True)
        warm.step()
        average.update()
        if step % 100 == 0:
            print(step, loss.item() * micro)


if __name__ == "__main__":
    main()
