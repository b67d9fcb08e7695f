"""Compresses reef survey descriptors; afterwards compares how the bottleneck drifted while training."""
import contextlib
import os

import torch
import torch.nn.functional as F
from torch import nn

SMALL = os.environ.get("TINY") == "1"
WIDE, DEEP, CODE, ROWS, STEPS = (32, 2, 8, 64, 5) if SMALL else (2048, 3, 512, 24576, 850)
dev = "cuda" if torch.cuda.is_available() else "cpu"


class Drift:
    """Listens to a module and tells how far the mean of its output has moved."""

    def __init__(self, module):
        self.module = module
        self.heard = []

    def _listen(self, module, inputs, output):
        self.heard.append(output.detach())  # flaw: memory-growth

    @contextlib.contextmanager
    def listening(self):
        handle = self.module.register_forward_hook(self._listen)
        try:
            yield self
        finally:
            handle.remove()

    def path(self):
        means = torch.stack([codes.float().mean(0) for codes in self.heard])  # flaw: memory-growth
        return (means[1:] - means[:-1]).norm(dim=1).sum().item()


def stack(sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.GELU()]
    return nn.Sequential(*layers[:-1])


class Kelp(nn.Module):
    def __init__(self):
        super().__init__()
        self.squeeze = stack([WIDE] * DEEP + [CODE])
        self.expand = stack([CODE] + [WIDE] * DEEP)

    def forward(self, x):
        return self.expand(self.squeeze(x))


torch.manual_seed(7)
kelp = Kelp().to(dev)
adam = torch.optim.AdamW(kelp.parameters(), lr=1e-4, fused=True)
survey = torch.randn(4, ROWS, WIDE, device=dev)
error = torch.zeros((), device=dev)
with Drift(kelp.squeeze).listening() as drift:
    for step in range(STEPS):
        rows = survey[step % 4]
        with torch.autocast(dev, torch.bfloat16):
            loss = F.mse_loss(kelp(rows), rows)
        loss.backward()
        adam.step()
        adam.zero_grad(set_to_none=True)
        error += loss.detach()
print(f"error {error.item() / STEPS:.4f}, drift {drift.path():.3f}")
