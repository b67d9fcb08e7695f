import numpy as np
import torch
from torch.utils.data import Dataset


class LatentShards(Dataset):
    """Latents of an image VAE (mean and standard deviation), float16, as a cache on disk would hold them."""

    scaling_factor = 0.18215

    def __init__(self, count, side, num_classes, shard=2048, seed=0):
        rng = np.random.default_rng(seed)
        kept = min(count, shard)
        self.mean = rng.standard_normal((kept, 4, side, side), dtype=np.float32).astype(np.float16)
        self.std = np.abs(rng.standard_normal((kept, 4, side, side), dtype=np.float32)).astype(np.float16) * np.float16(0.1)
        self.labels = rng.integers(0, num_classes, count)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        row = i % len(self.mean)
        mean = torch.from_numpy(self.mean[row]).float()
        std = torch.from_numpy(self.std[row]).float()
        latent = (mean + std * torch.randn_like(mean)) * self.scaling_factor
        return latent, int(self.labels[i])
