"""N-BEATS style stack for hourly energy series; windows are cut on the device."""
import os
import torch
from torch import nn
from torch.nn import functional as F


class Stack(nn.Module):
    def __init__(self, back, ahead, width):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(back, width), nn.ReLU(inplace=True), nn.Linear(width, width), nn.ReLU(inplace=True),
                                 nn.Linear(width, width), nn.ReLU(inplace=True))
        self.theta = nn.Linear(width, back + ahead)
        self.split = [back, ahead]

    def forward(self, x):
        return self.theta(self.net(x)).split(self.split, dim=-1)


class NBeats(nn.Module):
    def __init__(self, back, ahead, width, stacks):
        super().__init__()
        self.stacks = nn.ModuleList(Stack(back, ahead, width) for _ in range(stacks))

    def forward(self, x):
        forecast = 0
        for stack in self.stacks:
            backcast, part = stack(x)
            x = x - backcast
            forecast = forecast + part
        return forecast


class Windows:
    def __init__(self, series, back, ahead, batch):
        self.view = series.unfold(1, back + ahead, 24)
        self.back, self.batch = back, batch
        self.houses, self.starts = self.view.shape[:2]

    def draw(self):
        d = self.view.device
        h = torch.randint(self.houses, (self.batch,), device=d)
        s = torch.randint(self.starts, (self.batch,), device=d)
        w = self.view[h, s]
        return w[:, :self.back], w[:, self.back:]


def smape(a, b):
    return (2 * (a - b).abs() / (a.abs() + b.abs() + 1e-3)).mean()


def main():
    small = os.environ.get("SMALL") == "1"
    back, ahead, width, stacks, batch, steps = (16, 8, 16, 2, 8, 30) if small else (512, 128, 2048, 6, 16384, 80)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    t = torch.arange(24 * 40 if small else 24 * 200, device=device) / 24
    series = 1 + torch.sin(6.28 * t) * torch.rand(300, 1, device=device) + 0.1 * torch.randn(300, len(t), device=device)
    windows = Windows(series, back, ahead, batch)
    model = NBeats(back, ahead, width, stacks).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 2e-3, total_steps=steps)
    for step in range(steps):
        past, future = windows.draw()
        with torch.autocast(device, torch.bfloat16):
            guess = model(past)
        loss = F.l1_loss(guess.float(), future)
        loss.backward()
        opt.step()
        sched.step()
        opt.zero_grad(set_to_none=True)
        if step % 40 == 39:
            with torch.no_grad():
                print(step + 1, "mae", loss.item(), "smape", smape(guess.float(), future).item())


if __name__ == "__main__":
    main()
