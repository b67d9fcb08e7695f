"""An encoder that embeds a corpus: bfloat16, inference_mode, results copied back while it goes on."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset

VOCABULARY, WIDTH, HEADS, LENGTH, BATCH = 30522, 1024, 16, 512, 64


class Corpus(Dataset):
    def __init__(self, count):
        self.tokens = np.random.randint(0, VOCABULARY, (4096, LENGTH), dtype=np.int64)
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.tokens[index % len(self.tokens)]


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x):
        shape = (*x.shape[:2], 3, HEADS, WIDTH // HEADS)
        q, k, v = self.qkv(x).view(shape).permute(2, 0, 3, 1, 4)
        x = self.norm1(x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class Encoder(nn.Module):
    def __init__(self, layers=6):
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.Sequential(*(Layer() for _ in range(layers)))

    def forward(self, tokens):
        return F.normalize(self.layers(self.words(tokens)).mean(1), dim=-1)


@torch.inference_mode()
def embed(encoder, loader):
    for tokens in loader:
        tokens = tokens.to("cuda", non_blocking=True)
        yield encoder(tokens)


def main():
    encoder = torch.compile(Encoder().eval().to(device="cuda", dtype=torch.bfloat16))
    loader = DataLoader(Corpus(BATCH * 3000), batch_size=BATCH, num_workers=4, pin_memory=True)
    found = torch.empty(BATCH * 3000, WIDTH, dtype=torch.bfloat16, device="cuda")
    for number, vectors in enumerate(embed(encoder, loader)):
        found[number * BATCH : (number + 1) * BATCH] = vectors
    print("mean similarity", (found[:1000] @ found[:1000].T).float().mean().item())


if __name__ == "__main__":
    main()
