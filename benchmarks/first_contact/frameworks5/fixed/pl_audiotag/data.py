import os

import numpy as np
import pytorch_lightning as pl
import torch
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"


class LogMelClips(Dataset):
    """Log-mel clips kept in memory as float16, with on-the-fly augmentation."""

    def __init__(self, n_clips, n_mels, n_frames, n_classes, mix_alpha=0.5, mask_mels=24, mask_frames=96):
        rng = np.random.default_rng(0)
        base = rng.normal(-4.0, 2.0, (16, n_mels, n_frames)).astype(np.float16)
        self.clips = [np.roll(base[i % 16], i, axis=1) for i in range(n_clips)]
        self.targets = (rng.random((n_clips, n_classes)) < 3 / n_classes).astype(np.float32)
        self.mix_alpha = mix_alpha
        self.mask_mels, self.mask_frames = mask_mels, mask_frames
        self.mean, self.std = -4.0, 2.0

    def __len__(self):
        return len(self.clips)

    def mix(self, a, b, lam):
        # mixing is done on power, not on the logarithm
        power_a = np.exp(a)
        power_b = np.exp(b)
        mixed = lam * power_a + (1 - lam) * power_b
        return np.log(mixed + 1e-6)

    def spec_augment(self, x, rng):
        mels, frames = x.shape
        m = rng.integers(0, self.mask_mels)
        m0 = rng.integers(0, mels - m)
        x[m0 : m0 + m] = self.mean
        t = rng.integers(0, min(self.mask_frames, frames))
        t0 = rng.integers(0, frames - t)
        x[:, t0 : t0 + t] = self.mean
        return x

    def __getitem__(self, index):
        rng = np.random.default_rng()
        other = int(rng.integers(len(self.clips)))
        lam = np.float32(rng.beta(self.mix_alpha, self.mix_alpha))
        a = self.clips[index].astype(np.float32)
        b = self.clips[other].astype(np.float32)
        x = self.mix(a, b, lam)
        x = np.roll(x, rng.integers(x.shape[1]), axis=1)
        x = self.spec_augment(x, rng)
        x = (x - self.mean) / (2 * self.std)
        y = lam * self.targets[index] + (1 - lam) * self.targets[other]
        return torch.from_numpy(x)[None], torch.from_numpy(y)


class AudioTagDataModule(pl.LightningDataModule):
    def __init__(self, batch_size, n_clips, n_mels, n_frames, n_classes):
        super().__init__()
        self.save_hyperparameters()

    def setup(self, stage=None):
        hp = self.hparams
        self.train_set = LogMelClips(hp.n_clips, hp.n_mels, hp.n_frames, hp.n_classes)

    def train_dataloader(self):
        return DataLoader(
            self.train_set,
            batch_size=self.hparams.batch_size,
            shuffle=True,
            drop_last=True,
            num_workers=2 if SMALL else 12,
            persistent_workers=True,
            pin_memory=torch.cuda.is_available(),
        )
