"""Distil a large masked language model into a small one with temperature-scaled KL."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
torch.set_float32_matmul_precision("high")

DEV = "cuda" if torch.cuda.is_available() else "cpu"
SCALE = 1 if DEV == "cuda" else 16
VOCAB = 8192 // SCALE
SEQ = 256 // SCALE
BATCH = 48 // SCALE
STEPS = 120 if DEV == "cuda" else 4
TEMPERATURE = 2.0


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm_a = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.norm_m = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 4 * dim)
        self.down = nn.Linear(4 * dim, dim)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm_a(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.norm_m(x))))


class Encoder(nn.Module):
    def __init__(self, dim, depth, heads):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.position = nn.Parameter(torch.randn(SEQ, dim) * 0.02)
        self.layers = nn.Sequential(*[Layer(dim, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, VOCAB)

    def forward(self, ids):
        return self.head(self.norm(self.layers(self.embed(ids) + self.position)))


teacher = Encoder(1024 // SCALE, 8 if DEV == "cuda" else 2, 16 // min(SCALE, 8)).to(DEV).eval()
student = Encoder(512 // SCALE, 4 if DEV == "cuda" else 1, 8 // min(SCALE, 4)).to(DEV)
optimizer = torch.optim.AdamW(student.parameters(), lr=3e-4, fused=DEV == "cuda")

corpus = torch.randint(4, VOCAB, (4096 // SCALE, SEQ), device=DEV)


def corrupt(ids):
    mask = torch.rand(ids.shape, device=ids.device) < 0.15
    return torch.where(mask, 3, ids)


def distillation_loss(student_logits, teacher_logits):
    s = F.log_softmax(student_logits / TEMPERATURE, dim=-1)
    t = F.log_softmax(teacher_logits / TEMPERATURE, dim=-1)
    loss = F.kl_div(s.flatten(0, 1), t.flatten(0, 1), log_target=True, reduction="batchmean")
    return loss * TEMPERATURE**2


for step in range(STEPS):
    rows = torch.randint(corpus.size(0), (BATCH,), device=DEV)
    inputs = corrupt(corpus[rows])
    with torch.autocast(DEV, dtype=torch.bfloat16):
        soft = teacher(inputs)  # flaw: none-yet(backward-into-frozen-model)|grad-in-eval|wasted-gradient
        out = student(inputs)
        loss = distillation_loss(out, soft)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if step % 40 == 0:
        print(f"step {step} kd loss {loss.item():.4f}")

print(f"final kd loss {loss.item():.5f}")
