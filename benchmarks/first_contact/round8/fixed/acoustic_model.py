"""Frame-level acoustic model: transformer over log-mel features, senone targets, utterances of any length."""
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, Sampler

cuda = torch.cuda.is_available()
device = torch.device("cuda" if cuda else "cpu")
torch.backends.cuda.matmul.allow_tf32 = True

UTTERANCES = 3200 if cuda else 24
BATCH = 32 if cuda else 4
MAX_FRAMES = 1600 if cuda else 40
DIM, DEPTH, HEADS = (512, 6, 8) if cuda else (32, 1, 2)
SENONES = 2048 if cuda else 40
EPOCHS = 2 if cuda else 1


class Utterances(Dataset):
    """Features and alignments of a corpus kept in memory."""

    def __init__(self, n, seed=0):
        rng = np.random.default_rng(seed)
        lengths = np.exp(rng.normal(math.log(MAX_FRAMES / 3.5), 0.6, n))
        self.lengths = np.clip(lengths, MAX_FRAMES // 16, MAX_FRAMES).astype(int)
        self.offsets = np.concatenate([[0], np.cumsum(self.lengths)])
        self.feats = rng.standard_normal((self.offsets[-1], 80), dtype=np.float32)
        self.align = rng.integers(0, SENONES, self.offsets[-1])

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        a, b = self.offsets[i], self.offsets[i + 1]
        return torch.from_numpy(self.feats[a:b]), torch.from_numpy(self.align[a:b])


class BucketSampler(Sampler):
    """Batches of utterances of about the same length, in random order."""

    def __init__(self, lengths, batch_size):
        self.lengths, self.batch_size = lengths, batch_size

    def __len__(self):
        return math.ceil(len(self.lengths) / self.batch_size)

    def __iter__(self):
        rng = np.random.default_rng(int(torch.randint(2**31, ())))
        order = np.argsort(self.lengths * rng.uniform(0.97, 1.03, len(self.lengths)))
        batches = [order[i : i + self.batch_size].tolist() for i in range(0, len(order), self.batch_size)]
        return iter([batches[i] for i in rng.permutation(len(batches))])


def collate(items):
    feats, align = zip(*items)
    x = nn.utils.rnn.pad_sequence(feats, batch_first=True)
    y = nn.utils.rnn.pad_sequence(align, batch_first=True, padding_value=-100)
    return x, y


class Layer(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.ff = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x, mask):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(a.transpose(1, 2).reshape(b, t, d))
        return x + self.ff(self.n2(x))


class AcousticModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(80, DIM)
        self.pos = nn.Parameter(0.02 * torch.randn(MAX_FRAMES, DIM))
        self.layers = nn.ModuleList(Layer(DIM, HEADS) for _ in range(DEPTH))
        self.norm = nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, SENONES)

    def forward(self, x, valid):
        mask = valid[:, None, None, :]
        h = self.inp(x) + self.pos[: x.shape[1]]
        for layer in self.layers:
            h = layer(h, mask)
        return self.head(self.norm(h))


def main():
    torch.manual_seed(0)
    data = Utterances(UTTERANCES)
    loader = DataLoader(
        data,
        batch_sampler=BucketSampler(data.lengths, BATCH),
        collate_fn=collate,
        num_workers=8 if cuda else 0,
        pin_memory=cuda,
        persistent_workers=cuda,
    )
    model = AcousticModel().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=cuda)
    step = 0
    for epoch in range(EPOCHS):
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            with torch.autocast(device.type, dtype=torch.bfloat16):
                logits = model(x, y >= 0)
                loss = F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=-100)
            opt.zero_grad(set_to_none=True)
            loss.backward()
            opt.step()
            step += 1
            if step % 25 == 0:
                print(f"epoch {epoch} step {step} frames {x.shape[0] * x.shape[1]} loss {loss.item():.4f}")
    print("steps", step, "loss", round(loss.item(), 4))


if __name__ == "__main__":
    main()
