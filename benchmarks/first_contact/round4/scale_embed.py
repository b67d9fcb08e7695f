"""Image embeddings trained on crops of changing scale."""
import os
import random
import torch
from torch import nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
random.seed(0)
torch.manual_seed(0)

if SMALL:
    BATCH, FULL, WIDTH, STEPS, SCALES = 2, 40, 8, 30, list(range(16, 40, 4))
else:
    BATCH, FULL, WIDTH, STEPS, SCALES = 128, 224, 48, 90, list(range(96, 224, 16))


@torch.compile(dynamic=False, backend="eager" if SMALL else "inductor")  # flaw: recompilation
def weather(x, fog, light, grain):
    x = x.float() / 255
    x = x * light + (1 - light) * x.square()
    x = torch.lerp(x, torch.ones_like(x), fog)
    x = x + 0.03 * torch.tanh(grain * 3) * (1 - x)
    return (x.clamp(0, 1) - 0.45) / 0.25


def conv(i, o, s=1):
    return nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class Embed(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.body = nn.Sequential(conv(3, w, 2), conv(w, 2 * w, 2), conv(2 * w, 2 * w), conv(2 * w, 4 * w, 2), conv(4 * w, 4 * w))
        self.head = nn.Linear(4 * w, 128)

    def forward(self, x):
        return F.normalize(self.head(self.body(x).mean((2, 3))).float(), dim=-1)


def crop(pool):
    side = random.choice(SCALES)  # flaw: recompilation
    y, x = random.randint(0, FULL - side), random.randint(0, FULL - side)
    start = random.randrange(0, len(pool) - BATCH + 1)
    return pool[start:start + BATCH, :, y:y + side, x:x + side]


def distort(x):
    shape = (len(x), 1, 1, 1)
    fog = torch.rand(shape, device=device) * 0.3
    light = torch.rand(shape, device=device) * 0.5 + 0.5
    return weather(x, fog, light, torch.randn(x.shape, device=device))


pool = torch.randint(0, 256, (BATCH * 3, 3, FULL, FULL), dtype=torch.uint8, device=device).to(memory_format=torch.channels_last)
net = Embed(WIDTH).to(device, memory_format=torch.channels_last)
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, fused=device.type == "cuda")
same = torch.arange(BATCH, device=device)
for step in range(STEPS):
    x = crop(pool)
    both = torch.cat((distort(x), distort(x))).contiguous(memory_format=torch.channels_last)
    with torch.autocast(device.type, torch.bfloat16):
        a, b = net(both).chunk(2)
    loss = F.cross_entropy(a @ b.t() / 0.1, same)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 30 == 0:
        print(step, loss.item())
