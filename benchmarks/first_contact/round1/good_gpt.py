"""A language model with fused attention, in bfloat16, data on the device."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, d))


class Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.att = Attention(dim, heads)
        self.ff = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.att(self.n1(x))
        return x + self.ff(self.n2(x))


def main(dim=1024, heads=16, depth=6, vocab=8192, length=1024, batch=16):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(nn.Embedding(vocab, dim), *[Block(dim, heads) for _ in range(depth)], nn.LayerNorm(dim), nn.Linear(dim, vocab, bias=False))
    model = torch.compile(model.to(device))
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    ids = torch.randint(vocab, (16, batch, length + 1), device=device)
    for step in range(300):
        with torch.autocast(device, torch.bfloat16):
            logits = model(ids[step % 16, :, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), ids[step % 16, :, 1:].flatten())
        loss.backward()
        opt.step()
        opt.zero_grad()
    print(loss.item())


main()
