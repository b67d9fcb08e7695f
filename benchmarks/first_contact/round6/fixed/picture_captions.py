"""A captioner: patch features as a prefix, then the words."""

import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SMALL = bool(os.environ.get("SMALL"))
P = {
    "dim": 32 if SMALL else 512,
    "layers": 1 if SMALL else 6,
    "words": 96 if SMALL else 8192,
    "prefix": 4 if SMALL else 16,
    "longest": 32 if SMALL else 256,
    "batch": 2 if SMALL else 64,
    "steps": 30 if SMALL else 80,
    "workers": 2 if SMALL else 6,
}
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
IGNORE = -100


class Captions(Dataset):
    def __len__(self):
        return P["batch"] * P["steps"]

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        length = int(torch.empty(()).log_normal_(3.1, 0.45, generator=g).clamp(5, P["longest"]))
        return torch.randn(P["prefix"], 768, generator=g), torch.randint(1, P["words"], (length,), generator=g)


class Collator:
    """Stacks the features and lays the captions into one rectangle."""

    def __init__(self, longest):
        self.longest = longest

    def width(self, captions):
        return min(self.longest, -(-max(map(len, captions)) // 8) * 8)

    def __call__(self, pairs):
        features, captions = zip(*pairs)
        words = torch.zeros(len(pairs), self.width(captions), dtype=torch.long)
        goal = torch.full_like(words, IGNORE)
        for row, caption in enumerate(captions):
            words[row, : len(caption)] = caption
            goal[row, : len(caption) - 1] = caption[1:]
        return torch.stack(features), words, goal


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.heads = max(1, d // 64)
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.ff = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(self.n1(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.ff(self.n2(x))


class Captioner(nn.Module):
    def __init__(self):
        super().__init__()
        d = P["dim"]
        self.see = nn.Linear(768, d)
        self.words = nn.Embedding(P["words"], d)
        self.pos = nn.Embedding(P["prefix"] + P["longest"], d)
        self.blocks = nn.Sequential(*(Block(d) for _ in range(P["layers"])))
        self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, P["words"])

    def forward(self, features, words):
        x = torch.cat((self.see(features), self.words(words)), 1)
        x = self.blocks(x + self.pos.weight[: x.shape[1]])
        return self.head(self.norm(x[:, P["prefix"] :]))


def main():
    torch.manual_seed(0)
    loader = DataLoader(
        Captions(), P["batch"], collate_fn=Collator(P["longest"]), num_workers=P["workers"], pin_memory=DEVICE.type == "cuda"
    )
    net = Captioner().to(DEVICE)
    opt = torch.optim.AdamW(net.parameters(), 3e-4, fused=True)
    seen = torch.zeros((), device=DEVICE)
    for step, batch in enumerate(loader, 1):
        features, words, goal = (t.to(DEVICE, non_blocking=True) for t in batch)
        with torch.autocast(DEVICE.type, torch.bfloat16):
            logits = net(features, words)
            loss = F.cross_entropy(logits.flatten(0, 1), goal.flatten(), ignore_index=IGNORE)
        opt.zero_grad()
        loss.backward()
        opt.step()
        seen += loss.detach()
        if step % 30 == 0:
            print(step, round(seen.item() / step, 3))


if __name__ == "__main__":
    main()
