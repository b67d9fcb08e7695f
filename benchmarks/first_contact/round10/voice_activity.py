"""Frame-level voice activity detection on noisy mixtures that are made on the fly."""

import math

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

gpu = torch.cuda.is_available()

hp = dict(
    sample_rate=16000 if gpu else 800,
    seconds=4,
    hop=160 if gpu else 8,
    n_fft=512 if gpu else 32,
    width=768 if gpu else 16,
    layers=3,
    batch=96 if gpu else 4,
    steps=90 if gpu else 5,
    lr=1e-3,
)


class NoisyMixtures(IterableDataset):
    """Speech-like bursts over babble at a random signal-to-noise ratio."""

    def __init__(self, hp, seed=0):
        self.hp = hp
        self.seed = seed
        self.samples = hp["sample_rate"] * hp["seconds"]
        rng = np.random.default_rng(seed)
        self.noise = rng.standard_normal(self.samples * 6, dtype=np.float32)

    def mixture(self, rng):
        frames = self.samples // self.hp["hop"]
        active = np.repeat(rng.random(math.ceil(frames / 40)) < 0.5, 40)[:frames]
        gate = np.repeat(active, self.hp["hop"]).astype(np.float32)
        t = np.arange(self.samples, dtype=np.float32) / self.hp["sample_rate"]
        speech = np.sin(2 * np.pi * rng.uniform(90, 250) * t) * gate
        start = rng.integers(len(self.noise) - self.samples)
        noise = self.noise[start : start + self.samples]
        snr = 10 ** (rng.uniform(-5, 15) / 20)
        return (snr * speech + noise).astype(np.float32), active.astype(np.float32)

    def __iter__(self):
        info = get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        for number in range(worker, self.hp["batch"] * self.hp["steps"], workers):
            wave, label = self.mixture(np.random.default_rng((self.seed, number)))
            yield torch.from_numpy(wave), torch.from_numpy(label)


class VAD(nn.Module):
    def __init__(self, hp):
        super().__init__()
        self.hp = hp
        self.register_buffer("window", torch.hann_window(hp["n_fft"]))
        self.project = nn.Linear(hp["n_fft"] // 2, hp["width"])
        self.rnn = nn.GRU(
            hp["width"], hp["width"], hp["layers"], batch_first=True, bidirectional=True
        )
        self.out = nn.Linear(2 * hp["width"], 1)

    def features(self, wave):
        spec = torch.stft(
            wave, self.hp["n_fft"], self.hp["hop"], window=self.window, return_complex=True
        )
        return torch.log1p(spec.abs())[:, 1:, 1:].transpose(1, 2)

    def forward(self, wave):
        with torch.autocast(wave.device.type, enabled=False):
            x = self.features(wave)
        x, _ = self.rnn(self.project(x))
        return self.out(x).squeeze(-1)


def build_loader(hp):
    dataset = NoisyMixtures(hp)
    return DataLoader(dataset, batch_size=hp["batch"], pin_memory=gpu)  # flaw: loader-without-workers


def run(hp):
    device = "cuda" if gpu else "cpu"
    model = VAD(hp).to(device)
    loss_fn = nn.BCEWithLogitsLoss()
    opt = torch.optim.Adam(model.parameters(), lr=hp["lr"], fused=True)
    for step, (wave, label) in enumerate(build_loader(hp)):
        wave = wave.to(device, non_blocking=True)
        label = label.to(device, non_blocking=True)
        with torch.autocast(device, dtype=torch.bfloat16):
            logits = model(wave)
        loss = loss_fn(logits.float(), label)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        if step % 25 == 0:
            print(f"[{step}] bce={loss.item():.4f}")
    print(f"final bce={loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    run(hp)
