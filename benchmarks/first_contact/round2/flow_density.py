"""RealNVP on tabular data."""
import torch
import torch.nn as nn

torch.manual_seed(2)
torch.autograd.set_detect_anomaly(True)  # flaw: anomaly-detection-on
device = "cuda" if torch.cuda.is_available() else "cpu"


class Coupling(nn.Module):
    def __init__(self, dim, hidden, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(dim // 2, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, dim))

    def forward(self, x):
        a, b = x.chunk(2, -1)
        if self.flip:
            a, b = b, a
        s, t = self.net(a).float().chunk(2, -1)
        s = torch.tanh(s)
        b = torch.addcmul(t, b, s.exp())
        return torch.cat((b, a) if self.flip else (a, b), -1), s.sum(-1)


class Flow(nn.Module):
    def __init__(self, dim=256, hidden=1024, depth=10):
        super().__init__()
        self.steps = nn.ModuleList(Coupling(dim, hidden, i % 2 == 1) for i in range(depth))

    def nll(self, x):
        logdet = 0.0
        for s in self.steps:
            x, ld = s(x)
            logdet = logdet + ld
        return (0.5 * x.square().sum(-1) - logdet).mean()


flow = Flow().to(device)
opt = torch.optim.Adam(flow.parameters(), 1e-4, fused=True)
table = torch.randn(65536, 256, device=device)
batch = 8192
for i in range(500):
    x = table[torch.randint(0, 65536, (batch,), device=device)]
    with torch.autocast(device, dtype=torch.bfloat16):
        loss = flow.nll(x)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if i % 100 == 0:
        print(i, loss.item())
