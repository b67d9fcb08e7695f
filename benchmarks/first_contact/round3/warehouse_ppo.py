# PPO update phase on pre-collected warehouse episodes (discrete actions).
import os
import torch
import torch.nn as nn
import torch.nn.functional as F

on_cpu_size = os.environ.get("SMALL") == "1"
OBS, ACT, WIDTH, DEPTH = (16, 8, 32, 2) if on_cpu_size else (256, 32, 768, 20)
N, MB, STEPS = (64, 8, 30) if on_cpu_size else (65536, 16384, 96)
CLIP, ENT, VF = 0.2, 0.01, 0.5
device = "cuda" if torch.cuda.is_available() else "cpu"


class Res(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.ln = nn.LayerNorm(w)
        self.fc = nn.Linear(w, w)

    def forward(self, x):
        return x + F.relu(self.fc(self.ln(x)))


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(OBS, WIDTH), *(Res(WIDTH) for _ in range(DEPTH)))
        self.pi, self.v = nn.Linear(WIDTH, ACT), nn.Linear(WIDTH, 1)

    def forward(self, obs):
        h = self.trunk(obs)
        return self.pi(h), self.v(h).squeeze(-1)


def ppo_loss(net, batch):
    obs, act, old_logp, adv, ret = batch
    with torch.autocast(device, dtype=torch.bfloat16):
        logits, value = net(obs)
    logp_all = F.log_softmax(logits.float(), -1)
    logp = logp_all.gather(1, act[:, None]).squeeze(1)
    ratio = (logp - old_logp).exp()
    pg = -torch.minimum(ratio * adv, ratio.clamp(1 - CLIP, 1 + CLIP) * adv).mean()
    entropy = -(logp_all.exp() * logp_all).sum(-1).mean()
    return pg + VF * F.mse_loss(value.float(), ret) - ENT * entropy


def gradient_size(net):
    total = 0.0
    for p in net.parameters():
        total += p.grad.norm(2).item() ** 2  # flaw: sync-in-step|parameter-loop
    return total**0.5


def main():
    torch.manual_seed(31)
    net = ActorCritic().to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=2.5e-4, eps=1e-5, fused=True)
    episodes = (
        torch.randn(N, OBS, device=device),
        torch.randint(ACT, (N,), device=device),
        torch.full((N,), -3.0, device=device),
        torch.randn(N, device=device),
        torch.randn(N, device=device),
    )
    sizes, order = [], torch.randperm(N, device=device)
    for it in range(STEPS):
        start = it * MB % N
        idx = order[start : start + MB]
        loss = ppo_loss(net, [t[idx] for t in episodes])
        opt.zero_grad()
        loss.backward()
        sizes.append(gradient_size(net))
        opt.step()
    print(f"loss {loss.item():.4f}, gradient {sizes[0]:.3f} -> {sizes[-1]:.3f}")


if __name__ == "__main__":
    main()
