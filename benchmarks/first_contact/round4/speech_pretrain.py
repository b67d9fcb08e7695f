# masked-frame pretraining: a student predicts what a slowly moving copy of itself sees
import copy
import os

import torch
import torch.nn as nn
import torch.nn.functional as F

small = "SMALL" in os.environ and os.environ["SMALL"] != "0"
D = 64 if small else 1280
DEPTH = 2 if small else 10
HEADS = 4 if small else 20
FRAMES = 32 if small else 512
BATCH = 2 if small else 8
MELS = 80
STEPS = 30 if small else 80
device = "cuda" if torch.cuda.is_available() else "cpu"


class EncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1 = nn.LayerNorm(D)
        self.ln2 = nn.LayerNorm(D)
        self.qkv = nn.Linear(D, 3 * D)
        self.o = nn.Linear(D, D)
        self.fc1 = nn.Linear(D, 4 * D)
        self.fc2 = nn.Linear(4 * D, D)

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, HEADS, D // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
        a = F.scaled_dot_product_attention(q, k, v)
        x = x + self.o(a.transpose(1, 2).reshape(b, t, D))
        return x + self.fc2(F.gelu(self.fc1(self.ln2(x))))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(MELS, D)
        self.pos = nn.Parameter(torch.zeros(1, FRAMES, D))
        self.gap = nn.Parameter(torch.zeros(D))
        self.body = nn.ModuleList(EncoderLayer() for _ in range(DEPTH))
        self.norm = nn.LayerNorm(D)

    def forward(self, mel, hidden=None):
        x = self.inp(mel)
        if hidden is not None:
            x = torch.where(hidden.unsqueeze(-1), self.gap.to(x.dtype), x)
        x = x + self.pos
        for layer in self.body:
            x = layer(x)
        return self.norm(x)


class SlowCopy:
    def __init__(self, source, start=0.99, end=0.9999, over=1000):
        self.net = copy.deepcopy(source).eval().requires_grad_(False)
        self.start, self.end, self.over, self.n = start, end, over, 0

    @torch.no_grad()
    def follow(self, source):
        keep = self.start + (self.end - self.start) * min(1.0, self.n / self.over)
        self.n += 1
        for mine, theirs in zip(self.net.parameters(), source.parameters()):  # flaw: parameter-loop
            mine.copy_(keep * mine + (1 - keep) * theirs)  # flaw: parameter-loop

    @torch.no_grad()
    def __call__(self, mel):
        return self.net(mel)


torch.manual_seed(0)
student = Encoder().to(device)
head = nn.Linear(D, D).to(device)
target = SlowCopy(student)
opt = torch.optim.AdamW([*student.parameters(), *head.parameters()], lr=1e-4, betas=(0.9, 0.98), fused=True)
corpus = torch.randn(BATCH * 16, FRAMES, MELS, device=device)

for step in range(STEPS):
    pick = torch.randint(corpus.shape[0], (BATCH,), device=device)
    mel = corpus[pick]
    hidden = torch.rand(BATCH, FRAMES, device=device) < 0.5
    with torch.autocast(device, torch.bfloat16):
        seen = target(mel)
        guess = head(student(mel, hidden))
        gap = F.smooth_l1_loss(guess.float(), seen.float(), reduction="none").mean(-1)
        loss = (gap * hidden).sum() / hidden.sum()
    loss.backward()
    opt.step()
    opt.zero_grad()
    target.follow(student)
    if step % 20 == 19:
        print(f"{step + 1}: {loss.item():.4f}")
