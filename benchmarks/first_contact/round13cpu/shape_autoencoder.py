# Convolutional autoencoder on procedurally drawn shapes, channels last, data drawn in bulk.
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(81)
SIDE, BATCH, STEPS, IMAGES = 64, 32, 380, 2048

grid = torch.linspace(-1, 1, SIDE)
yy, xx = torch.meshgrid(grid, grid, indexing="ij")


def draw(count):
    centre = torch.rand(count, 2, 1, 1) - 0.5
    size = 0.2 + 0.4 * torch.rand(count, 1, 1)
    dx, dy = xx - centre[:, 0], yy - centre[:, 1]
    disc = torch.sigmoid((size - torch.hypot(dx, dy)) * 20)
    box = torch.sigmoid((size - torch.maximum(dx.abs(), dy.abs())) * 20)
    pick = (torch.rand(count, 1, 1) < 0.5).float()
    image = torch.lerp(disc, box, pick).unsqueeze(1)
    colour = torch.rand(count, 3, 1, 1)
    return (image * colour).to(memory_format=torch.channels_last)


def down(cin, cout):
    return nn.Sequential(nn.Conv2d(cin, cout, 4, 2, 1), nn.LeakyReLU(0.1, inplace=True))


def up(cin, cout):
    return nn.Sequential(nn.ConvTranspose2d(cin, cout, 4, 2, 1), nn.LeakyReLU(0.1, inplace=True))


model = nn.Sequential(
    down(3, 24), down(24, 48), down(48, 64),
    up(64, 48), up(48, 24), nn.ConvTranspose2d(24, 3, 4, 2, 1),
).to(memory_format=torch.channels_last)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
images = draw(IMAGES)
total = torch.zeros(())

for step in range(STEPS):
    start = step * BATCH % IMAGES
    batch = images[start:start + BATCH]
    loss = F.mse_loss(torch.sigmoid(model(batch)), batch)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    total += loss.detach()

print("mean loss", round(float(total) / STEPS, 5))
