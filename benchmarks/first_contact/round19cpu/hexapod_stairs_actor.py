"""A six-legged robot learns to climb: a learned model of its body, and a gait found through that model."""
import torch
from torch import nn

STATE, ACTION, AHEAD = 24, 18, 4


class Body:
    """The real robot, which only answers with the state after an action."""

    def __init__(self, gen):
        self.drift = torch.randn(STATE, STATE, generator=gen) * 0.9 / STATE**0.5
        self.drive = torch.randn(ACTION, STATE, generator=gen) * 0.4
        self.gen = gen

    def reset(self, count):
        return torch.randn(count, STATE, generator=self.gen)

    @torch.no_grad()
    def move(self, state, action):
        return torch.tanh(state @ self.drift + action @ self.drive)


def mlp(inside, hidden, outside):
    return nn.Sequential(
        nn.Linear(inside, hidden), nn.ReLU(inplace=True),
        nn.Linear(hidden, hidden), nn.ReLU(inplace=True),
        nn.Linear(hidden, outside),
    )


class Imagination(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(STATE + ACTION, 320, STATE)

    def forward(self, state, action):
        return state + self.net(torch.cat([state, action], -1))


class Gait(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(STATE, 64, ACTION)

    def forward(self, state):
        return self.net(state).tanh()


class Climber:
    def __init__(self, gen):
        self.body, self.gen = Body(gen), gen
        self.model, self.gait = Imagination(), Gait()
        self.model_opt = torch.optim.Adam(self.model.parameters(), lr=1e-3, fused=True)
        self.gait_opt = torch.optim.Adam(self.gait.parameters(), lr=3e-4, fused=True)

    def experience(self, count):
        state = self.body.reset(count)
        with torch.no_grad():
            noise = 0.3 * torch.randn(count, ACTION, generator=self.gen)
            action = self.gait(state) + noise
        return state, action, self.body.move(state, action)

    def learn_body(self, state, action, after):
        error = nn.functional.mse_loss(self.model(state, action), after)
        self.model_opt.zero_grad()
        error.backward()
        self.model_opt.step()
        return error.detach()

    def height(self, state):
        return state[:, :6].sum(1) - 0.1 * state[:, 6:12].square().sum(1)

    def learn_gait(self, state):
        gain = torch.zeros(len(state))
        for _ in range(AHEAD):
            state = self.model(state, self.gait(state))  # flaw: wasted-gradient
            gain = gain + self.height(state)
        self.gait_opt.zero_grad()
        gain.mean().neg().backward()  # flaw: wasted-gradient
        self.gait_opt.step()
        return gain.detach().mean()


def main():
    torch.manual_seed(9)
    climber = Climber(torch.Generator().manual_seed(9))
    for step in range(1, 401):
        seen = climber.experience(192)
        error = climber.learn_body(*seen)
        gain = climber.learn_gait(seen[0])
        if step % 80 == 0:
            print(f"step {step}: model error {error.item():.4f}, imagined climb {gain.item():.3f}")


if __name__ == "__main__":
    main()
