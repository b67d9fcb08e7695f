# semantic labels for lidar sweeps: voxel tokens, global attention
import os
import torch, torch.nn as nn, torch.nn.functional as F

small = bool(os.environ.get('SMALL'))
B, N, D, H, L = (2, 32, 32, 2, 1) if small else (8, 1024, 512, 8, 5)
n_iter = 30 if small else 90
dev = 'cuda' if torch.cuda.is_available() else 'cpu'


class Mixing(nn.Module):
    def __init__(s, d, h):
        super().__init__()
        s.h, s.scale = h, (d // h) ** -.5
        s.qkv = nn.Linear(d, d * 3, bias=False)
        s.o = nn.Linear(d, d)

    def forward(s, x):
        q, k, v = s.qkv(x).unflatten(-1, (3, s.h, -1)).unbind(2)
        e = torch.einsum('bihc,bjhc->bhij', q * s.scale, k)  # flaw: hand-written-attention
        w = (e - e.logsumexp(-1, keepdim=True)).exp()  # flaw: hand-written-attention
        y = torch.einsum('bhij,bjhc->bihc', w, v)  # flaw: hand-written-attention
        return s.o(y.flatten(2))


class Layer(nn.Module):
    def __init__(s, d, h):
        super().__init__()
        s.a, s.b = nn.LayerNorm(d), nn.LayerNorm(d)
        s.mix = Mixing(d, h)
        s.ff = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(s, x):
        x = x + s.mix(s.a(x))
        return x + s.ff(s.b(x))


class Sweep(nn.Module):
    def __init__(s):
        super().__init__()
        # 32 voxel statistics in, 24 classes out
        s.enc = nn.Sequential(nn.Linear(32, D), nn.GELU(), nn.Linear(D, D))
        s.layers = nn.Sequential(*[Layer(D, H) for _ in range(L)])
        s.cls = nn.Linear(D, 24)

    def forward(s, x):
        return s.cls(s.layers(s.enc(x)))


def sweeps(n):
    feats = torch.randn(n, N, 32, device=dev)
    labels = (feats[..., :24].argmax(-1))
    return feats, labels


feats, labels = sweeps(B * 16)
net = Sweep().to(dev)
opt = torch.optim.AdamW(net.parameters(), lr=5e-4, fused=dev == 'cuda')
sch = torch.optim.lr_scheduler.OneCycleLR(opt, 1e-3, total_steps=n_iter)
for i in range(n_iter):
    j = torch.randint(len(feats), (B,), device=dev)
    with torch.autocast(dev, dtype=torch.bfloat16):
        logits = net(feats[j])
    loss = F.cross_entropy(logits.flatten(0, 1).float(), labels[j].flatten())
    loss.backward()
    opt.step(); sch.step()
    opt.zero_grad()
    if i % 30 == 0:
        print(i, loss.item())
