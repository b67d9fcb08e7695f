"""Surrogate of a flow solver: a wide residual MLP from shape and inflow to surface pressures."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class ResidualLayer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Surrogate(nn.Sequential):
    def __init__(self, inputs, width, depth, outputs):
        super().__init__(
            nn.Linear(inputs, width), *[ResidualLayer(width) for _ in range(depth)], nn.LayerNorm(width), nn.Linear(width, outputs)
        )


def solver(x, mix):
    """Stands in for the flow solver's table."""
    return torch.sin(x @ mix) + 0.1 * (x @ mix).square()


def evaluate(model, x, y, batch):
    model.eval()
    error = torch.zeros((), device=x.device)
    with torch.inference_mode(), torch.autocast(x.device.type, dtype=torch.bfloat16):
        for i in range(0, len(x), batch):
            error += (model(x[i : i + batch]).float() - y[i : i + batch]).abs().mean() * len(x[i : i + batch])
    model.train()
    return error.item() / len(x)


def main():
    cuda = torch.cuda.is_available()
    p = argparse.ArgumentParser()
    p.add_argument("--width", type=int, default=2048 if cuda else 32)
    p.add_argument("--depth", type=int, default=6 if cuda else 2)
    p.add_argument("--batch", type=int, default=16384 if cuda else 16)
    p.add_argument("--samples", type=int, default=262144 if cuda else 64)
    p.add_argument("--steps", type=int, default=200 if cuda else 4)
    args = p.parse_args()
    device = torch.device("cuda" if cuda else "cpu")
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    x = torch.randn(args.samples, 64, device=device)
    y = solver(x, torch.randn(64, 256, device=device) / 8)
    held = args.samples // 8
    model = Surrogate(64, args.width, args.depth, 256).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    for step in range(1, args.steps + 1):
        pick = torch.randint(held, args.samples, (args.batch,), device=device)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            predicted = model(x[pick])
        loss = F.huber_loss(predicted.float(), y[pick], delta=0.5)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % (args.steps // 2) == 0:
            print(f"step {step}: held-out error {evaluate(model, x[:held], y[:held], args.batch):.4f}")


if __name__ == "__main__":
    main()
