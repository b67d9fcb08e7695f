"""A denoising autoencoder over spectrogram patches that a loader delivers."""
from contextlib import nullcontext

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset


class Patches(Dataset):
    def __init__(self):
        self.bank = torch.randn(512, 256, 256)

    def __len__(self):
        return 64 * 350

    def __getitem__(self, i):
        return self.bank[i % 512]


class AE(nn.Module):
    def __init__(self):
        super().__init__()
        dims = [256, 512, 512, 512, 64]
        def stack(d):
            parts = []
            for a, b in zip(d, d[1:]):
                parts += [nn.Linear(a, b), nn.LayerNorm(b), nn.GELU()]
            return nn.Sequential(*parts[:-2])
        self.enc, self.dec = stack(dims), stack(dims[::-1])

    def forward(self, x):
        return self.dec(self.enc(x))


def move(batch, where):
    return batch.to(where)  # flaw: blocking-host-copy


def main(precision="bf16"):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    ae = AE().to(device)
    opt = optim.AdamW(ae.parameters(), fused=True)
    cast = torch.autocast(device, torch.bfloat16) if precision == "bf16" else nullcontext()
    loader = DataLoader(Patches(), 64, num_workers=6, pin_memory=True, persistent_workers=True)
    for clean in loader:
        clean = move(clean, device)
        with cast:
            again = ae(clean + 0.1 * torch.randn_like(clean))
        loss = nn.functional.mse_loss(again.float(), clean)
        opt.zero_grad()
        loss.backward()
        opt.step()


if __name__ == "__main__":
    main()
