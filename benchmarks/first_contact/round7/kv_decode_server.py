"""Batched greedy decoding for a fixed set of concurrent sessions."""

from dataclasses import dataclass, field

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class ServeConfig:
    sessions: int = 64
    prompt: int = 768
    answer: int = 160
    dim: int = 1024
    heads: int = 16
    layers: int = 8
    vocab: int = 16384
    device: str = "cuda"
    dtype: torch.dtype = torch.bfloat16
    dims: tuple = field(default=())


def tiny():
    return ServeConfig(3, 8, 8, 32, 2, 2, 64, "cpu", torch.float32)


class KVCache:
    """Keys and values of one layer for all sessions."""

    def __init__(self, cfg):
        self.keys = None
        self.values = None

    def update(self, k, v):
        if self.keys is None:
            self.keys, self.values = k, v
        else:
            self.keys = torch.cat([self.keys, k], dim=2)  # flaw: cat-in-loop
            self.values = torch.cat([self.values, v], dim=2)  # flaw: cat-in-loop
        return self.keys, self.values


class DecoderLayer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.heads = cfg.heads
        self.norm1 = nn.RMSNorm(cfg.dim)
        self.qkv = nn.Linear(cfg.dim, 3 * cfg.dim, bias=False)
        self.proj = nn.Linear(cfg.dim, cfg.dim, bias=False)
        self.norm2 = nn.RMSNorm(cfg.dim)
        self.up = nn.Linear(cfg.dim, 4 * cfg.dim, bias=False)
        self.down = nn.Linear(4 * cfg.dim, cfg.dim, bias=False)

    def forward(self, x, cache):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        k, v = cache.update(k, v)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.silu(self.up(self.norm2(x))))


class Decoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.embed = nn.Embedding(cfg.vocab, cfg.dim)
        self.layers = nn.ModuleList(DecoderLayer(cfg) for _ in range(cfg.layers))
        self.norm = nn.RMSNorm(cfg.dim)
        self.head = nn.Linear(cfg.dim, cfg.vocab, bias=False)

    def forward(self, ids, caches):
        x = self.embed(ids)
        for layer, cache in zip(self.layers, caches):
            x = layer(x, cache)
        return self.head(self.norm(x[:, -1:]))


class Server:
    def __init__(self, cfg):
        self.cfg = cfg
        self.model = Decoder(cfg).to(cfg.device, cfg.dtype).eval()

    @torch.inference_mode()
    def answer(self, prompts):
        caches = [KVCache(self.cfg) for _ in range(self.cfg.layers)]
        token = self.model(prompts, caches).argmax(-1)
        out = torch.empty(
            prompts.size(0), self.cfg.answer, dtype=torch.long, device=prompts.device
        )
        for i in range(self.cfg.answer):
            out[:, i : i + 1] = token
            token = self.model(token, caches).argmax(-1)
        return out


def main():
    torch.manual_seed(0)
    cfg = ServeConfig() if torch.cuda.is_available() else tiny()
    server = Server(cfg)
    for turn in range(8 if cfg.device == "cuda" else 2):
        prompts = torch.randint(cfg.vocab, (cfg.sessions, cfg.prompt), device=cfg.device)
        answers = server.answer(prompts)
        print(f"turn {turn}: {answers.numel()} tokens, checksum {answers.sum().item()}")


if __name__ == "__main__":
    main()
