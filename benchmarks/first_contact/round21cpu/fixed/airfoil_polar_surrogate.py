# %% [markdown]
# # Surrogate for airfoil polars
# A residual MLP learns lift, drag and pitching moment from 24 shape parameters and the flow conditions.

# %%
import numpy as np
import torch
from torch import nn

SEED = 1903
rng = np.random.default_rng(SEED)
torch.manual_seed(SEED)

# %% [markdown]
# ## Panel-code results (stand-in)


# %%
def panel_code(shape, alpha, reynolds):
    camber = shape[:, :12] @ np.linspace(1.0, 0.2, 12) / 12
    thick = np.abs(shape[:, 12:]).mean(1)
    stall = 0.22 + 0.3 * thick + 0.02 * np.log10(reynolds / 1e5)
    lift = 2 * np.pi * (alpha + camber) / (1 + np.exp(30 * (np.abs(alpha) - stall)))
    drag = 0.006 + 0.02 * lift**2 + 0.4 * thick**2 / np.sqrt(reynolds / 1e5)
    moment = -0.25 * camber * np.cos(3 * alpha) + 0.01 * lift
    return np.stack([lift, drag, moment], axis=1)


n = 24_000
shape = rng.normal(0, 0.15, (n, 24))
alpha = rng.uniform(-0.3, 0.35, n)
reynolds = 10 ** rng.uniform(5, 7, n)
inputs = np.column_stack([shape, alpha, np.log10(reynolds), np.sin(alpha), np.cos(alpha), alpha**2, shape.mean(1)])
outputs = panel_code(shape, alpha, reynolds)

inputs = np.pad((inputs - inputs.mean(0)) / inputs.std(0), ((0, 0), (0, 2)))
outputs = (outputs - outputs.mean(0)) / outputs.std(0)

# %% [markdown]
# ## Split


# %%
def split(*arrays, share=0.9):
    order = rng.permutation(len(arrays[0]))
    cut = int(share * len(order))
    for part in (order[:cut], order[cut:]):
        yield [torch.as_tensor(a[part], dtype=torch.float32) for a in arrays]


(x_train, y_train), (x_test, y_test) = split(inputs, outputs)
print("0 of", len(x_train), "training rows used,", len(x_test), "kept for testing")

# %% [markdown]
# ## Model


# %%
class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))

    def forward(self, x):
        return x + self.inner(self.norm(x))


width = 128
model = nn.Sequential(nn.Linear(x_train.shape[1], width), *[Residual(width) for _ in range(4)], nn.Linear(width, 3))
model = model.to(x_train)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-5, fused=True)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 700)

# %% [markdown]
# ## Training

# %%
batch, every = 384, 70
seen = x_train.new_zeros(())
for step in range(1, 701):
    rows = torch.randint(len(x_train), (batch,))
    loss = nn.functional.smooth_l1_loss(model(x_train[rows]), y_train[rows], beta=0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    seen += loss.detach()
    if step % every == 0:
        print(f"{step:4d}: loss {seen.item() / every:.4f}")
        seen.zero_()

# %%
with torch.inference_mode():
    error = (model(x_test) - y_test).abs().mean(0)
print("error per target:", [round(e, 3) for e in error.tolist()])
