"""Distil a wide acoustic model into a narrow one."""
import os

import torch
import torch.nn.functional as F
from torch import nn

SMALL = bool(os.environ.get("TINY"))
device = "cuda" if torch.cuda.is_available() else "cpu"


def acoustic(width, depth, mels, units):
    layer = nn.TransformerEncoderLayer(width, 8, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
    return nn.Sequential(
        nn.Linear(mels, width),
        nn.TransformerEncoder(layer, depth, enable_nested_tensor=False),
        nn.Linear(width, units),
    )


class Distiller:
    def __init__(self, teacher, student, heat=2.0):
        self.teacher = teacher.eval().requires_grad_(False)
        self.student, self.heat = student, heat
        self.opt = torch.optim.AdamW(student.parameters(), lr=2e-4, fused=True)

    def step(self, frames):
        with torch.autocast(device, dtype=torch.bfloat16):
            with torch.no_grad():
                wanted = self.teacher(frames)
            given = self.student(frames)
            loss = F.kl_div(
                F.log_softmax(given / self.heat, -1).flatten(0, 1),
                F.log_softmax(wanted / self.heat, -1).flatten(0, 1),
                reduction="batchmean", log_target=True,
            )
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        return loss.detach()


def main():
    rows, frames, mels, units, steps = (2, 16, 8, 12, 4) if SMALL else (32, 512, 80, 512, 500)
    torch.manual_seed(0)
    d = Distiller(
        acoustic(32 if SMALL else 1024, 1 if SMALL else 8, mels, units).to(device),
        acoustic(16 if SMALL else 512, 1 if SMALL else 6, mels, units).to(device),
    )
    bank = torch.randn(16, rows, frames, mels, device=device)
    losses = [d.step(bank[i % 16]) for i in range(steps)]
    print(f"first {losses[0].item():.4f} mean {torch.stack(losses).mean().item():.4f}")


main()
