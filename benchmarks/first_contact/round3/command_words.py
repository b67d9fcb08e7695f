"""Keyword spotting from log-mel frames with a data loader."""
import os
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

small = os.environ.get("SMALL") == "1"
FRAMES, MELS, WORDS = (32, 16, 8) if small else (400, 80, 64)
WIDTH, LAYERS, BATCH, STEPS, WORKERS = (32, 1, 2, 30, 2) if small else (512, 8, 64, 80, 8)


class Utterances(Dataset):
    def __init__(self, count):
        self.count = count
        self.mels = torch.randn(32 if small else 256, FRAMES, MELS)

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        mel = self.mels[i % len(self.mels)].clone()
        at = int(torch.randint(FRAMES - 8, ()))
        mel[at : at + 8] = 0
        return mel, i % WORDS


class Spotter(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(MELS, WIDTH)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, 0.0, F.gelu, batch_first=True, norm_first=True) for _ in range(LAYERS)
        )
        self.out = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS))

    def forward(self, mel):
        x = self.inp(mel)
        for layer in self.layers:
            x = layer(x)
        return self.out(x.mean(1))


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    cuda = device.type == "cuda"
    loader = DataLoader(
        Utterances(BATCH * STEPS), BATCH, shuffle=True, num_workers=WORKERS, pin_memory=cuda, persistent_workers=True
    )
    model = Spotter().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    right = torch.zeros((), device=device)
    for mel, word in loader:
        mel, word = mel.to(device, non_blocking=True), word.to(device, non_blocking=True)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            scores = model(mel)
            loss = F.cross_entropy(scores, word, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += (scores.argmax(1) == word).sum()
    print("accuracy", right.item() / (BATCH * STEPS))


if __name__ == "__main__":
    main()
