"""A decoder in the manner of Llama, in bfloat16 throughout."""
import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, DIM, HEADS, DEPTH, SEQ, BATCH = 8192, 1024, 16, 6, 2048, 6
device = "cuda" if torch.cuda.is_available() else "cpu"


class Scale(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.g = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        h = x.float()
        inv = (h.square().mean(dim=-1, keepdim=True) + self.eps).rsqrt()  # flaw: hand-written-norm
        return (h * inv).to(x.dtype) * self.g  # flaw: hand-written-norm


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.pre, self.post = Scale(DIM), Scale(DIM)
        self.qkv = nn.Linear(DIM, 3 * DIM, bias=False)
        self.o = nn.Linear(DIM, DIM, bias=False)
        self.gate_up = nn.Linear(DIM, 2 * 2816, bias=False)
        self.down = nn.Linear(2816, DIM, bias=False)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.pre(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(b, t, DIM))
        gate, up = self.gate_up(self.post(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, DIM)
        self.blocks = nn.ModuleList([Block() for _ in range(DEPTH)])
        self.final = Scale(DIM)
        self.lm_head = nn.Linear(DIM, VOCAB, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        for b in self.blocks:
            x = b(x)
        return self.lm_head(self.final(x))


def batches(n):
    pool = torch.randint(0, VOCAB, (32, BATCH, SEQ + 1), device=device)
    for i in range(n):
        yield pool[i % 32, :, :-1], pool[i % 32, :, 1:]


model = Decoder().to(device=device, dtype=torch.bfloat16)
opt = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), fused=True)
for inputs, labels in batches(300):
    loss = F.cross_entropy(model(inputs).flatten(0, 1), labels.flatten())
    loss.backward()
    opt.step()
    opt.zero_grad(set_to_none=True)
