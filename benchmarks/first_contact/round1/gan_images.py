"""A generator and a discriminator play against each other on 64 x 64 pictures."""
import torch
import torch.nn as nn

torch.backends.cudnn.benchmark = True
device = "cuda" if torch.cuda.is_available() else "cpu"
Z, BATCH = 128, 256


def up(i, o):
    return nn.Sequential(nn.ConvTranspose2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


def down(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 4, 2, 1, bias=False), nn.BatchNorm2d(o), nn.LeakyReLU(0.2, inplace=True))


G = nn.Sequential(up(Z, 256), up(256, 256), up(256, 128), up(128, 64), nn.Conv2d(64, 3, 3, padding=1), nn.Tanh())
# one judgement for every pixel, as in pixel-wise discriminators
D = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.LeakyReLU(0.2, inplace=True), down(64, 128), up(128, 64), nn.Conv2d(64, 32, 1))
for net in (G, D):
    net.to(device, memory_format=torch.channels_last)

opt_g = torch.optim.Adam(G.parameters(), 2e-4, (0.5, 0.999), fused=True)
opt_d = torch.optim.Adam(D.parameters(), 2e-4, (0.5, 0.999), fused=True)
real = torch.rand(BATCH, 3, 64, 64, device=device).mul_(2).sub_(1).contiguous(memory_format=torch.channels_last)


def adversarial(score, truth):
    p = score.float().sigmoid().clamp(1e-7, 1 - 1e-7)  # flaw: hand-written-loss
    return -torch.mean(truth * p.log() + (1.0 - truth) * (1.0 - p).log())  # flaw: hand-written-loss


def noise():
    return torch.randn(BATCH, Z, 4, 4, device=device)


yes = torch.full((BATCH, 32, 64, 64), 0.9, device=device)
no = torch.zeros(BATCH, 32, 64, 64, device=device)
for i in range(300):
    opt_d.zero_grad()
    with torch.autocast(device, torch.bfloat16):
        with torch.no_grad():
            fake = G(noise())
        r, f = D(real), D(fake)
    (adversarial(r, yes) + adversarial(f, no)).backward()
    opt_d.step()

    opt_g.zero_grad()
    with torch.autocast(device, torch.bfloat16):
        f = D(G(noise()))
    adversarial(f, yes).backward()
    opt_g.step()
