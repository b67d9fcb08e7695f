"""Topic classifier for headlines: bag of words with attention pooling."""

import random
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    vocab_size: int = 1500
    topics: int = 12
    dim: int = 128
    hidden: int = 256
    words: int = 24
    samples: int = 3200
    batch_size: int = 64
    epochs: int = 12
    lr: float = 2e-3
    seed: int = 7


def make_headlines(cfg):
    rng = random.Random(cfg.seed)
    syllables = ["ka", "ro", "mi", "ten", "sul", "bor", "vi", "lan", "que", "dar", "el", "po"]
    words = set()
    while len(words) < cfg.vocab_size:
        words.add("".join(rng.choices(syllables, k=rng.randint(2, 5))))
    words = sorted(words)
    headlines = []
    for _ in range(cfg.samples):
        topic = rng.randrange(cfg.topics)
        own = words[topic * 100 : topic * 100 + 100]
        text = " ".join(rng.choice(own if rng.random() < 0.3 else words) for _ in range(cfg.words))
        headlines.append((text, topic))
    return words, headlines


class Headlines(Dataset):
    def __init__(self, vocabulary, headlines):
        self.index = {word: i for i, word in enumerate(vocabulary)}
        self.headlines = headlines

    def __len__(self):
        return len(self.headlines)

    def __getitem__(self, i):
        text, topic = self.headlines[i]
        tokens = text.lower().split()
        ids = [self.index[token] for token in tokens]
        return ids, topic


def collate(samples):
    ids, topics = zip(*samples)
    return torch.tensor(ids), torch.tensor(topics)


class TopicModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embedding = nn.Embedding(cfg.vocab_size, cfg.dim)
        self.score = nn.Linear(cfg.dim, 1)
        self.classify = nn.Sequential(
            nn.Linear(cfg.dim, cfg.hidden),
            nn.ReLU(),
            nn.Dropout(0.1),
            nn.Linear(cfg.hidden, cfg.topics),
        )

    def forward(self, ids):
        x = self.embedding(ids)
        weights = self.score(x).softmax(dim=1)
        return self.classify((weights * x).sum(dim=1))


def train(cfg):
    torch.manual_seed(cfg.seed)
    vocabulary, headlines = make_headlines(cfg)
    loader = DataLoader(
        Headlines(vocabulary, headlines),
        batch_size=cfg.batch_size,
        shuffle=True,
        collate_fn=collate,
    )
    model = TopicModel(cfg)
    opt = torch.optim.Adam(model.parameters(), lr=cfg.lr, fused=True)
    for epoch in range(cfg.epochs):
        right = torch.zeros((), dtype=torch.long)
        for ids, topics in loader:
            logits = model(ids)
            loss = F.cross_entropy(logits, topics)
            opt.zero_grad()
            loss.backward()
            opt.step()
            right += (logits.argmax(1) == topics).sum()
        print(f"epoch {epoch} accuracy {right.item() / cfg.samples:.3f}")


if __name__ == "__main__":
    train(Config())
