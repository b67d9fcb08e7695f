"""fastText-style topic classifier: hashed n-grams, averaged, one linear layer."""
import argparse
import os
import sys
import time

import torch
from torch import nn

TINY = os.environ.get("TINY") == "1"


def options():
    p = argparse.ArgumentParser()
    p.add_argument("--buckets", type=int, default=2000 if TINY else 400_000)
    p.add_argument("--dim", type=int, default=32)
    p.add_argument("--docs", type=int, default=16 if TINY else 256)
    p.add_argument("--grams", type=int, default=20 if TINY else 60)
    p.add_argument("--topics", type=int, default=30)
    p.add_argument("--lr", type=float, default=0.5)
    p.add_argument("--steps", type=int, default=10 if TINY else 120)
    return p.parse_args()


class TopicModel(nn.Module):
    def __init__(self, opt):
        super().__init__()
        self.grams = nn.EmbeddingBag(opt.buckets, opt.dim, mode="mean")  # flaw: dense-embedding-gradient
        self.hidden = nn.Linear(opt.dim, 512)
        self.topics = nn.Linear(512, opt.topics)

    def forward(self, ids):
        return self.topics(torch.relu(self.hidden(self.grams(ids))))


def stream(opt):
    gen = torch.Generator().manual_seed(9)
    topics = torch.randint(opt.topics, (8, opt.docs), generator=gen)
    noise = torch.randint(opt.buckets, (8, opt.docs, opt.grams), generator=gen)
    noise[:, :, ::3] = noise[:, :, ::3] // opt.topics * opt.topics % opt.buckets // 2 + topics[..., None]
    while True:
        yield from zip(noise, topics)


def main():
    torch.manual_seed(0)
    opt = options()
    model = TopicModel(opt)
    learner = torch.optim.SGD(model.parameters(), lr=opt.lr)
    loss_of = nn.CrossEntropyLoss()
    began = time.perf_counter()
    for step, (ids, topics) in enumerate(stream(opt)):
        if step == opt.steps:
            break
        loss = loss_of(model(ids), topics)
        learner.zero_grad()
        loss.backward()
        learner.step()
    print(f"{(time.perf_counter() - began) / opt.steps * 1e3:.1f} ms a step", file=sys.stderr)
    print(f"topic loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
