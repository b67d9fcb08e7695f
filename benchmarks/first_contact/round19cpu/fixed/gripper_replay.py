"""TD3-like learning of a gripper's closing force from a replay of short episodes, with hooks around each update."""
import torch
from torch import nn
import torch.nn.functional as F

STATE, ACTION, WIDTH, BATCH = 24, 4, 256, 256


class Hook:
    def before(self, agent):
        pass

    def after(self, agent, losses):
        pass


class Report(Hook):
    def __init__(self, every):
        self.every, self.number = every, 0

    def after(self, agent, losses):
        self.number += 1
        if self.number % self.every == 0:
            print(f"update {self.number:4d}  critic {losses[0]:.4f}  actor {losses[1]:.4f}", flush=True)


class Episodes(Hook):
    """Adds an episode now and then and forgets the oldest one."""

    def __init__(self, memory, every):
        self.memory, self.every, self.number = memory, every, 0

    def before(self, agent):
        self.number += 1
        if self.number % self.every == 0:
            self.memory.add(rollout(agent.actor))


class Memory:
    def __init__(self, most):
        self.most, self.episodes, self.stacked = most, [], None

    def add(self, episode):
        self.episodes.append(episode)
        del self.episodes[: -self.most]
        self.stacked = None

    def sample(self, count):
        if self.stacked is None:
            self.stacked = [torch.cat(parts) for parts in zip(*self.episodes)]
        rows = torch.randint(len(self.stacked[0]), (count,))
        return [part[rows] for part in self.stacked]


@torch.no_grad()
def rollout(actor, objects=64, length=10):
    """Objects of random stiffness slip less the better the force fits; all are gripped at once."""
    state = torch.randn(objects, STATE)
    stiff = state[:, :ACTION].tanh()
    rows = []
    for _ in range(length):
        force = (actor(state) + 0.1 * torch.randn(objects, ACTION)).clamp(-1, 1)
        reward = -(force - stiff).square().sum(1)
        after = state + 0.05 * torch.randn_like(state)
        after[:, ACTION : 2 * ACTION] = force
        rows.append((state, force, reward, after))
        state = after
    return tuple(torch.cat(parts) for parts in zip(*rows))


def mlp(inputs, outputs, *end):
    return nn.Sequential(nn.Linear(inputs, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(),
                         nn.Linear(WIDTH, outputs), *end)


class Agent:
    def __init__(self):
        self.actor = mlp(STATE, ACTION, nn.Tanh())
        self.critic, self.target = mlp(STATE + ACTION, 1), mlp(STATE + ACTION, 1).requires_grad_(False)
        self.target.load_state_dict(self.critic.state_dict())
        self.pairs = list(self.target.parameters()), list(self.critic.parameters())
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=3e-4, fused=True)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=1e-3, fused=True)

    def update(self, state, action, reward, after):
        with torch.no_grad():
            future = self.target(torch.cat([after, self.actor(after)], 1))[:, 0]
            wanted = reward + 0.9 * future
        critic_loss = F.mse_loss(self.critic(torch.cat([state, action], 1))[:, 0], wanted)
        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()
        self.critic.requires_grad_(False)
        actor_loss = -self.critic(torch.cat([state, self.actor(state)], 1)).mean()
        self.actor_opt.zero_grad()
        actor_loss.backward()
        self.actor_opt.step()
        self.critic.requires_grad_(True)
        torch._foreach_lerp_(*self.pairs, 0.005)
        return critic_loss.detach(), actor_loss.detach()


def learn(updates):
    torch.manual_seed(2)
    agent, memory = Agent(), Memory(most=40)
    for _ in range(20):
        memory.add(rollout(agent.actor))
    hooks = [Episodes(memory, every=10), Report(every=150)]
    for _ in range(updates):
        for hook in hooks:
            hook.before(agent)
        losses = agent.update(*memory.sample(BATCH))
        for hook in hooks:
            hook.after(agent, losses)
    episode = rollout(agent.actor)
    print(f"mean reward of a last episode {episode[2].mean():.4f}")


if __name__ == "__main__":
    learn(1100)
