"""Direct preference optimisation of a policy against a frozen reference."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
FULL = DEVICE.type == "cuda"
BETA = 0.1


class Mixer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.pre = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, dim * 3, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)
        self.mid = nn.LayerNorm(dim)
        self.fc = nn.Linear(dim, dim * 4)
        self.back = nn.Linear(dim * 4, dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.pre(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, d))
        return x + self.back(F.gelu(self.fc(self.mid(x))))


class Policy(nn.Module):
    def __init__(self, vocab, dim, depth, heads, length):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(torch.randn(length, dim) * 0.01)
        self.blocks = nn.ModuleList(Mixer(dim, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)

    def sequence_logp(self, ids, answer_mask):
        x = self.embed(ids[:, :-1]) + self.pos
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        nll = F.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none")
        return -(nll * answer_mask).sum(-1)


class DPOTrainer:
    def __init__(self, policy, reference, lr):
        self.policy = policy
        self.reference = reference.eval().requires_grad_(False)
        self.opt = torch.optim.AdamW(policy.parameters(), lr=lr, fused=FULL)

    def loss(self, chosen, rejected, mask):
        both = torch.cat([chosen, rejected])
        masks = torch.cat([mask, mask])
        with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
            with torch.no_grad():
                ref_c, ref_r = self.reference.sequence_logp(both, masks).chunk(2)
            pol_c, pol_r = self.policy.sequence_logp(both, masks).chunk(2)
        margin = (pol_c - ref_c) - (pol_r - ref_r)
        return -F.logsigmoid(BETA * margin).mean(), margin.detach().mean()

    def step(self, chosen, rejected, mask):
        loss, margin = self.loss(chosen, rejected, mask)
        loss.backward()
        self.opt.step()
        self.opt.zero_grad(set_to_none=True)
        if FULL:
            torch.cuda.empty_cache()  # flaw: cache-emptied-in-step
        return loss.detach(), margin


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    vocab, dim, depth, heads, length = (16384, 768, 6, 12, 512) if FULL else (128, 32, 2, 2, 16)
    pairs, steps = (12, 100) if FULL else (2, 4)
    policy = Policy(vocab, dim, depth, heads, length).to(DEVICE)
    trainer = DPOTrainer(policy, copy.deepcopy(policy), lr=1e-5)
    chosen = torch.randint(vocab, (32, pairs, length + 1), device=DEVICE)
    rejected = torch.randint(vocab, (32, pairs, length + 1), device=DEVICE)
    mask = (torch.arange(length, device=DEVICE) >= length // 3).float().expand(pairs, -1)
    for step in range(steps):
        i = step % 32
        loss, margin = trainer.step(chosen[i], rejected[i], mask)
        if step % 25 == 0:
            print(f"{step} loss {loss.item():.4f} margin {margin.item():.4f}")
    print(f"final {loss.item():.4f}")


if __name__ == "__main__":
    main()
