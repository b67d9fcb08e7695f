"""Roll out a learned soft-finger simulator for a grid of control policies."""
import os
import torch
import torch.nn as nn

QUICK = os.environ.get("SMALL") == "1"
POLICIES = 16 if QUICK else 512
STATE, CTRL, HID = (12, 4, 32) if QUICK else (48, 16, 256)
HORIZON = 8 if QUICK else 100
ROUNDS = 30 if QUICK else 80


class Dynamics(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(STATE + CTRL, HID)
        self.mid = nn.ModuleList([nn.Linear(HID, HID) for _ in range(4)])
        self.norm = nn.LayerNorm(HID)
        self.out = nn.Linear(HID, STATE)

    def forward(self, s, a):
        h = torch.relu(self.inp(torch.cat((s, a), dim=-1)))
        for m in self.mid:
            h = torch.relu(m(h))
        return s + 0.05 * self.out(self.norm(h))


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.randn(POLICIES, STATE, CTRL) / STATE ** 0.5)

    def forward(self, s):
        return torch.bmm(s.unsqueeze(1), self.gain).squeeze(1).tanh()


def rollout(dyn, pol, s):
    cost = torch.zeros(len(s), device=s.device, dtype=s.dtype)
    for _ in range(HORIZON):
        a = pol(s)
        s = dyn(s, a)
        cost = cost + s.square().mean(-1) + 0.01 * a.square().mean(-1)
    return s, cost


def graphed(dyn, pol, s):
    """The whole rollout as one CUDA graph that reads from `s`."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            rollout(dyn, pol, s)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = rollout(dyn, pol, s)

    def replay():
        graph.replay()
        return result

    return replay


@torch.no_grad()
def search():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    torch.manual_seed(4)
    dyn, pol = Dynamics().to(device, dtype).eval(), Policy().to(device, dtype)
    best = torch.full((POLICIES,), float("inf"), device=device, dtype=dtype)
    keep = pol.gain.clone()
    start = torch.randn(POLICIES, STATE, device=device, dtype=dtype)
    step = graphed(dyn, pol, start) if device.type == "cuda" else lambda: rollout(dyn, pol, start)

    for r in range(ROUNDS):
        start.normal_()
        _, cost = step()
        better = cost < best
        best = torch.where(better, cost, best)
        keep = torch.where(better[:, None, None], pol.gain, keep)
        pol.gain.copy_(keep + 0.05 * torch.randn_like(keep))
        if r % 20 == 0:
            print("round", r, "best", best.min().item())


if __name__ == "__main__":
    search()
