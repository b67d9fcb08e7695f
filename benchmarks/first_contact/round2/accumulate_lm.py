"""Character LM, gradients accumulated over several micro-batches."""
import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
V, T, D, H, L = 512, 256, 512, 8, 10
MICRO, ACCUM = 24, 6


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.up, self.down = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, H, D // H).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, D))
        return x + self.down(F.gelu(self.up(self.n2(x))))


class CharLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(V, D)
        self.pos = nn.Parameter(torch.zeros(T, D))
        self.blocks = nn.Sequential(*[Block() for _ in range(L)])
        self.head = nn.Linear(D, V)

    def forward(self, idx):
        return self.head(self.blocks(self.tok(idx) + self.pos))


def prepare(n):
    out = []
    for _ in range(n):
        chunk = torch.randint(0, V, (MICRO, T + 1))
        out.append(chunk.pin_memory() if device == "cuda" else chunk)
    return out


def train():
    model = CharLM().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    pool = prepare(64)
    at = 0
    for step in range(400):
        opt.zero_grad(set_to_none=True)
        for _ in range(ACCUM):
            chunk = pool[at % len(pool)].to(device)  # flaw: blocking-host-copy
            at += 1
            with torch.autocast(device, dtype=torch.bfloat16):
                logits = model(chunk[:, :-1])
                loss = F.cross_entropy(logits.view(-1, V), chunk[:, 1:].reshape(-1)) / ACCUM
            loss.backward()
        opt.step()
        if step % 100 == 99:
            print(step, loss.item() * ACCUM)


if __name__ == "__main__":
    train()
