"""Self-supervised speech: student regresses the features of a slowly moving teacher."""
import copy
import os

import torch
import torch.nn as nn
import torch.nn.functional as F


def hparams():
    if os.environ.get("SMALL") == "1":
        return dict(b=2, t=20, mel=8, d=16, heads=2, layers=2, steps=30)
    return dict(b=16, t=400, mel=80, d=384, heads=6, layers=16, steps=120)


class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class Encoder(nn.Module):
    def __init__(self, mel, d, heads, layers, t, **_):
        super().__init__()
        self.inp = nn.Linear(mel, d)
        self.pos = nn.Parameter(torch.randn(t, d) * 0.02)
        self.blocks = nn.Sequential(*[Block(d, heads) for _ in range(layers)])

    def forward(self, x):
        return self.blocks(self.inp(x) + self.pos)


class SelfDistiller:
    def __init__(self, hp, device):
        self.student = Encoder(**hp).to(device)
        self.teacher = copy.deepcopy(self.student).requires_grad_(False)
        self.predictor = nn.Linear(hp["d"], hp["d"]).to(device)
        trainable = [*self.student.parameters(), *self.predictor.parameters()]
        self.opt = torch.optim.AdamW(trainable, lr=2e-4, fused=True)
        self.device = device
        self.tau = 0.999

    @torch.no_grad()
    def move_teacher(self):
        torch._foreach_lerp_(list(self.teacher.parameters()), list(self.student.parameters()), 1.0 - self.tau)

    def update(self, mel, mask):
        with torch.autocast(self.device, dtype=torch.bfloat16):
            with torch.no_grad():
                goal = F.layer_norm(self.teacher(mel), self.teacher.pos.shape[1:])
            guess = self.predictor(self.student(mel * mask))
        loss = F.mse_loss(guess.float(), goal.float())
        loss.backward()
        self.opt.step()
        self.opt.zero_grad()
        self.move_teacher()
        return loss.detach()


def main():
    hp = hparams()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    job = SelfDistiller(hp, device)
    mels = torch.randn(4, hp["b"], hp["t"], hp["mel"], device=device)
    for step in range(hp["steps"]):
        mask = (torch.rand(hp["b"], hp["t"], 1, device=device) > 0.4).float()
        loss = job.update(mels[step % 4], mask)
        if step % 40 == 0:
            print(f"step {step}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
