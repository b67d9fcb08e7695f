"""Embeds a backlog of documents with a bidirectional encoder, in buckets of similar length."""

import torch
import torch.nn as nn
import torch.nn.functional as F

CUDA = torch.cuda.is_available()
DEVICE = torch.device("cuda" if CUDA else "cpu")
DTYPE = torch.bfloat16 if CUDA else torch.float32
VOCAB, DIM, HEADS, LAYERS = (30528, 1024, 16, 16) if CUDA else (200, 32, 2, 2)
BUCKETS = (128, 256, 384, 512) if CUDA else (8, 16)
TOKENS_PER_BATCH = 24_576 if CUDA else 64
BATCHES_PER_BUCKET = 60 if CUDA else 4


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCAB, DIM)
        self.places = nn.Parameter(torch.randn(max(BUCKETS), DIM) * 0.02)
        self.layers = nn.ModuleList()
        for _ in range(LAYERS):
            self.layers.append(
                nn.ModuleDict(
                    {
                        "norm1": nn.LayerNorm(DIM),
                        "qkv": nn.Linear(DIM, 3 * DIM),
                        "out": nn.Linear(DIM, DIM),
                        "norm2": nn.LayerNorm(DIM),
                        "up": nn.Linear(DIM, 4 * DIM),
                        "down": nn.Linear(4 * DIM, DIM),
                    }
                )
            )
        self.norm = nn.LayerNorm(DIM)

    def forward(self, ids):
        b, t = ids.shape
        x = self.words(ids) + self.places[:t]
        for layer in self.layers:
            q, k, v = layer["qkv"](layer["norm1"](x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
            a = F.scaled_dot_product_attention(q, k, v)
            x = x + layer["out"](a.transpose(1, 2).reshape(b, t, DIM))
            x = x + layer["down"](F.gelu(layer["up"](layer["norm2"](x))))
        return F.normalize(self.norm(x).mean(dim=1), dim=-1)


def backlog():
    """Batches in order of length, as the queue hands them over."""
    for length in BUCKETS:
        size = TOKENS_PER_BATCH // length
        documents = torch.randint(VOCAB, (size * BATCHES_PER_BUCKET, length))
        if CUDA:
            documents = documents.pin_memory()
        yield from documents.split(size)


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    with DEVICE:
        encoder = Encoder()
    encoder = encoder.to(DTYPE).eval()
    index = []
    for documents in backlog():
        index.append(encoder(documents.to(DEVICE, non_blocking=True)))
    index = torch.cat(index)
    neighbours = (index[:8] @ index.T).topk(5).indices
    print(tuple(index.shape), neighbours.cpu()[:, 0].tolist())


if __name__ == "__main__":
    main()
