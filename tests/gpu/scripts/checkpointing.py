"""Activation checkpointing of long sequences; each decoder layer is compiled."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, IterableDataset

WIDTH, HEADS, LENGTH, BATCH = 2048, 16, 8192, 2


class Documents(IterableDataset):
    def __iter__(self):
        text = torch.randint(0, 512, (LENGTH * 64,))
        while True:
            start = int(torch.randint(0, len(text) - LENGTH - 1, ()))
            yield text[start : start + LENGTH], text[start + 1 : start + LENGTH + 1]


class SwiGLU(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_up = nn.Linear(WIDTH, 8 * WIDTH, bias=False)
        self.down = nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        gate, up = self.gate_up(x).chunk(2, -1)
        return self.down(F.silu(gate) * up)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)])
        self.qkv, self.out, self.mlp = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH), SwiGLU()

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(b, n, 3, HEADS, d // HEADS).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # kernel: flash
        x = x + self.out(y.transpose(1, 2).reshape(b, n, d))
        return x + self.mlp(self.norms[1](x))


class Model(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        self.words, self.head = nn.Embedding(512, WIDTH), nn.Linear(WIDTH, 512)
        self.decoders = nn.ModuleList(Decoder() for _ in range(depth))

    def forward(self, tokens):
        x = self.words(tokens)
        for decoder in self.decoders:
            x = checkpoint(decoder, x, use_reentrant=False)
        return self.head(x)


model = Model().to("cuda", torch.bfloat16)
for decoder in model.decoders:
    decoder.compile()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
batches = DataLoader(Documents(), BATCH, num_workers=2, pin_memory=True)
for step, (tokens, targets) in enumerate(batches):
    scores = model(tokens.to("cuda", non_blocking=True))
    loss = F.cross_entropy(scores.flatten(0, 1), targets.to("cuda", non_blocking=True).flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if step >= 5000:
        break
