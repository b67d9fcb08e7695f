"""Deep Q-learning on a procedurally generated maze, with a replay memory."""

import random

import torch
import torch.nn.functional as F
from torch import nn

SIZE = 32
ACTIONS = 4
MOVES = torch.tensor([[0, 1], [1, 0], [0, -1], [-1, 0]])


class Maze:
    """A walker in a field of random walls; the observation is the field, centred on the walker."""

    def __init__(self, seed):
        generator = torch.Generator().manual_seed(seed)
        self.field = (torch.rand(SIZE, SIZE, generator=generator) < 0.2).float()
        self.goal = torch.tensor([SIZE // 2, SIZE // 2])
        self.reset()

    def reset(self):
        self.position = torch.tensor([1, 1])
        return self.observe()

    def observe(self):
        shift = (SIZE // 2 - self.position).tolist()
        return torch.roll(self.field, shift, dims=(0, 1)).flatten()

    def step(self, action):
        position = (self.position + MOVES[action]) % SIZE
        if self.field[position[0], position[1]] == 0:
            self.position = position
        done = bool((self.position == self.goal).all())
        reward = 1.0 if done else -0.01
        return (self.reset() if done else self.observe()), reward, done


class Memory:
    def __init__(self):
        self.states = torch.empty(0, SIZE * SIZE)  # flaw: cat-in-loop
        self.next_states = torch.empty(0, SIZE * SIZE)  # flaw: cat-in-loop
        self.actions = torch.empty(0, dtype=torch.long)  # flaw: cat-in-loop
        self.rewards = torch.empty(0)  # flaw: cat-in-loop
        self.dones = torch.empty(0)  # flaw: cat-in-loop

    def __len__(self):
        return len(self.actions)

    def push(self, state, action, reward, next_state, done):
        self.states = torch.cat([self.states, state[None]])  # flaw: cat-in-loop
        self.next_states = torch.cat([self.next_states, next_state[None]])  # flaw: cat-in-loop
        self.actions = torch.cat([self.actions, torch.tensor([action])])  # flaw: cat-in-loop
        self.rewards = torch.cat([self.rewards, torch.tensor([reward])])  # flaw: cat-in-loop
        self.dones = torch.cat([self.dones, torch.tensor([float(done)])])  # flaw: cat-in-loop

    def sample(self, batch_size):
        i = torch.randint(len(self), (batch_size,))
        return self.states[i], self.actions[i], self.rewards[i], self.next_states[i], self.dones[i]


def q_network():
    return nn.Sequential(nn.Linear(SIZE * SIZE, 192), nn.ReLU(), nn.Linear(192, ACTIONS))


def learn(online, target, optimizer, batch, gamma=0.97):
    states, actions, rewards, next_states, dones = batch
    with torch.no_grad():
        future = target(next_states).amax(1)
        wanted = rewards + gamma * (1 - dones) * future
    values = online(states).gather(1, actions[:, None]).squeeze(1)
    loss = F.smooth_l1_loss(values, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def main():
    random.seed(0)
    torch.manual_seed(0)
    env, memory = Maze(0), Memory()
    online, target = q_network(), q_network()
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.Adam(online.parameters(), lr=1e-3, fused=True)
    state, earned = env.reset(), 0.0
    for turn in range(500):
        epsilon = max(0.1, 1 - turn / 300)
        for _ in range(4):
            if random.random() < epsilon:
                action = random.randrange(ACTIONS)
            else:
                with torch.inference_mode():
                    action = int(online(state).argmax())
            next_state, reward, done = env.step(action)
            memory.push(state, action, reward, next_state, done)
            state, earned = next_state, earned + reward
        if len(memory) >= 256:
            learn(online, target, optimizer, memory.sample(256))
        if turn % 50 == 0:
            target.load_state_dict(online.state_dict())
    print(f"{len(memory)} transitions, earned {earned:.2f}")


if __name__ == "__main__":
    main()
