"""Greedy captions for batches of images: patch features are a prefix to a decoder-only language model."""

import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
GPU = device.type == "cuda"
VOCAB, DIM, LAYERS, HEADS = (8192, 768, 12, 12) if GPU else (64, 32, 2, 2)
PATCHES, LENGTH = (196, 24) if GPU else (9, 6)
BATCH, BATCHES = (48, 64) if GPU else (2, 2)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM)
        self.out = nn.Linear(DIM, DIM)
        self.up, self.down = nn.Linear(DIM, 4 * DIM), nn.Linear(4 * DIM, DIM)

    def forward(self, x, cache=None, start=0):
        b, n, _ = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, n, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        if cache is not None:
            cache[0, :, :, start : start + n] = k
            cache[1, :, :, start : start + n] = v
            k, v = cache[:, :, :, : start + n]
        a = F.scaled_dot_product_attention(q, k, v, is_causal=start == 0)
        x = x + self.out(a.transpose(1, 2).reshape(b, n, DIM))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class Captioner(nn.Module):
    def __init__(self):
        super().__init__()
        self.visual = nn.Linear(1024, DIM)
        self.words = nn.Embedding(VOCAB, DIM)
        self.position = nn.Embedding(PATCHES + LENGTH, DIM)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(DIM)
        self.head = nn.Linear(DIM, VOCAB, bias=False)

    def new_cache(self, batch):
        shape = (2, batch, HEADS, PATCHES + LENGTH, DIM // HEADS)
        return [torch.empty(shape, device=device, dtype=self.head.weight.dtype) for _ in self.layers]

    def forward(self, x, cache=None, start=0):
        """Logits of the token after the sequence `x` of embeddings, whose first position is `start`."""
        x = x + self.position.weight[start : start + x.shape[1]]
        for i, layer in enumerate(self.layers):
            x = layer(x, None if cache is None else cache[i], start)
        return self.head(self.norm(x[:, -1]))


@torch.inference_mode()
def describe(model, features):
    b = len(features)
    sequence = torch.empty(b, PATCHES + LENGTH, DIM, device=device, dtype=features.dtype)
    sequence[:, :PATCHES] = model.visual(features)
    caption = torch.empty(b, LENGTH, device=device, dtype=torch.long)
    cache, start = model.new_cache(b), 0
    for i in range(LENGTH):
        end = PATCHES + i
        logits = model(sequence[:, start:end], cache, start)
        start = end
        caption[:, i] = logits.argmax(-1)
        sequence[:, end] = model.words(caption[:, i])
    return caption


def main():
    torch.manual_seed(0)
    model = Captioner().to(device, torch.bfloat16).eval()
    pool = torch.randn(BATCH * 4, PATCHES, 1024, device=device, dtype=torch.bfloat16)
    captions = []
    for i in range(BATCHES):
        features = pool[torch.randint(0, len(pool), (BATCH,), device=device)]
        captions.append(describe(model, features))
    captions = torch.cat(captions).cpu()
    print(captions.shape, "distinct words", captions.unique().numel())


if __name__ == "__main__":
    main()
