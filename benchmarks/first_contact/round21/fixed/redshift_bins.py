# %% [markdown]
# # Redshifts of galaxies from noisy spectra
# Classification into 512 bins of redshift. The layers limit the gradient that they pass on, because a few
# spectra with cosmic-ray hits gave enormous gradients.

# %%
import math

import torch
from torch import nn
from torch.amp import custom_bwd, custom_fwd

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
CFG = {
    "pixels": 2048,
    "width": 2048,
    "blocks": 4,
    "bins": 512,
    "spectra": 16384,
    "batch": 8192,
    "steps": 420,
    "lr": 3e-4,
    "limit": 1e-3,
    "seed": 77,
}
torch.manual_seed(CFG["seed"])


# %%
class LimitedLinear(torch.autograd.Function):
    """x @ w.T, whose gradient for x is cut to +-limit, while the one for w is left as it is."""

    @staticmethod
    @custom_fwd(device_type=DEVICE, cast_inputs=torch.bfloat16)
    def forward(ctx, x, weight, limit):
        ctx.save_for_backward(x, weight)
        ctx.limit = limit
        return x @ weight.t()

    @staticmethod
    @custom_bwd(device_type=DEVICE)
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        grad = grad.to(x.dtype)
        grad_x = grad_w = None
        if ctx.needs_input_grad[0]:
            grad_x = (grad @ weight).clamp_(-ctx.limit, ctx.limit)
        if ctx.needs_input_grad[1]:
            grad_w = grad.t() @ x
        return grad_x, grad_w, None


class Limited(nn.Module):
    def __init__(self, inputs, outputs, limit):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outputs, inputs) / math.sqrt(inputs))
        self.limit = limit

    def forward(self, x):
        return LimitedLinear.apply(x, self.weight, self.limit)


class Block(nn.Module):
    def __init__(self, width, limit):
        super().__init__()
        self.body = nn.Sequential(
            nn.LayerNorm(width), Limited(width, width, limit), nn.GELU(), Limited(width, width, limit)
        )

    def forward(self, x):
        return x + self.body(x)


def network(cfg):
    return nn.Sequential(
        nn.Linear(cfg["pixels"], cfg["width"]),
        *(Block(cfg["width"], cfg["limit"]) for _ in range(cfg["blocks"])),
        nn.LayerNorm(cfg["width"]),
        nn.Linear(cfg["width"], cfg["bins"]),
    )


# %% Spectra: a few emission lines at shifted places, continuum and noise
def spectra(cfg):
    g = torch.Generator().manual_seed(cfg["seed"])
    lines = torch.rand(24, generator=g) * cfg["pixels"] * 0.6
    z = torch.randint(cfg["bins"], (cfg["spectra"],), generator=g)
    flux = 0.5 * torch.randn(cfg["spectra"], cfg["pixels"], generator=g)
    rows = torch.arange(cfg["spectra"])
    for line in lines.tolist():
        at = (line + z * (0.4 * cfg["pixels"] / cfg["bins"])).long()
        flux[rows, at] += 2.0
    return flux.to(DEVICE), z.to(DEVICE)


flux, redshift = spectra(CFG)
model = network(CFG).to(DEVICE)
optimizer = torch.optim.AdamW(model.parameters(), lr=CFG["lr"], fused=True)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, CFG["steps"])
criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
picker = torch.Generator(device=DEVICE).manual_seed(1)

# %%
for step in range(CFG["steps"]):
    rows = torch.randint(CFG["spectra"], (CFG["batch"],), device=DEVICE, generator=picker)
    with torch.autocast(DEVICE, dtype=torch.bfloat16):
        scores = model(flux[rows])
        loss = criterion(scores, redshift[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 60 == 59:
        print(f"{step + 1:4d}  {loss.item():.4f}")
