"""Extracts speaker embeddings from filter-bank features (inference) and compares them with enrolled ones."""
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

tiny = bool(os.environ.get("SMALL"))
DIM, DEPTH, FRAMES, BATCH, CALLS = (32, 1, 20, 2, 30) if tiny else (256, 8, 800, 96, 120)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class SplitHeads(nn.Module):
    def __init__(self, head):
        super().__init__()
        self.head = head

    def forward(self, x):
        b, t, d = x.shape
        x = x.view(b, t, d // self.head, self.head).permute(0, 2, 1, 3).contiguous()  # flaw: layout-churn
        return x


class Conformerish(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.split = SplitHeads(32)
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
        self.up, self.down = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)

    def forward(self, x):
        h = self.n1(x)
        y = F.scaled_dot_product_attention(self.split(self.q(h)), self.split(self.k(h)), self.split(self.v(h)))
        x = x + self.o(y.transpose(1, 2).flatten(2))
        return x + self.down(F.silu(self.up(self.n2(x))))


class AttentivePool(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.score = nn.Linear(d, 1)

    def forward(self, x):
        w = self.score(x).softmax(1)
        return torch.matmul(w.transpose(1, 2), x).squeeze(1)


class Embedder(nn.Module):
    def __init__(self, mels=80):
        super().__init__()
        self.front = nn.Linear(mels, DIM)
        self.body = nn.Sequential(*(Conformerish(DIM) for _ in range(DEPTH)))
        self.pool = AttentivePool(DIM)
        self.out = nn.Linear(DIM, 192)

    def forward(self, feats):
        return F.normalize(self.out(self.pool(self.body(self.front(feats)))), dim=-1)


def calls(n):
    g = torch.Generator(device).manual_seed(0)
    bank = torch.randn(8, BATCH, FRAMES, 80, device=device, generator=g).to(torch.bfloat16)
    for i in range(n):
        yield bank[i % len(bank)]


def enrol(model, people):
    g = torch.Generator(device).manual_seed(1)
    sound = torch.randn(people, FRAMES, 80, device=device, generator=g).to(torch.bfloat16)
    return model(sound)


def main():
    torch.manual_seed(0)
    model = Embedder().to(device, torch.bfloat16).eval()
    with torch.inference_mode():
        enrolled = enrol(model, 4 if tiny else 64)
        votes = torch.zeros(len(enrolled), device=device)
        for i, feats in enumerate(calls(CALLS)):
            best = (model(feats) @ enrolled.T).argmax(1)
            votes += torch.bincount(best, minlength=len(enrolled))
            if i % 40 == 0:
                print("call", i)
        print("most frequent speaker", votes.argmax().item())


if __name__ == "__main__":
    main()
