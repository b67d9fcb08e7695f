"""Speaker identification from raw waves with an energy contour as a side input."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CUDA = torch.cuda.is_available()
HP = dict(
    seconds=4.0 if CUDA else 0.2,
    rate=16_000,
    hop=80,
    frame=400,
    speakers=512 if CUDA else 8,
    batch=64 if CUDA else 4,
    steps=130 if CUDA else 3,
    dim=768 if CUDA else 32,
    layers=4 if CUDA else 1,
    workers=14 if CUDA else 0,
)


class Utterances(Dataset):
    """Cuts utterances from a long recording, sets a random gain and returns (frames, energies, speaker)."""

    def __init__(self, hp):
        self.hp = hp
        self.length = int(hp["seconds"] * hp["rate"])
        rng = np.random.default_rng(0)
        self.recording = rng.standard_normal(40 * self.length, dtype=np.float32) * 0.1

    def __len__(self):
        return self.hp["batch"] * self.hp["steps"]

    def __getitem__(self, index):
        hp = self.hp
        rng = np.random.default_rng(index)
        begin = int(rng.integers(0, 39 * self.length))
        wave = self.recording[begin:begin + self.length] * np.float32(rng.uniform(0.3, 3.0))
        frames = np.lib.stride_tricks.sliding_window_view(wave, hp["frame"])[::hp["hop"]]
        power = np.einsum("ij,ij->i", frames, frames) / hp["frame"]
        energy = np.log(power + 1e-6)
        energy = (energy - energy.mean()) / (energy.std() + 1e-5)
        speaker = begin * hp["speakers"] // (39 * self.length)
        return torch.from_numpy(wave), torch.from_numpy(energy.astype(np.float32)), speaker


class Layer(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.heads = max(1, d // 64)
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.out(y.transpose(1, 2).reshape(b, n, d))
        return x + self.mlp(self.norm2(x))


class SpeakerNet(nn.Module):
    def __init__(self, hp):
        super().__init__()
        self.frame, self.hop = hp["frame"], 2 * hp["hop"]
        d = hp["dim"]
        self.front = nn.Linear(self.frame, d)
        self.energy = nn.Linear(2, d)
        self.layers = nn.ModuleList(Layer(d) for _ in range(hp["layers"]))
        self.norm = nn.LayerNorm(d)
        self.head = nn.Linear(d, hp["speakers"])

    def forward(self, wave, energy):
        frames = wave.unfold(1, self.frame, self.hop)
        n = frames.shape[1]
        contour = energy[:, :2 * n].unflatten(1, (-1, 2))
        x = self.front(frames[:, :contour.shape[1]]) + self.energy(contour)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x).mean(1))


class Fitter:
    def __init__(self, hp):
        self.hp = hp
        self.device = torch.device("cuda" if CUDA else "cpu")
        torch.manual_seed(0)
        self.model = SpeakerNet(hp).to(self.device)
        if CUDA:
            for layer in self.model.layers:
                layer.compile()
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)
        self.loss_sum = torch.zeros((), device=self.device)

    def loader(self):
        workers = self.hp["workers"]
        return DataLoader(Utterances(self.hp), self.hp["batch"], num_workers=workers, pin_memory=CUDA,
                          drop_last=True, prefetch_factor=4 if workers else None)

    def training_step(self, batch):
        wave, energy, speaker = (t.to(self.device, non_blocking=True) for t in batch)
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            loss = nn.functional.cross_entropy(self.model(wave, energy), speaker)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.loss_sum += loss.detach()

    def fit(self):
        for step, batch in enumerate(self.loader(), 1):
            self.training_step(batch)
            if step % 60 == 0:
                print(step, round(self.loss_sum.item() / step, 4))
        return self.loss_sum.item() / step


if __name__ == "__main__":
    print(f"mean loss {Fitter(HP).fit():.4f}")
