"""Instruction tuning with LoRA adapters on a frozen bfloat16 decoder."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

cuda = torch.cuda.is_available()
device = torch.device("cuda" if cuda else "cpu")
base_dtype = torch.bfloat16 if cuda else torch.float32


class LoRALinear(nn.Module):
    """y = x W^T + (alpha / r) x A B, where only A and B learn."""

    def __init__(self, fan_in, fan_out, rank=16, alpha=32):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(fan_out, fan_in), requires_grad=False)
        nn.init.normal_(self.weight, std=fan_in**-0.5)
        self.lora_a = nn.Parameter(torch.randn(rank, fan_in) / rank)
        self.lora_b = nn.Parameter(torch.zeros(fan_out, rank))
        self.scaling = alpha / rank

    def forward(self, x):
        y = F.linear(x, self.weight)
        return y.add(F.linear(F.linear(x, self.lora_a), self.lora_b), alpha=self.scaling)


def frozen_linear(fan_in, fan_out):
    layer = nn.Linear(fan_in, fan_out, bias=False)
    layer.weight.requires_grad_(False)
    return layer


class DecoderBlock(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(dim).requires_grad_(False)
        self.norm2 = nn.LayerNorm(dim).requires_grad_(False)
        self.q_proj, self.v_proj = LoRALinear(dim, dim), LoRALinear(dim, dim)
        self.k_proj, self.o_proj = frozen_linear(dim, dim), frozen_linear(dim, dim)
        self.up, self.down = frozen_linear(dim, 4 * dim), frozen_linear(4 * dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        h = self.norm1(x)
        q, k, v = (
            proj(h).view(b, t, self.heads, d // self.heads).transpose(1, 2)
            for proj in (self.q_proj, self.k_proj, self.v_proj)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o_proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Decoder(nn.Module):
    def __init__(self, vocab, dim, heads, depth, window):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim).requires_grad_(False)
        self.place = nn.Embedding(window, dim).requires_grad_(False)
        self.blocks = nn.ModuleList(DecoderBlock(dim, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(dim).requires_grad_(False)
        self.head = frozen_linear(dim, vocab)

    def forward(self, ids):
        x = self.embed(ids) + self.place.weight[: ids.size(1)]
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)  # flaw: needless-checkpointing
        return self.head(self.norm(x))


def instruction_batches(steps, batch, window, vocab):
    """Packed (ids, targets); the prompt's half of each window does not count for the loss."""
    pool = torch.randint(3, vocab, (steps * batch // 4 + batch, window + 1), device=device)
    for step in range(steps):
        at = (step * batch) % (len(pool) - batch)
        rows = pool[at : at + batch]
        targets = rows[:, 1:].clone()
        targets[:, : window // 4] = -100
        yield rows[:, :-1], targets


def main():
    torch.manual_seed(7)
    vocab, dim, heads, depth, window = (32000, 2048, 16, 8, 1024) if cuda else (256, 32, 2, 2, 32)
    steps, batch = (90, 8) if cuda else (5, 2)
    with device:
        model = Decoder(vocab, dim, heads, depth, window).to(base_dtype)
    adapters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(adapters, lr=2e-4, weight_decay=0.0, fused=cuda)
    print(f"{sum(p.numel() for p in adapters) / 1e6:.2f}M trainable parameters")

    running = torch.zeros((), device=device)
    for step, (ids, targets) in enumerate(instruction_batches(steps, batch, window, vocab), 1):
        logits = model(ids)
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        running += loss.detach()
    print(f"mean loss {running.item() / steps:.4f}")


if __name__ == "__main__":
    main()
