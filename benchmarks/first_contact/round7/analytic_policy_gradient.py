"""Policy gradient on a batch of linear control tasks simulated on the device."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
gpu = torch.cuda.is_available()
device = "cuda" if gpu else "cpu"
envs, obs, act, width, horizon = (16384, 64, 8, 2048, 8) if gpu else (16, 6, 2, 16, 3)
dynamics = 0.9 * torch.eye(obs, device=device) + 0.01 * torch.randn(obs, obs, device=device)
control = 0.1 * torch.randn(act, obs, device=device)


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(obs, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, width), nn.GELU()
        )
        self.mean = nn.Linear(width, act)

    def forward(self, state):
        return self.mean(self.body(state)).float()


actor = Actor().to(device)
optimizer = torch.optim.AdamW(actor.parameters(), lr=1e-4, fused=gpu)
for update in range(150 if gpu else 4):
    state = torch.randn(envs, obs, device=device)
    cost = torch.zeros((), device=device)
    for _ in range(horizon):
        with torch.autocast(device, dtype=torch.bfloat16):
            action = actor(state)
        state = state @ dynamics + action @ control
        cost = cost + state.square().mean() + 0.01 * action.square().mean()
    cost.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if update % 50 == 0:
        print(f"update {update} cost {cost.item():.4f}")
print(f"cost {cost.item():.4f}")
