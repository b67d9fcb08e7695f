# sequence model over residues, heads named as in the einsum papers
import torch
from torch import nn, einsum

device = "cuda" if torch.cuda.is_available() else "cpu"


class Attend(nn.Module):
    def __init__(self, dim, heads=12, dim_head=64):
        super().__init__()
        self.heads, self.scale = heads, dim_head ** -0.5
        inner = heads * dim_head
        self.norm = nn.LayerNorm(dim)
        self.to_q = nn.Linear(dim, inner, bias=False)
        self.to_kv = nn.Linear(dim, inner * 2, bias=False)
        self.to_out = nn.Linear(inner, dim)

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x):
        x = self.norm(x)
        q, (k, v) = self.to_q(x), self.to_kv(x).chunk(2, dim=-1)
        q, k, v = map(self.split, (q, k, v))
        sim = einsum("b h i d, b h j d -> b h i j", q, k) * self.scale  # flaw: hand-written-attention
        attn = sim.softmax(dim=-1)  # flaw: hand-written-attention
        out = einsum("b h i j, b h j d -> b h i d", attn.to(v.dtype), v)  # flaw: hand-written-attention
        return self.to_out(out.transpose(1, 2).flatten(2))


class Residues(nn.Module):
    def __init__(self, dim=768, depth=4, kinds=32):
        super().__init__()
        self.embed = nn.Embedding(kinds, dim)
        self.layers = nn.ModuleList([])
        for _ in range(depth):
            ff = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, dim * 4), nn.GELU(), nn.Linear(dim * 4, dim))
            self.layers.append(nn.ModuleList([Attend(dim), ff]))
        self.to_logits = nn.Linear(dim, kinds)

    def forward(self, x):
        x = self.embed(x)
        for attn, ff in self.layers:
            x = attn(x) + x
            x = ff(x) + x
        return self.to_logits(x)


model = Residues().to(device)
optim = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
batch = 8
chains = torch.randint(0, 32, (256, 1024), device=device)

for i in range(400):
    seq = chains[torch.randint(0, 256, (batch,), device=device)]
    with torch.autocast(device, dtype=torch.bfloat16):
        logits = model(seq)
        loss = nn.functional.cross_entropy(logits.transpose(1, 2), seq.roll(1, 1))
    optim.zero_grad(set_to_none=True)
    loss.backward()
    optim.step()
    if i % 100 == 0:
        print(i, loss.item())
