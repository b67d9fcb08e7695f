"""Offline sampling job: draws latents from a transformer denoiser with deterministic DDIM steps."""
import json
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

TINY = os.environ.get("TINY") == "1"
CONFIG = json.loads("""{
  "latents": {"tokens": 256, "channels": 16},
  "denoiser": {"dim": 384, "depth": 12, "heads": 6},
  "sampler": {"steps": 25, "eta": 0.0}
}""")
CONFIG["job"] = {
    "samples": 3072,
    "per_call": 4,  # flaw: small-batch
    "seed": 123,
}
if TINY:
    CONFIG["latents"]["tokens"] = 16
    CONFIG["denoiser"].update(dim=32, depth=2, heads=2)
    CONFIG["sampler"]["steps"] = 4
    CONFIG["job"].update(samples=96)


class DenoiserBlock(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.RMSNorm(dim), nn.RMSNorm(dim)
        self.qkv, self.o = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.w1, self.w2 = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)
        self.mod = nn.Linear(dim, 2 * dim)

    def forward(self, x, t):
        a, b = self.mod(t).chunk(2, -1)
        n = x.shape[1]
        q, k, v = self.qkv(self.n1(x) * (1 + a)).view(-1, n, 3, self.heads, x.shape[2] // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape))
        return x + self.w2(F.gelu(self.w1(self.n2(x) * (1 + b))))


class Denoiser(nn.Module):
    def __init__(self, channels, tokens, dim, depth, heads):
        super().__init__()
        self.inp, self.outp = nn.Linear(channels, dim), nn.Linear(dim, channels)
        self.pos = nn.Parameter(torch.randn(tokens, dim) * 0.02)
        self.time = nn.Sequential(nn.Linear(64, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.register_buffer("freq", torch.exp(torch.linspace(0, -6, 32)))
        self.blocks = nn.ModuleList(DenoiserBlock(dim, heads) for _ in range(depth))

    def forward(self, x, t):
        angle = t * self.freq
        temb = self.time(torch.cat((angle.sin(), angle.cos()), -1).to(x.dtype)).view(1, 1, -1)
        h = self.inp(x) + self.pos
        for block in self.blocks:
            h = block(h, temb)
        return self.outp(h)


def ddim_update(model, x, t, now, nxt):
    eps = model(x, t)
    x0 = (x - (1 - now).sqrt() * eps) / now.sqrt()
    return (nxt.sqrt() * x0 + (1 - nxt).sqrt() * eps).to(x.dtype)


class SamplingJob:
    def __init__(self, config):
        self.cfg = config
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.dtype = torch.bfloat16 if self.device.type == "cuda" else torch.float32
        torch.manual_seed(config["job"]["seed"])
        lat = config["latents"]
        self.model = Denoiser(lat["channels"], lat["tokens"], **config["denoiser"]).to(self.device, self.dtype).eval()
        steps = config["sampler"]["steps"]
        times = torch.linspace(999, 0, steps).tolist()
        alphas = torch.cos(torch.linspace(1.5, 0.02, steps + 1)).square().tolist()
        scalar = lambda v: torch.tensor(v, device=self.device)
        self.schedule = [(scalar(t), scalar(a), scalar(b)) for t, a, b in zip(times, alphas, alphas[1:])]
        self.update = ddim_update if TINY else torch.compile(ddim_update, mode="reduce-overhead")
        shape = (config["job"]["samples"], lat["tokens"], lat["channels"])
        self.noise = torch.randn(shape, device=self.device).to(self.dtype)

    def denoise(self, x):
        for t, now, nxt in self.schedule:
            x = self.update(self.model, x, t, now, nxt).clone()
        return x

    @torch.no_grad()
    def run(self):
        out = torch.empty_like(self.noise)
        for chunk, dest in zip(self.noise.split(self.cfg["job"]["per_call"]), out.split(self.cfg["job"]["per_call"])):
            dest.copy_(self.denoise(chunk))
        return out


if __name__ == "__main__":
    samples = SamplingJob(CONFIG).run().float()
    print(f"mean {samples.mean().item():.4f} std {samples.std().item():.4f}")
