"""Fit one large picture with a coordinate network on Fourier features, all pixels in every step."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
gpu = torch.cuda.is_available()
device = "cuda" if gpu else "cpu"
height, width = (768, 1024) if gpu else (16, 24)
mapping, hidden = (256, 256) if gpu else (16, 32)
steps = 400 if gpu else 4


class FourierFeatures(nn.Module):
    def __init__(self, inputs, size, scale=10.0):
        super().__init__()
        self.register_buffer("B", 2 * torch.pi * scale * torch.randn(inputs, size))

    def forward(self, coords):
        projected = coords @ self.B
        return torch.cat([projected.sin(), projected.cos()], dim=-1).to(torch.bfloat16)


class Field(nn.Module):
    def __init__(self, inputs, hidden, depth=4):
        super().__init__()
        layers = []
        for i in range(depth - 1):
            layers += [nn.Linear(inputs if i == 0 else hidden, hidden), nn.ReLU(inplace=True)]
        self.net = nn.Sequential(*layers, nn.Linear(hidden, 8))  # three colours, padded for the tensor cores

    def forward(self, features):
        return self.net(features)[..., :3].sigmoid()


def pixel_grid(height, width):
    ys = torch.linspace(-1, 1, height, device=device)
    xs = torch.linspace(-1, 1, width, device=device)
    return torch.stack(torch.meshgrid(ys, xs, indexing="ij"), dim=-1).view(-1, 2)


def make_picture(coords):
    waves = torch.randn(2, 24, device=device) * 12
    colours = torch.randn(24, 3, device=device) * 0.3
    return ((coords @ waves).sin() @ colours).sigmoid()


encoding = FourierFeatures(2, mapping).to(device)
field = Field(2 * mapping, hidden).to(device)
optimizer = torch.optim.Adam(field.parameters(), lr=1e-3, fused=gpu)
coords = pixel_grid(height, width)
picture = make_picture(coords)

for step in range(steps):
    features = encoding(coords)  # flaw: constant-rebuilt
    with torch.autocast(device, dtype=torch.bfloat16):
        colour = field(features)
    loss = F.mse_loss(colour.float(), picture)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if (step + 1) % 100 == 0:
        print(f"step {step + 1}: PSNR {-10 * torch.log10(loss.detach()).item():.2f} dB")

with torch.inference_mode(), torch.autocast(device, dtype=torch.bfloat16):
    result = field(encoding(coords)).float().view(height, width, 3)
print("final error", F.mse_loss(result, picture.view(height, width, 3)).item())
