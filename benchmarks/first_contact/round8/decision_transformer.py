"""Offline RL as sequence modelling (returns, states, actions), trained with Lion."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Lion(torch.optim.Optimizer):
    """Evolved sign momentum, https://arxiv.org/abs/2302.06675"""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["exp_avg"] = torch.zeros_like(p)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            lr, wd = group["lr"], group["weight_decay"]
            beta1, beta2 = group["betas"]
            for p in group["params"]:  # flaw: parameter-loop|per-tensor-optimizer
                grad = p.grad  # flaw: parameter-loop|per-tensor-optimizer
                exp_avg = self.state[p]["exp_avg"]  # flaw: parameter-loop|per-tensor-optimizer
                p.mul_(1 - lr * wd)  # flaw: parameter-loop|per-tensor-optimizer
                update = exp_avg.mul(beta1).add_(grad, alpha=1 - beta1).sign_()  # flaw: parameter-loop|per-tensor-optimizer
                p.add_(update, alpha=-lr)  # flaw: parameter-loop|per-tensor-optimizer
                exp_avg.mul_(beta2).add_(grad, alpha=1 - beta2)  # flaw: parameter-loop|per-tensor-optimizer


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln1 = nn.LayerNorm(dim)
        self.q = nn.Linear(dim, dim)
        self.k = nn.Linear(dim, dim)
        self.v = nn.Linear(dim, dim)
        self.proj = nn.Linear(dim, dim)
        self.ln2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        b, t, c = x.shape
        h = self.ln1(x)
        q, k, v = (f(h).view(b, t, self.heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.ln2(x))


class DecisionTransformer(nn.Module):
    def __init__(self, state_dim, act_dim, dim, heads, depth, horizon):
        super().__init__()
        self.embed_return = nn.Linear(1, dim)
        self.embed_state = nn.Linear(state_dim, dim)
        self.embed_action = nn.Linear(act_dim, dim)
        self.embed_time = nn.Embedding(horizon, dim)
        self.blocks = nn.ModuleList(Block(dim, heads) for _ in range(depth))
        self.ln = nn.LayerNorm(dim)
        self.predict_action = nn.Linear(dim, act_dim)

    def forward(self, returns, states, actions, times):
        t = self.embed_time(times)
        tokens = torch.stack(
            (self.embed_return(returns) + t, self.embed_state(states) + t, self.embed_action(actions) + t), 2
        ).flatten(1, 2)
        for block in self.blocks:
            tokens = block(tokens)
        return torch.tanh(self.predict_action(self.ln(tokens[:, 1::3])))


def main():
    gpu = torch.cuda.is_available()
    device = torch.device("cuda" if gpu else "cpu")
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    state_dim, act_dim, horizon = 17, 6, 1000
    dim, heads, depth = (512, 8, 24) if gpu else (32, 2, 3)
    episodes, batch, context, steps = (400, 128, 20, 160) if gpu else (8, 4, 6, 12)

    states = torch.randn(episodes, horizon, state_dim, device=device)
    actions = torch.tanh(states @ torch.randn(state_dim, act_dim, device=device) / 4)
    rewards = actions.square().sum(-1, keepdim=True).neg()
    returns = rewards.flip(1).cumsum(1).flip(1) / 1000
    window = torch.arange(context, device=device)

    model = DecisionTransformer(state_dim, act_dim, dim, heads, depth, horizon).to(device)
    optimizer = Lion(model.parameters(), lr=3e-5, weight_decay=0.1)

    for step in range(steps):
        episode = torch.randint(episodes, (batch, 1), device=device)
        times = torch.randint(horizon - context, (batch, 1), device=device) + window
        target = actions[episode, times]
        with torch.autocast(device.type, torch.bfloat16, enabled=gpu):
            predicted = model(returns[episode, times], states[episode, times], target, times)
            loss = F.mse_loss(predicted.float(), target)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            print(f"step {step}: loss {loss.item():.5f}")
    print(f"end: loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
