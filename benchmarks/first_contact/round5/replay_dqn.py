import os
import copy
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F

DEBUG_SIZES = os.environ.get("SMALL") == "1"


class Replay:
    """Ring buffer in host memory; sampled batches are staged in pinned memory."""

    def __init__(self, capacity, obs_dim, actions, seed=0):
        rng = np.random.default_rng(seed)
        self.obs = rng.standard_normal((capacity + 1, obs_dim), dtype=np.float32)
        self.action = rng.integers(0, actions, capacity)
        self.reward = rng.standard_normal(capacity, dtype=np.float32)
        self.done = (rng.random(capacity) < 0.01).astype(np.float32)
        self.rng, self.capacity = rng, capacity

    def sample(self, n, device):
        idx = self.rng.integers(0, self.capacity, n)
        parts = self.obs[idx], self.action[idx], self.reward[idx], self.obs[idx + 1], self.done[idx]
        tensors = [torch.from_numpy(p) for p in parts]
        if device.type == "cuda":
            tensors = [t.pin_memory() for t in tensors]
        return [t.to(device, non_blocking=True) for t in tensors]


class DuelingQ(nn.Module):
    def __init__(self, obs_dim, actions, width):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(obs_dim, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                                   nn.Linear(width, width), nn.ReLU())
        self.adv, self.val = nn.Linear(width, actions), nn.Linear(width, 1)

    def forward(self, obs):
        h = self.trunk(obs)
        adv = self.adv(h)
        return self.val(h) + adv - adv.mean(1, keepdim=True)


def learn(capacity, obs_dim, actions, width, batch, updates, gamma=0.99, sync_every=20):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    online = DuelingQ(obs_dim, actions, width).to(device)
    target = copy.deepcopy(online).requires_grad_(False)
    opt = torch.optim.Adam(online.parameters(), lr=1e-4, fused=True)
    buffer = Replay(capacity, obs_dim, actions)
    smooth = 0.0
    for n in range(updates):
        obs, action, reward, nxt, done = buffer.sample(batch, device)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            with torch.no_grad():
                best = online(nxt).argmax(1, keepdim=True)
                boot = target(nxt).gather(1, best).squeeze(1).float()
            q = online(obs).gather(1, action.unsqueeze(1)).squeeze(1).float()
        loss = F.smooth_l1_loss(q, reward + gamma * (1 - done) * boot)
        loss.backward()
        opt.step()
        opt.zero_grad()
        smooth = 0.95 * smooth + 0.05 * loss.item()  # flaw: sync-in-step
        if n % sync_every == 0:
            target.load_state_dict(online.state_dict())
        if n % 50 == 0:
            print(f"update {n} loss {smooth:.4f}")


if __name__ == "__main__":
    if DEBUG_SIZES:
        learn(500, 8, 4, 16, 32, 30)
    else:
        learn(300_000, 48, 16, 2048, 16384, 120)
