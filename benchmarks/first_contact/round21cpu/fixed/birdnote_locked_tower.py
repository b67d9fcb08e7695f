# Contrastive tuning of a note encoder against a locked song encoder
# (field notes on one side, spectrogram patches on the other).
import argparse

import torch
import torch.nn.functional as F
from torch import nn


def residual_mlp(width, grow):
    return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width * grow), nn.GELU(), nn.Linear(width * grow, width))


class SongTower(nn.Module):
    def __init__(self, mels=64, frames=32, width=384, depth=4, out=128):
        super().__init__()
        self.stem = nn.Linear(mels * frames, width)
        self.blocks = nn.ModuleList(residual_mlp(width, 2) for _ in range(depth))
        self.head = nn.Linear(width, out)

    def forward(self, spectrogram):
        x = self.stem(spectrogram.flatten(1))
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


class NoteTower(nn.Module):
    def __init__(self, words=256, width=96, out=128):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.reader = nn.GRU(width, 128, batch_first=True)
        self.head = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, out))

    def forward(self, note):
        _, last = self.reader(self.words(note))
        return self.head(last[0])


def pretrained_state(seed):
    """Stands in for a checkpoint on disk."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return SongTower().state_dict()


def locked_song_tower(seed):
    tower = SongTower()
    tower.load_state_dict(pretrained_state(seed))
    tower.eval().requires_grad_(False)
    return tower


def field_recordings(count, seed):
    g = torch.Generator().manual_seed(seed)
    species = torch.randint(0, 40, (count,), generator=g)
    templates = torch.randn(40, 64, 32, generator=g)
    songs = templates[species] + 0.7 * torch.randn(count, 64, 32, generator=g)
    base = (species[:, None] * 6) % 240
    notes = base + torch.randint(0, 16, (count, 12), generator=g)
    return songs, notes


def clip_loss(left, right, log_scale):
    left, right = F.normalize(left, dim=1), F.normalize(right, dim=1)
    scores = log_scale.exp() * left @ right.T
    truth = torch.arange(len(scores))
    return 0.5 * (F.cross_entropy(scores, truth) + F.cross_entropy(scores.T, truth))


class LockedTuning(nn.Module):
    def __init__(self, checkpoint_seed):
        super().__init__()
        self.song = locked_song_tower(checkpoint_seed)
        self.note = NoteTower()
        self.log_scale = nn.Parameter(torch.tensor(2.3))

    def tuned(self):
        return [*self.note.parameters(), self.log_scale]

    def forward(self, songs, notes):
        heard = self.song(songs)
        written = self.note(notes)
        return clip_loss(heard, written, self.log_scale)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--steps", type=int, default=400)
    ap.add_argument("--batch", type=int, default=160)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--seed", type=int, default=5)
    args = ap.parse_args()

    torch.manual_seed(args.seed)
    songs, notes = field_recordings(8192, args.seed)
    model = LockedTuning(checkpoint_seed=args.seed + 7)
    optimizer = torch.optim.AdamW(model.tuned(), lr=args.lr, fused=True)

    order, seen = torch.randperm(len(songs)), 0
    running = torch.zeros(())
    for step in range(1, args.steps + 1):
        if seen + args.batch > len(songs):
            order, seen = torch.randperm(len(songs)), 0
        rows = order[seen : seen + args.batch]
        seen += args.batch
        loss = model(songs[rows], notes[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.detach()
        if step % 50 == 0:
            print(f"step {step:4d}: contrastive loss {running.item() / 50:.4f}", flush=True)
            running.zero_()


if __name__ == "__main__":
    main()
