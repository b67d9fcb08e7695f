"""Distil an ensemble of big tabular teachers into one student; the student's weights are averaged."""
import os
import torch
from torch import nn
import torch.nn.functional as F

small = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
cfg = dict(cols=8, teacher=32, student=16, members=2, batch=32, steps=30) if small else dict(
    cols=128, teacher=2048, student=1024, members=4, batch=16384, steps=80)


def tower(inp, width, out):
    return nn.Sequential(nn.Linear(inp, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(),
                         nn.LayerNorm(width), nn.Linear(width, width), nn.GELU(), nn.Linear(width, out))


class Ensemble(nn.Module):
    """The members' weights are stacked, so each layer is one batched product."""

    def __init__(self, members, cols, width, out):
        super().__init__()
        def stacked(i, o):
            return nn.Parameter(torch.randn(members, i, o, device=device) * i ** -0.5)
        self.w = nn.ParameterList([stacked(cols, width), stacked(width, width), stacked(width, out)])

    def forward(self, x):
        h = x.expand(self.w[0].size(0), -1, -1)
        h = F.gelu(torch.bmm(h, self.w[0]))
        h = F.gelu(torch.bmm(h, self.w[1]))
        return torch.bmm(h, self.w[2]).mean(0)


def averaged(model):
    return [p.detach().clone() for p in model.parameters()]


def main():
    torch.manual_seed(0)
    classes = 16
    teacher = Ensemble(cfg["members"], cfg["cols"], cfg["teacher"], classes).requires_grad_(False)
    if device == "cuda":
        teacher = teacher.bfloat16()
    student = tower(cfg["cols"], cfg["student"], classes).to(device)
    live, mean = list(student.parameters()), averaged(student)
    opt = torch.optim.AdamW(live, lr=1e-3, fused=True)
    pool = torch.randn(6, cfg["batch"], cfg["cols"], device=device)
    for step in range(cfg["steps"]):
        x = pool[step % 6]
        with torch.no_grad():
            soft = F.softmax(teacher(x.to(teacher.w[0].dtype)).float() / 2, -1)
        with torch.autocast(device, torch.bfloat16):
            guess = student(x)
        loss = F.cross_entropy(guess.float() / 2, soft)
        loss.backward()
        opt.step()
        opt.zero_grad()
        with torch.no_grad():
            torch._foreach_lerp_(mean, live, 0.01)
        if step % 40 == 0:
            print("step", step, "distillation loss", loss.item())
    with torch.no_grad():
        for p, m in zip(live, mean):
            p.copy_(m)
        with torch.autocast(device, torch.bfloat16):
            agree = (student(pool[0]).argmax(-1) == teacher(pool[0].to(teacher.w[0].dtype)).argmax(-1)).float().mean()
    print("agreement", agree.item())


if __name__ == "__main__":
    main()
