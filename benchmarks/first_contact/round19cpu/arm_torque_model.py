# %% [markdown]
# # Inverse dynamics of a seven-joint arm
# Excitation trajectories -> joint torques. A residual network on top of trigonometric features.

# %%
import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(21)
torch.set_default_dtype(torch.float64)  # flaw: float64-on-device
rng = np.random.default_rng(21)

JOINTS = 7
SAMPLES = 40_000
BATCH = 768
STEPS = 480

# %% excitation: a finite Fourier series per joint, as identification experiments use it
t = np.linspace(0, 120, SAMPLES)[:, None]
q, dq, ddq = (np.zeros((SAMPLES, JOINTS)) for _ in range(3))
for k in range(1, 6):
    a, b = rng.normal(0, 0.5 / k, (2, JOINTS))
    w = 0.25 * k
    q += a * np.sin(w * t) + b * np.cos(w * t)
    dq += w * (a * np.cos(w * t) - b * np.sin(w * t))
    ddq -= w * w * (a * np.sin(w * t) + b * np.cos(w * t))

# %% torques: gravity of a chain, coupled inertia, friction, and the noise of the current sensors
reach = np.cumsum(q, axis=1)
inertia = 0.6 + 0.4 * np.cos(reach)
coupling = rng.normal(0, 0.2, (JOINTS, JOINTS))
tau = inertia * ddq + np.sin(reach) @ coupling + 0.4 * np.tanh(20 * dq) + 0.1 * dq
tau += rng.normal(0, 0.02, tau.shape)

# %% to tensors, normalised
def scaled(array):
    array = (array - array.mean(0)) / array.std(0)
    return torch.as_tensor(array, dtype=torch.get_default_dtype())


features = scaled(np.concatenate([np.sin(q), np.cos(q), dq, ddq, np.tanh(20 * dq)], axis=1))
torques = scaled(tau)
held_out = torch.arange(SAMPLES) % 10 == 0
train_x, train_y = features[~held_out], torques[~held_out]
test_x, test_y = features[held_out], torques[held_out]

# %% the model
class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


model = nn.Sequential(
    nn.Linear(features.shape[1], 192),
    Residual(192), nn.LayerNorm(192),
    Residual(192), nn.LayerNorm(192),
    nn.Linear(192, JOINTS),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=STEPS)
print(f"{sum(p.numel() for p in model.parameters()):,} parameters")

# %% fit
for step in range(STEPS):
    rows = torch.randint(len(train_x), (BATCH,))
    loss = nn.functional.smooth_l1_loss(model(train_x[rows]), train_y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 80 == 79:
        print(f"step {step + 1:4d}  loss {loss.item():.5f}", flush=True)

# %% how much of each joint's torque is explained
with torch.inference_mode():
    left = (model(test_x) - test_y).square().mean(0)
print("unexplained share per joint:", " ".join(f"{value:.3f}" for value in left.tolist()))
