import torch
import torch.nn as nn
import torch.nn.functional as F

# Convolutional denoiser for autoencoder latents with a cosine schedule and averaged weights.

device = "cuda" if torch.cuda.is_available() else "cpu"
big = device == "cuda"
BATCH, SIDE, WIDTH, BLOCKS, STEPS = (128, 32, 256, 6, 200) if big else (2, 8, 16, 2, 3)

torch.manual_seed(0)
torch.backends.cudnn.benchmark = True
torch.set_float32_matmul_precision("high")


class Block(nn.Module):
    def __init__(self, c, t):
        super().__init__()
        self.conv1 = nn.Conv2d(c, c, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(c)
        self.conv2 = nn.Conv2d(c, c, 3, padding=1)
        self.time = nn.Linear(t, c)

    def forward(self, x, t):
        h = F.silu(self.norm(self.conv1(x)), inplace=True)
        return x + self.conv2(h + self.time(t)[:, :, None, None])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(1, 256), nn.SiLU(), nn.Linear(256, 256))
        self.stem = nn.Conv2d(4, WIDTH, 3, padding=1)
        self.blocks = nn.ModuleList([Block(WIDTH, 256) for _ in range(BLOCKS)])
        self.out = nn.Conv2d(WIDTH, 4, 3, padding=1)

    def forward(self, x, t):
        t = self.time(t[:, None])
        x = self.stem(x)
        for block in self.blocks:
            x = block(x, t)
        return self.out(x)


latents = torch.randn(BATCH * 16, 4, SIDE, SIDE, device=device).contiguous(memory_format=torch.channels_last)
net = Net().to(device, memory_format=torch.channels_last)
params = list(net.parameters())
average = [p.detach().clone() for p in params]
optimizer = torch.optim.AdamW(params, lr=1e-4, weight_decay=0.0, fused=True)
running = torch.ones((), device=device)

for step in range(STEPS):
    x0 = latents[torch.randint(0, len(latents), (BATCH,), device=device)]
    t = torch.rand(BATCH, device=device)
    angle = (t * torch.pi / 2).view(-1, 1, 1, 1)
    noise = torch.randn_like(x0)
    xt = torch.addcmul(angle.cos() * x0, angle.sin(), noise)
    with torch.autocast(device, dtype=torch.bfloat16):
        prediction = net(xt, t)
    loss = F.mse_loss(prediction.float(), noise)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        torch._foreach_lerp_(average, params, 0.001)
        running.lerp_(loss.detach(), 0.02)
    if step % 50 == 0:
        print(f"{step}: {running.item():.4f}")

drift = torch.stack(torch._foreach_norm(torch._foreach_sub(average, [p.detach() for p in params])))
print("distance of the averaged weights", drift.norm().item())
