"""Diffusion on latent vectors; one training step is captured as a CUDA graph and replayed."""
import copy
import os

import torch
from torch import nn
import torch.nn.functional as F

TINY = os.environ.get("TINY") == "1"
CUDA = torch.cuda.is_available()
DEV = "cuda" if CUDA else "cpu"
N, BATCH, DIM, WIDTH, DEPTH, STEPS = (256, 16, 16, 32, 2, 6) if TINY else (262144, 16384, 256, 2048, 6, 900)
torch.set_float32_matmul_precision("high")


class TimeBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner, self.outer = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, h, t):
        return h + self.outer(F.silu(self.inner(self.norm(h)) + t))


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter, self.leave = nn.Linear(DIM, WIDTH), nn.Linear(WIDTH, DIM)
        self.register_buffer("freq", torch.logspace(0, 3, WIDTH // 4))
        self.time = nn.Linear(WIDTH // 2, WIDTH)
        self.blocks = nn.ModuleList(TimeBlock(WIDTH) for _ in range(DEPTH))

    def forward(self, x, t):
        a = t[:, None] * self.freq
        e = self.time(torch.cat((a.sin(), a.cos()), 1))
        h = self.enter(x)
        for block in self.blocks:
            h = block(h, e)
        return self.leave(h)


def objective(net, clean, noise, t):
    angle = t[:, None] * (torch.pi / 2)
    noisy = angle.cos() * clean + angle.sin() * noise
    return F.mse_loss(net(noisy, t).float(), angle.cos() * noise - angle.sin() * clean)


class Trainer:
    def __init__(self, clean):
        self.clean = clean
        self.net = Denoiser().to(DEV)
        self.ema = copy.deepcopy(self.net).requires_grad_(False)
        self.pairs = list(self.ema.parameters()), list(self.net.parameters())
        self.opt = torch.optim.AdamW(self.net.parameters(), lr=2e-4, fused=CUDA, capturable=CUDA)
        self.objective = objective if TINY else torch.compile(objective)
        self.smooth = torch.ones((), device=DEV)
        self.graph = None

    def once(self):
        pick = torch.randint(N, (BATCH,), device=DEV)
        noise = torch.randn(BATCH, DIM, device=DEV)
        t = torch.rand(BATCH, device=DEV)
        with torch.autocast(DEV, torch.bfloat16, enabled=CUDA, cache_enabled=False):
            loss = self.objective(self.net, self.clean[pick], noise, t)
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        with torch.no_grad():
            torch._foreach_lerp_(self.pairs[0], self.pairs[1], 0.001)
            self.smooth.lerp_(loss, 0.02)

    def record(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.once()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        self.opt.zero_grad(set_to_none=True)
        with torch.cuda.graph(self.graph):
            self.once()

    def run(self, steps):
        if CUDA:
            self.record()
        advance = self.graph.replay if self.graph else self.once
        for _ in range(steps):
            advance()
        return self.smooth.item()


torch.manual_seed(3)
centres = torch.randn(64, DIM, device=DEV)
clean = centres[torch.randint(64, (N,), device=DEV)] + 0.1 * torch.randn(N, DIM, device=DEV)
print("smoothed loss %.4f" % Trainer(clean).run(STEPS))
