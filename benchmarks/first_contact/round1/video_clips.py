"""Classifies short clips with a factorised 3-D patch embedding; clips wait in host memory."""
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset


class Clips(Dataset):
    def __init__(self, n):
        self.n = n
        self.store = torch.rand(24, 3, 8, 160, 160)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return self.store[i % 24], i % 174


class ClipNet(nn.Module):
    def __init__(self, dim=512, depth=4):
        super().__init__()
        self.patch = nn.Linear(3 * 2 * 16 * 16, dim)
        layer = nn.TransformerEncoderLayer(dim, 8, dim * 4, dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.head = nn.Linear(dim, 174)

    def forward(self, v):
        b = v.shape[0]
        v = v.reshape(b, 3, 4, 2, 10, 16, 10, 16).permute(0, 2, 4, 6, 1, 3, 5, 7).reshape(b, 400, -1)
        return self.head(self.body(self.patch(v)).mean(1))


def loaders(batch):
    kwargs = dict(batch_size=batch, num_workers=6, persistent_workers=True)
    return DataLoader(Clips(batch * 320), shuffle=True, **kwargs)  # flaw: pageable-host-copy


def to_device(batch, device):
    return [item.to(device) for item in batch]  # flaw: pageable-host-copy


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = ClipNet().to(device)
    opt = torch.optim.AdamW(net.parameters(), 1e-4, fused=True)
    for batch in loaders(16):
        clip, kind = to_device(batch, device)
        with torch.autocast(device, torch.bfloat16):
            loss = nn.functional.cross_entropy(net(clip), kind)
        opt.zero_grad()
        loss.backward()
        opt.step()
