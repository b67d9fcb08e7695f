import os
import torch
import torch.nn as nn
import torch.nn.functional as F


class Args:
    papers = 120_000
    edges = 1_500_000
    features = 256
    hidden = 256
    fields = 40
    steps = 90
    lr = 3e-3


if os.environ.get("SMALL") == "1":
    Args.papers, Args.edges, Args.features, Args.hidden, Args.fields, Args.steps = 500, 3000, 32, 32, 5, 30

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(2)


def citations():
    src = torch.randint(Args.papers, (Args.edges,), device=device)
    dst = (src + torch.randint(1, 2000, (Args.edges,), device=device)) % Args.papers
    loops = torch.arange(Args.papers, device=device)
    index = torch.stack([torch.cat([dst, loops]), torch.cat([src, loops])])
    degree = torch.bincount(index[0], minlength=Args.papers).float()
    weight = degree[index[0]].rsqrt() * degree[index[1]].rsqrt()
    adj = torch.sparse_coo_tensor(index, weight, (Args.papers, Args.papers)).coalesce()
    return adj.to_sparse_csr(), adj.t().coalesce().to_sparse_csr()


class Spread(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type=device.type, cast_inputs=torch.float32)
    def forward(ctx, x, a, a_t):
        ctx.a_t = a_t
        return a @ x

    @staticmethod
    @torch.amp.custom_bwd(device_type=device.type)
    def backward(ctx, g):
        return ctx.a_t @ g, None, None


class GraphNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(Args.features, Args.hidden)
        self.second = nn.Linear(Args.hidden, Args.hidden)
        self.last = nn.Linear(Args.hidden, Args.fields)

    def forward(self, x, a, a_t):
        h = F.relu(Spread.apply(self.first(x), a, a_t), inplace=True)
        z = Spread.apply(self.second(h), a, a_t)
        return self.last(F.relu(z)), z


class Timeline:
    """Embeddings seen so far, for the drift between the first and the last epoch."""

    def __init__(self):
        self.points = []

    def add(self, epoch, z):
        self.points.append((epoch, z.half()))  # flaw: memory-growth

    def drift(self):
        (_, a), (_, b) = self.points[0], self.points[-1]
        return 1 - F.cosine_similarity(a.float(), b.float(), dim=-1).mean().item()


adj, adj_t = citations()
x = torch.randn(Args.papers, Args.features, device=device)
y = torch.randint(Args.fields, (Args.papers,), device=device)
net = GraphNet().to(device)
optimizer = torch.optim.Adam(net.parameters(), lr=Args.lr, fused=True)
timeline = Timeline()
for epoch in range(Args.steps):
    with torch.autocast(device.type, dtype=torch.bfloat16):
        logits, z = net(x, adj, adj_t)
    loss = F.cross_entropy(logits.float(), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    timeline.add(epoch, z.detach())
print("loss", loss.item(), "drift", timeline.drift())
