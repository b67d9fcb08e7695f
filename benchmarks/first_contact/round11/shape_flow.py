"""Flow matching on latent tokens of 3-D shapes: a transformer predicts the velocity."""
import dataclasses
import math

import torch
import torch.nn.functional as F
from torch import nn, Tensor


@dataclasses.dataclass
class ModelArgs:
    dim: int = 768
    heads: int = 12
    layers: int = 4
    tokens: int = 1024
    latent: int = 32


@dataclasses.dataclass
class RunArgs:
    batch: int = 24
    steps: int = 120
    lr: float = 1e-4
    device: str = "cuda"


class RootMeanSquareNorm(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        y = x.float()  # flaw: hand-written-norm
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)  # flaw: hand-written-norm
        return (y * self.gain).to(x.dtype)  # flaw: hand-written-norm


class Layer(nn.Module):
    def __init__(self, a: ModelArgs):
        super().__init__()
        self.heads = a.heads
        self.norm_in, self.norm_mid = RootMeanSquareNorm(a.dim), RootMeanSquareNorm(a.dim)
        self.qkv = nn.Linear(a.dim, 3 * a.dim, bias=False)
        self.out = nn.Linear(a.dim, a.dim, bias=False)
        self.up = nn.Linear(a.dim, 4 * a.dim, bias=False)
        self.down = nn.Linear(4 * a.dim, a.dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm_in(x)).unflatten(-1, (3, self.heads, -1)).unbind(2)
        mixed = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm_mid(x))))


class VelocityModel(nn.Module):
    def __init__(self, a: ModelArgs):
        super().__init__()
        self.inlet = nn.Linear(a.latent, a.dim)
        self.places = nn.Parameter(torch.randn(a.tokens, a.dim) * 0.02)
        self.clock = nn.Sequential(nn.Linear(64, a.dim), nn.SiLU(), nn.Linear(a.dim, a.dim))
        self.layers = nn.ModuleList(Layer(a) for _ in range(a.layers))
        self.outlet = nn.Linear(a.dim, a.latent)
        self.register_buffer("waves", torch.exp(torch.linspace(0, math.log(1000.0), 32)))

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        phase = t[:, None] * self.waves
        clock = self.clock(torch.cat([phase.sin(), phase.cos()], 1))
        h = self.inlet(x) + (self.places + clock[:, None]).to(torch.bfloat16)
        for layer in self.layers:
            h = layer(h)
        return self.outlet(h)


def fit(model_args: ModelArgs, run: RunArgs) -> list[float]:
    device = torch.device(run.device)
    torch.manual_seed(3)
    model = VelocityModel(model_args).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=run.lr, betas=(0.9, 0.95), fused=True)
    shapes = torch.randn(16 * run.batch, model_args.tokens, model_args.latent, device=device)
    losses = []
    for _ in range(run.steps):
        clean = shapes[torch.randint(len(shapes), (run.batch,), device=device)]
        noise = torch.randn_like(clean)
        t = torch.rand(run.batch, device=device)
        with torch.autocast(device.type, torch.bfloat16):
            velocity = model(torch.lerp(noise, clean, t[:, None, None]), t)
        loss = F.mse_loss(velocity.float(), clean - noise)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()


if __name__ == "__main__":
    if torch.cuda.is_available():
        curve = fit(ModelArgs(), RunArgs())
    else:
        curve = fit(ModelArgs(32, 2, 2, 16, 8), RunArgs(4, 4, 1e-3, "cpu"))
    print(f"velocity loss {curve[0]:.3f} ... {curve[-1]:.3f}")
