"""Predicts notes; relative distances weigh the attention."""
import torch
import torch.nn.functional as F
from torch import nn


class Music(nn.Module):
    def __init__(self, notes=512, dim=512, heads=8, depth=4):
        super().__init__()
        self.heads = heads
        self.emb = nn.Embedding(notes, dim)
        self.qkv = nn.ModuleList(nn.Linear(dim, 3 * dim) for _ in range(depth))
        self.out = nn.ModuleList(nn.Linear(dim, dim) for _ in range(depth))
        self.ff = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim)) for _ in range(depth)
        )
        self.norm = nn.ModuleList(nn.LayerNorm(dim) for _ in range(depth))
        self.top = nn.Linear(dim, notes)

    def distances(self, n, like):
        steps = torch.arange(n)  # flaw: tensor-made-on-host
        gap = steps[None, :] - steps[:, None]  # flaw: tensor-made-on-host
        bias = torch.where(gap > 0, float("-inf"), gap * 0.02)  # flaw: tensor-made-on-host
        return bias.to(device=like.device, dtype=torch.bfloat16)  # flaw: tensor-made-on-host

    def forward(self, ids):
        b, n = ids.shape
        x = self.emb(ids)
        bias = self.distances(n, x)
        for qkv, out, ff, norm in zip(self.qkv, self.out, self.ff, self.norm):
            q, k, v = qkv(norm(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            a = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
            x = x + out(a.transpose(1, 2).flatten(2))
            x = x + ff(x)
        return self.top(x)


device = "cuda" if torch.cuda.is_available() else "cpu"
net = Music().to(device)
adam = torch.optim.AdamW(net.parameters(), 3e-4, fused=True)
songs = torch.randint(512, (16, 4, 2049), device=device)
for n in range(300):
    song = songs[n % 16]
    with torch.autocast(device, torch.bfloat16):
        loss = F.cross_entropy(net(song[:, :-1]).flatten(0, 1), song[:, 1:].flatten())
    adam.zero_grad()
    loss.backward()
    adam.step()
