# %% [markdown]
# Sampling from a latent denoiser with self-attention at full resolution

# %%
import os
import torch
from torch import nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.backends.cudnn.benchmark = True
ch, side, n, steps = (16, 8, 2, 30) if SMALL else (256, 64, 8, 80)

# %%
class SpatialAttn(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm = nn.GroupNorm(8, c)
        self.q, self.k, self.v, self.o = (nn.Conv2d(c, c, 1) for _ in range(4))

    def forward(self, x):
        b, c, h, w = x.shape
        y = self.norm(x)
        q = self.q(y).flatten(2).transpose(1, 2)
        k = self.k(y).flatten(2).transpose(1, 2)
        v = self.v(y).flatten(2).transpose(1, 2)
        w_ = torch.einsum("bic,bjc->bij", q, k)  # flaw: hand-written-attention
        w_ = torch.softmax(w_ * c**-0.5, dim=2)  # flaw: hand-written-attention
        out = torch.einsum("bij,bjc->bic", w_, v)  # flaw: hand-written-attention
        return x + self.o(out.transpose(1, 2).reshape(b, c, h, w))


class Conv(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.norm, self.conv = nn.GroupNorm(8, c), nn.Conv2d(c, c, 3, padding=1)

    def forward(self, x):
        return x + self.conv(F.silu(self.norm(x)))

# %%
net = nn.Sequential(
    nn.Conv2d(4, ch, 3, padding=1),
    Conv(ch), SpatialAttn(ch), Conv(ch), SpatialAttn(ch), Conv(ch),
    nn.GroupNorm(8, ch), nn.SiLU(), nn.Conv2d(ch, 4, 3, padding=1),
).to(device, memory_format=torch.channels_last).eval().requires_grad_(False)

# %%
sigmas = torch.linspace(10, 0.02, steps + 1).tolist()
x = torch.randn(n, 4, side, side, device=device).to(memory_format=torch.channels_last) * sigmas[0]
with torch.inference_mode(), torch.autocast(device, dtype=torch.bfloat16):
    for now, then in zip(sigmas, sigmas[1:]):
        denoised = net(x * (1 / (1 + now * now) ** 0.5)).float()
        x = x + (x - denoised) * ((then - now) / now)

# %%
print("latents", tuple(x.shape), "std", x.std().item())
