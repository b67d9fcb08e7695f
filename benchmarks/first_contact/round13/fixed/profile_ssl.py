"""Self-distillation (student and slow teacher) on expression profiles, with a centred teacher."""
import copy
import os

import torch
from torch import nn
from torch.nn import functional as F

tiny = os.environ.get("TINY") == "1"
HP = {
    "profiles": 256 if tiny else 131072, "features": 64 if tiny else 2048, "width": 64 if tiny else 4096,
    "prototypes": 32 if tiny else 1024, "batch": 32 if tiny else 4096, "steps": 8 if tiny else 1000,
    "lr": 2e-4, "momentum": 0.996, "t_student": 0.1, "t_teacher": 0.05,
}
cuda = torch.cuda.is_available()
dev = "cuda" if cuda else "cpu"
torch.set_float32_matmul_precision("high")


def tower(hp):
    w = hp["width"]
    return nn.Sequential(nn.Linear(hp["features"], w), nn.GELU(), nn.LayerNorm(w), nn.Linear(w, w), nn.GELU(),
                         nn.LayerNorm(w), nn.Linear(w, w), nn.GELU(), nn.Linear(w, hp["prototypes"], bias=False))


class Centre:
    """Mean teacher output over all the training so far."""

    def __init__(self, hp):
        self.value = torch.zeros(hp["prototypes"], device=dev)
        self.total = torch.zeros_like(self.value)
        self.count = 0

    @torch.no_grad()
    def update(self, out):
        self.total += out.sum(0, dtype=torch.float32)
        self.count += len(out)
        self.value = self.total / self.count


class SelfDistiller:
    def __init__(self, hp):
        self.hp = hp
        self.student = tower(hp).to(dev)
        self.teacher = copy.deepcopy(self.student).requires_grad_(False)
        self.centre = Centre(hp)
        self.opt = torch.optim.AdamW(self.student.parameters(), lr=hp["lr"], fused=cuda)
        self.pairs = list(self.teacher.parameters()), list(self.student.parameters())

    def views(self, x):
        return F.dropout(x, 0.2), F.dropout(x, 0.2)

    def step(self, x):
        hp = self.hp
        a, b = self.views(x)
        with torch.autocast(dev, torch.bfloat16, enabled=cuda):
            with torch.no_grad():
                t = self.teacher(a)
                target = ((t - self.centre.value) / hp["t_teacher"]).softmax(-1)
            loss = F.cross_entropy(self.student(b) / hp["t_student"], target)
        loss.backward()
        self.opt.step()
        self.opt.zero_grad(set_to_none=True)
        with torch.no_grad():
            torch._foreach_lerp_(self.pairs[0], self.pairs[1], 1 - hp["momentum"])
        self.centre.update(t)
        return loss.detach()


def main(hp=HP):
    torch.manual_seed(2)
    kind = torch.bfloat16 if cuda else torch.float32
    basis = torch.randn(24, hp["features"], device=dev)
    x = (torch.randn(hp["profiles"], 24, device=dev) @ basis * 0.2).to(kind)
    trainer = SelfDistiller(hp)
    losses = torch.zeros(hp["steps"], device=dev)
    for i in range(hp["steps"]):
        pick = torch.randint(hp["profiles"], (hp["batch"],), device=dev)
        losses[i] = trainer.step(x[pick])
    print("loss %.4f -> %.4f, centre norm %.4f" % (losses[0].item(), losses[-1].item(), trainer.centre.value.norm().item()))


if __name__ == "__main__":
    main()
