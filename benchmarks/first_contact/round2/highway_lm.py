import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


def clip_(params, max_norm):
    total = torch.zeros((), device=params[0].device)
    for p in params:  # flaw: per-tensor-optimizer|none-yet(clip-loop)
        total = total + p.grad.detach().pow(2).sum()  # flaw: per-tensor-optimizer|none-yet(clip-loop)
    coef = (max_norm / (total.sqrt() + 1e-6)).clamp(max=1.0)
    for p in params:  # flaw: per-tensor-optimizer|none-yet(clip-loop)
        p.grad.mul_(coef)  # flaw: per-tensor-optimizer|none-yet(clip-loop)


class Highway(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm, self.lin, self.back = nn.LayerNorm(d), nn.Linear(d, 2 * d), nn.Linear(d, d)

    def forward(self, x):
        return x + self.back(F.glu(self.lin(self.norm(x)), -1))


def build(d, depth, vocab):
    return nn.Sequential(nn.Embedding(vocab, d), *[Highway(d) for _ in range(depth)], nn.Linear(d, vocab))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--width", default=512, type=int)
    p.add_argument("--depth", default=40, type=int)
    p.add_argument("--batch", default=64, type=int)
    p.add_argument("--clip", default=1.0, type=float)
    a = p.parse_args()
    dev = "cuda" if torch.cuda.is_available() else "cpu"
    net = build(a.width, a.depth, 1024).to(dev)
    params = [q for q in net.parameters() if q.requires_grad]
    opt = torch.optim.AdamW(params, 2e-4, fused=True)
    text = torch.randint(0, 1024, (512, 257), device=dev)
    for it in range(500):
        rows = text[torch.randint(0, 512, (a.batch,), device=dev)]
        with torch.autocast(dev, dtype=torch.bfloat16):
            loss = F.cross_entropy(net(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        clip_(params, a.clip)
        opt.step()
        if it % 100 == 0:
            print(it, loss.item())


if __name__ == "__main__":
    main()
