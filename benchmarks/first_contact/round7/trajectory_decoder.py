"""Behaviour cloning for a manipulator: a causal transformer over observation and action tokens."""

import torch
from torch import nn
from torch.nn import functional as F

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"


class Hyper:
    observation, action = 96, 14
    steps_per_episode = 1536 if CUDA else 8
    dim = 768 if CUDA else 32
    heads = 12 if CUDA else 2
    depth = 4 if CUDA else 2
    batch = 6 if CUDA else 2
    episodes = 96 if CUDA else 4
    iterations = 120 if CUDA else 3
    lr = 2e-4


class CausalBlock(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.heads = h.heads
        self.norm1, self.norm2 = nn.LayerNorm(h.dim), nn.LayerNorm(h.dim)
        self.qkv, self.proj = nn.Linear(h.dim, 3 * h.dim), nn.Linear(h.dim, h.dim)
        self.mlp = nn.Sequential(nn.Linear(h.dim, 4 * h.dim), nn.GELU(), nn.Linear(4 * h.dim, h.dim))
        length = 2 * h.steps_per_episode
        self.register_buffer("mask", torch.tril(torch.ones(length, length, dtype=torch.bool)), persistent=False)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask[:n, :n])  # flaw: slow-attention-kernel
        x = x + self.proj(y.transpose(1, 2).reshape(b, n, d))
        return x + self.mlp(self.norm2(x))


class Policy(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.see = nn.Linear(h.observation, h.dim)
        self.act = nn.Linear(h.action, h.dim)
        self.when = nn.Embedding(h.steps_per_episode, h.dim)
        self.blocks = nn.Sequential(*[CausalBlock(h) for _ in range(h.depth)])
        self.norm = nn.LayerNorm(h.dim)
        self.head = nn.Linear(h.dim, h.action)

    def forward(self, observations, actions):
        b, t, _ = observations.shape
        tokens = torch.stack((self.see(observations), self.act(actions)), dim=2) + self.when.weight[:t, None]
        x = self.blocks(tokens.flatten(1, 2))
        return self.head(self.norm(x[:, 0::2]))


class Cloning:
    def __init__(self, h):
        self.h = h
        self.observations = torch.randn(h.episodes, h.steps_per_episode, h.observation, device=DEVICE)
        self.actions = torch.tanh(self.observations[..., : h.action] + 0.1 * self.observations[..., -h.action :])
        self.policy = Policy(h).to(DEVICE)
        self.optimizer = torch.optim.AdamW(self.policy.parameters(), lr=h.lr, weight_decay=0.01, fused=True)

    def iterate(self):
        pick = torch.randint(0, self.h.episodes, (self.h.batch,), device=DEVICE)
        observations, actions = self.observations[pick], self.actions[pick]
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            predicted = self.policy(observations, actions)
        loss = F.smooth_l1_loss(predicted.float(), actions)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def run(self):
        for i in range(self.h.iterations):
            loss = self.iterate()
            if i % 30 == 0:
                print(f"iteration {i} loss {loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    Cloning(Hyper).run()
