"""Speech dereverberation: reverberant mixtures are made on the fly, a transformer restores the frames."""
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

GPU = torch.cuda.is_available()
CFG = dict(
    clip=32000 if GPU else 1600,
    rir=4000 if GPU else 100,
    hop=32,
    dim=512 if GPU else 32,
    depth=3 if GPU else 1,
    batch=48 if GPU else 2,
    steps=110 if GPU else 4,
    workers=14 if GPU else 0,
)


class ReverbMixtures(Dataset):
    """Clean clips from a bank of sources, convolved with a random room and mixed with noise."""

    def __init__(self, cfg, rooms=64, sources=96):
        rng = np.random.default_rng(1)
        self.clip = cfg["clip"]
        self.length = cfg["batch"] * cfg["steps"]
        carrier = np.cumsum(rng.uniform(0.02, 0.2, (sources, 1)) * np.ones((1, self.clip * 2)), axis=1)
        self.bank = (np.sin(carrier) * rng.uniform(0.3, 1.0, (sources, 1))).astype(np.float32)
        decay = np.exp(-np.arange(cfg["rir"]) / (0.2 * cfg["rir"]))
        self.rirs = (rng.standard_normal((rooms, cfg["rir"])) * decay).astype(np.float32)
        self.rirs /= np.linalg.norm(self.rirs, axis=1, keepdims=True)

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        start = rng.integers(0, self.clip)
        clean = self.bank[rng.integers(len(self.bank)), start : start + self.clip]
        rir = self.rirs[rng.integers(len(self.rirs))]
        n = 1 << (self.clip + len(rir) - 2).bit_length()
        wet = np.fft.irfft(np.fft.rfft(clean, n) * np.fft.rfft(rir, n), n)[: self.clip]
        noisy = wet + 0.02 * rng.standard_normal(self.clip, dtype=np.float32)
        return torch.from_numpy(noisy.astype(np.float32)), torch.from_numpy(clean)


class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.heads = max(1, dim // 64)
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, dim * 3)
        self.o = nn.Linear(dim, dim)
        self.ff = nn.Sequential(nn.Linear(dim, dim * 4), nn.GELU(), nn.Linear(dim * 4, dim))

    def forward(self, x):
        b, t, d = x.shape
        qkv = self.qkv(self.n1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2])
        x = x + self.o(y.transpose(1, 2).reshape(b, t, d))
        return x + self.ff(self.n2(x))


class Dereverb(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.hop = cfg["hop"]
        self.enc = nn.Linear(self.hop, cfg["dim"])
        self.pos = nn.Parameter(torch.zeros(cfg["clip"] // self.hop, cfg["dim"]))
        self.net = nn.Sequential(*[Layer(cfg["dim"]) for _ in range(cfg["depth"])])
        self.dec = nn.Linear(cfg["dim"], self.hop)

    def forward(self, wav):
        frames = wav.view(wav.shape[0], -1, self.hop)
        return self.dec(self.net(self.enc(frames) + self.pos)).flatten(1)


def train(cfg):
    device = torch.device("cuda" if GPU else "cpu")
    loader = DataLoader(
        ReverbMixtures(cfg),
        batch_size=cfg["batch"],
        num_workers=cfg["workers"],
        persistent_workers=cfg["workers"] > 0,
        pin_memory=GPU,
        drop_last=True,
    )
    model = Dereverb(cfg).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4, fused=GPU)
    avg = torch.zeros((), device=device)
    for i, (noisy, clean) in enumerate(loader, 1):
        noisy = noisy.to(device, non_blocking=True)
        clean = clean.to(device, non_blocking=True)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            out = model(noisy)
            loss = F.l1_loss(out, clean)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        avg.lerp_(loss.detach(), 0.1)
        if i % 50 == 0 or i == cfg["steps"]:
            print(f"[{i}/{cfg['steps']}] l1 {avg.item():.5f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    train(CFG)
