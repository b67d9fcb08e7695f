"""Masked-token pre-training; a fixed number of positions is hidden in every row."""
import os
import torch
import torch.nn.functional as F
from torch import nn

if os.environ.get("SMALL") == "1":
    V, D, H, L, T, B, K, N = 60, 16, 2, 1, 16, 2, 3, 30
else:
    V, D, H, L, T, B, K, N = 32768, 512, 8, 6, 512, 24, 76, 80
MASK = 1
DEV = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def layer_parts(d):
    return nn.ModuleDict(dict(
        ln_a=nn.LayerNorm(d), qkv=nn.Linear(d, 3 * d), o=nn.Linear(d, d),
        ln_b=nn.LayerNorm(d), up=nn.Linear(d, 4 * d), down=nn.Linear(4 * d, d)))


def run_layer(p, x):
    b, t, d = x.shape
    q, k, v = p["qkv"](p["ln_a"](x)).view(b, t, 3, H, d // H).permute(2, 0, 3, 1, 4)
    a = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d)
    x = x + p["o"](a)
    return x + p["down"](F.gelu(p["up"](p["ln_b"](x))))


class MaskedModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(V, D)
        self.pos = nn.Parameter(torch.randn(T, D) * 0.02)
        self.layers = nn.ModuleList(layer_parts(D) for _ in range(L))
        self.ln = nn.LayerNorm(D)
        self.vocab = nn.Linear(D, V)

    def trunk(self, ids):
        x = self.emb(ids) + self.pos
        for p in self.layers:
            x = run_layer(p, x)
        return self.ln(x)

    def forward(self, ids, where):
        h = self.trunk(ids)
        scores = self.vocab(h)  # flaw: unused-logits
        return scores.gather(1, where.unsqueeze(-1).expand(-1, -1, scores.size(-1)))  # flaw: unused-logits


def hide(ids):
    where = torch.rand(ids.shape, device=ids.device).topk(K, dim=1).indices
    return ids.scatter(1, where, MASK), where, ids.gather(1, where)


def main():
    torch.manual_seed(0)
    net = MaskedModel().to(DEV)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-4, fused=True)
    text = torch.randint(2, V, (6, B, T), device=DEV)
    for n in range(N):
        ids, where, gold = hide(text[n % 6])
        with torch.autocast(DEV.type, torch.bfloat16):
            loss = F.cross_entropy(net(ids, where).flatten(0, 1), gold.flatten())
        loss.backward()
        opt.step()
        opt.zero_grad()
        if n % 25 == 0:
            print("update", n, "loss", loss.item())


if __name__ == "__main__":
    main()
