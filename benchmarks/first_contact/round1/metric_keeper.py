"""A classifier whose scores are looked at once training is over."""
import torch
from torch import nn


class Meter:
    def __init__(self):
        self.seen, self.true = [], []

    def update(self, scores, labels):
        self.seen.append(scores)  # flaw: memory-growth|graph-kept-alive
        self.true.append(labels)

    def compute(self):
        return torch.stack([(s.argmax(1) == t).float().mean() for s, t in zip(self.seen, self.true)]).mean()


def mlp(*sizes):
    mods = []
    for a, b in zip(sizes, sizes[1:]):
        mods += [nn.Linear(a, b), nn.GELU(), nn.LayerNorm(b)]
    return nn.Sequential(*mods[:-2])


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = mlp(1024, 4096, 4096, 4096, 1000).to(device)
    opt = torch.optim.AdamW(net.parameters(), 1e-4, fused=True)
    x, y = torch.randn(8192, 1024, device=device), torch.randint(1000, (8192,), device=device)
    meter = Meter()
    for _ in range(320):
        with torch.autocast(device, torch.bfloat16):
            scores = net(x)
            loss = nn.functional.cross_entropy(scores, y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        meter.update(scores, y)
    print(meter.compute().item())


main()
