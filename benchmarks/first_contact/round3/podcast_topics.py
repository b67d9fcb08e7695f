"""Topic classifier for long mel spectrograms read from a memory-mapped store."""
import os
import tempfile

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

SMALL = os.environ.get("SMALL") == "1"
FRAMES, MELS, SHOWS, TOPICS = (128, 16, 64, 8) if SMALL else (2560, 128, 128, 64)
BATCH, STEPS, WORKERS = (2, 30, 2) if SMALL else (32, 80, 8)


class Shows(Dataset):
    def __init__(self, path, length):
        self.path, self.length, self.store = path, length, None

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        if self.store is None:
            self.store = np.load(self.path, mmap_mode="r")
        row = i % SHOWS
        return torch.from_numpy(np.array(self.store[row])), row % TOPICS


class Classifier(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.patch = nn.Conv1d(MELS, width, 8, stride=8)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
            for _ in range(1 if SMALL else 6)
        )
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, TOPICS)

    def forward(self, mel):
        x = self.patch(mel.transpose(1, 2)).transpose(1, 2)
        for layer in self.layers:
            x = layer(x)
        return self.out(self.norm(x).mean(1))


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "mels.npy")
        np.save(path, np.random.default_rng(0).standard_normal((SHOWS, FRAMES, MELS), dtype=np.float32))
        loader = DataLoader(Shows(path, BATCH * STEPS), BATCH, shuffle=True, num_workers=WORKERS, drop_last=True)  # flaw: pageable-host-copy
        model = Classifier(64 if SMALL else 512).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
        right = torch.zeros((), device=device)
        for mel, topic in loader:
            mel = mel.to(device)  # flaw: pageable-host-copy
            topic = topic.to(device)  # flaw: pageable-host-copy
            with torch.autocast(device.type, dtype=torch.bfloat16):
                scores = model(mel)
                loss = F.cross_entropy(scores, topic)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += (scores.argmax(1) == topic).sum()
        print("training accuracy", right.item() / (BATCH * STEPS))


if __name__ == "__main__":
    main()
