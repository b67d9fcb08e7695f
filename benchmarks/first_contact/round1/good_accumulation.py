"""Big batches in four parts; sums stay on the device."""
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Hyper:
    dim: int = 2048
    depth: int = 6
    parts: int = 4
    part: int = 8192
    updates: int = 320


def main(h=Hyper()):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = nn.Sequential(*[m for _ in range(h.depth) for m in (nn.Linear(h.dim, h.dim), nn.GELU())], nn.Linear(h.dim, 128)).to(device)
    opt = torch.optim.AdamW(net.parameters(), 1e-4, fused=True)
    x, y = torch.randn(h.parts, h.part, h.dim, device=device), torch.randint(128, (h.parts, h.part), device=device)
    total = torch.zeros((), device=device)
    for _ in range(h.updates):
        for i in range(h.parts):
            with torch.autocast(device, torch.bfloat16):
                loss = nn.functional.cross_entropy(net(x[i]), y[i]) / h.parts
            loss.backward()
            total += loss.detach()
        opt.step()
        opt.zero_grad()
    print(total.item() / h.updates)


main()
