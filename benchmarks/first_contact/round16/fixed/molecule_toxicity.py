"""Toxicity of molecules from their SMILES strings."""
import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TINY = os.environ.get("TINY") == "1"
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SYMBOLS, LIMIT = 64, (48 if TINY else 1024)
WIDTH, HEADS, DEPTH, ROWS, STEPS = (16, 2, 2, 4, 4) if TINY else (512, 8, 6, 64, 300)


class Smiles(Dataset):
    def __init__(self, count):
        g = torch.Generator().manual_seed(0)
        self.lengths = (torch.randn(count, generator=g) * 60 + LIMIT / 4).clamp(8, LIMIT * 0.45).long()
        self.seeds = torch.randint(1 << 30, (count,), generator=g)

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(int(self.seeds[i]))
        symbols = torch.randint(1, SYMBOLS, (int(self.lengths[i]),), generator=g)
        return symbols, (symbols[:8].sum() > 4 * SYMBOLS).float()


class Collate:
    def __init__(self, blank=0, multiple=8):
        self.blank, self.multiple = blank, multiple

    def width(self, strings):
        longest = max(map(len, strings))
        return min(LIMIT, -(-longest // self.multiple) * self.multiple)

    def __call__(self, samples):
        strings, labels = zip(*samples)
        batch = torch.full((len(strings), self.width(strings)), self.blank)
        for row, symbols in zip(batch, strings):
            row[: len(symbols)] = symbols
        return batch, torch.stack(labels)


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.symbols = nn.Embedding(SYMBOLS, WIDTH, padding_idx=0)
        self.places = nn.Parameter(torch.randn(LIMIT, WIDTH) * 0.02)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.0, "gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, DEPTH, enable_nested_tensor=False)
        self.toxic = nn.Linear(WIDTH, 1)

    def forward(self, ids):
        blank = ids == 0
        x = self.symbols(ids) + self.places[: ids.shape[1]]
        x = self.layers(x, src_key_padding_mask=blank)
        real = (~blank).unsqueeze(-1)
        return self.toxic((x * real).sum(1) / real.sum(1)).squeeze(1)


def main():
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    loader = DataLoader(Smiles(ROWS * STEPS), ROWS, collate_fn=Collate(), num_workers=2 if TINY else 8,
                        pin_memory=DEVICE.type == "cuda", prefetch_factor=4)
    tower = Tower().to(DEVICE)
    optimizer = torch.optim.AdamW(tower.parameters(), lr=1e-4, fused=True)
    loss_of = nn.BCEWithLogitsLoss()
    seen = torch.zeros((), device=DEVICE)
    for ids, toxic in loader:
        ids, toxic = ids.to(DEVICE, non_blocking=True), toxic.to(DEVICE, non_blocking=True)
        with torch.autocast(DEVICE.type, torch.bfloat16):
            loss = loss_of(tower(ids), toxic)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += loss.detach()
    print(f"loss {seen.item() / len(loader):.4f}")


if __name__ == "__main__":
    main()
