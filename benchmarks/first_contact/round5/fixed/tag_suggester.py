"""Extreme multi-label tagging of documents: sparse word ids in, tens of thousands of tags out."""
import os
import torch
from torch import nn

fast = os.environ.get("SMALL") == "1"
dev = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")

WORDS, TAGS = (400, 128) if fast else (60_000, 16_384)
DOCS, LEN, POS = (16, 10, 3) if fast else (4096, 128, 12)
WIDTH = 32 if fast else 1024
STEPS = 30 if fast else 80


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(WORDS, WIDTH, mode="mean", sparse=True)
        self.trunk = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU())
        self.tags = nn.Linear(WIDTH, TAGS)

    def forward(self, docs):
        return self.tags(self.trunk(self.bag(docs)))


def objective(scores, truth):
    return nn.functional.binary_cross_entropy_with_logits(scores, truth)


def multi_hot(idx):
    return torch.zeros(len(idx), TAGS, device=dev).scatter_(1, idx, 1.0)


def main():
    torch.manual_seed(2)
    net = Tagger().to(dev)
    rest = [p for n, p in net.named_parameters() if not n.startswith("bag.")]
    opts = [torch.optim.SparseAdam([net.bag.weight], lr=1e-3), torch.optim.Adam(rest, lr=1e-3, fused=True)]
    docs = torch.randint(WORDS, (6, DOCS, LEN), device=dev)
    tags = torch.randint(TAGS, (6, DOCS, POS), device=dev)

    history = []
    for it in range(STEPS):
        truth = multi_hot(tags[it % 6])
        with torch.autocast(dev.type, dtype=torch.bfloat16):
            scores = net(docs[it % 6])
        loss = objective(scores.float(), truth)
        loss.backward()
        for o in opts:
            o.step()
            o.zero_grad()
        history.append(loss.detach())
        if (it + 1) % 20 == 0:
            recent = torch.stack(history).mean().item()
            history.clear()
            print("iter", it + 1, "loss", round(recent, 5))

    net.eval()
    with torch.no_grad():
        best = net(docs[0]).topk(5, dim=1).indices
        hits = (best.unsqueeze(-1) == tags[0].unsqueeze(1)).any(-1).float().mean()
    print("precision@5", hits.item())


if __name__ == "__main__":
    main()
