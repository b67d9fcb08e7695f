"""Embeds the visit histories of patients with a trained encoder and averages their risk."""
import os

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

TINY = os.environ.get("TINY") == "1"
SETTINGS = dict(patients=24, rows=4, codes=50, ceiling=32, width=32, heads=2, depth=2, workers=0)
if not TINY:
    SETTINGS = dict(patients=38400, rows=96, codes=9000, ceiling=1024, width=512, heads=8, depth=8, workers=8)


class Histories(Dataset):
    def __init__(self, patients, codes, ceiling):
        rng = np.random.default_rng(17)
        self.sizes = np.clip(rng.lognormal(np.log(ceiling / 6), 0.55, patients), 4, ceiling).astype(int)
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)])
        self.codes = rng.integers(1, codes, self.starts[-1])

    def __len__(self):
        return len(self.sizes)

    def __getitem__(self, i):
        return torch.from_numpy(self.codes[self.starts[i] : self.starts[i + 1]])


class Ledger:
    """Collates histories into one rectangle of codes; 0 is no visit."""

    def __init__(self, ceiling):
        self.ceiling = ceiling

    def __call__(self, histories):
        sizes = torch.tensor([len(h) for h in histories])
        sheet = torch.zeros(len(histories), self.ceiling, dtype=torch.long)  # flaw: padded-batches
        for row, h in zip(sheet, histories):
            row[: len(h)] = h
        return sheet, sizes


class Encoder(nn.Module):
    def __init__(self, codes, ceiling, width, heads, depth):
        super().__init__()
        self.heads = heads
        self.code = nn.Embedding(codes, width, padding_idx=0)
        self.turn = nn.Embedding(ceiling, width)
        self.blocks = nn.ModuleList()
        for _ in range(depth):
            mlp = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            self.blocks.append(nn.ModuleList([nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width), mlp]))
        self.risk = nn.Linear(width, 1)

    def forward(self, sheet, sizes):
        real = torch.arange(sheet.shape[1], device=sheet.device) < sizes[:, None]
        x = self.code(sheet) + self.turn.weight[: sheet.shape[1]]
        for norm, qkv, out, mlp in self.blocks:
            q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in qkv(norm(x)).chunk(3, -1))
            x = x + out(F.scaled_dot_product_attention(q, k, v, attn_mask=real[:, None, None]).transpose(1, 2).flatten(2))
            x = x + mlp(x)
        pooled = (x * real[..., None]).sum(1) / sizes[:, None]
        return self.risk(pooled.to(x.dtype))[:, 0]


def loader_of(histories, s, pin):
    return DataLoader(histories, s["rows"], collate_fn=Ledger(s["ceiling"]), num_workers=s["workers"], pin_memory=pin)  # flaw: padded-batches


@torch.inference_mode()
def main(s):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch.manual_seed(23)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    encoder = Encoder(s["codes"], s["ceiling"], s["width"], s["heads"], s["depth"]).to(device, dtype).eval()
    histories = Histories(s["patients"], s["codes"], s["ceiling"])
    total = torch.zeros((), device=device)
    for sheet, sizes in loader_of(histories, s, device.type == "cuda"):
        sheet, sizes = sheet.to(device, non_blocking=True), sizes.to(device, non_blocking=True)
        total += encoder(sheet, sizes).float().sum()
    print(f"mean risk {total.item() / len(histories):.5f}")


if __name__ == "__main__":
    main(SETTINGS)
