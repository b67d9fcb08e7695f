"""Masked feature modelling: a learner fills in hidden features."""
import numpy as np
import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


def make_learner(dim=1024, depth=6):
    body = []
    for _ in range(depth):
        body += [nn.Linear(dim, dim), nn.LayerNorm(dim), nn.GELU()]
    return nn.Sequential(*body, nn.Linear(dim, dim))


def hide(shape, share, rng):
    hidden = rng.random(shape, dtype=np.float32) < share  # flaw: tensor-made-on-host|pageable-host-copy
    return torch.from_numpy(hidden).to(device)  # flaw: tensor-made-on-host|pageable-host-copy


def loop(steps):
    rng = np.random.default_rng(1)
    net = make_learner().to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
    feats = torch.randn(4, 8192, 1024, device=device)
    for s in range(steps):
        x = feats[s % 4]
        gone = hide(x.shape, 0.3, rng)
        with torch.autocast(device, torch.bfloat16):
            y = net(x.masked_fill(gone, 0.0))
        loss = nn.functional.mse_loss(y.float(), x)
        opt.zero_grad()
        loss.backward()
        opt.step()
        yield loss.detach()


last = None
for last in loop(300):
    pass
print(float(last))
