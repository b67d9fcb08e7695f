import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class RMS(nn.RMSNorm):
    pass


class DecoderLayer(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.ln1, self.ln2 = RMS(d), RMS(d)
        self.wqkv = nn.Linear(d, 3 * d, bias=False)
        self.wo = nn.Linear(d, d, bias=False)
        self.w1 = nn.Linear(d, 4 * d, bias=False)
        self.w2 = nn.Linear(4 * d, d, bias=False)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (z.view(B, T, self.h, -1).transpose(1, 2) for z in self.wqkv(self.ln1(x)).chunk(3, -1))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.wo(a.transpose(1, 2).reshape(B, T, C))
        return x + self.w2(F.silu(self.w1(self.ln2(x))))


class TinyLlama(nn.Module):
    def __init__(self, vocab, d, h, n):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.layers = nn.ModuleList([DecoderLayer(d, h) for _ in range(n)])
        self.norm = RMS(d)
        self.lm_head = nn.Linear(d, vocab, bias=False)

    def forward(self, ids, labels):
        x = self.emb(ids)
        for layer in self.layers:
            x = layer(x)
        logits = self.lm_head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def parse():
    ap = argparse.ArgumentParser()
    ap.add_argument("--dim", type=int, default=1024)
    ap.add_argument("--heads", type=int, default=16)
    ap.add_argument("--layers", type=int, default=4)
    ap.add_argument("--batch", type=int, default=8)
    ap.add_argument("--seq", type=int, default=512)
    ap.add_argument("--vocab", type=int, default=4096)
    ap.add_argument("--steps", type=int, default=400)
    return ap.parse_args()


def main():
    a = parse()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(1337)
    model = TinyLlama(a.vocab, a.dim, a.heads, a.layers).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), fused=True)
    tokens = torch.randint(0, a.vocab, (1024, a.seq + 1), device=device)
    for step in range(a.steps):
        rows = tokens[torch.randint(0, len(tokens), (a.batch,), device=device)]
        loss = model(rows[:, :-1], rows[:, 1:])  # flaw: fp32-matmul
        loss.backward()  # flaw: fp32-matmul
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 100 == 0:
            print(f"step {step}: {loss.item():.3f}")


if __name__ == "__main__":
    main()
