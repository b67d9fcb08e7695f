"""Distil a 20-layer language model into a 4-layer student with the softened KL loss."""

import torch
from torch import nn
from torch.nn import functional as F

CUDA = torch.cuda.is_available()
SCALE = 1 if CUDA else 32
DEVICE = "cuda" if CUDA else "cpu"

VOCAB = 16384 // SCALE
WIDTH = 1024 // SCALE
HEADS = 16 if CUDA else 2
SEQ, BATCH = 1024 // SCALE, (8 if CUDA else 2)
STEPS = 120 if CUDA else 6
TEMPERATURE, ALPHA = 2.0, 0.7


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.mlp(self.n2(x))


class LM(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, WIDTH)
        self.pos = nn.Parameter(torch.randn(SEQ, WIDTH) * 0.02)
        self.blocks = nn.Sequential(*[Block() for _ in range(depth)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCAB, bias=False)

    def forward(self, ids):
        return self.head(self.norm(self.blocks(self.tok(ids) + self.pos)))


def soft_loss(student_logits, teacher_logits):
    return (
        F.kl_div(
            F.log_softmax(student_logits / TEMPERATURE, dim=-1),
            F.softmax(teacher_logits / TEMPERATURE, dim=-1),
            reduction="batchmean",
        )
        * TEMPERATURE**2
        / SEQ
    )


def distill(teacher, student, corpus):
    opt = torch.optim.AdamW(student.parameters(), lr=3e-4, weight_decay=0.1, fused=CUDA)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, 3e-4, total_steps=STEPS)
    window = torch.arange(SEQ + 1, device=DEVICE)
    for step in range(STEPS):
        starts = torch.randint(0, len(corpus) - SEQ - 1, (BATCH, 1), device=DEVICE)
        chunk = corpus[starts + window]
        ids, target = chunk[:, :-1], chunk[:, 1:]
        with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=CUDA):
            student_logits = student(ids)
            teacher_logits = teacher(ids)  # flaw: none-yet(backward-into-teacher)|grad-in-eval|wasted-gradient
            hard = F.cross_entropy(student_logits.flatten(0, 1), target.flatten())
            loss = ALPHA * soft_loss(student_logits, teacher_logits) + (1 - ALPHA) * hard
        loss.backward()
        nn.utils.clip_grad_norm_(student.parameters(), 1.0)
        opt.step()
        sched.step()
        opt.zero_grad(set_to_none=True)
        if step % 30 == 0:
            print(f"{step:4d}  loss {loss.item():.4f}  hard {hard.item():.4f}")
    return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    with torch.device(DEVICE):
        teacher = LM(20 if CUDA else 3).eval()  # flaw: none-yet(backward-into-teacher)|grad-in-eval|wasted-gradient
        student = LM(4 if CUDA else 1).train()
    corpus = torch.randint(0, VOCAB, (4_000_000 // SCALE,), device=DEVICE)
    print(f"final {distill(teacher, student, corpus):.4f}")
