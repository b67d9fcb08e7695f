import numpy as np
import torch
import torch.nn as nn

device = "cuda" if torch.cuda.is_available() else "cpu"
rng = np.random.default_rng(0)

OBS, ACT, HID, BATCH = 768, 32, 2048, 16384


class Q(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(OBS + ACT, HID), nn.SiLU(), nn.Linear(HID, HID), nn.SiLU(),
            nn.Linear(HID, HID), nn.SiLU(), nn.Linear(HID, 8))

    def forward(self, s, a):
        return self.body(torch.cat([s, a], -1)).float()


class Transitions:
    """Shuffled once, then read front to back as one block per update."""

    def __init__(self, n):
        self.table = rng.standard_normal((n, OBS + ACT), dtype=np.float32)
        self.ret = rng.standard_normal((n, 8), dtype=np.float32)
        self.at = 0

    def take(self, k):
        if self.at + k > len(self.table):
            self.at = 0
        s = slice(self.at, self.at + k)
        self.at += k
        return self.table[s], self.ret[s]


def update(q, opt, rows, ret):
    both = torch.from_numpy(rows).to(device)  # flaw: pageable-host-copy
    target = torch.from_numpy(ret).to(device)  # flaw: pageable-host-copy
    with torch.autocast(device, dtype=torch.bfloat16):
        value = q(both[:, :OBS], both[:, OBS:])
    loss = nn.functional.mse_loss(value, target)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    return loss.detach()


q = Q().to(device)
opt = torch.optim.Adam(q.parameters(), lr=3e-4, fused=True)
memory = Transitions(BATCH * 6)
for it in range(600):
    rows, ret = memory.take(BATCH)
    loss = update(q, opt, rows, ret)
    if it % 200 == 199:
        print(it, float(loss))
