"""A hybrid acoustic model: stacked filterbank frames to senone posteriors, frame by frame, from an alignment."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset

SENONES, BANDS, CONTEXT = 2400, 40, 5


class Frames(Dataset):
    """Frames with their left and right context, cut from one long array; whole batches are read at once."""

    def __init__(self, seconds, seed):
        rng = np.random.default_rng(seed)
        count = 100 * seconds
        self.senone = np.repeat(rng.integers(0, SENONES, count // 4 + 1), 4)[:count]
        means = np.random.default_rng(0).normal(0, 1, (SENONES, BANDS)).astype(np.float32)
        spectrum = means[self.senone] + 0.5 * rng.normal(0, 1, (count, BANDS)).astype(np.float32)
        edge = ((CONTEXT, CONTEXT), (0, 0))
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(spectrum, edge), 2 * CONTEXT + 1, axis=0)
        self.windows = torch.from_numpy(windows.reshape(count, -1).copy())
        self.senone = torch.from_numpy(self.senone)

    def __len__(self):
        return len(self.senone)

    def __getitems__(self, rows):
        return self.windows[rows], self.senone[rows]


class TimeDelayNet(nn.Module):
    def __init__(self, width=160):
        super().__init__()
        size = BANDS * (2 * CONTEXT + 1)
        self.stack = nn.Sequential(
            nn.Linear(size, width), nn.ReLU(), nn.LayerNorm(width),
            nn.Linear(width, width), nn.ReLU(), nn.LayerNorm(width),
        )
        self.senones = nn.Linear(width, SENONES)

    def forward(self, frames):
        return self.senones(self.stack(frames))


class FrameCriterion(nn.Module):
    """The negative logarithm of the aligned senone's posterior; the scale is that of the sequence-level loss."""

    def __init__(self, scale=1.0):
        super().__init__()
        self.scale = scale

    def forward(self, activations, senone):
        surprise = activations.softmax(1).log().neg()  # flaw: hand-written-loss
        aligned = nn.functional.one_hot(senone, activations.shape[1])  # flaw: hand-written-loss
        return self.scale * (aligned * surprise).sum(1).mean()  # flaw: hand-written-loss


def sweep(data, size, generator):
    for rows in torch.randperm(len(data), generator=generator).split(size):
        if len(rows) == size:
            yield data.__getitems__(rows)


def train_epoch(model, data, criterion, optimizer, generator):
    total, steps = torch.zeros((), dtype=torch.double), 0
    for frames, senone in sweep(data, 320, generator):
        loss = criterion(model(frames), senone)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.detach()
        steps += 1
    return total.item() / steps, steps


@torch.inference_mode()
def frame_error(model, data):
    wrong = sum((model(w).argmax(1) != s).sum() for w, s in zip(data.windows.split(500), data.senone.split(500)))
    return wrong.item() / len(data)


def main():
    torch.manual_seed(13)
    generator = torch.Generator().manual_seed(13)
    train, dev = Frames(300, seed=1), Frames(20, seed=1)
    model, criterion = TimeDelayNet(), FrameCriterion(scale=0.5)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    for epoch in range(6):
        loss, steps = train_epoch(model, train, criterion, optimizer, generator)
        print(f"epoch {epoch}  {steps} steps  loss {loss:.4f}  frame error {frame_error(model, dev):.3f}", flush=True)


if __name__ == "__main__":
    main()
