"""Fill probability of limit orders from book snapshots; the whole update is one CUDA graph."""
import argparse
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

ap = argparse.ArgumentParser()
ap.add_argument("--updates", type=int, default=int(os.environ.get("UPDATES", 2000)))
ap.add_argument("--batch", type=int, default=32768)
ap.add_argument("--width", type=int, default=1024)
ap.add_argument("--depth", type=int, default=5)
ap.add_argument("--levels", type=int, default=128)
ap.add_argument("--snapshots", type=int, default=1 << 20)
opt = ap.parse_args()
TINY = os.environ.get("TINY") == "1"
if TINY:
    opt.updates, opt.batch, opt.width, opt.depth, opt.levels, opt.snapshots = 8, 64, 64, 2, 16, 512
GPU = torch.cuda.is_available()
device = torch.device("cuda" if GPU else "cpu")


class Rung(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.a, self.b = nn.LayerNorm(width), nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        return x + self.b(F.silu(self.a(self.norm(x))))


class FillNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(opt.levels, opt.width)
        self.rungs = nn.ModuleList(Rung(opt.width) for _ in range(opt.depth))
        self.leave = nn.Linear(opt.width, 8)

    def forward(self, x):
        x = self.enter(x)
        for rung in self.rungs:
            x = rung(x)
        return self.leave(x)


class Market:
    def __init__(self):
        gen = torch.Generator(device).manual_seed(40)
        self.books = torch.randn(opt.snapshots, opt.levels, device=device, generator=gen)
        lean = self.books[:, :8].cumsum(1) + torch.randn(opt.snapshots, 8, device=device, generator=gen)
        self.filled = (lean > 0).float()
        self.gen = gen
        self.x = torch.empty(opt.batch, opt.levels, device=device)
        self.y = torch.empty(opt.batch, 8, device=device)

    def draw(self):
        pick = torch.randint(opt.snapshots, (opt.batch,), device=device, generator=self.gen)
        torch.index_select(self.books, 0, pick, out=self.x)
        torch.index_select(self.filled, 0, pick, out=self.y)


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    market, net = Market(), FillNet().to(device)
    if not TINY:
        for rung in net.rungs:
            rung.compile()
    adam = torch.optim.AdamW(net.parameters(), lr=3e-4, fused=True, capturable=GPU)
    meter = torch.zeros((), device=device)

    def update():
        adam.zero_grad(set_to_none=True)
        with torch.autocast(device.type, torch.bfloat16, enabled=GPU, cache_enabled=False):
            loss = F.binary_cross_entropy_with_logits(net(market.x), market.y)
        loss.backward()
        adam.step()
        meter.lerp_(loss.detach(), 0.02)

    replay = update
    done = 0
    if GPU:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            while done < 4:
                market.draw()
                update()
                done += 1
        torch.cuda.current_stream().wait_stream(side)
        adam.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            update()
        replay = graph.replay
    while done < opt.updates:
        market.draw()
        replay()
        done += 1
    print(f"fill loss {meter.item():.4f}")


if __name__ == "__main__":
    main()
