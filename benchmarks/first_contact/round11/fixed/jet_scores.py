"""Score a stored sample of jets with a particle-flow (deep sets) tagger.

The constituents of all jets lie in one flat table on the device; a jet is a range of its rows.
"""
import time

import numpy as np
import torch
from torch import nn

ON_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if ON_GPU else "cpu")
DTYPE = torch.bfloat16
N_JETS, PER_BATCH, WIDTH = (245_760, 2048, 768) if ON_GPU else (384, 32, 32)
N_FEATURES, N_CLASSES, LONGEST = 16, 8, 400


class ParticleFlow(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.phi = nn.Sequential(
            nn.Linear(N_FEATURES, width), nn.ReLU(inplace=True),
            nn.Linear(width, width), nn.ReLU(inplace=True),
            nn.Linear(width, width), nn.ReLU(inplace=True),
        )
        self.rho = nn.Sequential(nn.Linear(width, 256), nn.ReLU(inplace=True), nn.Linear(256, N_CLASSES))

    def forward(self, particles, mask):
        latent = self.phi(particles)
        pooled = torch.bmm(mask.to(latent.dtype).unsqueeze(1), latent).squeeze(1)
        return self.rho(pooled / 32.0)


def simulate_sample(seed):
    """Returns the flat table (last row: zeros) and, per jet, the first row and the number of rows."""
    rng = np.random.default_rng(seed)
    counts = np.clip(rng.lognormal(np.log(110.0), 0.5, N_JETS), 6, LONGEST).astype(np.int64)
    starts = np.cumsum(counts) - counts
    gen = torch.Generator(DEVICE).manual_seed(seed)
    table = torch.randn(int(counts.sum()) + 1, N_FEATURES, generator=gen, device=DEVICE, dtype=DTYPE)
    table[-1] = 0
    return table, starts, counts


def plan(counts):
    """Splits the jets into batches: their order, and the number of slots per jet in each batch."""
    order = np.argsort(counts, kind="stable")
    slots = []
    for lo in range(0, len(order), PER_BATCH):
        longest = int(counts[order[lo:lo + PER_BATCH]].max())
        slots.append(-(-longest // 8) * 8)
    return order, slots


def to_dense(table, first, count, positions):
    mask = positions < count[:, None]
    rows = torch.where(mask, first[:, None] + positions, len(table) - 1)
    return table[rows], mask


@torch.inference_mode()
def score_all(model, table, starts, counts):
    order, slots = plan(counts)
    order = torch.from_numpy(order).to(DEVICE)
    first = torch.from_numpy(starts).to(DEVICE)[order]
    count = torch.from_numpy(counts).to(DEVICE)[order]
    positions = torch.arange(LONGEST, device=DEVICE)
    scores = torch.empty(len(order), N_CLASSES, device=DEVICE, dtype=DTYPE)
    for i, n_slots in enumerate(slots):
        part = slice(i * PER_BATCH, (i + 1) * PER_BATCH)
        particles, mask = to_dense(table, first[part], count[part], positions[:n_slots])
        scores[part] = model(particles, mask)
    result = torch.empty_like(scores)
    result[order] = scores
    return result


def main():
    torch.manual_seed(11)
    table, starts, counts = simulate_sample(5)
    model = ParticleFlow(WIDTH).to(DEVICE, DTYPE).eval()
    began = time.perf_counter()
    probabilities = score_all(model, table, starts, counts).float().softmax(1)
    top = probabilities[:, 0].mean().item()
    took = time.perf_counter() - began
    print(f"jets={N_JETS} mean p(top)={top:.4f} p(jet 7)={probabilities[7, 0].item():.3f}"
          f" spread={probabilities[:, 0].std().item():.4f}")
    if ON_GPU:
        print(f"{took * 1000 / -(-N_JETS // PER_BATCH):.2f} ms per batch")


if __name__ == "__main__":
    main()
