"""Detecting foghorn blasts in harbour recordings: a deep residual network over spectral frames."""
import numpy as np
import torch
import torch.nn.functional as F

FRAMES, BINS, CLASSES = 9, 40, 5


def recordings(count, rng):
    """Frames of a log spectrum with the harmonics of one of four horns, or none."""
    label = rng.integers(0, CLASSES, count)
    bins = np.arange(BINS)
    frames = rng.standard_normal((count, FRAMES, BINS)) * 2.5
    for kind in range(1, CLASSES):
        shape = np.cos(bins * 2 * np.pi / (3 + 1.7 * kind)).clip(0) ** 2
        rows = np.flatnonzero(label == kind)
        swell = np.sin(np.linspace(0.3, 2.8, FRAMES))[:, None]
        frames[rows] += rng.uniform(0.5, 1.2, (len(rows), 1, 1)) * swell * shape
    return torch.from_numpy(frames.astype(np.float32)).flatten(1), torch.from_numpy(label)


class Residual(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.a = torch.nn.Linear(width, width)
        self.b = torch.nn.Linear(width, width)

    def forward(self, x):
        return x + self.b(F.relu(self.a(self.norm(x))))


def network(width=64, depth=20):
    return torch.nn.Sequential(
        torch.nn.Linear(FRAMES * BINS, width),
        *(Residual(width) for _ in range(depth)),
        torch.nn.LayerNorm(width),
        torch.nn.Linear(width, CLASSES),
    )


rng = np.random.default_rng(12)
torch.manual_seed(12)
frames, labels = recordings(20000, rng)
held_frames, held_labels = recordings(600, rng)
net = network()
descent = torch.optim.Adam(net.parameters(), lr=5e-4, betas=(0.9, 0.99), fused=True)

for step in range(900):
    rows = torch.from_numpy(rng.integers(0, len(frames), 96))
    loss = F.cross_entropy(net(frames[rows]), labels[rows])
    descent.zero_grad()
    loss.backward()
    descent.step()
    if step % 300 == 299:
        with torch.inference_mode():
            right = (net(held_frames).argmax(1) == held_labels).float().mean()
        print(f"step {step + 1}: loss {loss.item():.3f}, held-out accuracy {right.item():.3f}")
