"""Mask-based MVDR beamforming service: multi-channel meetings in, enhanced spectra out."""
import torch
from torch import nn


class MaskEstimator(nn.Module):
    def __init__(self, bins, hidden, layers):
        super().__init__()
        self.inp = nn.Linear(bins, hidden)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(hidden), nn.Linear(hidden, 4 * hidden), nn.GELU(), nn.Linear(4 * hidden, hidden))
            for _ in range(layers)
        )
        self.out = nn.Linear(hidden, bins)

    def forward(self, log_mag):
        h = self.inp(log_mag)
        for block in self.blocks:
            h = h + block(h)
        return torch.sigmoid(self.out(h))


class Beamformer:
    """All spectra are (batch, freq, mics, time)."""

    def __init__(self, estimator, n_fft, hop, device, reference=0, diagonal_load=1e-3):
        self.estimator = estimator
        self.n_fft, self.hop = n_fft, hop
        self.window = torch.hann_window(n_fft, device=device)
        self.reference = reference
        self.load = diagonal_load

    def analyse(self, wav):
        b, m, n = wav.shape
        spec = torch.stft(wav.view(b * m, n), self.n_fft, self.hop, window=self.window, return_complex=True)
        return spec[:, :-1].view(b, m, self.n_fft // 2, -1).transpose(1, 2)

    def masks(self, spec):
        log_mag = spec[:, :, self.reference].abs().clamp_min(1e-6).log().transpose(1, 2)
        speech = self.estimator(log_mag.to(torch.bfloat16)).float().transpose(1, 2)
        return speech, 1.0 - speech

    @staticmethod
    def covariance(spec, mask):
        weight = mask / mask.sum(-1, keepdim=True).clamp_min(1e-6)
        return (spec * weight.unsqueeze(-2)) @ spec.mH

    def steer(self, phi_s, phi_n):
        phi_n.diagonal(dim1=-2, dim2=-1).add_(self.load)
        ratio = torch.linalg.solve_ex(phi_n, phi_s)[0]
        trace = ratio.diagonal(dim1=-2, dim2=-1).sum(-1)
        return ratio[..., self.reference] / trace[..., None]

    @torch.inference_mode()
    def enhance(self, wav):
        spec = self.analyse(wav)
        speech, noise = self.masks(spec)
        phi_s = self.covariance(spec, speech)
        phi_n = self.covariance(spec, noise)
        w = self.steer(phi_s, phi_n)
        return torch.einsum("bfm,bfmt->bft", w.conj(), spec)


def meeting_chunks(count, batch, mics, samples, device):
    """A moving source in diffuse noise, recorded by a circular array."""
    gen = torch.Generator(device=device).manual_seed(2)
    for _ in range(count):
        source = torch.randn(batch, 1, samples, device=device, generator=gen)
        gains = 0.5 + torch.rand(batch, mics, 1, device=device, generator=gen)
        yield source * gains + 0.5 * torch.randn(batch, mics, samples, device=device, generator=gen)


def main():
    cuda = torch.cuda.is_available()
    device = torch.device("cuda" if cuda else "cpu")
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    n_fft, hop = (1024, 256) if cuda else (32, 8)
    estimator = MaskEstimator(n_fft // 2, 1024 if cuda else 16, 6 if cuda else 1)
    estimator = estimator.to(device, torch.bfloat16).eval()
    service = Beamformer(estimator, n_fft, hop, device)
    chunks, batch, mics, samples = (80, 16, 8, 127744) if cuda else (4, 2, 3, 400)

    level = torch.zeros((), device=device)
    for i, wav in enumerate(meeting_chunks(chunks, batch, mics, samples, device), 1):
        level += service.enhance(wav).abs().mean()
        if i % 20 == 0 or i == chunks:
            print(f"{i} chunks, mean level {level.item() / i:.5f}")


if __name__ == "__main__":
    main()
