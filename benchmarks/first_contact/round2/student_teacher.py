"""Feature distillation: a small student matches the features of a big network."""
from dataclasses import dataclass
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass(frozen=True)
class Opts:
    batch: int = 32
    tokens: int = 256
    d_big: int = 1024
    d_small: int = 512
    lr: float = 5e-4


def stack(d, n):
    mods = []
    for _ in range(n):
        mods.append(nn.TransformerEncoderLayer(d, d // 64, 4 * d, 0.0, F.gelu, batch_first=True, norm_first=True))
    return nn.Sequential(*mods)


class Distiller(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.big = nn.Sequential(nn.Linear(128, o.d_big), stack(o.d_big, 3))
        self.small = nn.Sequential(nn.Linear(128, o.d_small), stack(o.d_small, 4))
        self.up = nn.Linear(o.d_small, o.d_big)

    def forward(self, x):
        wanted = self.big(x)  # flaw: grad-in-eval|wasted-gradient|none-yet(gradients-for-nothing)
        return F.mse_loss(self.up(self.small(x)).float(), wanted.float())  # flaw: grad-in-eval|wasted-gradient|none-yet(gradients-for-nothing)


def main(o: Opts = Opts()):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = Distiller(o).to(device)
    opt = torch.optim.AdamW([*net.small.parameters(), *net.up.parameters()], lr=o.lr, fused=True)
    x = torch.randn(4, o.batch, o.tokens, 128, device=device)
    for i in range(400):
        with torch.autocast(device, dtype=torch.bfloat16):
            loss = net(x[i % 4])
        net.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if i % 100 == 0:
            print(i, loss.item())


if __name__ == "__main__":
    main()
