"""Voice activity detection on synthetic meeting audio."""
import math

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
EPOCHS = 6


class Meetings(Dataset):
    def __init__(self, n=640, frames=100, hop=160):
        self.n, self.frames, self.hop = n, frames, hop
        self.tone = np.sin(2 * math.pi * 180 * np.arange(frames * hop) / 16000).astype(np.float32)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        rng = np.random.default_rng(i)
        active = np.repeat(rng.random(10) < 0.5, self.frames // 10).astype(np.float32)
        audio = 0.1 * rng.standard_normal(self.frames * self.hop, dtype=np.float32)
        audio += self.tone * np.repeat(active, self.hop) * 0.2
        return torch.from_numpy(audio), torch.from_numpy(active)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.window = nn.Buffer(torch.hann_window(400))
        self.convs = nn.ModuleList([nn.Conv1d(i, 64, 5, padding=2) for i in (201, 64, 64)])
        self.out = nn.Conv1d(64, 1, 1)

    def forward(self, audio):
        h = torch.stft(audio, 400, 160, window=self.window, return_complex=True).abs()[..., :-1].log1p()
        for conv in self.convs:  # three layers
            h = torch.relu(conv(h))
        return self.out(h).squeeze(1)


def main():
    torch.manual_seed(0)
    loader = DataLoader(Meetings(), batch_size=16, num_workers=1, persistent_workers=True, shuffle=True)
    model = Detector()
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    for epoch in range(EPOCHS):
        total = torch.zeros(())
        for audio, active in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(audio), active)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.detach()
        print(f"epoch {epoch}: {total.item() / len(loader):.4f}")


if __name__ == "__main__":
    main()
