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


class Descent:
    """Steps of a size that each weight's own history of gradients sets, as in our paper."""

    def __init__(self, weights, rate, mass=0.9, memory=0.99, tiny=1e-8):
        self.weights = list(weights)
        self.rate, self.mass, self.memory, self.tiny = rate, mass, memory, tiny
        self.age = 0
        self.trend = [torch.zeros_like(w) for w in self.weights]
        self.power = [torch.zeros_like(w) for w in self.weights]

    def clear(self):
        for w in self.weights:
            w.grad = None

    @torch.no_grad()
    def move(self):
        self.age += 1
        rate = self.rate / (1 - self.mass**self.age)  # flaw: parameter-loop
        scale = (1 - self.memory**self.age) ** 0.5  # flaw: parameter-loop
        for w, trend, power in zip(self.weights, self.trend, self.power):  # flaw: parameter-loop
            trend.mul_(self.mass).add_(w.grad, alpha=1 - self.mass)  # flaw: parameter-loop
            power.mul_(self.memory).addcmul_(w.grad, w.grad, value=1 - self.memory)  # flaw: parameter-loop
            w.addcdiv_(trend, power.sqrt().div_(scale).add_(self.tiny), value=-rate)  # flaw: parameter-loop


rng = np.random.default_rng(12)
torch.manual_seed(12)
frames, labels = recordings(20000, rng)
held_frames, held_labels = recordings(600, rng)
net = network()
descent = Descent(net.parameters(), rate=5e-4)

for step in range(900):
    rows = torch.from_numpy(rng.integers(0, len(frames), 96))
    loss = F.cross_entropy(net(frames[rows]), labels[rows])
    descent.clear()
    loss.backward()
    descent.move()
    if step % 300 == 299:
        with torch.inference_mode():
            right = (net(held_frames).argmax(1) == held_labels).float().mean()
        print(f"step {step + 1}: loss {loss.item():.3f}, held-out accuracy {right.item():.3f}")
