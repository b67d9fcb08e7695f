"""PPO on a batched hovering task that is simulated on the device."""
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

CUDA = torch.cuda.is_available()
compiled = torch.compile(disable=not CUDA)


@dataclass
class Args:
    envs: int = 262_144 if CUDA else 64
    horizon: int = 16 if CUDA else 8
    minibatches: int = 4
    hidden: int = 512 if CUDA else 32
    iterations: int = 100 if CUDA else 2
    gamma: float = 0.98
    lam: float = 0.95
    clip: float = 0.2
    lr: float = 3e-4
    device: str = "cuda" if CUDA else "cpu"


OBS, ACT, DT = 32, 8, 0.05


class ActorCritic(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(OBS, hidden), nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, 2 * ACT)  # means, then the value in the first spare column
        self.log_std = nn.Parameter(torch.full((ACT,), -0.5))

    def forward(self, obs):
        h = F.relu(self.fc2(F.relu(self.fc1(obs))))
        out = self.out(h).float()
        return out[..., :ACT], out[..., ACT]


def log_prob(action, mean, log_std):
    z = (action - mean) * torch.exp(-log_std)
    return -(0.5 * z * z + log_std).sum(-1)


@compiled
def act(model, obs, noise):
    mean, value = model(obs)
    action = mean + model.log_std.exp() * noise
    return action, log_prob(action, mean, model.log_std), value


@compiled
def simulate(obs, action, fresh):
    """Position, velocity, tilt and target of each vehicle; lost vehicles start again."""
    position, velocity, tilt, target = obs.chunk(4, dim=-1)
    thrust = torch.tanh(action)
    tilt = 0.95 * tilt + 0.1 * thrust
    velocity = 0.98 * velocity + DT * (tilt - 0.2 * position)
    position = position + DT * velocity
    error = (position - target).square().sum(-1)
    reward = torch.exp(-error) - 0.01 * thrust.square().sum(-1)
    lost = error > 25.0
    state = torch.cat([position, velocity, tilt, target], dim=-1)
    return torch.where(lost[:, None], fresh, state), reward, lost.float()


@compiled
def advantages(rewards, values, lost, last_value, gamma, lam):
    result, running, following = [], torch.zeros_like(last_value), last_value
    for t in reversed(range(len(rewards))):
        alive = 1.0 - lost[t]
        delta = rewards[t] + gamma * alive * following - values[t]
        running = delta + gamma * lam * alive * running
        following = values[t]
        result.append(running)
    return torch.stack(result[::-1])


@compiled
def ppo_loss(model, obs, action, old_log_prob, advantage, target, clip):
    mean, value = model(obs)
    ratio = torch.exp(log_prob(action, mean, model.log_std) - old_log_prob)
    gain = torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage)
    return -gain.mean() + 0.5 * F.mse_loss(value, target) - 0.001 * model.log_std.sum()


def collect(model, start, args, gen):
    n, t_max = args.envs, args.horizon
    states = [start]
    parts = [[] for _ in range(5)]
    with torch.no_grad(), torch.autocast(args.device, dtype=torch.bfloat16):
        for t in range(t_max):
            noise = torch.randn(n, ACT, device=args.device, generator=gen)
            fresh = torch.randn(n, OBS, device=args.device, generator=gen)
            action, logp, value = act(model, states[t], noise)
            following, reward, lost = simulate(states[t], action, fresh)
            states.append(following)
            for part, item in zip(parts, (action, logp, value, reward, lost)):
                part.append(item)
        last_value = model(states[t_max])[1]
    actions, logps, values, rewards, losts = (torch.stack(p) for p in parts)
    gae = advantages(rewards, values, losts, last_value, args.gamma, args.lam)
    target = gae + values
    gae = (gae - gae.mean()) / (gae.std() + 1e-6)
    return states, actions, logps, gae, target, rewards.mean()


def main():
    args = Args()
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    gen = torch.Generator(args.device).manual_seed(1)
    model = ActorCritic(args.hidden).to(args.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, fused=True)
    obs = torch.randn(args.envs, OBS, device=args.device, generator=gen)
    rewards = []
    for _ in range(args.iterations):
        states, *batch, reward = collect(model, obs, args, gen)
        size = args.horizon // args.minibatches
        for m in range(args.minibatches):  # the vehicles are independent, so time slices are fair samples
            part = slice(m * size, (m + 1) * size)
            inputs = [torch.cat(states[part])] + [b[part].flatten(0, 1) for b in batch]
            with torch.autocast(args.device, dtype=torch.bfloat16):
                loss = ppo_loss(model, *inputs, args.clip)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        obs = states[-1]
        rewards.append(reward)
    print(f"mean reward {rewards[0].item():.4f} -> {rewards[-1].item():.4f}")


if __name__ == "__main__":
    main()
