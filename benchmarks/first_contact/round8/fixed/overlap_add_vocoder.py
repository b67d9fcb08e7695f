"""Mel -> waveform with a frame transformer that predicts short frames, joined by overlap-add."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.backends.cuda.matmul.allow_tf32 = True


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.ff = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, d))
        return x + self.ff(self.n2(x))


class FrameVocoder(nn.Module):
    def __init__(self, n_mels, d, depth, heads, win, hop):
        super().__init__()
        self.win, self.hop = win, hop
        self.inp = nn.Linear(n_mels, d)
        self.blocks = nn.ModuleList(Block(d, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(d)
        self.out = nn.Linear(d, win)
        self.register_buffer("window", torch.hann_window(win))

    def overlap_add(self, frames):
        b, n, _ = frames.shape
        length = (n - 1) * self.hop + self.win
        wave = F.fold(frames.transpose(1, 2), (1, length), (1, self.win), stride=(1, self.hop))
        return wave.view(b, length)

    def forward(self, mel):
        h = self.inp(mel)
        for block in self.blocks:
            h = block(h)
        frames = self.out(self.norm(h)).float() * self.window
        return self.overlap_add(frames)


class SpectralLoss(nn.Module):
    def __init__(self, ffts):
        super().__init__()
        self.ffts = ffts
        for n in ffts:
            self.register_buffer(f"w{n}", torch.hann_window(n))

    def mag(self, x, n):
        spec = torch.stft(x, n, n // 4, window=getattr(self, f"w{n}"), return_complex=True)
        return torch.view_as_real(spec).square().sum(-1).add(1e-6).sqrt()

    def forward(self, x, y):
        loss = F.l1_loss(x, y)
        for n in self.ffts:
            with torch.no_grad():
                target = self.mag(y, n)
            loss = loss + F.l1_loss(self.mag(x, n), target)
        return loss


def main():
    cuda = torch.cuda.is_available()
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=120 if cuda else 4)
    ap.add_argument("--batch", type=int, default=64 if cuda else 2)
    ap.add_argument("--frames", type=int, default=256 if cuda else 16)
    ap.add_argument("--dim", type=int, default=768 if cuda else 32)
    ap.add_argument("--depth", type=int, default=6 if cuda else 1)
    ap.add_argument("--win", type=int, default=1024)
    ap.add_argument("--hop", type=int, default=256)
    args = ap.parse_args()
    dev = torch.device("cuda" if cuda else "cpu")
    torch.manual_seed(0)

    model = FrameVocoder(80, args.dim, args.depth, args.dim // 64 or 2, args.win, args.hop).to(dev)
    criterion = SpectralLoss((1024, 512)).to(dev)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4, betas=(0.8, 0.99), fused=cuda)

    clips = 8 * args.batch
    length = (args.frames - 1) * args.hop + args.win
    mels = torch.randn(clips, args.frames, 80, device=dev)
    waves = torch.randn(clips, length, device=dev) * 0.1

    for step in range(args.steps):
        sel = torch.randint(clips, (args.batch,), device=dev)
        with torch.autocast(dev.type, dtype=torch.bfloat16):
            wave = model(mels[sel])
        loss = criterion(wave, waves[sel])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if step % 20 == 0:
            print(f"{step:5d} {loss.item():.4f}")
    print(f"final {loss.item():.5f}")


if __name__ == "__main__":
    main()
