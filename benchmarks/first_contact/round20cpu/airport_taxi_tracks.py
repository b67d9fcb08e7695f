"""Next position of taxiing aircraft from surface radar tracks (encoder in the manner of Megatron)."""
import math
import sys
from types import SimpleNamespace

import torch
import torch.nn as nn
import torch.nn.functional as F

args = SimpleNamespace(
    num_layers=2, hidden_size=64, heads=4, seq=320, micro_batch=6, train_iters=300,
    lr=6e-4, clip_grad=1.0, log_interval=50, seed=1234, features=6,
)


def print_rank_0(message):
    print(message, file=sys.stdout, flush=True)


class CoreAttention(nn.Module):
    """[b, s, h, d] x 3 -> [b, s, h * d]"""

    def __init__(self, head_dim):
        super().__init__()
        self.norm_factor = math.sqrt(head_dim)

    def forward(self, query, key, value):
        b, s, h, d = query.shape
        q = query.transpose(1, 2).reshape(b * h, s, d)  # flaw: hand-written-attention
        k = key.transpose(1, 2).reshape(b * h, s, d)  # flaw: hand-written-attention
        v = value.transpose(1, 2).reshape(b * h, s, d)  # flaw: hand-written-attention
        buffer = torch.empty(b * h, s, s, dtype=q.dtype)  # flaw: hand-written-attention
        scores = torch.baddbmm(buffer, q, k.transpose(1, 2), beta=0.0, alpha=1.0 / self.norm_factor)  # flaw: hand-written-attention
        probs = torch.softmax(scores, dim=-1)  # flaw: hand-written-attention
        context = torch.bmm(probs, v).view(b, h, s, d)  # flaw: hand-written-attention
        return context.transpose(1, 2).reshape(b, s, h * d)


class ParallelMLP(nn.Sequential):
    def __init__(self, hidden):
        super().__init__(nn.Linear(hidden, 2 * hidden), nn.GELU(), nn.Linear(2 * hidden, hidden))


class Layer(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.heads = a.heads
        self.input_layernorm = nn.LayerNorm(a.hidden_size)
        self.query_key_value = nn.Linear(a.hidden_size, 3 * a.hidden_size)
        self.core_attention = CoreAttention(a.hidden_size // a.heads)
        self.dense = nn.Linear(a.hidden_size, a.hidden_size)
        self.post_attention_layernorm = nn.LayerNorm(a.hidden_size)
        self.mlp = ParallelMLP(a.hidden_size)

    def forward(self, x):
        mixed = self.query_key_value(self.input_layernorm(x))
        q, k, v = mixed.view(*x.shape[:2], 3, self.heads, -1).unbind(2)
        x = x + self.dense(self.core_attention(q, k, v))
        return x + self.mlp(self.post_attention_layernorm(x))


class TrackEncoder(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.embed = nn.Linear(a.features, a.hidden_size)
        self.position = nn.Parameter(torch.randn(a.seq, a.hidden_size) * 0.02)
        self.layers = nn.ModuleList(Layer(a) for _ in range(a.num_layers))
        self.final_layernorm = nn.LayerNorm(a.hidden_size)
        self.out = nn.Linear(a.hidden_size, 2)

    def forward(self, tracks):
        x = self.embed(tracks) + self.position
        for layer in self.layers:
            x = layer(x)
        return self.out(self.final_layernorm(x).mean(1))


def tracks(a, generator):
    turn = torch.randn(a.micro_batch, a.seq + 1, generator=generator).cumsum(1) * 0.02
    speed = torch.rand(a.micro_batch, 1, generator=generator) * 0.02
    step = torch.stack([turn.cos(), turn.sin()], dim=-1) * speed.unsqueeze(-1)
    place = step.cumsum(1)
    noise = 0.01 * torch.randn(a.micro_batch, a.seq, 2, generator=generator)
    seen = torch.cat([place[:, :-1], step[:, :-1] * 20, noise], dim=-1)
    return seen, place[:, -1] - place[:, 0]


def train_step(model, optimizer, batch):
    seen, target = batch
    loss = F.mse_loss(model(seen), target)
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad)
    optimizer.step()
    return loss.item(), norm.item()


def pretrain():
    torch.manual_seed(args.seed)
    generator = torch.Generator().manual_seed(args.seed)
    model = TrackEncoder(args)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.95), fused=True)
    for iteration in range(1, args.train_iters + 1):
        loss, norm = train_step(model, optimizer, tracks(args, generator))
        if iteration % args.log_interval == 0:
            print_rank_0(f" iteration {iteration:6d}/{args.train_iters} | loss {loss:.4E} | grad norm {norm:.3f}")


if __name__ == "__main__":
    pretrain()
