import torch, torch.nn as nn, torch.nn.functional as F

dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
B, T, V, D = 32, 512, 4096, 768


def random_mask(shape, ratio, device):
    keep = torch.rand(shape)  # flaw: tensor-made-on-host
    order = keep.argsort(-1)
    cut = int(shape[-1] * ratio)
    mask = torch.zeros(shape, dtype=torch.bool)  # flaw: tensor-made-on-host
    mask.scatter_(-1, order[..., :cut], True)
    return mask.to(device)  # flaw: tensor-made-on-host


class Layer(nn.Module):
    def __init__(s):
        super().__init__()
        s.a, s.b = nn.LayerNorm(D), nn.LayerNorm(D)
        s.qkv, s.o = nn.Linear(D, 3 * D, bias=False), nn.Linear(D, D, bias=False)
        s.f = nn.Sequential(nn.Linear(D, 4 * D), nn.GELU(), nn.Linear(4 * D, D))

    def forward(s, x):
        q, k, v = s.qkv(s.a(x)).unflatten(-1, (3, 12, D // 12)).permute(2, 0, 3, 1, 4)
        x = x + s.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + s.f(s.b(x))


class Encoder(nn.Module):
    def __init__(s):
        super().__init__()
        s.e, s.p = nn.Embedding(V, D), nn.Parameter(torch.zeros(1, T, D))
        s.l = nn.Sequential(*(Layer() for _ in range(4)))
        s.h = nn.Linear(D, V)

    def forward(s, x):
        return s.h(s.l(s.e(x) + s.p))


net = Encoder().to(dev)
opt = torch.optim.AdamW(net.parameters(), 3e-4, fused=True)
corpus = torch.randint(1, V, (2048, T), device=dev)
for i in range(400):
    x = corpus[torch.randint(0, 2048, (B,), device=dev)]
    m = random_mask((B, T), 0.15, dev)
    y = x.masked_fill(~m, -100)
    with torch.autocast(dev.type, torch.bfloat16):
        loss = F.cross_entropy(net(x.masked_fill(m, 0)).flatten(0, 1), y.flatten(), ignore_index=-100)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if i % 100 == 0: print(i, loss.item())
