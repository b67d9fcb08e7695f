"""Decision Transformer: actions from (return-to-go, state, action) sequences of logged episodes."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
FULL = DEVICE.type == "cuda"
STATE, ACTION = 32, 8
CONTEXT = 256 if FULL else 8  # steps; three tokens each
HIDDEN, LAYERS, HEADS = (512, 8, 8) if FULL else (32, 2, 2)
BATCH, UPDATES = (32, 120) if FULL else (4, 6)


class CausalAttention(nn.Module):
    def __init__(self, dim, heads, length):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, dim, heads, length):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = CausalAttention(dim, heads, length)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class DecisionTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_return = nn.Linear(1, HIDDEN)
        self.embed_state = nn.Linear(STATE, HIDDEN)
        self.embed_action = nn.Linear(ACTION, HIDDEN)
        self.embed_time = nn.Embedding(CONTEXT, HIDDEN)
        self.norm_in, self.norm_out = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.blocks = nn.Sequential(*[Block(HIDDEN, HEADS, 3 * CONTEXT) for _ in range(LAYERS)])
        self.predict_action = nn.Linear(HIDDEN, ACTION)

    def forward(self, returns, states, actions):
        b, t, _ = states.shape
        tokens = torch.stack(
            [self.embed_return(returns), self.embed_state(states), self.embed_action(actions)], dim=2
        )
        tokens = tokens + self.embed_time.weight[:t, None]
        x = self.blocks(self.norm_in(tokens.reshape(b, 3 * t, HIDDEN)))
        return torch.tanh(self.predict_action(self.norm_out(x[:, 1::3])))


class TrajectoryStore:
    """Episodes of a linear controller, with returns-to-go, all on the device."""

    def __init__(self, episodes, length):
        g = torch.Generator(device=DEVICE).manual_seed(1)
        self.states = torch.randn(episodes, length, STATE, generator=g, device=DEVICE)
        gain = torch.randn(STATE, ACTION, generator=g, device=DEVICE) / STATE**0.5
        self.actions = torch.tanh(self.states @ gain)
        reward = -self.states.square().mean(-1)
        self.returns = reward.flip(1).cumsum(1).flip(1)[..., None] / length
        self.length = length
        self.steps = torch.arange(CONTEXT, device=DEVICE)

    def sample(self, batch):
        row = torch.randint(0, len(self.states), (batch, 1), device=DEVICE)
        col = torch.randint(0, self.length - CONTEXT, (batch, 1), device=DEVICE) + self.steps
        return self.returns[row, col], self.states[row, col], self.actions[row, col]


def train():
    store = TrajectoryStore(500 if FULL else 8, 1000 if FULL else 20)
    model = DecisionTransformer().to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=1e-4, fused=FULL)
    warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min((i + 1) / 50, 1.0))
    for update in range(UPDATES):
        returns, states, actions = store.sample(BATCH)
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16, enabled=FULL):
            predicted = model(returns, states, actions)
        loss = F.mse_loss(predicted.float(), actions)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        warmup.step()
        if update % 40 == 39:
            print(f"update {update + 1}: action error {loss.item():.5f}")
    print(f"final action error {loss.item():.5f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    train()
