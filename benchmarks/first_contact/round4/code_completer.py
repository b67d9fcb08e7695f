import os
import torch
import torch.nn as nn
import torch.nn.functional as F

if os.environ.get("SMALL") == "1":
    V, D, L, H, T, B, N = 128, 32, 2, 2, 32, 4, 30
else:
    V, D, L, H, T, B, N = 8192, 1024, 8, 16, 1024, 10, 80

dev = "cuda" if torch.cuda.is_available() else "cpu"


class UnitScale(nn.Module):
    def __init__(self, n, tiny=1e-5):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(n))
        self.root = n ** 0.5
        self.tiny = tiny

    def forward(self, x):
        size = torch.linalg.vector_norm(x.float(), dim=-1, keepdim=True) / self.root  # flaw: hand-written-norm
        return (x.float() / (size + self.tiny) * self.gain).type_as(x)  # flaw: hand-written-norm


def attention(x, wqkv, wo):
    b, t, d = x.shape
    q, k, v = wqkv(x).view(b, t, 3, H, d // H).permute(2, 0, 3, 1, 4)
    return wo(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        lin = lambda i, o: nn.Linear(i, o, bias=False)
        self.emb = nn.Embedding(V, D)
        self.pos = nn.Embedding(T, D)
        self.norm_a = nn.ModuleList(UnitScale(D) for _ in range(L))
        self.norm_m = nn.ModuleList(UnitScale(D) for _ in range(L))
        self.wqkv = nn.ModuleList(lin(D, 3 * D) for _ in range(L))
        self.wo = nn.ModuleList(lin(D, D) for _ in range(L))
        self.w1 = nn.ModuleList(lin(D, 4 * D) for _ in range(L))
        self.w2 = nn.ModuleList(lin(4 * D, D) for _ in range(L))
        self.last = UnitScale(D)
        self.register_buffer("idx", torch.arange(T), persistent=False)
        nn.init.normal_(self.emb.weight, std=0.02)

    def forward(self, ids):
        x = self.emb(ids) + self.pos(self.idx)
        for i in range(L):
            x = x + attention(self.norm_a[i](x), self.wqkv[i], self.wo[i])
            x = x + self.w2[i](F.gelu(self.w1[i](self.norm_m[i](x))))
        return F.linear(self.last(x), self.emb.weight)


torch.manual_seed(0)
net = Net().to(dev)
opt = torch.optim.AdamW(net.parameters(), lr=3e-4, betas=(0.9, 0.95), fused=True)
warm = torch.optim.lr_scheduler.LinearLR(opt, 0.1, 1.0, total_iters=20)
files = torch.randint(V, (100_000,), device=dev)
reach = torch.arange(T + 1, device=dev)
for n in range(N):
    at = torch.randint(len(files) - T - 1, (B, 1), device=dev)
    ids = files[at + reach]
    with torch.autocast(dev, torch.bfloat16):
        loss = F.cross_entropy(net(ids[:, :-1]).view(-1, V), ids[:, 1:].reshape(-1))
    loss.backward()
    opt.step()
    opt.zero_grad()
    warm.step()
    if n % 20 == 0:
        print(n, loss.item())
