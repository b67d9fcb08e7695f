import contextlib
import time
from collections import defaultdict

import torch
import torch.nn as nn
import torch.nn.functional as F

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Phases:
    def __init__(self):
        self.spent = defaultdict(float)

    @contextlib.contextmanager
    def __call__(self, name):
        start = time.perf_counter()
        yield
        if DEVICE == "cuda":
            torch.cuda.synchronize()  # flaw: synchronize-in-step
        self.spent[name] += time.perf_counter() - start


class Tabular(nn.Module):
    def __init__(self, cols=48, d=256, n=8):
        super().__init__()
        self.w, self.b = nn.Parameter(torch.randn(cols, d) * 0.1), nn.Parameter(torch.zeros(cols, d))
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(d, 8, 2 * d, 0.0, batch_first=True, norm_first=True) for _ in range(n))
        self.out = nn.Linear(d, 2)

    def forward(self, x):
        h = torch.addcmul(self.b, x.unsqueeze(-1), self.w)
        for layer in self.layers:
            h = layer(h)
        return self.out(h.mean(1))


def main():
    phase = Phases()
    model = Tabular().to(DEVICE)
    opt = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    x, y = torch.randn(8, 320, 48, device=DEVICE), torch.randint(0, 2, (8, 320), device=DEVICE)
    for i in range(600):
        with phase("forward"), torch.autocast(DEVICE, dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x[i % 8]), y[i % 8])
        with phase("backward"):
            loss.backward()
        with phase("update"):
            opt.step()
            opt.zero_grad(set_to_none=True)
        if i % 200 == 199:
            print(i, {k: round(v, 3) for k, v in phase.spent.items()}, loss.item())


if __name__ == "__main__":
    main()
