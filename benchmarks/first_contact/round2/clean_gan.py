import torch
import torch.nn as nn
import torch.nn.functional as F

torch.backends.cudnn.benchmark = True
device = "cuda" if torch.cuda.is_available() else "cpu"


def up(i, o):
    return nn.Sequential(nn.ConvTranspose2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


def down(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 4, 2, 1), nn.LeakyReLU(0.2, inplace=True))


G = nn.Sequential(nn.Unflatten(1, (256, 4, 4)), up(256, 512), up(512, 256), up(256, 128), nn.ConvTranspose2d(128, 3, 4, 2, 1), nn.Tanh())
D = nn.Sequential(down(3, 128), down(128, 256), down(256, 512), nn.Conv2d(512, 1, 4, 2, 1), nn.Flatten())
G, D = (m.to(device, memory_format=torch.channels_last) for m in (G, D))
g_opt = torch.optim.Adam(G.parameters(), 2e-4, (0.5, 0.999), fused=True)
d_opt = torch.optim.Adam(D.parameters(), 2e-4, (0.5, 0.999), fused=True)
batch = 256
real = torch.rand(4, batch, 3, 64, 64, device=device).mul_(2).sub_(1)
real = [r.contiguous(memory_format=torch.channels_last) for r in real]


def d_step(x, fake):
    with torch.autocast(device, dtype=torch.bfloat16):
        a, b = D(x), D(fake.detach())
    loss = F.softplus(-a.float()).mean() + F.softplus(b.float()).mean()
    d_opt.zero_grad(set_to_none=True)
    loss.backward()
    d_opt.step()
    return loss.detach()


def g_step(fake):
    D.requires_grad_(False)
    with torch.autocast(device, dtype=torch.bfloat16):
        s = D(fake)
    loss = F.softplus(-s.float()).mean()
    g_opt.zero_grad(set_to_none=True)
    loss.backward()
    g_opt.step()
    D.requires_grad_(True)
    return loss.detach()


for i in range(400):
    with torch.autocast(device, dtype=torch.bfloat16):
        fake = G(torch.randn(batch, 4096, device=device))
    ld = d_step(real[i % 4], fake)
    lg = g_step(fake)
    if i % 100 == 0:
        print(i, ld.item(), lg.item())
