"""Speech enhancement: predict a magnitude mask over the STFT bins with a residual MLP over frames."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_float32_matmul_precision("high")
CUDA = torch.cuda.is_available()
DEV = torch.device("cuda" if CUDA else "cpu")

CFG = {
    "n_fft": 2048 if CUDA else 64,
    "hop": 512 if CUDA else 16,
    "context": 3,
    "blocks": 8 if CUDA else 2,
    "batch": 256 if CUDA else 2,
    "samples": 65024 if CUDA else 1024,
    "steps": 150 if CUDA else 4,
    "lr": 5e-4,
}


class Spectrogram(nn.Module):
    def __init__(self, n_fft, hop, n_bins):
        super().__init__()
        self.n_fft, self.hop, self.n_bins = n_fft, hop, n_bins
        self.register_buffer("window", torch.hann_window(n_fft))

    @torch.no_grad()
    def forward(self, wave):
        spec = torch.stft(wave, self.n_fft, self.hop, window=self.window, return_complex=True)
        return spec[:, : self.n_bins].abs().transpose(1, 2).contiguous()


class ResidualBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, width)
        self.fc2 = nn.Linear(width, width)

    def forward(self, x):
        return x + self.fc2(F.gelu(self.fc1(self.norm(x))))


class MaskNet(nn.Module):
    def __init__(self, n_bins, blocks):
        super().__init__()
        self.inp = nn.Linear(n_bins, n_bins)
        self.blocks = nn.ModuleList(ResidualBlock(n_bins) for _ in range(blocks))
        self.out = nn.Linear(n_bins, n_bins)

    def forward(self, mag):
        h = self.inp(torch.log1p(mag))
        for block in self.blocks:
            h = block(h)
        return torch.sigmoid(self.out(h))


def main():
    torch.manual_seed(0)
    n_bins = CFG["n_fft"] // 2
    front = Spectrogram(CFG["n_fft"], CFG["hop"], n_bins).to(DEV)
    model = MaskNet(n_bins, CFG["blocks"]).to(DEV)
    optimizer = torch.optim.AdamW(model.parameters(), lr=CFG["lr"], fused=CUDA)

    clean = torch.randn(1024 if CUDA else 8, CFG["samples"], device=DEV)
    clean = clean.cumsum(1).diff(dim=1, n=2) * 0.2
    noise = torch.randn_like(clean)

    for step in range(CFG["steps"]):
        i, j = torch.randint(len(clean), (2, CFG["batch"]), device=DEV)
        target = front(clean[i])
        noisy = front(clean[i] + 0.5 * noise[j])
        with torch.autocast(DEV.type, dtype=torch.bfloat16):
            mask = model(noisy)
            loss = F.l1_loss(mask * noisy, target)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if step % 25 == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}")
    print(f"end loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
