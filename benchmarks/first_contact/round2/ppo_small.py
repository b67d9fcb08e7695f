"""Actor-critic on a vectorised toy environment that lives on the device."""
import torch
import torch.nn as nn

device = "cuda" if torch.cuda.is_available() else "cpu"
N_ENV, OBS, ACT = 256, 16, 4


def mlp(sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.pi, self.v = mlp([OBS, 64, 64, 64, ACT]), mlp([OBS, 64, 64, 64, 1])
        self.log_std = nn.Parameter(torch.zeros(ACT))

    def forward(self, obs):
        return self.pi(obs), self.v(obs).squeeze(-1)


class Env:
    def __init__(self):
        self.state = torch.randn(N_ENV, OBS, device=device)
        self.mix = torch.randn(ACT, OBS, device=device) * 0.1

    def step(self, action):
        self.state = (0.95 * self.state + action @ self.mix).clamp(-5, 5)
        return self.state, -self.state.square().mean(-1)


def main():
    net, env = ActorCritic().to(device), Env()
    opt = torch.optim.Adam(net.parameters(), lr=3e-4, fused=True)
    obs = env.state
    for update in range(2000):
        logps, values, rewards = [], [], []
        for _ in range(16):
            mean, value = net(obs)  # flaw: launch-bound
            noise = torch.randn_like(mean)
            action = mean.detach() + noise * net.log_std.exp().detach()
            logps.append((-0.5 * ((action - mean) / net.log_std.exp()).square() - net.log_std).sum(-1))  # flaw: launch-bound
            values.append(value)
            obs, reward = env.step(action)
            rewards.append(reward)
        values, rewards, logps = torch.stack(values), torch.stack(rewards), torch.stack(logps)
        advantage = (rewards - values).detach()
        loss = -(logps * advantage).mean() + 0.5 * nn.functional.mse_loss(values, rewards)
        opt.zero_grad(set_to_none=True)
        loss.backward()  # flaw: launch-bound
        opt.step()
        obs = obs.detach()
        if update % 200 == 0:
            print(update, rewards.mean().item())


main()
