# fit a neural material (roughness, metalness, albedo, coat) to goniometer measurements
import os, math
import torch, torch.nn as nn, torch.nn.functional as F

T = os.environ.get("TINY") == "1"
dev = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_float32_matmul_precision("high")
N, W, D, ITERS, SHOW = (512, 32, 3, 60, 15) if T else (1 << 21, 256, 3, 2000, 100)
PI = math.pi


def dot(a, b):
    return (a * b).sum(-1, keepdim=True)


def facing(a, b):
    return dot(a, b).clamp(1e-3, 1.0)


@torch.compile
def shade(n, v, l, albedo, rough, metal, coat):
    h = v + l
    h = h * torch.rsqrt(dot(h, h) + 1e-8)
    nl, nv, nh, lh = facing(n, l), facing(n, v), facing(n, h), facing(l, h)
    a = rough * rough + 1e-3
    a2 = a * a
    ggx = a2 / (PI * (nh * nh * (a2 - 1) + 1) ** 2)
    vis = 0.5 / (nl * torch.sqrt(nv * nv * (1 - a2) + a2) + nv * torch.sqrt(nl * nl * (1 - a2) + a2))
    f0 = 0.04 * (1 - metal) + albedo * metal
    fres = f0 + (1 - f0) * (1 - lh) ** 5
    spec = ggx * vis * fres
    fd90 = 0.5 + 2 * lh * lh * rough
    fade = (1 + (fd90 - 1) * (1 - nl) ** 5) * (1 + (fd90 - 1) * (1 - nv) ** 5)
    diff = albedo / PI * fade * (1 - metal) * (1 - fres)
    cg = 0.02 / (PI * (nh * nh * (0.02 - 1) + 1) ** 2)
    lobe = coat * cg * (0.04 + 0.96 * (1 - lh) ** 5) / (4 * lh * lh)
    lit = (diff + spec) * (1 - coat * 0.04) + lobe
    return torch.log1p(lit * nl * 4)


class Material(nn.Module):
    def __init__(s, width, depth, feats=16):
        super().__init__()
        s.register_buffer("freq", torch.randn(2, feats) * 6)
        ws = [2 * feats] + [width] * depth
        s.net = nn.Sequential(*[m for i, o in zip(ws, ws[1:]) for m in (nn.Linear(i, o), nn.ReLU(inplace=True))],
                              nn.Linear(width, 8))

    def forward(s, uv):
        p = uv @ s.freq
        return s.net(torch.cat((p.sin(), p.cos()), -1))


def unit(g, k):
    d = F.normalize(torch.randn(k, 3, device=dev, generator=g), dim=-1)
    return torch.cat((d[:, :2], d[:, 2:].abs()), -1)


def measured(g):
    uv = torch.rand(N, 2, device=dev, generator=g)
    n = F.normalize(torch.cat((0.2 * torch.sin(9 * uv), torch.ones(N, 1, device=dev)), -1), dim=-1)
    v, l = unit(g, N), unit(g, N)
    s = 0.5 + 0.5 * torch.sin(uv @ torch.tensor([[11.0, 3, 7, 5, 2, 9], [4, 13, 1, 8, 6, 3]], device=dev))
    hue, r, m, c = s.split((3, 1, 1, 1), -1)
    return uv, n, v, l, shade(n, v, l, hue, r, m, c)


g = torch.Generator(dev).manual_seed(77)
torch.manual_seed(78)
with torch.no_grad():
    shots = [measured(g) for _ in range(4)]
mat = Material(W, D).to(dev)
opt = torch.optim.Adam(mat.parameters(), 1e-3, fused=True)
acc = torch.zeros((), device=dev)
for it in range(1, ITERS + 1):
    uv, n, v, l, seen = shots[it % len(shots)]
    with torch.autocast(dev, dtype=torch.bfloat16):
        raw = mat(uv)
    albedo, rough, metal, coat, _ = raw.float().sigmoid().split((3, 1, 1, 1, 2), -1)
    loss = F.l1_loss(shade(n, v, l, albedo, rough, metal, coat), seen)
    opt.zero_grad()
    loss.backward()
    opt.step()
    acc += loss.detach()
    if it % SHOW == 0:
        print(it, f"{acc.item() / SHOW:.5f}", flush=True)
        acc.zero_()
