"""Which spice goes with which dish: two towers, in-batch negatives, sparse tables beside a dense network."""
import os

import torch
import torch.nn.functional as F
from torch import nn

TINY = os.environ.get("TINY") == "1"
DEV = "cuda" if torch.cuda.is_available() else "cpu"
if TINY:
    DISHES, SPICES, DIM, LOT, STEPS, HIDDEN = 500, 300, 16, 32, 4, 32
else:
    DISHES, SPICES, DIM, LOT, STEPS, HIDDEN = 2_000_000, 400_000, 128, 16384, 300, 4096


def tower(rows):
    table = nn.EmbeddingBag(rows, DIM, mode="mean", sparse=True)
    net = nn.Sequential(nn.Linear(DIM, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, DIM))
    return nn.ModuleDict(dict(table=table, net=net))


def main():
    torch.manual_seed(91)
    torch.set_float32_matmul_precision("high")
    with torch.device(DEV):
        dish, spice = tower(DISHES), tower(SPICES)
    tables = torch.optim.Adagrad([dish["table"].weight, spice["table"].weight], lr=0.02)
    nets = torch.optim.AdamW([*dish["net"].parameters(), *spice["net"].parameters()], lr=2e-4, fused=True)
    g = torch.Generator(device=DEV).manual_seed(92)
    target = torch.arange(LOT, device=DEV)
    history = torch.zeros(STEPS, device=DEV)
    for step in range(STEPS):
        d = torch.randint(0, DISHES, (LOT, 4), generator=g, device=DEV)
        s = d.sum(1, keepdim=True).remainder(SPICES).expand(LOT, 2).contiguous()
        a, b = dish["table"](d), spice["table"](s)
        with torch.autocast(DEV, dtype=torch.bfloat16):
            a, b = F.normalize(dish["net"](a), dim=-1), F.normalize(spice["net"](b), dim=-1)
            loss = F.cross_entropy((a * 20) @ b.T, target)
        tables.zero_grad(set_to_none=True)
        nets.zero_grad(set_to_none=True)
        loss.backward()
        tables.step()
        nets.step()
        history[step] = loss.detach()
    print("loss %.4f -> %.4f" % (history[0].item(), history[-1].item()))


if __name__ == "__main__":
    main()
