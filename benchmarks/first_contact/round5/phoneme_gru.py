"""Frame-level phoneme recogniser fed by loader workers; utterances are bucketed by length."""
import os

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

small = os.environ.get("SMALL") == "1"
MELS, PHONES = (8, 6) if small else (80, 48)
WIDTH, LAYERS = (16, 1) if small else (640, 4)
BATCH, BATCHES, EPOCHS = (4, 10, 3) if small else (96, 24, 4)
SHORT, LONG = (8, 24) if small else (160, 480)


class Utterances(Dataset):
    def __init__(self, n):
        rng = np.random.default_rng(0)
        self.frames = rng.integers(SHORT, LONG, n)
        self.noise = rng.standard_normal((LONG * 4, MELS), dtype=np.float32)

    def __len__(self):
        return len(self.frames)

    def __getitem__(self, i):
        n = int(self.frames[i])
        start = (i * 131) % (LONG * 3)
        mel = self.noise[start:start + n]
        return mel, mel[:, :PHONES].argmax(1)


class LengthBuckets(Sampler):
    def __init__(self, lengths, batch):
        self.groups = [g for g in np.array_split(np.argsort(lengths), len(lengths) // batch)]

    def __len__(self):
        return len(self.groups)

    def __iter__(self):
        for k in torch.randperm(len(self.groups)).tolist():
            yield self.groups[k].tolist()


def pack(items):
    longest = max(len(m) for m, _ in items)
    mel = np.zeros((len(items), longest, MELS), dtype=np.float32)
    phone = np.full((len(items), longest), -100, dtype=np.int64)
    for row, (m, p) in enumerate(items):
        mel[row, :len(m)] = m
        phone[row, :len(p)] = p
    return torch.from_numpy(mel), torch.from_numpy(phone)


class Recogniser(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(MELS, WIDTH)
        self.rnn = nn.GRU(WIDTH, WIDTH, LAYERS, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * WIDTH, PHONES)

    def forward(self, mel):
        return self.out(self.rnn(self.inp(mel))[0])


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    data = Utterances(BATCH * BATCHES)
    loader = DataLoader(data, batch_sampler=LengthBuckets(data.frames, BATCH), collate_fn=pack,
                        num_workers=1 if small else 8, prefetch_factor=4, persistent_workers=True,
                        pin_memory=device.type == "cuda")
    net = Recogniser().to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=5e-4, fused=True)
    criterion = nn.CrossEntropyLoss(ignore_index=-100)
    for epoch in range(EPOCHS):
        total = torch.zeros((), device=device)
        for mel, phone in loader:
            mel, phone = mel.to(device, non_blocking=True), phone.to(device, non_blocking=True)
            with torch.autocast(device.type, dtype=torch.bfloat16):
                loss = criterion(net(mel).flatten(0, 1), phone.flatten())
            loss.backward()
            opt.step()
            opt.zero_grad()
            total += loss.detach()
        print("epoch", epoch, "loss", total.item() / BATCHES)


if __name__ == "__main__":
    main()
