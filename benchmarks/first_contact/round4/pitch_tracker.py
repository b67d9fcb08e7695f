import os

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

SMALL = os.environ.get("SMALL") == "1"
RATE, WIN, HOP, BINS = 16000, 512, 256, 128
PITCHES = 360
BATCH, SECONDS = (2, 0.5) if SMALL else (384, 4.0)
WIDTH, DEPTH = (16, 1) if SMALL else (256, 3)
STEPS = 30 if SMALL else 80
torch.set_float32_matmul_precision("high")


def triangles(low=50.0, high=7600.0):
    to_mel = lambda f: 2595 * np.log10(1 + f / 700)
    edges = 700 * (10 ** (np.linspace(to_mel(low), to_mel(high), BINS + 2) / 2595) - 1)
    freqs = np.fft.rfftfreq(WIN, 1 / RATE)[: WIN // 2]
    up = (freqs[:, None] - edges[:-2]) / (edges[1:-1] - edges[:-2])
    down = (edges[2:] - freqs[:, None]) / (edges[2:] - edges[1:-1])
    return np.maximum(0, np.minimum(up, down))


class MelFront(nn.Module):
    def __init__(self):
        super().__init__()
        n = np.arange(WIN)
        window = np.hanning(WIN)
        phase = 2 * np.pi * np.outer(n, np.arange(WIN // 2)) / WIN
        basis = np.concatenate([np.cos(phase), -np.sin(phase)], axis=1) * window[:, None]
        self.register_buffer("basis", torch.from_numpy(basis))  # flaw: float64-on-device
        self.register_buffer("mel", torch.from_numpy(triangles()))  # flaw: float64-on-device

    @torch.no_grad()
    def forward(self, wav):
        frames = wav.unfold(-1, WIN, HOP).to(self.basis.dtype)  # flaw: float64-on-device
        re, im = (frames @ self.basis).chunk(2, dim=-1)
        power = torch.addcmul(re.square(), im, im)
        return torch.log(power @ self.mel + 1e-6).float()


class PitchNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(BINS)
        self.enter = nn.Linear(BINS, WIDTH)
        self.body = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
            for _ in range(DEPTH))
        self.leave = nn.Linear(WIDTH, PITCHES)

    def forward(self, mel):
        x = self.enter(self.norm(mel))
        for part in self.body:
            x = x + part(x)
        return self.leave(x)


def voices(count, device):
    t = torch.arange(int(RATE * SECONDS), device=device) / RATE
    f0 = torch.rand(count, 1, device=device) * 500 + 60
    wav = torch.zeros(count, len(t), device=device)
    for h in (1, 2, 3):
        wav += torch.sin(2 * torch.pi * h * f0 * t) / h
    label = ((f0.squeeze(1) / 60).log2() * 100).long().clamp(0, PITCHES - 1)
    return wav, label


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    front, net = MelFront().to(device), PitchNet().to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    wav, label = voices(BATCH * 4, device)
    for step in range(STEPS):
        pick = torch.randint(len(wav), (BATCH,), device=device)
        mel = front(wav[pick])
        with torch.autocast(device.type, torch.bfloat16):
            scores = net(mel)
        target = label[pick, None].expand(-1, scores.shape[1])
        loss = F.cross_entropy(scores.float().flatten(0, 1), target.flatten())
        loss.backward()
        opt.step()
        opt.zero_grad()
        if step % 20 == 0:
            print(f"{step:3d}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
