"""Colour augmentation on the device, then a patch classifier."""
import torch
import torch.nn as nn
import torch.nn.functional as F


def jitter(x, gen):
    n = x.shape[0]
    r = torch.rand(n, 5, 1, 1, 1, device=x.device, generator=gen)
    x = x * (0.7 + 0.6 * r[:, 0])  # flaw: unfused-elementwise
    mean = x.mean(dim=(1, 2, 3), keepdim=True)
    x = (x - mean) * (0.6 + 0.8 * r[:, 1]) + mean  # flaw: unfused-elementwise
    grey = 0.299 * x[:, 0:1] + 0.587 * x[:, 1:2] + 0.114 * x[:, 2:3]  # flaw: unfused-elementwise
    x = grey + (x - grey) * (0.5 + r[:, 2])  # flaw: unfused-elementwise
    x = x.clamp(1e-4, 1.0) ** (0.7 + 0.6 * r[:, 3])  # flaw: unfused-elementwise
    x = torch.where(r[:, 4] < 0.1, 1.0 - x, x)  # flaw: unfused-elementwise
    x = x + 0.02 * torch.sin(40.0 * x)  # flaw: unfused-elementwise
    return (x.clamp(0, 1) - 0.45) / 0.225  # flaw: unfused-elementwise


class Patches(nn.Module):
    def __init__(self, d=512, n=3):
        super().__init__()
        self.emb = nn.Conv2d(3, d, 16, 16)
        self.mlp = nn.ModuleList(nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d)) for _ in range(n))
        self.out = nn.Linear(d, 50)

    def forward(self, x):
        h = self.emb(x).flatten(2).transpose(1, 2)
        for m in self.mlp:
            h = h + m(h)
        return self.out(h.mean(1))


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    gen = torch.Generator(device).manual_seed(5)
    batch = 160
    net = Patches().to(device)
    opt = torch.optim.AdamW(net.parameters(), 1e-3, fused=True)
    images = torch.rand(batch, 3, 256, 256, device=device)
    labels = torch.randint(0, 50, (batch,), device=device)
    for step in range(400):
        with torch.no_grad():
            x = jitter(images, gen)
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = F.cross_entropy(net(x), labels)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 100 == 0:
            print(step, loss.item())
