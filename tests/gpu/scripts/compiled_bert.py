"""A compiled BERT of four layers; each marked line makes kernels with a name of its own."""

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, HEADS, LAYERS, LENGTH, BATCH, WORDS = 512, 8, 4, 128, 32, 8192


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.split = nn.Linear(WIDTH, 3 * WIDTH)
        self.join = nn.Linear(WIDTH, WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)
        self.norm1 = nn.LayerNorm(WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH)

    def forward(self, x):
        parts = self.split(x).view(BATCH, LENGTH, 3, HEADS, WIDTH // HEADS)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        h = F.scaled_dot_product_attention(query, key, value)  # kernel: flash
        x = self.norm1(x + self.join(h.transpose(1, 2).flatten(2)))
        h = F.gelu(self.up(x))  # kernel: gelu
        return self.norm2(x + self.down(h))


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        self.places = nn.Parameter(torch.zeros(LENGTH, WIDTH))
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.pool = nn.Linear(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens):
        x = self.words(tokens) + torch.sin(self.places)  # kernel: sin
        for layer in self.layers:
            x = layer(x)
        x = torch.atan(self.pool(x))  # kernel: atan
        return self.head(x)


model = Bert().cuda()
compiled = torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
tokens = torch.randint(WORDS, (BATCH, LENGTH), device="cuda")
for step in range(2000):
    with torch.autocast("cuda", torch.bfloat16):
        logits = compiled(tokens)
        loss = F.cross_entropy(logits.flatten(0, 1), tokens.flatten())  # only: aten::nll_loss_forward
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
