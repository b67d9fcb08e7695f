"""Batch captioning: a decoder writes captions token by token, greedily, for a batch of image prefixes."""
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.functional import gelu, layer_norm, scaled_dot_product_attention


@dataclass
class DecoderConfig:
    vocab: int = 16_384
    dim: int = 1024
    heads: int = 16
    layers: int = 6
    max_len: int = 192
    prefix: int = 64
    batch: int = 384
    batches: int = 2


TINY = DecoderConfig(vocab=64, dim=32, heads=2, layers=2, max_len=16, prefix=6, batch=3, batches=1)


class Cache:
    """Keys and values of the tokens seen so far, one pair of tensors for each layer."""

    def __init__(self, cfg, device, dtype):
        shape = (cfg.layers, cfg.batch, cfg.heads, cfg.max_len, cfg.dim // cfg.heads)
        self.k = torch.zeros(shape, device=device, dtype=dtype)
        self.v = torch.zeros(shape, device=device, dtype=dtype)

    def append(self, layer, k, v, start):
        end = start + k.shape[2]
        self.k[layer, :, :, start:end] = k
        self.v[layer, :, :, start:end] = v
        return self.k[layer, :, :, :end], self.v[layer, :, :, :end]


class DecoderLayer(nn.Module):
    def __init__(self, cfg, index):
        super().__init__()
        self.index, self.heads = index, cfg.heads
        self.ln1, self.ln2 = nn.LayerNorm(cfg.dim), nn.LayerNorm(cfg.dim)
        self.qkv = nn.Linear(cfg.dim, 3 * cfg.dim)
        self.out = nn.Linear(cfg.dim, cfg.dim)
        self.up = nn.Linear(cfg.dim, 4 * cfg.dim)
        self.down = nn.Linear(4 * cfg.dim, cfg.dim)

    def forward(self, x, cache, start):
        b, n, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if cache is not None:
            k, v = cache.append(self.index, k, v, start)
        a = scaled_dot_product_attention(q, k, v, is_causal=n > 1)
        x = x + self.out(a.transpose(1, 2).reshape(b, n, d))
        return x + self.down(gelu(self.up(self.ln2(x))))


class Captioner(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.embed = nn.Embedding(cfg.vocab, cfg.dim)
        self.pos = nn.Parameter(torch.randn(cfg.max_len, cfg.dim) * 0.02)
        self.layers = nn.ModuleList(DecoderLayer(cfg, i) for i in range(cfg.layers))

    def forward(self, x, cache=None, start=0):
        """Embedded inputs (batch, n, dim) at positions start.. -> scores of the token after the last one."""
        x = x + self.pos[start:start + x.shape[1]]
        for layer in self.layers:
            x = layer(x, cache, start)
        last = layer_norm(x[:, -1], (self.cfg.dim,))
        return last @ self.embed.weight.t()


@torch.inference_mode()
def write_captions(model, prefix, cfg):
    """Greedy captions (batch, max_len - prefix) for image prefixes (batch, prefix, dim)."""
    captions = torch.empty(cfg.batch, cfg.max_len - cfg.prefix, dtype=torch.long, device=prefix.device)
    cache = Cache(cfg, prefix.device, prefix.dtype)
    scores = model(prefix, cache)
    for t in range(cfg.max_len - cfg.prefix):
        token = scores.argmax(-1)
        captions[:, t] = token
        end = cfg.prefix + t + 1
        if end < cfg.max_len:
            scores = model(model.embed(token)[:, None], cache, end - 1)
    return captions


def main():
    cuda = torch.cuda.is_available()
    cfg = DecoderConfig() if cuda else TINY
    device = torch.device("cuda" if cuda else "cpu")
    dtype = torch.bfloat16 if cuda else torch.float32
    torch.manual_seed(0)
    model = Captioner(cfg).to(device, dtype).eval()
    gen = torch.Generator(device).manual_seed(4)
    checksums = []
    for _ in range(cfg.batches):
        prefix = torch.randn(cfg.batch, cfg.prefix, cfg.dim, device=device, generator=gen).to(dtype)
        captions = write_captions(model, prefix, cfg)
        checksums.append(captions[:, ::7].float().mean())
    print("mean token id of each batch:", [round(c.item(), 2) for c in checksums])
    print("first caption:", captions[0, :8].tolist())


if __name__ == "__main__":
    main()
