import math
import torch as t
import torch.nn as nn
import torch.nn.functional as F

D, H, N, S, V = 512, 8, 2, 512, 2048
B = 24
dev = "cuda" if t.cuda.is_available() else "cpu"


def attn(q, k, v, m=None, p=0.0):
    w = q.matmul(k.transpose(-2, -1)) / math.sqrt(q.size(-1))  # flaw: hand-written-attention
    if m is not None:
        w = w.masked_fill(m == 0, -1e4)  # flaw: hand-written-attention
    w = F.dropout(F.softmax(w, -1), p)  # flaw: hand-written-attention
    return w.to(v.dtype) @ v  # flaw: hand-written-attention


class MHA(nn.Module):
    def __init__(z):
        super().__init__()
        z.l = nn.ModuleList(nn.Linear(D, D) for _ in range(4))

    def forward(z, q, k, v, m=None):
        n = q.size(0)
        q, k, v = [f(x).view(n, -1, H, D // H).transpose(1, 2) for f, x in zip(z.l, (q, k, v))]
        x = attn(q, k, v, m, 0.1 if z.training else 0.0)
        return z.l[-1](x.transpose(1, 2).reshape(n, -1, D))


def ff():
    return nn.Sequential(nn.Linear(D, 4 * D), nn.ReLU(), nn.Linear(4 * D, D))


class Enc(nn.Module):
    def __init__(z):
        super().__init__()
        z.a, z.f, z.n = MHA(), ff(), nn.ModuleList(nn.LayerNorm(D) for _ in range(2))

    def forward(z, x):
        h = z.n[0](x)
        x = x + z.a(h, h, h)
        return x + z.f(z.n[1](x))


class Dec(nn.Module):
    def __init__(z):
        super().__init__()
        z.a, z.c, z.f, z.n = MHA(), MHA(), ff(), nn.ModuleList(nn.LayerNorm(D) for _ in range(3))

    def forward(z, x, e, m):
        h = z.n[0](x)
        x = x + z.a(h, h, h, m)
        x = x + z.c(z.n[1](x), e, e)
        return x + z.f(z.n[2](x))


class Net(nn.Module):
    def __init__(z):
        super().__init__()
        z.s, z.t = nn.Embedding(V, D), nn.Embedding(V, D)
        z.e, z.d = nn.ModuleList(Enc() for _ in range(N)), nn.ModuleList(Dec() for _ in range(N))
        z.g = nn.Linear(D, V)
        z.register_buffer("m", t.ones(S, S, dtype=t.bool).tril())

    def forward(z, a, b):
        x, y = z.s(a), z.t(b)
        for l in z.e:
            x = l(x)
        for l in z.d:
            y = l(y, x, z.m)
        return z.g(y)


net = Net().to(dev)
o = t.optim.Adam(net.parameters(), 3e-4, betas=(0.9, 0.98), fused=True)
a = t.randint(0, V, (4, B, S), device=dev)
b = t.randint(0, V, (4, B, S + 1), device=dev)
for i in range(400):
    with t.autocast(dev, dtype=t.bfloat16):
        y = net(a[i % 4], b[i % 4, :, :-1])
        l = F.cross_entropy(y.flatten(0, 1), b[i % 4, :, 1:].flatten())
    o.zero_grad(set_to_none=True)
    l.backward()
    o.step()
    if i % 100 == 0:
        print(i, l.item())
