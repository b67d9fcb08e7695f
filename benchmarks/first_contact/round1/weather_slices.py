"""Predicts the next weather field from the last; the fields stay in host memory."""
import torch
import torch.nn.functional as F
from torch import nn

HOURS, CELLS, VARS, BATCH = 96, 16384, 64, 8


def fields():
    return torch.randn(HOURS, CELLS, VARS)  # flaw: pageable-host-copy


class Forecast(nn.Module):
    def __init__(self, dim=768):
        super().__init__()
        self.enc = nn.Linear(VARS, dim)
        self.mid = nn.ModuleList(nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, dim), nn.GELU(), nn.Linear(dim, dim)) for _ in range(3))
        self.dec = nn.Linear(dim, VARS)

    def forward(self, x):
        x = self.enc(x)
        for m in self.mid:
            x = x + m(x)
        return self.dec(x)


def windows(data, steps, device):
    for s in range(steps):
        at = (s * 5) % (HOURS - BATCH - 1)
        now = data[at : at + BATCH].to(device)  # flaw: pageable-host-copy
        then = data[at + 1 : at + BATCH + 1].to(device)  # flaw: pageable-host-copy
        yield now, then


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Forecast().to(device)
    opt = torch.optim.AdamW(model.parameters(), 1e-3, fused=True)
    for now, then in windows(fields(), 350, device):
        with torch.autocast(device, torch.bfloat16):
            out = model(now)
        loss = F.mse_loss(out.float(), then)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(loss.item())


main()
