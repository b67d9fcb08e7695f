import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

try:
    import lightning.pytorch as pl
except ImportError:
    import pytorch_lightning as pl

SAMPLE_RATE = 16000
N_FFT, HOP, N_MELS = 400, 160, 128


def mel_filters():
    mel = np.linspace(0, 2595 * np.log10(1 + SAMPLE_RATE / 2 / 700), N_MELS + 2)
    hz = 700 * (10 ** (mel / 2595) - 1)
    freqs = np.linspace(0, SAMPLE_RATE / 2, N_FFT // 2 + 1)
    up = (freqs[None] - hz[:-2, None]) / np.diff(hz)[:-1, None]
    down = (hz[2:, None] - freqs[None]) / np.diff(hz)[1:, None]
    return torch.tensor(np.maximum(0, np.minimum(up, down)), dtype=torch.float32)


class ESC50(Dataset):
    """Environmental sounds: made-up clips, one class of 50 each."""

    def __init__(self, clips, seconds, seed=0):
        self.clips, self.seed = clips, seed
        self.samples = seconds * SAMPLE_RATE
        rng = np.random.default_rng(seed)
        self.noise = rng.standard_normal(self.samples * 4).astype(np.float32)
        self.labels = rng.integers(0, 50, clips)
        self.filters = mel_filters()
        self.window = torch.hann_window(N_FFT)

    def __len__(self):
        return self.clips

    def __getitem__(self, i):
        label = int(self.labels[i])
        start = int(torch.randint(3 * self.samples, ()))  # random shift of the recording
        wave = torch.from_numpy(self.noise[start : start + self.samples]) * (0.5 + label / 50)
        spectrum = torch.stft(wave, N_FFT, HOP, window=self.window, return_complex=True)
        fbank = (self.filters @ spectrum.abs().square()).clamp_min(1e-10).log()
        fbank = (fbank - fbank.mean()) / (2 * fbank.std())
        fbank = fbank[:, : self.samples // HOP].T.contiguous()
        at = int(torch.randint(fbank.shape[0] - 24, ()))
        fbank[at : at + 24] = 0  # SpecAugment
        return fbank, label


class ESC50DataModule(pl.LightningDataModule):
    def __init__(self, folds, clips_per_fold, seconds, batch_size, num_workers):
        super().__init__()
        self.save_hyperparameters()

    @property
    def frames(self):
        return self.hparams.seconds * SAMPLE_RATE // HOP

    def setup(self, stage=None):
        self.train_set = ESC50(self.hparams.folds * self.hparams.clips_per_fold, self.hparams.seconds)
        self.val_set = ESC50(self.hparams.clips_per_fold, self.hparams.seconds, seed=1)

    def _loader(self, dataset, **kwargs):
        return DataLoader(  # flaw: loader-workers-restart
            dataset,
            batch_size=self.hparams.batch_size,
            num_workers=self.hparams.num_workers,
            pin_memory=torch.cuda.is_available(),
            **kwargs,
        )

    def train_dataloader(self):
        return self._loader(self.train_set, shuffle=True, drop_last=True)

    def val_dataloader(self):
        return self._loader(self.val_set)
