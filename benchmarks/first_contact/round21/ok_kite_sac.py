"""Soft actor-critic for tethered kites. Thousands of kites fly on the device, the replay memory is there too."""
import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

KITES, STATE, LINES = 4096, 128, 32
CAPACITY, BATCH, WIDTH, UPDATES = 131072, 16384, 2048, 1000
GAMMA, TAU, ENTROPY, RATE = 0.98, 0.005, 0.02, 1e-4

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
half = partial(torch.autocast, device.type, dtype=torch.bfloat16)


def mlp(inputs, outputs, depth=3):
    sizes = [inputs] + [WIDTH] * depth
    layers = [part for a, b in zip(sizes, sizes[1:]) for part in (nn.Linear(a, b), nn.ReLU(inplace=True))]
    return nn.Sequential(*layers, nn.Linear(WIDTH, outputs))


class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = mlp(STATE, 2 * LINES)

    def forward(self, state):
        mean, spread = self.net(state).float().chunk(2, dim=1)
        spread = spread.clamp(-5, 1)
        noise = torch.randn_like(mean)
        raw = mean + spread.exp() * noise
        action = raw.tanh()
        squash = 2 * (math.log(2) - raw - F.softplus(-2 * raw))
        logp = (-0.5 * noise.square() - spread - 0.5 * math.log(2 * math.pi) - squash).sum(1)
        return action, logp


class Critics(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = mlp(STATE + LINES, 8), mlp(STATE + LINES, 8)

    def forward(self, state, action):
        x = torch.cat([state, action.to(state.dtype)], dim=1)
        return self.one(x).float().mean(1), self.two(x).float().mean(1)


class Sky:
    def __init__(self, seed):
        g = torch.Generator().manual_seed(seed)
        self.drift = (torch.randn(STATE, STATE, generator=g) * 0.9 / STATE**0.5).to(device)
        self.pull = (torch.randn(LINES, STATE, generator=g) * 0.5 / LINES**0.5).to(device)
        self.state = torch.randn(KITES, STATE, generator=g).to(device)

    def step(self, action):
        before = self.state
        self.state = torch.tanh(torch.addmm(before @ self.drift, action, self.pull))
        reward = 1 - self.state.square().mean(1) - 0.01 * action.square().mean(1)
        return before, action, reward, self.state


class Replay:
    def __init__(self):
        shapes = (STATE,), (LINES,), (), (STATE,)
        self.parts = [torch.zeros(CAPACITY, *shape, device=device) for shape in shapes]
        self.at = self.filled = 0

    def store(self, *parts):
        for kept, new in zip(self.parts, parts):
            kept[self.at : self.at + KITES] = new
        self.at = (self.at + KITES) % CAPACITY
        self.filled = min(CAPACITY, self.filled + KITES)

    def sample(self):
        rows = torch.randint(self.filled, (BATCH,), device=device)
        return [part[rows] for part in self.parts]


def main(seed=14):
    torch.manual_seed(seed)
    torch.set_float32_matmul_precision("high")  # for the sky; the networks run in bfloat16
    sky, replay = Sky(seed), Replay()
    actor, critics, target = (net().to(device) for net in (Actor, Critics, Critics))
    target.load_state_dict(critics.state_dict())
    target.requires_grad_(False)
    slow, fast, policy = list(target.parameters()), list(critics.parameters()), list(actor.parameters())
    critic_optimizer = torch.optim.Adam(fast, lr=RATE, fused=True)
    actor_optimizer = torch.optim.Adam(policy, lr=RATE, fused=True)
    for update in range(1, UPDATES + 1):
        with torch.no_grad():
            with half():
                steering = actor(sky.state)[0]
            replay.store(*sky.step(steering))
        state, action, reward, after = replay.sample()

        with torch.no_grad(), half():
            next_action, next_logp = actor(after)
            wanted = reward + GAMMA * (torch.minimum(*target(after, next_action)) - ENTROPY * next_logp)
        with half():
            one, two = critics(state, action)
        critic_loss = F.mse_loss(one, wanted) + F.mse_loss(two, wanted)
        critic_optimizer.zero_grad()
        critic_loss.backward()
        critic_optimizer.step()

        with half():
            chosen, logp = actor(state)
            value = torch.minimum(*critics(state, chosen))
        actor_loss = (ENTROPY * logp - value).mean()
        actor_optimizer.zero_grad()
        actor_loss.backward(inputs=policy)
        actor_optimizer.step()

        with torch.no_grad():
            torch._foreach_lerp_(slow, fast, TAU)
        if update % 100 == 0:
            numbers = torch.stack([critic_loss, actor_loss, reward.mean()]).tolist()
            print(f"update {update}: " + ", ".join(f"{n} {x:.4f}" for n, x in zip(("critic", "actor", "reward"), numbers)))


if __name__ == "__main__":
    main()
