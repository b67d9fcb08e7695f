"""A vision transformer of torch's own layers."""
import argparse

import torch
import torch.nn as nn

p = argparse.ArgumentParser()
p.add_argument("--dim", type=int, default=768)
p.add_argument("--depth", type=int, default=8)
p.add_argument("--batch", type=int, default=64)
p.add_argument("--steps", type=int, default=320)
a = p.parse_args()


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Linear(3 * 256, a.dim)
        layer = nn.TransformerEncoderLayer(a.dim, 12, 4 * a.dim, 0.0, "gelu", batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, a.depth, enable_nested_tensor=False)
        self.top = nn.Linear(a.dim, 1000)

    def forward(self, x):
        return self.top(self.enc(self.patch(x)).mean(1))


device = "cuda" if torch.cuda.is_available() else "cpu"
net = ViT().to(device)
opt = torch.optim.AdamW(net.parameters(), 1e-4, fused=True)
x, y = torch.randn(a.batch, 256, 768, device=device), torch.randint(1000, (a.batch,), device=device)
running = torch.zeros((), device=device)
for step in range(1, a.steps + 1):
    opt.zero_grad()
    with torch.autocast(device, torch.bfloat16):
        loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    opt.step()
    running += loss.detach()
    if step % 160 == 0:
        print(step, (running / step).item())
