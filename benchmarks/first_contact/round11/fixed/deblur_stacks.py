"""Deconvolution of fluorescence images by FISTA: Gaussian blur, total intensity penalty, positive result."""
import torch
import torch.nn.functional as F
from torch import nn

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")


class Blur(nn.Module):
    """Separable Gaussian, as shifts (the support is small)."""

    def __init__(self, sigma=1.1, radius=2):
        super().__init__()
        taps = torch.exp(-0.5 * (torch.arange(-radius, radius + 1) / sigma) ** 2)
        self.taps = (taps / taps.sum()).tolist()
        self.radius = radius

    def along(self, x, dim):
        total = self.taps[self.radius] * x
        for shift in range(1, self.radius + 1):
            both = x.roll(shift, dim) + x.roll(-shift, dim)
            total = total + self.taps[self.radius + shift] * both
        return total

    def forward(self, x):
        return self.along(self.along(x, 1), 2)


class Fista(nn.Module):
    """Accelerated proximal gradient; the extrapolation grows with the iteration."""

    def __init__(self, blur, penalty=0.002, step=0.9):
        super().__init__()
        self.blur, self.penalty, self.step = blur, penalty, step
        self.reset()

    def reset(self):
        self.done = torch.zeros((), device=DEVICE)

    def forward(self, guess, previous, measured):
        residual = self.blur(guess) - measured
        update = guess - self.step * self.blur(residual) - self.step * self.penalty
        new = F.relu(update)
        momentum = self.done / (self.done + 3)
        self.done += 1
        return new + momentum * (new - previous), new


class StackQueue:
    """Stacks of the microscope, already on the device: a few bright spots on a dim background."""

    def __init__(self, count, planes, side, device, seed=15):
        self.count = count
        gen = torch.Generator(device).manual_seed(seed)
        sharp = (torch.rand(2, planes, side, side, generator=gen, device=device) > 0.995).float()
        blur = Blur(sigma=1.1)
        self.stacks = [blur(s) + 0.01 * torch.rand(s.shape, generator=gen, device=device) for s in sharp]

    def __iter__(self):
        for i in range(self.count):
            yield i, self.stacks[i % len(self.stacks)]


class Pipeline:
    def __init__(self, iterations):
        self.iterations = iterations
        self.solver = Fista(Blur())
        if CUDA:
            self.solver.compile()

    @torch.no_grad()
    def restore(self, measured):
        self.solver.reset()
        guess, previous = measured.clone(), measured.clone()
        for _ in range(self.iterations):
            guess, previous = self.solver(guess, previous, measured)
        return previous

    def run(self, stacks):
        sharpness = []
        for _, measured in stacks:
            image = self.restore(measured)
            sharpness.append(image.square().mean() / image.mean().square())
        return torch.stack(sharpness).cpu()


def main():
    count, planes, side, iterations = (120, 8, 1024, 24) if CUDA else (3, 2, 64, 6)
    pipeline = Pipeline(iterations)
    values = pipeline.run(StackQueue(count, planes, side, DEVICE))
    print(f"{count} stacks, sharpness {values.mean().item():.3f} (first {values[0].item():.3f})")


if __name__ == "__main__":
    main()
