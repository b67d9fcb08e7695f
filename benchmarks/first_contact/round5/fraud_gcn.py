"""Node classification on a payment network with a pre-normalised CSR adjacency."""
import os
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F

warnings.filterwarnings("ignore", message="Sparse CSR")
TINY = os.environ.get("SMALL") == "1"
dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.set_float32_matmul_precision("high")
torch.manual_seed(0)

NODES, DEG, FEAT, HID, DEPTH = (50, 3, 8, 16, 2) if TINY else (150_000, 12, 64, 256, 3)
EPOCHS = 30 if TINY else 80


def normalised_adjacency():
    a = torch.randint(NODES, (NODES * DEG // 2,), device=dev)
    b = torch.randint(NODES, (NODES * DEG // 2,), device=dev)
    loop = torch.arange(NODES, device=dev)
    idx = torch.stack((torch.cat((a, b, loop)), torch.cat((b, a, loop))))
    coo = torch.sparse_coo_tensor(idx, torch.ones(idx.size(1), device=dev), (NODES, NODES)).coalesce()
    idx = coo.indices()
    scale = torch.bincount(idx[0], minlength=NODES).float().rsqrt()
    return torch.sparse_coo_tensor(idx, scale[idx[0]] * scale[idx[1]], (NODES, NODES), is_coalesced=True).to_sparse_csr()


class Propagate(torch.autograd.Function):
    """The adjacency is symmetric, so its transpose is itself."""

    @staticmethod
    def forward(ctx, adj, x):
        ctx.adj = adj
        return adj @ x

    @staticmethod
    def backward(ctx, grad):
        return None, ctx.adj @ grad


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = [FEAT] + [HID] * DEPTH
        self.lins = nn.ModuleList(nn.Linear(i, o) for i, o in zip(sizes, sizes[1:]))
        self.norms = nn.ModuleList(nn.LayerNorm(o) for o in sizes[1:])
        self.out = nn.Linear(HID, 2)

    def forward(self, x, adj):
        for lin, norm in zip(self.lins, self.norms):
            x = F.relu(norm(Propagate.apply(adj, lin(x))))
        return self.out(x)


adj = normalised_adjacency()
x = torch.randn(NODES, FEAT, device=dev)
y = (x[:, 0] + x[:, 1] > 1.5).long()
cut = NODES * 3 // 4
model = GCN().to(dev)
opt = torch.optim.AdamW(model.parameters(), lr=2e-3, fused=True)

for epoch in range(1, EPOCHS + 1):
    model.train()
    loss = F.cross_entropy(model(x, adj)[:cut], y[:cut])
    loss.backward()
    opt.step()
    opt.zero_grad()
    if epoch % 40 == 0:
        model.eval()
        with torch.inference_mode():
            acc = (model(x, adj)[cut:].argmax(1) == y[cut:]).float().mean()
        print(f"epoch {epoch} loss {loss.item():.3f} held-out accuracy {acc.item():.3f}")
