# %% [markdown]
# Muon tomography of a pyramid: densities of voxels from the absorption along many paths (SIRT iterations).

# %%
import numpy as np
import torch

rng = np.random.default_rng(21)
DEPTH = 56
VOXELS = DEPTH * DEPTH
PATHS = 2200
EPOCHS = 24  # measuring campaigns, reconstructed together

# %% Lengths of the paths inside the voxels


def lengths_of(paths):
    ends = rng.uniform(0, DEPTH, (paths, 2))
    tilts = np.tan(rng.uniform(-1.1, 1.1, paths))
    table = np.zeros((paths, DEPTH, DEPTH))
    rows = np.arange(DEPTH)
    for number, (start, tilt) in enumerate(zip(ends[:, 0], tilts)):
        columns = start + tilt * (rows - DEPTH / 2)
        left = np.floor(columns).astype(int)
        inside = (left >= 0) & (left < DEPTH - 1)
        part = columns - np.floor(columns)
        table[number, rows[inside], left[inside]] = (1 - part[inside]) * np.hypot(1, tilt)
        table[number, rows[inside], left[inside] + 1] = part[inside] * np.hypot(1, tilt)
    return table.reshape(paths, VOXELS)


def pyramid(epochs):
    y, x = np.mgrid[:DEPTH, :DEPTH]
    stone = (np.abs(x - DEPTH / 2) < y / 2).astype(float) * 2.3
    scans = []
    for epoch in range(epochs):
        chamber = np.hypot(x - DEPTH / 2, y - DEPTH * 0.7) < 3 + 0.1 * epoch
        scans.append(np.where(chamber, 0.0, stone).ravel())
    return np.stack(scans, 1)


# %%
geometry = lengths_of(PATHS)
truth = pyramid(EPOCHS)
readings = geometry @ truth
readings += 0.05 * rng.standard_normal(readings.shape)

paths = torch.from_numpy(geometry).float()
measured = torch.from_numpy(readings).float()
per_path = 1 / paths.sum(1, keepdim=True).clamp_min(1e-3)
per_voxel = 1 / paths.sum(0)[:, None].clamp_min(1e-3)

# %% Iterations


def improve(density, relax):
    miss = measured - paths @ density
    density = density + relax * per_voxel * (paths.T @ (miss * per_path))
    return density.clamp_(min=0.0), miss


density = torch.zeros(VOXELS, EPOCHS, dtype=paths.dtype)
with torch.inference_mode():
    for iteration in range(600):
        density, miss = improve(density, 1.8)
        if iteration % 100 == 99:
            print(f"iteration {iteration + 1}: residual {miss.square().mean().sqrt():.4f}")

# %% Where is the chamber?
change = (density[:, 0] - density[:, -1]).view(DEPTH, DEPTH)
place = change.argmax().item()
print(f"chamber grows most near row {place // DEPTH}, column {place % DEPTH}")
print(f"mean density {density.mean():.3f}, true {truth.mean():.3f}")
