import os
import torch as t
import torch.nn as nn
import torch.nn.functional as F

DEFAULTS = dict(vocab=32001, d=512, heads=8, layers=4, ctx=512, bsz=32, steps=80)  # flaw: misaligned-matmul
SMALL = dict(vocab=131, d=32, heads=2, layers=1, ctx=16, bsz=2, steps=30)
hp = SMALL if os.environ.get("SMALL") == "1" else DEFAULTS
dev = t.device("cuda" if t.cuda.is_available() else "cpu")


def block(d, heads):
    return nn.ModuleDict(
        dict(ln1=nn.LayerNorm(d), qkv=nn.Linear(d, 3 * d), proj=nn.Linear(d, d),
             ln2=nn.LayerNorm(d), fc=nn.Linear(d, 4 * d), out=nn.Linear(4 * d, d))
    )


class LM(nn.Module):
    def __init__(self, vocab, d, heads, layers, ctx):
        super().__init__()
        self.heads = heads
        self.wte, self.wpe = nn.Embedding(vocab, d), nn.Embedding(ctx, d)
        self.blocks = nn.ModuleList(block(d, heads) for _ in range(layers))
        self.ln = nn.LayerNorm(d)
        self.lm_head = nn.Linear(d, vocab, bias=False)

    def mix(self, m, x):
        b, n, d = x.shape
        qkv = m["qkv"](m["ln1"](x)).view(b, n, 3, self.heads, d // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        return m["proj"](F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, n, d))

    def forward(self, idx):
        x = self.wte(idx) + self.wpe.weight
        for m in self.blocks:
            x = x + self.mix(m, x)
            x = x + m["out"](F.gelu(m["fc"](m["ln2"](x))))
        return self.lm_head(self.ln(x))


t.manual_seed(1337)
model = LM(hp["vocab"], hp["d"], hp["heads"], hp["layers"], hp["ctx"]).to(dev)
opt = t.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.01, fused=True)
book = t.randint(hp["vocab"], (hp["bsz"] * 200, hp["ctx"] + 1), device=dev)


def batches(n):
    for _ in range(n):
        pick = t.randint(book.shape[0], (hp["bsz"],), device=dev)
        rows = book[pick]
        yield rows[:, :-1], rows[:, 1:]


for i, (x, y) in enumerate(batches(hp["steps"])):
    with t.autocast(dev.type, dtype=t.bfloat16):
        logits = model(x)
        loss = F.cross_entropy(logits.view(-1, hp["vocab"]), y.reshape(-1))
    opt.zero_grad()
    loss.backward()
    opt.step()
    if i % 40 == 0:
        print("iter", i, "loss", round(loss.item(), 4))
