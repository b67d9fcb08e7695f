"""A small decoder language model on synthetic verse, trained with gradient accumulation of one."""
import math
import os

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
VOCAB, SPAN, WIDTH, HEADS, LAYERS, BATCH, STEPS = (64, 16, 32, 2, 2, 2, 5) if TINY else (8192, 1024, 1024, 16, 8, 16, 280)


class Line(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH, bias=False), nn.LayerNorm(WIDTH, bias=False)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCAB, WIDTH), nn.Embedding(SPAN, WIDTH)
        self.lines = nn.Sequential(*(Line() for _ in range(LAYERS)))
        self.ln = nn.LayerNorm(WIDTH, bias=False)
        for p in self.parameters():
            if p.ndim > 1:
                nn.init.normal_(p, std=0.02 / math.sqrt(LAYERS))

    def forward(self, ids):
        return F.linear(self.ln(self.lines(self.words(ids) + self.places.weight[: ids.shape[1]])), self.words.weight)


def verses():
    g = torch.Generator(device).manual_seed(19)
    poem = torch.randint(0, VOCAB, (BATCH * 8, SPAN + 1), device=device, generator=g)
    while True:
        for chunk in poem.split(BATCH):
            yield chunk[:, :-1], chunk[:, 1:]


def main():
    torch.manual_seed(19)
    model = Decoder().to(device)
    decayed = [p for p in model.parameters() if p.ndim > 1]
    plain = [p for p in model.parameters() if p.ndim <= 1]
    opt = torch.optim.AdamW([dict(params=decayed, weight_decay=0.1), dict(params=plain, weight_decay=0.0)], lr=3e-4, betas=(0.9, 0.95), fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1, (s + 1) / 50))
    losses = torch.zeros(STEPS, device=device)
    for step, (ids, following) in zip(range(STEPS), verses()):
        with torch.autocast(device, torch.bfloat16):
            loss = F.cross_entropy(model(ids).flatten(0, 1), following.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
        schedule.step()
        losses[step] = loss.detach()
    print("first and last loss", [round(v, 3) for v in losses[[0, -1]].tolist()])


if __name__ == "__main__":
    main()
