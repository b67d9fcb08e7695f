"""Masked-patch pretraining on multichannel sensor recordings (in the manner of PatchTST)."""

import numpy as np
import torch
from torch import nn
from torch.nn.functional import gelu, mse_loss, scaled_dot_product_attention
from torch.utils.data import DataLoader, Dataset


class Recordings(Dataset):
    def __init__(self, size, channels, length, seed=0):
        rng = np.random.default_rng(seed)
        self.signal = rng.standard_normal((channels, size + length), dtype=np.float32)
        np.cumsum(self.signal, axis=1, out=self.signal)
        self.size, self.length = size, length

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        window = self.signal[:, i : i + self.length]
        window = (window - window.mean(axis=1, keepdims=True)) / (window.std(axis=1, keepdims=True) + 1e-4)
        return torch.from_numpy(window)


class AttentionMixin:
    def attend(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        return self.proj(scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d))


class EncoderBlock(AttentionMixin, nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.down(gelu(self.up(self.norm2(x))))


class MaskedPatchModel(nn.Module):
    def __init__(self, patch, patches, dim, heads, depth):
        super().__init__()
        self.patch = patch
        self.embed = nn.Linear(patch, dim)
        self.mask_token = nn.Parameter(torch.zeros(dim))
        self.position = nn.Parameter(torch.randn(patches, dim) * 0.02)
        self.encoder = nn.Sequential(*(EncoderBlock(dim, heads) for _ in range(depth)))
        self.decode = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, patch))

    def forward(self, x, ratio=0.4):
        patches = x.flatten(0, 1).unflatten(1, (-1, self.patch))
        hidden = torch.rand(patches.shape[:2], device=x.device).unsqueeze(-1) < ratio
        tokens = torch.where(hidden, self.mask_token.to(x.dtype), self.embed(patches)) + self.position
        return self.decode(self.encoder(tokens)), patches


class Pretrainer:
    def __init__(self, model, loader, device, lr=3e-4):
        self.model, self.loader, self.device = model.to(device), loader, device
        self.amp = device.type == "cuda"
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.05, fused=self.amp)

    def epoch(self):
        self.model.train()
        total = torch.zeros((), device=self.device)
        for batch in self.loader:
            total += self.step(batch.to(self.device, non_blocking=True))
        return total.item() / len(self.loader)

    def step(self, batch):
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.amp):
            restored, patches = self.model(batch)
        loss = mse_loss(restored.float(), patches)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def main():
    cuda = torch.cuda.is_available()
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    size, channels, length, batch, epochs = (3200, 16, 1024, 16, 1) if cuda else (32, 2, 64, 4, 2)
    patch, dim, heads, depth = (16, 768, 12, 10) if cuda else (8, 16, 2, 2)
    loader = DataLoader(
        Recordings(size, channels, length),
        batch_size=batch,
        shuffle=True,
        drop_last=True,
        num_workers=8 if cuda else 0,
        pin_memory=cuda,
        persistent_workers=cuda,
    )
    model = MaskedPatchModel(patch, length // patch, dim, heads, depth)
    trainer = Pretrainer(model, loader, torch.device("cuda" if cuda else "cpu"))
    for epoch in range(epochs):
        print(f"epoch {epoch}: reconstruction {trainer.epoch():.4f}")


if __name__ == "__main__":
    main()
