"""Rectified flow on image latents with a class-conditional transformer (adaptive norms)."""
import os
from functools import cached_property

import torch
from torch import nn
from torch.nn import functional as F

TINY = os.environ.get("TINY") == "1"
PRESETS = {
    "tiny": dict(d=64, depth=2, patches=16, channels=16, classes=8, batch=4, steps=4, pool=32),
    "base": dict(d=1024, depth=8, patches=256, channels=64, classes=1000, batch=96, steps=260, pool=4096),
}
cfg = PRESETS["tiny" if TINY else "base"]


class Modulated(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm1 = nn.LayerNorm(d, elementwise_affine=False)
        self.norm2 = nn.LayerNorm(d, elementwise_affine=False)
        self.ada = nn.Linear(d, 6 * d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.fc1, self.fc2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        nn.init.zeros_(self.ada.weight)

    def forward(self, x, c):
        s1, b1, g1, s2, b2, g2 = self.ada(c).unsqueeze(1).chunk(6, dim=-1)
        h = self.norm1(x) * (1 + s1) + b1
        q, k, v = self.qkv(h).unflatten(-1, (3, -1, 64)).permute(2, 0, 3, 1, 4)
        h = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = x + g1 * self.out(h)
        h = self.norm2(x) * (1 + s2) + b2
        return x + g2 * self.fc2(F.gelu(self.fc1(h), approximate="tanh"))


class Velocity(nn.Module):
    def __init__(self, d, depth, patches, channels, classes, **_):
        super().__init__()
        self.inp, self.outp = nn.Linear(channels, d), nn.Linear(d, channels)
        self.place = nn.Parameter(torch.randn(patches, d) * 0.02)
        self.label = nn.Embedding(classes, d)
        self.time = nn.Sequential(nn.Linear(64, d), nn.SiLU(), nn.Linear(d, d))
        self.register_buffer("freq", torch.exp(torch.linspace(0, 6, 32)))
        self.layers = nn.ModuleList(Modulated(d) for _ in range(depth))

    def forward(self, x, t, y):
        angle = t[:, None] * self.freq
        c = F.silu(self.time(torch.cat([angle.sin(), angle.cos()], 1)) + self.label(y))
        x = self.inp(x) + self.place
        for layer in self.layers:
            x = layer(x, c)
        return self.outp(x)


class Experiment:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    @cached_property
    def model(self):
        torch.manual_seed(0)
        net = Velocity(**cfg).to(self.device)
        if not TINY:
            for layer in net.layers:
                layer.compile()
        return net

    @cached_property
    def optimizer(self):
        return torch.optim.AdamW(self.model.parameters(), lr=2e-4, fused=True)

    @cached_property
    def latents(self):
        g = torch.Generator(self.device).manual_seed(1)
        y = torch.randint(cfg["classes"], (cfg["pool"],), device=self.device, generator=g)
        x = torch.randn(cfg["pool"], cfg["patches"], cfg["channels"], device=self.device, generator=g)
        return x * 0.5 + (y[:, None, None] % 8 - 4) * 0.25, y

    def pairs(self):
        g = torch.Generator(self.device).manual_seed(2)
        x, y = self.latents
        for _ in range(cfg["steps"]):
            pick = torch.randint(cfg["pool"], (cfg["batch"],), device=self.device, generator=g)
            data = x[pick]
            noise = torch.randn(data.shape, device=self.device, generator=g)
            t = torch.rand(cfg["batch"], device=self.device, generator=g)
            yield torch.lerp(noise, data, t[:, None, None]), data - noise, t, y[pick]

    def run(self):
        smooth = torch.zeros((), device=self.device)
        for mixed, velocity, t, y in self.pairs():
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
                loss = F.mse_loss(self.model(mixed, t, y), velocity)
            loss.backward()
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            smooth.lerp_(loss.detach(), 0.1)
        return smooth.item()


if __name__ == "__main__":
    torch.set_float32_matmul_precision("high")
    print(f"flow loss {Experiment().run():.4f}")
