from __future__ import annotations

import os
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset


@dataclass(frozen=True)
class MaeConfig:
    frames: int = 8
    side: int = 96
    tube: tuple[int, int, int] = (2, 16, 16)
    dim: int = 768
    depth: int = 12
    decoder_dim: int = 384
    decoder_depth: int = 2
    keep: float = 0.3
    rematerialise: bool = False
    batch: int = 160
    steps: int = 70
    workers: int = 8

    @property
    def grid(self) -> tuple[int, int, int]:
        t, h, w = self.tube
        return self.frames // t, self.side // h, self.side // w

    @property
    def tokens(self) -> int:
        t, h, w = self.grid
        return t * h * w


class Clips(Dataset):
    def __init__(self, cfg: MaeConfig, bank: int = 64) -> None:
        g = torch.Generator().manual_seed(0)
        shape = (bank, 3, cfg.frames, cfg.side, cfg.side)
        self.bank = torch.randint(0, 256, shape, dtype=torch.uint8, generator=g)
        self.length = cfg.batch * cfg.steps

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, i: int) -> Tensor:
        clip = self.bank[i % len(self.bank)]
        return clip.flip(-1) if i % 3 == 0 else clip


class Stack(nn.Module):
    def __init__(self, dim: int, depth: int, remat: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(dim, max(1, dim // 64), 4 * dim, 0.0, "gelu", batch_first=True, norm_first=True)
            for _ in range(depth)
        )
        self.norm, self.remat = nn.LayerNorm(dim), remat

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if self.remat else layer(x)
        return self.norm(x)


class VideoMae(nn.Module):
    def __init__(self, cfg: MaeConfig) -> None:
        super().__init__()
        self.cfg = cfg
        voxels = 3 * cfg.tube[0] * cfg.tube[1] * cfg.tube[2]
        self.inp = nn.Linear(voxels, cfg.dim)
        self.pos = nn.Parameter(torch.randn(cfg.tokens, cfg.dim) * 0.02)
        self.encoder = Stack(cfg.dim, cfg.depth, cfg.rematerialise)
        self.bridge = nn.Linear(cfg.dim, cfg.decoder_dim)
        self.mask_token = nn.Parameter(torch.zeros(cfg.decoder_dim))
        self.decoder_pos = nn.Parameter(torch.randn(cfg.tokens, cfg.decoder_dim) * 0.02)
        self.decoder = Stack(cfg.decoder_dim, cfg.decoder_depth, cfg.rematerialise)
        self.out = nn.Linear(cfg.decoder_dim, voxels)

    def tubes(self, clip: Tensor) -> Tensor:
        (gt, gh, gw), (t, h, w) = self.cfg.grid, self.cfg.tube
        x = clip.view(-1, 3, gt, t, gh, h, gw, w).permute(0, 2, 4, 6, 1, 3, 5, 7)
        return x.reshape(len(clip), self.cfg.tokens, -1)

    def forward(self, clip: Tensor) -> Tensor:
        x = self.tubes(clip)
        b, n, _ = x.shape
        order = torch.rand(b, n, device=x.device).argsort(1)
        seen, hidden = order.tensor_split([int(n * self.cfg.keep)], 1)
        visible = x.gather(1, seen[..., None].expand(-1, -1, x.shape[-1]))
        code = self.bridge(self.encoder(self.inp(visible) + self.pos[seen]))
        both = torch.cat([code + self.decoder_pos[seen], self.mask_token + self.decoder_pos[hidden]], 1)
        guess = self.out(self.decoder(both)[:, seen.shape[1] :])
        return F.mse_loss(guess.float(), x.gather(1, hidden[..., None].expand(-1, -1, x.shape[-1])).float())


def main(cfg: MaeConfig) -> None:
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = VideoMae(cfg).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1.5e-4, betas=(0.9, 0.95), fused=True)
    loader = DataLoader(Clips(cfg), cfg.batch, num_workers=cfg.workers, pin_memory=device.type == "cuda")
    log = torch.zeros((), device=device)
    for step, clip in enumerate(loader, 1):
        clip = clip.to(device, non_blocking=True).bfloat16() / 255
        with torch.autocast(device.type, torch.bfloat16):
            loss = model(clip)
        opt.zero_grad()
        loss.backward()
        opt.step()
        log += loss.detach()
    print(f"{step} steps, mean loss {log.item() / step:.4f}")


if __name__ == "__main__":
    tiny = dict(frames=4, side=16, tube=(2, 8, 8), dim=32, depth=2, decoder_dim=16, decoder_depth=1, batch=2, steps=30, workers=2)
    main(MaeConfig(**tiny) if os.environ.get("SMALL") else MaeConfig())
