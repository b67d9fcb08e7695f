"""Music source separation by spectral masking: residual MLP blocks over STFT magnitudes."""
import torch
import torch.nn.functional as F
from torch import nn


class Hyper:
    cuda = torch.cuda.is_available()
    n_fft = 2048 if cuda else 64
    hop = 512 if cuda else 16
    samples = 512 * 255 if cuda else 16 * 15
    batch = 64 if cuda else 2
    hidden = 4096 if cuda else 64
    blocks = 5 if cuda else 1
    sources = 2
    clips = 256 if cuda else 4
    steps = 160 if cuda else 4


class ResidualMLP(nn.Module):
    def __init__(self, bins, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(bins)
        self.up = nn.Linear(bins, hidden)  # flaw: misaligned-matmul
        self.down = nn.Linear(hidden, bins)  # flaw: misaligned-matmul

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class MaskNet(nn.Module):
    def __init__(self, hp):
        super().__init__()
        self.hp = hp
        self.bins = hp.n_fft // 2 + 1  # flaw: misaligned-matmul
        self.register_buffer("window", torch.hann_window(hp.n_fft))
        self.body = nn.Sequential(*[ResidualMLP(self.bins, hp.hidden) for _ in range(hp.blocks)])
        self.mask = nn.Linear(self.bins, self.bins * hp.sources)

    def magnitude(self, wav):
        spec = torch.stft(wav, self.hp.n_fft, self.hp.hop, window=self.window, return_complex=True)
        return spec.abs()[:, : self.bins].transpose(1, 2)

    def forward(self, mixture):
        mag = self.magnitude(mixture)
        h = self.body(torch.log1p(mag))
        mask = self.mask(h).view(*mag.shape[:2], self.hp.sources, self.bins).sigmoid()
        return mask * mag.unsqueeze(2)


class SyntheticStems:
    """Two stems per song, kept on the device; clips are drawn at random."""

    def __init__(self, hp, device):
        t = torch.arange(hp.samples * 2, device=device) / 16000.0
        pitch = torch.rand(hp.clips, 1, device=device) * 400 + 80
        self.tonal = torch.sin(2 * torch.pi * pitch * t)
        self.noise = torch.randn(hp.clips, hp.samples * 2, device=device) * 0.3
        self.hp = hp

    def draw(self, gen):
        song = torch.randint(self.hp.clips, (self.hp.batch,), device=self.noise.device)
        start = int(torch.randint(self.hp.samples, (1,), generator=gen))
        span = slice(start, start + self.hp.samples)
        return self.tonal[song, span], self.noise[song, span]


def main():
    hp = Hyper()
    device = torch.device("cuda" if hp.cuda else "cpu")
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    gen = torch.Generator().manual_seed(1)
    data = SyntheticStems(hp, device)
    model = MaskNet(hp).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=hp.cuda)

    for step in range(1, hp.steps + 1):
        with torch.no_grad():
            tonal, noise = data.draw(gen)
            target = torch.stack([model.magnitude(tonal), model.magnitude(noise)], dim=2)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            estimate = model(tonal + noise)
            loss = F.l1_loss(estimate, target)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        if step % 40 == 0 or step == hp.steps:
            print(f"step {step} l1 {loss.item():.4f}")


if __name__ == "__main__":
    main()
